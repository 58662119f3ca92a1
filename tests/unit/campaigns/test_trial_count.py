"""How many trials a file's rounds have at least, against what is designed when they are gone through."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.campaigns.simulated import STAGE, Simulation, by_loss, campaign

from slurm_agent_tools.campaigns.file_reader import read_campaign
from slurm_agent_tools.campaigns.trial_count import heaviest, least_trials, most_trials
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.models.campaign import RoundJudged

GRID = {"kind": "grid", "vary": {"rate": [0.01, 0.2, 0.3, 1.0]}}
WITH_BASELINE = {"kind": "grid", "vary": {"rate": [0.01, 0.1], "batch": [16, 32]}}
LIST = {"kind": "list", "trials": [{"rate": 0.5}, {"rate": 0.7, "batch": 8}]}
RANDOM = {"kind": "random", "trials": 6, "vary": {"rate": {"low": 0.2, "high": 1.0}}}
SEARCH = {"kind": "search", "trials": 6, "vary": {"rate": {"low": 0.2, "high": 1.0}}}
HALVING = {
    "kind": "halving", "trials": 9, "length": "epochs", "from": 1, "to": 9, "vary": {"rate": {"low": 0.2, "high": 1.0}},
}  # fmt: skip
OTHER = {**STAGE, "name": "eval"}


@pytest.mark.parametrize("repeats", [1, 3, 12])
@pytest.mark.parametrize(
    ("rounds", "stages"),
    [
        ([{"kind": "smoke"}, GRID], [STAGE]),
        ([WITH_BASELINE], [STAGE]),
        ([GRID, LIST], [STAGE]),
        ([LIST, GRID], [STAGE, OTHER]),
        ([RANDOM], [STAGE]),
        ([HALVING], [STAGE]),
        ([SEARCH], [STAGE]),
    ],
)
def test_as_many_trials_are_designed_where_all_goes_well(
    rounds: list[dict[str, Any]], stages: list[dict[str, Any]], repeats: int
) -> None:
    said = [one if one["kind"] == "smoke" else {**one, "repeats": repeats} for one in rounds]
    limits = {"cpu_hours": 100, "at_once": 100}
    file = campaign(*said, stages=stages, limits=limits)
    simulation = Simulation(file)
    ran = []
    for number in range(len(rounds)):
        trials = simulation.round(number, by_loss(lambda trial: float(trial.settings["rate"])))
        simulation.happen(RoundJudged(number, (), {}, ""))
        ran.append(sum(trial.reuses is None for trial in trials))
    assert least_trials(file) == tuple(ran)


def test_twelve_runs_of_sixteen_configurations_ask_for_forty_eight_of_the_baseline() -> None:
    file = campaign({"kind": "grid", "vary": {"rate": [0.2 + number for number in range(16)]}, "repeats": 12})
    assert least_trials(file) == (16 * 12 + 48,)


def test_a_file_whose_limit_leaves_no_room_for_what_it_varies_is_refused() -> None:
    text = """campaign: 1
objective: {metric: loss, direction: minimize}
stages:
  - name: training
    kind: cpu
    command: [python3, train.py]
    parameters: {rate: {default: 0.1, argument: --rate}}
    resources: {cpus: 1, memory: 1G, time_limit: 10m}
rounds:
  - {kind: grid, hypothesis: it learns faster, vary: {rate: [0.2, 0.3, 0.4, 0.5]}, repeats: 12}
limits: {cpu_hours: 100, trials: %d}
"""
    with pytest.raises(ConfigError, match="below the 48 trials"):
        read_campaign((text % 47).encode(), "campaigns/rates.yaml")
    assert read_campaign((text % 48).encode(), "campaigns/rates.yaml").limits.trials == 48


SCALE_UP = {"kind": "scale_up", "best": 2, "repeats": 5, "change": {"epochs": 20}}
CPUS = {"kind": "grid", "vary": {"cpus": [1, 8], "nodes": [1, 3]}}


@pytest.mark.parametrize("repeats", [1, 3, 12])
@pytest.mark.parametrize(
    "rounds",
    [
        [{"kind": "smoke"}, GRID, SCALE_UP],
        [WITH_BASELINE, LIST],
        [GRID, {"kind": "list", "trials": [{"batch": 32}, {"batch": 8}]}],
        [RANDOM, SEARCH],
        [HALVING, SEARCH],
        [HALVING, SCALE_UP],
    ],
)
def test_no_round_has_more_trials_than_are_told_of_it(rounds: list[dict[str, Any]], repeats: int) -> None:
    said = [one if one["kind"] == "smoke" else {**one, "repeats": repeats} for one in rounds]
    file = campaign(*said, limits={"cpu_hours": 100, "at_once": 100})
    simulation = Simulation(file)
    for number in range(len(rounds)):
        trials = simulation.round(number, by_loss(lambda trial: -float(trial.settings["rate"])))
        best = {"training": trials[-1].arm}
        simulation.happen(RoundJudged(number, (), best, ""))
        assert sum(trial.reuses is None for trial in trials) <= most_trials(file, number)["training"]


def test_the_best_two_with_five_runs_each_and_their_baseline_are_eighteen_trials() -> None:
    file = campaign({"kind": "smoke"}, GRID, SCALE_UP)
    assert most_trials(file, 2) == {"training": 2 * 5 + 8}


def test_the_heaviest_run_has_the_most_that_any_round_may_ask_for() -> None:
    file = campaign(GRID, CPUS)
    assert heaviest(campaign(GRID), campaign(GRID).stages[0]) == (2 * 600, 0)
    assert heaviest(file, file.stages[0]) == (3 * 3 * 600, 0)  # 8 CPUs over 3 nodes are 3 on each


def test_a_parameter_that_has_the_name_of_a_resource_makes_no_run_heavier() -> None:
    stage = {**STAGE, "parameters": {**STAGE["parameters"], "cpus": {"default": 1, "argument": "--cpus"}}}
    file = campaign({"kind": "grid", "vary": {"cpus": [1, 64]}}, stages=[stage])
    assert heaviest(file, file.stages[0]) == (2 * 600, 0)
