"""How often intervals promote what is not better, and miss what is: by simulation, and against published tables."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.effort import some
from tests.unit.campaigns.simulated import lognormal, normal

from slurm_agent_tools.campaigns.design import baseline_runs
from slurm_agent_tools.insights.intervals import MISSED_HIGH, MISSED_LOW, critical, gains, surpasses

CAMPAIGNS = 200

Noise = Callable[[random.Random, float], float]


def promoted(arms: int, runs: int, noise: Noise, share: float, gain: float) -> tuple[int, int]:
    """In how many campaigns something is promoted, and in how many the one arm that gains so much."""
    chance = random.Random(f"{arms} {runs} {noise.__name__} {share} {gain}")  # noqa: S311 - a simulation, and no secret
    anything = best = 0
    for _ in range(CAMPAIGNS):
        baseline = [noise(chance, share) for _ in range(baseline_runs(runs, arms))]
        values = {
            str(arm): [(1.0 - gain if arm == 0 else 1.0) * noise(chance, share) for _ in range(runs)]
            for arm in range(arms)
        }
        found = gains(baseline, values, maximize=False)
        anything += any(one.low > 0 for one in found.values())
        best += found["0"].low > 0
    return anything, best


@pytest.mark.proves("campaign-verdicts-are-sure")
@pytest.mark.parametrize(
    ("arms", "runs", "share", "noise"),
    some(
        [
            (arms, runs, share, noise)
            for arms, runs in [(4, 12), (8, 12), (16, 12), (8, 3), (8, 2)]
            for share in (0.05, 0.15, 0.25)
            for noise in (normal, lognormal)
        ]
    ),
)
def test_without_a_difference_at_most_one_campaign_of_twenty_promotes(
    arms: int, runs: int, noise: Noise, share: float
) -> None:
    anything, _ = promoted(arms, runs, noise, share, 0.0)
    assert anything <= 0.05 * CAMPAIGNS, f"{anything} of {CAMPAIGNS}: {arms} arms of {runs} runs, noise {share:.0%}"


@pytest.mark.proves("campaign-verdicts-are-sure")
@pytest.mark.parametrize("noise", [normal, lognormal])
@pytest.mark.parametrize("arms", [4, 8, 16])
def test_a_fifth_less_is_found_with_twelve_runs_each(arms: int, noise: Noise) -> None:
    _, found = promoted(arms, 12, noise, 0.15, 0.2)
    assert found >= 0.8 * CAMPAIGNS, f"{found} of {CAMPAIGNS}: {arms} arms of 12 runs, noise 15 %"


@pytest.mark.parametrize(
    ("arms", "runs", "freedom", "missed", "published"),
    [
        (1, 6, 10, 0.05, 1.812),  # Student's t
        (1, 2, 2, 0.025, 4.303),
        (1, 2, 1, 0.05, 6.314),
        (4, 6, 25, 0.05, 2.28),  # Dunnett 1955, table 1a
        (9, 11, 1000, 0.05, 2.42),
    ],
)
def test_critical_values_are_those_of_the_tables(
    arms: int, runs: int, freedom: float, missed: float, published: float
) -> None:
    assert critical(runs, (runs,) * arms, float(freedom), missed) == pytest.approx(published, abs=0.012)


def test_intervals_hold_the_true_gain_in_nineteen_of_twenty() -> None:
    chance = random.Random(3)  # noqa: S311 - a simulation, and no secret
    held = 0
    for _ in range(500):
        arms = {str(arm): [(0.7 + 0.1 * arm) * lognormal(chance, 0.2) for _ in range(5)] for arm in range(6)}
        found = gains([lognormal(chance, 0.2) for _ in range(5)], arms, maximize=False)
        held += all(one.low <= 0.3 - 0.1 * int(name) <= one.high for name, one in found.items())
    assert pytest.approx(0.05) == MISSED_LOW + MISSED_HIGH
    assert held >= 0.935 * 500, f"{held} of 500"


def test_more_and_less_are_the_same_question() -> None:
    low, high = [1.0, 1.1, 0.9, 1.05], [2.0, 2.1, 1.9, 2.05]
    up, down = gains(low, {"a": high}, maximize=True)["a"], gains(high, {"a": low}, maximize=False)["a"]
    assert (1 + up.gain) * (1 - down.gain) == pytest.approx(1.0)
    assert up.low > 0
    assert down.low > 0


def test_fewer_than_two_runs_tell_nothing() -> None:
    assert gains([1.0], {"a": [0.5, 0.6]}, maximize=False) == {}
    assert set(gains([1.0, 1.1], {"a": [0.5], "b": [0.5, 0.6]}, maximize=False)) == {"b"}


def test_an_arm_that_scatters_more_than_the_rest_is_judged_by_its_own_spread() -> None:
    calm = [1.0, 1.01, 0.99, 1.005, 0.995, 1.0]
    wild = [0.1, 2.0, 0.3, 1.8, 0.2, 0.9]
    found = gains(calm, {"wild": wild, **{str(arm): calm for arm in range(6)}}, maximize=False)
    assert found["wild"].low < 0 < found["wild"].high
    assert found["0"].high < 0.05, "the wild one does not widen the others' intervals"


def test_runs_far_from_normal_are_judged_by_drawing_them_anew() -> None:
    chance = random.Random(2)  # noqa: S311 - a simulation, and no secret
    tailed = [[(chance.gauss(0, 1) / max(abs(chance.gauss(0, 1)), 0.05)) for _ in range(8)] for _ in range(5)]
    found = gains(tailed[0], {str(arm): values for arm, values in enumerate(tailed[1:])}, maximize=False, seed=1)
    assert found == gains(
        tailed[0], {str(arm): values for arm, values in enumerate(tailed[1:])}, maximize=False, seed=1
    )
    assert all(one.low < 0 < one.high for one in found.values())


def test_a_campaign_that_compares_more_often_asks_for_more() -> None:
    baseline, arm = [1.0, 1.1, 0.9, 1.05], [0.8, 0.85, 0.75, 0.9]
    once = gains(baseline, {"a": arm}, maximize=False)["a"]
    often = gains(baseline, {"a": arm}, maximize=False, share=0.2)["a"]
    assert often.low < once.low < once.gain == often.gain


def test_runs_that_are_all_alike_leave_no_doubt() -> None:
    found = gains([2.0, 2.0], {"a": [1.0, 1.0]}, maximize=False)["a"]
    assert (found.gain, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))


@pytest.mark.parametrize("value", [-0.1, 0.1, -7.3, 1e-9, 0.0])
@pytest.mark.parametrize("maximize", [True, False])
def test_what_differs_by_rounding_alone_is_no_difference(value: float, maximize: bool) -> None:
    for runs in some(range(2, 13)):
        for arms in (1, 2, 3, 8):
            others = {str(arm): [value] * runs for arm in range(arms)}
            better = {"better": [value + (0.5 if maximize else -0.5)] * runs}
            found = gains([value] * baseline_runs(runs, arms), {**others, **better}, maximize=maximize)
            assert all(found[arm].low <= 0 <= found[arm].high for arm in others), (runs, arms)
            assert found["better"].low > 0


@pytest.mark.parametrize("scale", [1e-300, 1e110, 1e160, 8e307])
def test_what_a_run_far_out_tells_is_judged_as_any_other(scale: float) -> None:
    """A run that diverges may tell any finite number; the scale of the values is no part of a share."""
    baseline, others = [-1.0, -1.1, -0.9, 0.1], {"a": [1.0, 1.1, 0.9], "b": [-1.0, 2.0, 1.0]}
    plain = gains(baseline, others, maximize=True)
    found = gains(
        [value * scale for value in baseline],
        {arm: [value * scale for value in values] for arm, values in others.items()},
        maximize=True,
    )
    for arm, gain in plain.items():
        assert (found[arm].gain, found[arm].low, found[arm].high) == pytest.approx((gain.gain, gain.low, gain.high))
    known = [value * scale for value in baseline]
    for single in (5.0, -0.5):
        told = surpasses(baseline, single, challengers=3, maximize=True)
        assert surpasses(known, min(single * scale, 1.7e308), challengers=3, maximize=True) == told
