"""What Optuna is told, or the user where it is not there; what it finds is tested by `make test-extras`."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from tests.unit import extras_in_memory
from tests.unit.campaigns.simulated import Simulation, campaign

from slurm_agent_tools.campaigns.design import next_trials
from slurm_agent_tools.campaigns.search_space import Space
from slurm_agent_tools.campaigns.searches.model_search import Tried
from slurm_agent_tools.campaigns.searches.optuna_search import require, suggest
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign_file import Range

pytestmark = pytest.mark.skipif(importlib.util.find_spec("optuna") is not None, reason="Optuna is installed")


def test_without_the_extra_the_command_that_installs_it_is_named() -> None:
    with pytest.raises(InputError) as raised:
        suggest({"batch": (8, 16)}, [], 1, asked=0, seed=1, maximize=False, sampler="tpe")
    assert "optuna" in raised.value.message
    assert "slurm-agent-tools[search]" in raised.value.hint


def test_it_is_told_before_the_first_run() -> None:
    search = {"kind": "search", "by": "optuna", "vary": {"batch": [8, 16]}, "trials": 2}
    simulation = Simulation(campaign({"kind": "smoke"}, search))
    with pytest.raises(InputError, match="not installed"):
        next_trials(simulation.file, "lr", 0, simulation.state)


SPACE = {
    "rate": Range(low=0.001, high=1.0, log=True),
    "layers": Range(low=1, high=3, whole=True),
    "share": Range(low=0.1, high=0.5, step=0.2),
    "kind": ("adam", "sgd"),
}


def row(rate: float) -> dict[str, float | int | str]:
    return {"rate": rate, "layers": 2, "share": 0.3, "kind": "sgd"}


def test_every_value_is_one_of_its_kind_and_no_row_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    (study, rows) = asked(monkeypatch, SPACE, [], "tpe")
    assert len(rows) == 8 == len({tuple(one.values()) for one in rows})
    for one in rows:
        assert 0.001 <= one["rate"] <= 1.0
        assert one["layers"] in (1, 2, 3)
        assert one["share"] in (0.1, 0.3, 0.5)
        assert one["kind"] in ("adam", "sgd")
    assert (study.direction, study.sampler.kind, study.sampler.seed) == ("minimize", "tpe", 7)


def test_what_was_tried_is_told_with_its_value_or_as_failed_and_what_is_outside_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study, _ = asked(monkeypatch, SPACE, [Tried(row(0.1), 0.5), Tried(row(0.2), None), Tried(row(9.0), 0.1)], "random")
    assert [(one.params["rate"], one.values, one.state) for one in study.trials] == [
        (0.1, [0.5], "done"), (0.2, None, "failed"),
    ]  # fmt: skip


def test_a_small_space_ends_after_a_bounded_number_of_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    study, rows = asked(monkeypatch, {"batch": (8, 16, 32)}, [Tried({"batch": 8}, 1.0)], "tpe")
    assert sorted(one["batch"] for one in rows) == [16, 32]
    assert study.asked == 8 * 20


@pytest.mark.parametrize(("done", "sources"), [(9, None), (10, 10)])
def test_cmaes_begins_from_others_trials_where_there_are_enough_that_ended(
    done: int, sources: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = [*(Tried(row(0.01 * at), 1.0) for at in range(1, done + 1)), Tried(row(0.5), None)]
    monkeypatch.setattr("slurm_agent_tools.campaigns.searches.optuna_search._NEEDED", {})
    study, _ = asked(monkeypatch, SPACE, tried, "cmaes")
    assert (study.sampler.source_trials and len(study.sampler.source_trials)) == sources


@pytest.mark.parametrize(("sampler", "command"), [("gp", "pip install 'torch scipy'"), ("cmaes", "tools[search]'")])
def test_what_a_sampler_needs_beside_it_is_named(sampler: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extras_in_memory.studies(monkeypatch)
    with pytest.raises(InputError) as raised:
        require(sampler)
    assert command in raised.value.hint
    assert sampler in raised.value.message


def asked(
    monkeypatch: pytest.MonkeyPatch, space: Space, tried: list[Tried], sampler: str
) -> tuple[extras_in_memory.Study, list[dict[str, Any]]]:
    """The study that was made, and eight rows or fewer."""
    made = extras_in_memory.studies(monkeypatch)
    rows = suggest(space, tried, 8, asked=4, seed=3, maximize=False, sampler=sampler)
    return made[0], rows
