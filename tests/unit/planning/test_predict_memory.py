"""How much memory a job will need, by what runs like it used."""

import random

import pytest

from slurm_agent_tools.planning.predict_memory import FLOOR, RARE, predict_memory

GIB = 2**30


def gib(*sizes):
    return [size * GIB for size in sizes]


@pytest.mark.proves("memory-has-room")
def test_it_is_a_tenth_above_the_largest_with_the_spread_and_the_floor():
    said = predict_memory(gib(3, 4, 4, 4, 5))
    assert said.needed == pytest.approx(1.1 * 5 * GIB + 1 * GIB + FLOOR)
    assert said.recommended >= said.needed
    assert said.basis == 5
    assert "the largest of 5 runs" in said.reason


def test_small_jobs_get_the_floor():
    said = predict_memory([2**20] * 6)
    assert said.needed > FLOOR


def test_a_wider_spread_asks_for_more():
    assert predict_memory(gib(1, 2, 2, 2, 4)).needed > predict_memory(gib(3, 4, 4, 4, 4)).needed


def test_with_too_few_runs_nothing_is_said_but_why():
    said = predict_memory(gib(4, 4))
    assert (said.needed, said.recommended) == (None, None)
    assert "only 2 runs" in said.reason
    assert predict_memory([]).largest is None


def test_what_failed_is_doubled():
    few = predict_memory(gib(1), failed=gib(4))
    assert few.needed == 8 * GIB
    assert "twice the 4" in few.reason
    assert predict_memory(gib(3, 4, 4, 4, 5), failed=gib(6)).needed == 12 * GIB
    assert "twice" not in predict_memory(gib(3, 4, 4, 4, 5), failed=gib(1)).reason


@pytest.mark.proves("memory-has-room")
def test_of_many_runs_a_single_one_far_above_is_left_out_and_told_with_its_figures():
    said = predict_memory([*gib(*([4] * RARE)), 90 * GIB])
    assert said.left_out
    assert said.outlier == 90 * GIB
    assert said.needed < 6 * GIB
    assert "90" in said.reason
    assert "22.5 times the next" in said.reason
    assert "would fail" in said.reason


def test_of_few_runs_it_counts_but_its_spread_does_not():
    said = predict_memory(gib(4, 4, 4, 4, 90))
    assert not said.left_out
    assert said.needed == pytest.approx(1.1 * 90 * GIB + FLOOR)
    assert "not for the spread" in said.reason


def test_two_that_are_far_above_are_no_outlier():
    said = predict_memory(gib(*([4] * RARE), 90, 80))
    assert said.outlier is None
    assert said.needed > 90 * GIB


def test_an_outlier_that_failed_with_less_is_never_left_out():
    said = predict_memory(gib(*([4] * RARE), 90), failed=gib(95))
    assert not said.left_out
    assert said.needed == 190 * GIB


@pytest.mark.parametrize("seed", range(5))
def test_it_fails_more_rarely_than_the_largest_and_a_fifth(seed):
    """In order of time, of tasks whose use varies by a constant and by their size."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    failures = {"factor": 0, "ours": 0}
    for _ in range(60):
        usual = GIB * chance.lognormvariate(-2, 1.5)
        used = [usual * chance.lognormvariate(0, 0.2) + chance.expovariate(1 / (80 * 2**20)) for _ in range(40)]
        for place in range(8, len(used)):
            failures["factor"] += used[place] > 1.2 * max(used[:place])
            failures["ours"] += used[place] > predict_memory(used[:place]).needed
    assert 3 * failures["ours"] <= failures["factor"]
