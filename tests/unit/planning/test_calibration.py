"""Predictions beside what happened."""

import math
import random

import pytest

from slurm_agent_tools.planning.calibration import (
    ENOUGH,
    KEPT,
    MOST_KEPT,
    ComparedEstimate,
    Correction,
    Quantiles,
    calibration,
    weighted_quantiles,
)

RAW = Quantiles(100.0, 200.0, 300.0)


def corrected_by(ratios, *, askers=None):
    """A correction that has seen jobs take so many times the raw median."""
    correction = Correction()
    for place, ratio in enumerate(ratios):
        correction.observe(place if askers is None else askers[place], RAW, 200 * ratio)
    return correction


@pytest.mark.proves("calibration-is-told")
def test_it_says_how_many_of_the_last_estimates_held():
    outcomes = (
        [ComparedEstimate(100, 50, 200, 10)] * 30
        + [ComparedEstimate(100, 50, 200, 120)] * 41
        + [ComparedEstimate(100, 50, 200, 10)] * 4
    )
    outcomes += [ComparedEstimate(100, 50, 200, 500)] * 5
    said = calibration(outcomes)
    assert (said.estimates, said.held, said.too_low, said.too_high) == (50, 41, 5, 4)
    assert said.text == "of the last 50 estimates 41 held"
    assert said.share == pytest.approx(0.82)
    assert said.within_twice == 41


@pytest.mark.parametrize(("happened", "way"), [(500, "shorter"), (1, "longer")])
def test_it_says_which_way_most_erred(happened, way):
    said = calibration([ComparedEstimate(100, 50, 200, happened)] * 9 + [ComparedEstimate(100, 50, 200, 100)])
    assert said.text == f"of the last 10 estimates 1 held; most of the others were {way} than what happened"


def test_without_an_interval_nothing_is_judged():
    said = calibration([ComparedEstimate(100, None, None, 100)])
    assert said.share is None
    assert "no estimate" in said.text


def test_an_open_side_holds_whatever_happens_there():
    assert ComparedEstimate(None, 50, None, 10**6).held
    assert ComparedEstimate(None, 50, None, 49).held is False
    assert ComparedEstimate(None, None, 50, 0).held


@pytest.mark.parametrize(("expected", "happened", "within"), [(100, 50, True), (100, 49, False), (100, 201, False),
                                                               (0, 1, True), (None, 5, None)])  # fmt: skip
def test_within_twice_is_both_ways(expected, happened, within):
    assert ComparedEstimate(expected, None, None, happened).within_twice is within


@pytest.mark.proves("calibration-is-told")
def test_nothing_is_shown_before_enough_answers_are_known():
    assert corrected_by([1.0] * (ENOUGH - 1)).corrected(RAW) is None
    assert corrected_by([1.0] * ENOUGH).corrected(RAW) is not None


def test_intervals_become_as_wide_as_answers_were_wrong():
    chance = random.Random(4)  # noqa: S311 - nothing secret
    ratios = [chance.lognormvariate(0, 1) for _ in range(KEPT)]
    shown = corrected_by(ratios).corrected(RAW)
    assert shown.low == pytest.approx(200 * math.exp(-1.28), rel=0.2)
    assert shown.high == pytest.approx(200 * math.exp(1.28), rel=0.2)
    assert shown.low < shown.median < shown.high


def test_what_was_too_wide_becomes_narrower():
    shown = corrected_by([1.0] * 100).corrected(Quantiles(100.0, 200.0, 300.0))
    assert (shown.low, shown.median, shown.high) == (pytest.approx(200), pytest.approx(200), pytest.approx(200))


def test_the_oldest_answers_are_forgotten():
    shown = corrected_by([50.0] * KEPT + [1.0] * KEPT).corrected(RAW)
    assert shown.high == pytest.approx(200)


def test_the_tasks_of_one_array_push_no_others_out():
    """A thousand that got one answer and ended alike count as one answer for how long others are kept."""
    chance = random.Random(5)  # noqa: S311 - nothing secret
    before = [chance.lognormvariate(0, 1) for _ in range(400)]
    askers = [*range(400), *["an array"] * 1000]
    correction = corrected_by([*before, *[1.0] * 1000], askers=askers)
    assert correction.answers == 1400


def test_what_is_kept_is_bounded():
    correction = Correction()
    for _ in range(MOST_KEPT + 10):
        correction.observe("one", RAW, 200)
    assert correction.answers == MOST_KEPT


def test_the_quantiles_of_weighted_values():
    assert weighted_quantiles([(1.0, 1.0), (2.0, 1.0), (10.0, 8.0)]) == Quantiles(1, 10, 10)
    assert weighted_quantiles([(1.0, 0.5), (2.0, 3.9), (3.0, 0.3), (10.0, 0.3)]) == Quantiles(1, 2, 3)
    assert weighted_quantiles([(7.0, 0.1)]) == Quantiles(7, 7, 7)
