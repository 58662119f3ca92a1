"""What a round tries: its trials, their numbers, what is reused, and the waves in which they come."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.campaigns.simulated import STAGE, Simulation, by_loss, campaign, fails, passes

from slurm_agent_tools.campaigns.design import baseline_runs, chance_share, next_trials, rungs
from slurm_agent_tools.campaigns.trial_identity import arm_of, identity_of
from slurm_agent_tools.models.campaign import RevisionBegun, RoundDesigned, RoundJudged, Trial, TrialId
from slurm_agent_tools.models.campaign_file import HalvingRound

GRID = {"kind": "grid", "vary": {"rate": [0.01, 0.1, 1.0], "batch": [32, 64]}}

RATES = {"low": 0.001, "high": 1.0, "log": True}


def test_a_smoke_round_runs_each_stage_once_and_short() -> None:
    (trial,) = Simulation(campaign({"kind": "smoke"})).design(0)
    assert trial.settings == {"rate": 0.1, "batch": 32, "epochs": 1}
    assert (trial.purpose, trial.request.time_limit_seconds) == ("smoke", 120)


def test_a_grid_has_every_combination_once_and_the_baseline() -> None:
    trials = Simulation(campaign(GRID)).design(0)
    assert [trial.purpose for trial in trials].count("baseline") == 1
    assert {(trial.settings["rate"], trial.settings["batch"]) for trial in trials} == set(
        itertools.product([0.01, 0.1, 1.0], [32, 64])
    )
    assert [trial.id.number for trial in trials] == [1, 2, 3, 4, 5, 6]


def test_repeats_are_told_apart_and_come_in_blocks() -> None:
    trials = Simulation(campaign({**GRID, "repeats": 3})).design(0)
    assert [trial.repeat for trial in trials] == [1] * 6 + [2] * 6 + [3] * 6 + [4, 5, 6, 7]
    assert len({trial.identity for trial in trials}) == 22
    assert len({trial.arm for trial in trials}) == 6


def test_what_all_are_compared_with_has_as_many_more_runs_as_the_root_of_their_number() -> None:
    trials = Simulation(campaign({**GRID, "repeats": 3})).design(0)
    baseline = [trial.repeat for trial in trials if trial.purpose == "baseline"]
    assert baseline == [1, 2, 3, 4, 5, 6, 7], "3 times the root of the 5 others"
    assert [trial.purpose for trial in trials[18:]] == ["baseline"] * 4, "which come last"
    assert (baseline_runs(12, 4), baseline_runs(12, 8), baseline_runs(12, 16)) == (24, 34, 48)
    assert (baseline_runs(12, 1), baseline_runs(1, 16), baseline_runs(2, 0)) == (12, 1, 2)


def test_a_list_has_exactly_its_configurations_beside_the_baseline() -> None:
    trials = Simulation(campaign({"kind": "list", "trials": [{"rate": 0.5}, {"batch": 8}]})).design(0)
    assert [(trial.purpose, trial.settings["rate"], trial.settings["batch"]) for trial in trials] == [
        ("baseline", 0.1, 32),
        ("trial", 0.5, 32),
        ("trial", 0.1, 8),
    ]


def test_chance_is_the_same_for_the_same_campaign_and_round_alone() -> None:
    file = campaign({"kind": "random", "vary": {"rate": RATES}, "trials": 8})
    first = Simulation(file).design(0)
    assert first == Simulation(file).design(0)
    assert [trial.settings for trial in first] != [trial.settings for trial in Simulation(file, "other").design(0)]
    assert all(0.001 <= float(trial.settings["rate"]) <= 1.0 for trial in first)


def test_a_small_space_is_drawn_from_without_repetition() -> None:
    trials = Simulation(campaign({"kind": "random", "vary": {"batch": [8, 16, 32]}, "trials": 50})).design(0)
    assert sorted(int(trial.settings["batch"]) for trial in trials) == [8, 16, 32]


def test_no_trial_is_designed_twice() -> None:
    simulation = Simulation(campaign(GRID))
    assert simulation.round(0, by_loss(lambda _: 1.0))
    assert simulation.design(0) == ()


def test_what_passed_before_is_reused_and_a_known_baseline_is_not_run_again() -> None:
    simulation = Simulation(campaign(GRID, {"kind": "list", "trials": [{"rate": 0.01}, {"rate": 0.02}]}))
    simulation.round(0, by_loss(lambda _: 1.0))
    first, second = simulation.design(1)
    assert first.reuses is not None
    assert simulation.state.trials[first.reuses].trial.settings == first.settings
    assert (second.reuses, second.settings["rate"]) == (None, 0.02)


def test_another_line_of_code_voids_what_passed_and_another_memory_limit_does_not() -> None:
    simulation = Simulation(campaign(GRID))
    simulation.round(0, by_loss(lambda _: 1.0))
    roomy = {**STAGE, "resources": {"cpus": 2, "memory": "8G", "time_limit": "1h"}}
    simulation.begin(campaign(GRID, stages=[roomy]), "c0de")
    assert simulation.design(0) == ()
    simulation.begin(simulation.file, "other code")
    again = simulation.design(0)
    assert [(trial.id.number, trial.reuses) for trial in again] == [(number, None) for number in range(7, 13)]


def test_unsent_trials_are_designed_anew_when_the_file_changes_and_sent_ones_stay() -> None:
    simulation = Simulation(campaign(GRID))
    trials = simulation.design(0)
    simulation.run(trials[:2], by_loss(lambda _: 1.0))
    simulation.begin(campaign({"kind": "grid", "vary": {"rate": [0.01, 0.1, 1.0], "batch": [32]}}), "c0de")
    assert [(trial.id.number, trial.settings["rate"]) for trial in simulation.design(0)] == [(7, 1.0)]


def test_a_failed_trial_is_not_designed_again_unless_it_asks_for_something_else() -> None:
    simulation = Simulation(campaign({"kind": "list", "trials": [{"rate": 0.5}]}))
    simulation.round(0, lambda _: fails("host-out-of-memory"))
    assert simulation.design(0) == ()
    simulation.begin(simulation.file, "c0de")
    assert simulation.design(0) == ()
    roomy = {**STAGE, "resources": {"cpus": 2, "memory": "8G", "time_limit": "10m"}}
    simulation.begin(campaign({"kind": "list", "trials": [{"rate": 0.5}]}, stages=[roomy]), "c0de")
    assert [trial.request.memory_bytes for trial in simulation.design(0)] == [8 * 2**30] * 2


def test_a_later_round_starts_from_the_best_and_keeps_the_first_baseline() -> None:
    simulation = Simulation(
        campaign({"kind": "list", "trials": [{"rate": 0.5}]}, {"kind": "grid", "vary": {"batch": [16]}})
    )
    trials = simulation.round(0, by_loss(lambda _: 1.0))
    simulation.happen(RoundJudged(0, (), {"training": trials[1].arm}, "0.5 is better"))
    (trial,) = simulation.design(1)
    assert trial.settings == {"rate": 0.5, "batch": 16, "epochs": 10}


def test_scaling_up_takes_the_best_with_other_lengths_and_the_baseline_as_long() -> None:
    simulation = Simulation(campaign(GRID, {"kind": "scale_up", "best": 2, "change": {"epochs": 50}}))
    simulation.round(0, by_loss(lambda trial: float(trial.settings["rate"]) + float(trial.settings["batch"]) / 1000))
    trials = simulation.design(1)
    assert [(t.purpose, t.settings["rate"], t.settings["batch"], t.settings["epochs"]) for t in trials] == [
        ("baseline", 0.1, 32, 50),
        ("scale_up", 0.01, 32, 50),
        ("scale_up", 0.01, 64, 50),
    ]


def test_a_stage_takes_part_where_something_varies_that_it_has_and_while_it_is_not_stopped() -> None:
    fetch = {
        "name": "fetch",
        "kind": "cpu",
        "command": ["fetch"],
        "parameters": {"chunk": {"default": 4, "argument": "--chunk"}},
        "resources": {"cpus": 1, "time_limit": "10m"},
    }
    file = campaign(
        {"kind": "grid", "vary": {"chunk": [4, 8]}}, {"kind": "grid", "vary": {"cpus": [1, 2]}}, stages=[STAGE, fetch]
    )
    assert {trial.stage for trial in Simulation(file).design(0)} == {"fetch"}
    trials = next_trials(file, "lr", 1, Simulation(file).state)
    assert {(trial.stage, trial.request.cpus) for trial in trials} == {
        ("training", 1), ("training", 2), ("fetch", 1), ("fetch", 2),
    }  # fmt: skip
    assert len(trials) == 4, "the baseline is the configuration that asks for what the stage asks for"


def test_memory_that_varies_is_part_of_a_configuration() -> None:
    trials = Simulation(campaign({"kind": "grid", "vary": {"memory": ["1G", "2G"]}})).design(0)
    assert [trial.request.memory_bytes for trial in trials] == [2**30, 2 * 2**30]


def test_halving_runs_many_short_and_the_best_of_them_longer() -> None:
    halving = {"kind": "halving", "vary": {"rate": RATES}, "trials": 9, "length": "epochs", "from": 1, "to": 9}
    simulation = Simulation(campaign(halving))
    trials = simulation.round(0, by_loss(lambda trial: float(trial.settings["rate"]) / float(trial.settings["epochs"])))
    epochs = [trial.settings["epochs"] for trial in trials if trial.purpose == "trial"]
    assert epochs == [1] * 9 + [3] * 3 + [9]
    best = min((trial for trial in trials if trial.purpose == "trial"), key=lambda trial: trial.settings["rate"])
    assert trials[-2].arm == best.arm or trials[-1].arm == best.arm
    assert [trial.settings["epochs"] for trial in trials if trial.purpose == "baseline"] == [9]


@pytest.mark.parametrize(("start", "end", "expected"), [(1, 9, [1, 3, 9]), (2, 10, [2, 6, 10]), (5, 5, [5])])
def test_the_last_rung_is_as_long_as_stated(start: int, end: int, expected: list[int]) -> None:
    this: dict[str, Any] = {"kind": "halving", "hypothesis": "h", "vary": {"rate": RATES}, "trials": 27}
    file = campaign({**this, "length": "epochs", "from": start, "to": end})
    this_round = file.rounds[0]
    assert isinstance(this_round, HalvingRound)
    found = rungs(this_round, file.stages[0])
    assert [length for length, _ in found] == expected
    assert [count for _, count in found] == [27, 9, 3][: len(expected)]


def test_halving_goes_on_without_those_that_failed_and_waits_for_those_that_run() -> None:
    halving = {"kind": "halving", "vary": {"rate": RATES}, "trials": 6, "length": "epochs", "from": 1, "to": 3}
    simulation = Simulation(campaign(halving))
    first = simulation.design(0)
    simulation.run(first[:5], lambda trial: passes(loss=1.0) if trial.id.number == 4 else fails("python-error"))
    assert simulation.design(0) == ()
    simulation.run(first[5:], lambda _: fails("python-error"))
    assert [trial.arm for trial in simulation.design(0) if trial.purpose == "trial"] == [first[3].arm]


def test_a_search_comes_in_waves_of_what_runs_at_once_and_ends_with_its_number() -> None:
    search = {"kind": "search", "vary": {"rate": RATES, "batch": [8, 16, 32, 64]}, "trials": 10}
    simulation = Simulation(campaign(search, limits={"cpu_hours": 10, "at_once": 4}))
    waves: list[tuple[Trial, ...]] = []
    while wave := simulation.design(0):
        waves.append(wave)
        simulation.run(wave, by_loss(lambda trial: abs(float(trial.settings["rate"]) - 0.03)))
    assert [len([trial for trial in wave if trial.purpose == "trial"]) for wave in waves] == [4, 4, 2]
    assert [trial.id for wave in waves for trial in wave] == [TrialId(0, number) for number in range(1, 12)]


def test_a_thousand_configurations_are_told_apart() -> None:
    vary = {"rate": [step / 1000 for step in range(1, 101)], "batch": [2**power for power in range(10)]}
    simulation = Simulation(campaign({"kind": "grid", "vary": vary}, limits={"cpu_hours": 100, "trials": 1000}))
    trials = next_trials(simulation.file, "lr", 0, simulation.state)
    assert len({trial.identity for trial in trials}) == 1000


def test_halving_designs_the_unsent_of_its_first_rung_anew_when_the_file_changes() -> None:
    halving = {"kind": "halving", "vary": {"rate": RATES}, "trials": 6, "length": "epochs", "from": 1, "to": 3}
    simulation = Simulation(campaign(halving))
    first = simulation.design(0)
    simulation.run(first[:2], by_loss(lambda _: 1.0))
    simulation.begin(simulation.file, "c0de")
    again = simulation.design(0)
    assert [trial.id.number for trial in again] == [7, 8, 9, 10]
    assert [trial.identity for trial in again] == [trial.identity for trial in first[2:]]
    simulation.run(again, by_loss(lambda trial: float(trial.settings["rate"])))
    assert {trial.settings["epochs"] for trial in simulation.design(0)} == {3}


def test_scaling_up_begins_with_what_the_last_round_goes_on_with() -> None:
    simulation = Simulation(campaign(GRID, {"kind": "scale_up", "change": {"epochs": 50}}))
    trials = simulation.round(0, by_loss(lambda trial: float(trial.settings["rate"])))
    worst = next(trial for trial in trials if trial.settings["rate"] == 1.0)
    simulation.happen(RoundJudged(0, (), {"training": worst.arm}, "a person would say so"))
    assert simulation.design(1)[-1].arm == worst.arm


def test_what_a_smoke_run_needed_to_pass_is_what_later_rounds_begin_with() -> None:
    simulation = Simulation(campaign({"kind": "smoke"}, {"kind": "grid", "vary": {"rate": [0.5]}}))
    (smoke,) = simulation.design(0)
    simulation.run([smoke], lambda _: fails("gpu-out-of-memory"))
    settings = {**smoke.settings, "batch": 16}
    stage = simulation.file.stages[0]
    mend = Trial(
        TrialId(0, 2), "training", "fix", arm_of(stage, settings), identity_of(stage, settings, 1, "c0de"), settings,
        smoke.request, replaces=smoke.id, mended="batch 16 instead of 32",
    )  # fmt: skip
    simulation.happen(RoundDesigned(0, 1, "mend", (mend,)))
    simulation.run([mend], lambda _: passes(loss=1.0))
    assert [trial.settings for trial in simulation.design(1)] == [
        {"rate": 0.1, "batch": 16, "epochs": 10},
        {"rate": 0.5, "batch": 16, "epochs": 10},
    ]


def test_memory_that_mended_a_configuration_is_asked_for_again() -> None:
    simulation = Simulation(campaign({"kind": "smoke"}, {"kind": "grid", "vary": {"rate": [0.5]}}))
    (smoke,) = simulation.design(0)
    simulation.run([smoke], lambda _: fails("host-out-of-memory"))
    roomy = replace(smoke.request, memory_bytes=4 * 2**30)
    mend = replace(smoke, id=TrialId(0, 2), purpose="fix", replaces=smoke.id, mended="memory 4G", request=roomy)
    simulation.happen(RoundDesigned(0, 1, "mend", (mend,)))
    simulation.run([mend], lambda _: passes(loss=1.0))
    assert [trial.request.memory_bytes for trial in simulation.design(1)] == [4 * 2**30, 2**30]


def judged_at(simulation: Simulation, number: int, stages: int) -> float:
    """The share that each of the stages' comparisons of a round takes; the round is judged with it."""
    share = chance_share(simulation.file, number, simulation.state)
    simulation.happen(RoundDesigned(number, simulation.state.revision, "", ()))
    simulation.happen(RoundJudged(number, (), {}, "", stages * share))
    return share


def test_planned_comparisons_share_what_may_go_wrong_and_unplanned_ones_get_ever_less_of_the_rest() -> None:
    one = {"kind": "grid", "vary": {"rate": [0.01]}}
    simulation = Simulation(campaign({"kind": "smoke"}, {**one, "repeats": 3}, one, {**one, "repeats": 2}))
    shares = [judged_at(simulation, number, 1) for number in (1, 3)]
    assert shares == pytest.approx([0.4, 0.48])
    for revision in range(2, 8):
        simulation.happen(RevisionBegun(revision, "f" * 64, "", dict(simulation.state.code), 3))
        shares.append(judged_at(simulation, 3, 1))
    assert all(later < before for before, later in itertools.pairwise(shares[1:]))
    assert sum(shares) == pytest.approx(simulation.state.chance_spent)
    assert sum(shares) < 1


def test_a_round_that_was_not_planned_to_compare_takes_its_part_for_each_stage() -> None:
    other = {**STAGE, "name": "other"}
    simulation = Simulation(campaign({"kind": "grid", "vary": {"rate": [0.01]}}, stages=[STAGE, other]))
    assert chance_share(simulation.file, 0, simulation.state) == pytest.approx(0.4)
