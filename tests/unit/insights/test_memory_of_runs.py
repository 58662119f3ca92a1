"""How much memory a job needs, by what runs like it used at most."""

import random

import pytest
from tests.unit.insights.records import ASKED, GIB, run

from slurm_agent_tools.insights.run_sizes import size_from_runs
from slurm_agent_tools.insights.sizing import FLOOR, RARE, memory_of_runs


def peaks(*gib, runs=1):
    return [(size * GIB, runs) for size in gib]


@pytest.mark.proves("memory-has-room")
def test_it_is_a_tenth_above_the_largest_with_the_spread_and_the_floor():
    said = memory_of_runs(peaks(3, 4, 4, 4, 5))
    assert said.needed == pytest.approx(1.1 * 5 * GIB + 1 * GIB + FLOOR)
    assert (said.basis, said.outlier, said.told) == (5, None, "")


def test_small_jobs_get_the_floor():
    assert memory_of_runs([(2**20, 1)] * 6).needed > FLOOR


def test_a_wider_spread_asks_for_more():
    assert memory_of_runs(peaks(1, 2, 2, 2, 4)).needed > memory_of_runs(peaks(3, 4, 4, 4, 4)).needed


def test_of_too_few_runs_nothing_is_said():
    assert memory_of_runs(peaks(4, 4)).needed is None
    assert memory_of_runs([(0.0, 9)]).basis == 0


def test_an_array_counts_by_its_tasks_and_is_no_single_run():
    said = memory_of_runs([(4 * GIB, 30), (90 * GIB, 2)])
    assert said.basis == 32
    assert said.outlier is None
    assert memory_of_runs([(4 * GIB, 30)]).needed == pytest.approx(4.4 * GIB + FLOOR)


@pytest.mark.proves("memory-has-room")
def test_of_many_runs_a_single_one_far_above_is_left_out_and_told_with_its_figures():
    said = memory_of_runs(peaks(*([4] * RARE), 90))
    assert said.left_out
    assert said.outlier == 90 * GIB
    assert said.needed < 6 * GIB
    assert "22.5 times the next" in said.told
    assert "would fail" in said.told


@pytest.mark.proves("memory-has-room")
def test_one_of_twenty_runs_is_left_out_and_one_of_nineteen_is_not():
    assert memory_of_runs(peaks(*([4] * (RARE - 1)), 90)).left_out
    assert not memory_of_runs(peaks(*([4] * (RARE - 2)), 90)).left_out


def test_of_few_runs_it_counts_but_its_spread_does_not():
    said = memory_of_runs(peaks(4, 4, 4, 4, 90))
    assert not said.left_out
    assert said.needed == pytest.approx(1.1 * 90 * GIB + FLOOR)
    assert "not for the spread" in said.told


def test_two_that_are_far_above_are_no_outlier():
    assert memory_of_runs(peaks(*([4] * RARE), 80, 90)).outlier is None


def test_one_that_is_no_more_than_what_failed_already_is_not_left_out():
    assert not memory_of_runs(peaks(*([4] * RARE), 90), failed=95 * GIB).left_out


@pytest.mark.proves("memory-has-room", "sizes-from-history")
def test_advice_from_runs_has_that_room_and_tells_the_one_far_above():
    plain = size_from_runs([run(number, gib=4) for number in range(RARE)], ASKED)
    odd = size_from_runs([run(number, gib=4) for number in range(RARE)] + [run(99, gib=90)], ASKED)
    assert plain.memory.needed == odd.memory.needed == pytest.approx(4.4 * GIB + FLOOR)
    assert not any("the next" in text for text in plain.warnings)
    assert any("22.5 times the next" in text for text in odd.warnings)


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
            failures["ours"] += used[place] > memory_of_runs([(one, 1) for one in used[:place]]).needed
    assert 3 * failures["ours"] <= failures["factor"]
