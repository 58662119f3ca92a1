"""Searches by Optuna's own samplers, as campaigns with simulated runs: `make test-extras`."""

from __future__ import annotations

import statistics

import pytest
from tests.optuna.conftest import Search

SPACE = {
    "rate": {"low": 0.0001, "high": 1.0, "log": True},
    "layers": {"low": 1, "high": 6, "whole": True},
    "share": {"low": 0.1, "high": 0.5, "step": 0.1},
    "kind": ["adam", "sgd"],
}


@pytest.mark.proves("campaign-searches-beat-chance")
@pytest.mark.parametrize(("function", "trials"), [("BRANIN", 24), ("HARTMANN", 36)])
@pytest.mark.parametrize("sampler", ["tpe", "cmaes"])
def test_optuna_finds_more_than_chance_with_as_many_runs(
    function: str, trials: int, sampler: str, search: Search
) -> None:
    asked = {"kind": "search", "by": "optuna", "sampler": sampler, "trials": trials}
    found = statistics.median(search(function=function, round=asked, seeds=10))
    by_chance = statistics.median(search(function=function, round={"kind": "random", "trials": trials}, seeds=10))
    assert found < by_chance, f"{found:.4f} against {by_chance:.4f} by chance"


@pytest.mark.parametrize("sampler", ["tpe", "cmaes", "random"])
def test_every_kind_of_value_is_suggested_within_its_bounds(sampler: str, search: Search) -> None:
    rows = search(space=SPACE, tried=[], count=8, sampler=sampler)
    assert len(rows) == 8
    for row in rows:
        assert 0.0001 <= row["rate"] <= 1.0
        assert row["layers"] in range(1, 7)
        assert row["share"] in (0.1, 0.2, 0.3, 0.4, 0.5)
        assert row["kind"] in ("adam", "sgd")


def test_what_was_tried_is_not_suggested_again_and_a_small_space_ends(search: Search) -> None:
    space = {"batch": [8, 16, 32]}
    tried = [({"batch": 8}, 1.0), ({"batch": 16}, None)]
    assert search(space=space, tried=tried, count=4, sampler="tpe") == [{"batch": 32}]


def test_the_same_question_has_the_same_answer(search: Search) -> None:
    tried = [({"rate": 0.01 * at, "layers": at, "share": 0.2, "kind": "sgd"}, 1.0 / at) for at in range(1, 7)]
    question = {"space": SPACE, "tried": tried, "count": 4, "sampler": "tpe"}
    assert search(**question) == search(**question)
