"""What a round's runs come to: promoted, kept, fixed, stopped, and the configuration to go on with."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.campaigns.simulated import STAGE, Measure, Simulation, by_loss, campaign, fails, noisy, passes

from slurm_agent_tools.campaigns import measured
from slurm_agent_tools.campaigns.rules.judge import finished_early, judge_round
from slurm_agent_tools.models.campaign import (
    ArmVerdict,
    RoundDesigned,
    RoundJudged,
    Trial,
    TrialEnd,
    TrialId,
)
from slurm_agent_tools.models.campaign_file import CampaignFile

RATES = {"kind": "grid", "vary": {"rate": [0.01, 0.1, 1.0]}}

SMOKE = {"kind": "smoke"}


def judged(file: CampaignFile, measure: Measure, number: int = 0) -> tuple[Simulation, RoundJudged]:
    """A campaign after its rounds up to this one, and the last round's judgement."""
    simulation = Simulation(file)
    for at in range(number + 1):
        simulation.round(at, measure)
        simulation.happen(judge_round(file, at, simulation.state))
    return simulation, simulation.state.judged[number]


def of_rate(simulation: Simulation, found: RoundJudged, rate: float) -> ArmVerdict:
    """The verdict on the configuration with this rate."""
    arms = {state.trial.arm for state in simulation.state.trials.values() if state.trial.settings["rate"] == rate}
    (verdict,) = (verdict for verdict in found.verdicts if verdict.arm in arms)
    return verdict


def loss_by_rate(share: float, losses: dict[float, float]) -> Measure:
    factor = noisy(7, share)
    return by_loss(lambda trial: losses[float(trial.settings["rate"])] * factor())


def test_repeated_runs_promote_what_is_surely_better_and_stop_what_is_surely_worse() -> None:
    file = campaign({**RATES, "repeats": 6})
    simulation, found = judged(file, loss_by_rate(0.05, {0.01: 0.7, 0.1: 1.0, 1.0: 1.5}))
    better, worse = of_rate(simulation, found, 0.01), of_rate(simulation, found, 1.0)
    assert (better.verdict, worse.verdict, of_rate(simulation, found, 0.1).verdict) == ("promote", "stop", "keep")
    assert better.low is not None
    assert better.high is not None
    assert better.gain is not None
    assert 0.0 < better.low < 0.3 < better.high < 0.5
    assert better.runs == 6
    assert found.best == {"training": better.arm}


def test_one_run_says_that_it_is_one_and_still_names_the_best() -> None:
    simulation, found = judged(campaign(RATES), loss_by_rate(0.0, {0.01: 0.7, 0.1: 1.0, 1.0: 1.5}))
    best = of_rate(simulation, found, 0.01)
    assert (best.verdict, best.low, best.high, best.runs) == ("keep", None, None, 1)
    assert "one run" in best.reason.lower()
    assert found.best == {"training": best.arm}
    assert best.gain == pytest.approx(0.3)
    assert "30% better than the baseline (one run with loss 1)" in best.reason
    assert "50% worse than the baseline" in of_rate(simulation, found, 1.0).reason


def test_what_comes_out_as_the_baseline_does_is_told_to_be_like_it() -> None:
    simulation, found = judged(campaign(RATES), loss_by_rate(0.0, {0.01: 1.0, 0.1: 1.0, 1.0: 5.54}))
    assert "loss 1: like the baseline (" in of_rate(simulation, found, 0.01).reason
    assert "454% worse than the baseline" in of_rate(simulation, found, 1.0).reason
    assert "gain -" not in of_rate(simulation, found, 1.0).reason


def test_what_differs_only_by_chance_is_kept() -> None:
    simulation, found = judged(campaign({**RATES, "repeats": 4}), loss_by_rate(0.2, {0.01: 1.0, 0.1: 1.0, 1.0: 1.0}))
    assert {verdict.verdict for verdict in found.verdicts} == {"keep"}
    verdict = of_rate(simulation, found, 0.01)
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < 0 < verdict.high


def test_more_is_better_where_the_objective_says_so() -> None:
    file = campaign({**RATES, "repeats": 5}, objective={"metric": "loss", "direction": "maximize"})
    simulation, found = judged(file, loss_by_rate(0.03, {0.01: 0.7, 0.1: 1.0, 1.0: 1.5}))
    assert of_rate(simulation, found, 1.0).verdict == "promote"
    assert of_rate(simulation, found, 0.01).verdict == "stop"
    assert of_rate(simulation, found, 1.0).gain == pytest.approx(0.5, abs=0.1)


def test_values_around_zero_are_compared_by_their_differences() -> None:
    file = campaign({**RATES, "repeats": 6})
    factor = noisy(3, 0.05)
    shifted = {0.01: -1.0, 0.1: 0.5, 1.0: 0.5}
    simulation, found = judged(file, by_loss(lambda trial: shifted[float(trial.settings["rate"])] + factor() - 1.0))
    assert of_rate(simulation, found, 0.01).verdict == "promote"
    assert of_rate(simulation, found, 0.01).gain == pytest.approx(3.0, rel=0.2)


def test_wall_clock_counts_queue_run_and_what_failed_before() -> None:
    file = campaign(
        {"kind": "list", "trials": [{"rate": 0.5}]},
        objective={"wall_clock": "all of it"},
        fixes=[{"on": "host-out-of-memory", "memory": "4G"}],
    )
    simulation = Simulation(file)
    base, trial = simulation.design(0)
    simulation.run([base], lambda _: passes())
    simulation.run([trial], lambda _: fails("host-out-of-memory"))
    mend = Trial(
        TrialId(0, 3), "training", "fix", trial.arm, trial.identity, trial.settings, trial.request,
        replaces=trial.id, mended="memory 2G instead of 1G",
    )  # fmt: skip
    simulation.happen(RoundDesigned(0, 1, "mend", (mend,)))
    simulation.run([mend], lambda _: TrialEnd("1", "COMPLETED", passed=True, queue_seconds=0.0, run_seconds=40.0))
    found = judge_round(file, 0, simulation.state)
    values = {verdict.arm: verdict.value for verdict in found.verdicts}
    assert values == {base.arm: 65.0, trial.arm: 50.0}
    assert found.best == {"training": trial.arm}


def test_a_configuration_that_was_mended_by_another_one_is_to_be_fixed() -> None:
    file = campaign({"kind": "list", "trials": [{"batch": 64}]})
    simulation = Simulation(file)
    base, trial = simulation.design(0)
    simulation.run([base], lambda _: passes(loss=1.0))
    simulation.run([trial], lambda _: fails("gpu-out-of-memory"))
    smaller = Trial(
        TrialId(0, 3), "training", "fix", "another arm", "another run", {**trial.settings, "batch": 48}, trial.request,
        replaces=trial.id, mended="batch 48 instead of 64",
    )  # fmt: skip
    simulation.happen(RoundDesigned(0, 1, "mend", (smaller,)))
    simulation.run([smaller], lambda _: passes(loss=0.5))
    found = judge_round(file, 0, simulation.state)
    outcome = {verdict.arm: verdict for verdict in found.verdicts}
    assert outcome[trial.arm].verdict == "fix"
    assert "gpu-out-of-memory" in outcome[trial.arm].reason
    assert "batch 48" in outcome[trial.arm].reason
    assert found.best == {"training": "another arm"}


@pytest.mark.parametrize(
    ("category", "repeats", "expected"),
    [
        ("python-exception", 1, "fix"),
        ("python-exception", 2, "stop"),
        ("node-failure", 2, "fix"),
        ("no-record", 2, "fix"),
    ],
)
def test_failures_decide_with_their_category(category: str, repeats: int, expected: str) -> None:
    file = campaign({**RATES, "repeats": repeats})
    simulation, found = judged(
        file, lambda trial: fails(category) if trial.settings["rate"] == 1.0 else passes(loss=1.0)
    )
    verdict = of_rate(simulation, found, 1.0)
    assert (verdict.verdict, verdict.value, verdict.runs) == (expected, None, 0)
    assert category in verdict.reason


def test_a_better_configuration_that_fails_now_and_then_is_not_promoted() -> None:
    file = campaign({**RATES, "repeats": 6})
    better = loss_by_rate(0.02, {0.01: 0.5, 0.1: 1.0, 1.0: 1.0})

    def measure(trial: Trial) -> TrialEnd:
        return fails("python-exception") if trial.settings["rate"] == 0.01 and trial.repeat == 2 else better(trial)

    simulation, found = judged(file, measure)
    verdict = of_rate(simulation, found, 0.01)
    assert (verdict.verdict, verdict.runs) == ("keep", 5)
    assert "python-exception" in verdict.reason


def test_stages_on_cpus_and_on_gpus_are_judged_apart() -> None:
    gpu = {**STAGE, "name": "eval", "kind": "gpu", "resources": {"gpus": 1, "time_limit": "10m"}}
    losses = {"training": {0.01: 0.5, 0.1: 1.0, 1.0: 2.0}, "eval": {0.01: 2.0, 0.1: 1.0, 1.0: 0.5}}
    factor = noisy(5, 0.02)
    file = campaign({**RATES, "repeats": 4}, stages=[STAGE, gpu])
    simulation, found = judged(
        file, by_loss(lambda trial: losses[trial.stage][float(trial.settings["rate"])] * factor())
    )
    rate = {
        stage: next(s.trial.settings["rate"] for s in simulation.state.trials.values() if s.trial.arm == arm)
        for stage, arm in found.best.items()
    }
    assert rate == {"training": 0.01, "eval": 1.0}
    assert "training (CPU)" in found.text
    assert "eval (GPU)" in found.text


def test_what_an_earlier_round_promoted_stays_where_a_later_one_finds_nothing_better() -> None:
    file = campaign({**RATES, "repeats": 5}, {"kind": "grid", "vary": {"batch": [16, 64]}, "repeats": 5})
    factor = noisy(11, 0.03)

    def loss(trial: Trial) -> float:
        return (
            (0.6 if trial.settings["rate"] == 0.01 else 1.0)
            * (1.0 if trial.settings["batch"] == 32 else 1.3)
            * factor()
        )

    simulation, second = judged(file, by_loss(loss), 1)
    assert second.best == simulation.state.judged[0].best


def test_halving_stops_what_did_not_get_further_and_says_its_place() -> None:
    halving = {
        "kind": "halving",
        "vary": {"rate": [0.01, 0.02, 0.04]},
        "trials": 3,
        "length": "epochs",
        "from": 1,
        "to": 3,
    }
    simulation, found = judged(campaign(halving), by_loss(lambda trial: float(trial.settings["rate"])))
    assert of_rate(simulation, found, 0.04).verdict == "stop"
    assert "Place 3 of 3" in of_rate(simulation, found, 0.04).reason
    assert found.best == {"training": of_rate(simulation, found, 0.01).arm}


def test_a_smoke_round_keeps_what_ran_and_stops_nothing_that_it_cannot_compare() -> None:
    _, found = judged(campaign(SMOKE, RATES), lambda _: passes(loss=1.0))
    (verdict,) = found.verdicts
    assert (verdict.verdict, verdict.gain) == ("keep", None)
    assert found.best == {"training": verdict.arm}


def test_a_round_of_which_nothing_was_sent_is_judged_too() -> None:
    simulation = Simulation(campaign(RATES))
    simulation.design(0)
    found = judge_round(simulation.file, 0, simulation.state)
    assert {verdict.verdict for verdict in found.verdicts} == {"keep"}
    assert all("Not run" in verdict.reason for verdict in found.verdicts)
    assert found.best == {}


def test_runs_without_the_metric_are_kept_and_said_so() -> None:
    _, found = judged(campaign(RATES), lambda _: passes())
    assert all("none tells loss" in verdict.reason for verdict in found.verdicts)


@pytest.mark.parametrize(
    ("objective", "ends"),
    [
        ({"metric": "loss", "direction": "minimize", "target": 0.75}, True),
        ({"metric": "loss", "direction": "minimize", "target": 0.65}, False),
        ({"metric": "loss", "direction": "maximize", "target": 1.4}, True),
        ({"wall_clock": "all", "target": 65.0}, True),
        ({"wall_clock": "all", "target": 64.0}, False),
    ],
)
def test_a_target_that_is_reached_ends_the_campaign(objective: dict[str, Any], ends: bool) -> None:
    file = campaign(SMOKE, RATES, objective=objective)
    simulation, _ = judged(file, loss_by_rate(0.0, {0.01: 0.7, 0.1: 1.0, 1.0: 1.5}), 1)
    reason = finished_early(file, simulation.state)
    assert (reason is not None and "target" in reason) is ends


def test_rounds_that_gain_little_one_after_another_are_a_plateau() -> None:
    rounds = [{"kind": "list", "trials": [{"batch": batch}]} for batch in (16, 8, 4)]
    file = campaign(*rounds, stop={"plateau": {"rounds": 2, "gain_below": 0.01}})
    losses = {32: 1.0, 16: 0.8, 8: 0.799, 4: 0.81}
    simulation, _ = judged(file, by_loss(lambda trial: losses[int(trial.settings["batch"])]), 1)
    assert finished_early(file, simulation.state) is None
    simulation, _ = judged(file, by_loss(lambda trial: losses[int(trial.settings["batch"])]), 2)
    reason = finished_early(file, simulation.state)
    assert reason is not None
    assert "plateau" in reason


def test_a_plateau_is_not_seen_where_rounds_keep_gaining() -> None:
    rounds = [{"kind": "list", "trials": [{"batch": batch}]} for batch in (16, 8, 4)]
    file = campaign(*rounds, stop={"plateau": {"rounds": 2, "gain_below": 0.01}})
    simulation, _ = judged(file, by_loss(lambda trial: float(trial.settings["batch"])), 2)
    assert finished_early(file, simulation.state) is None


def plateau_after(values: dict[int, float], direction: str) -> str | None:
    """Why a campaign whose first of two rounds has a baseline and one configuration, as the second one, ends."""
    rounds = [{"kind": "list", "trials": [{"batch": batch}]} for batch in (16, 8)]
    objective = {"metric": "loss", "direction": direction}
    file = campaign(*rounds, objective=objective, stop={"plateau": {"rounds": 1, "gain_below": 0.02}})
    return finished_early(file, judged(file, by_loss(lambda trial: values[int(trial.settings["batch"])]), 1)[0].state)


@pytest.mark.parametrize(
    ("values", "direction"),
    [
        ({32: 1.0, 16: -1.0, 8: -2.0}, "minimize"),  # below 0 there is no least
        ({32: 1.0, 16: 0.0, 8: -1.0}, "minimize"),
        ({32: -100.0, 16: -10.0, 8: -9.0}, "maximize"),  # a tenth of what was left, a hundredth of the baseline
        ({32: -100.0, 16: -110.0, 8: -130.0}, "minimize"),
    ],
)
def test_values_of_0_and_below_are_no_plateau_while_they_get_better(values: dict[int, float], direction: str) -> None:
    assert plateau_after(values, direction) is None


@pytest.mark.parametrize("last", [0.0, 1.0])
def test_after_an_error_of_0_nothing_is_left_to_gain(last: float) -> None:
    assert "plateau" in (plateau_after({32: 1.0, 16: 0.0, 8: last}, "minimize") or "")


def two_rounds(losses: dict[int, float]) -> tuple[Simulation, RoundJudged]:
    """A round that promotes rate 0.01 by five runs each, and a round of single runs of other batches."""
    file = campaign({**RATES, "repeats": 5}, {"kind": "grid", "vary": {"batch": list(losses)}})
    factor = noisy(11, 0.05)

    def loss(trial: Trial) -> float:
        return (
            (0.6 if trial.settings["rate"] == 0.01 else 1.0) * losses.get(int(trial.settings["batch"]), 1.0) * factor()
        )

    return judged(file, by_loss(loss), 1)


def test_a_single_run_that_is_better_by_chance_does_not_replace_what_was_promoted() -> None:
    simulation, second = two_rounds({16: 0.99, 64: 0.98})
    assert simulation.state.judged[0].verdicts[1].verdict == "promote"
    assert second.best == simulation.state.judged[0].best


def test_a_single_run_that_chance_does_not_explain_is_gone_on_with() -> None:
    simulation, second = two_rounds({16: 1.2, 64: 0.4})
    settings = {s.trial.arm: s.trial.settings for s in simulation.state.trials.values()}
    assert settings[second.best["training"]] == {"rate": 0.01, "batch": 64, "epochs": 10}


def test_what_halving_dropped_is_ranked_once_for_each_length_however_many_there_are(monkeypatch) -> None:
    counted, identify = [0], measured.identity_of

    def counting(*args: Any) -> str:
        counted[0] += 1
        return identify(*args)

    monkeypatch.setattr(measured, "identity_of", counting)
    halving = {"kind": "halving", "trials": 90, "length": "epochs", "from": 1, "to": 9}
    file = campaign({**halving, "vary": {"rate": {"low": 0.001, "high": 1.0}}})
    simulation = Simulation(file)
    simulation.round(0, by_loss(lambda trial: float(trial.settings["rate"])))
    counted[0] = 0
    found = judge_round(file, 0, simulation.state)
    dropped = [verdict.reason for verdict in found.verdicts if verdict.reason.startswith("Place ")]
    assert len(dropped) == 80
    assert len(set(dropped)) == 80
    assert counted[0] <= 6 * len(simulation.state.trials)


def test_runs_of_former_code_count_only_where_there_are_no_others() -> None:
    file = campaign({"kind": "list", "trials": [{"rate": 0.5}, {"rate": 0.7}]})
    simulation = Simulation(file)
    trials = simulation.design(0)
    simulation.run(trials, by_loss(lambda _: 1.0))
    simulation.begin(file, "other code")
    again = simulation.design(0)
    simulation.run(again[:2], by_loss(lambda _: 3.0))
    values = {verdict.arm: (verdict.value, verdict.runs) for verdict in judge_round(file, 0, simulation.state).verdicts}
    assert values == {trials[0].arm: (3.0, 1), trials[1].arm: (3.0, 1), trials[2].arm: (1.0, 1)}
