"""Waits by the state of the queue too, where the extra is installed."""

import math
import random

import pytest
from tests.unit import extras_in_memory

from slurm_agent_tools.planning.calibration import calibration
from slurm_agent_tools.planning.forecast import LEAST, WaitForecast, available, forecasts_in_order
from slurm_agent_tools.planning.predict_wait import DAY, WaitQuestion, waits_in_order

needed = pytest.mark.skipif(not available(), reason="the extra forecast is not installed")


def looks(seed, days, each=120):
    """Daily looks at a queue whose length, which the questions carry, says most of what its jobs will wait."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    found = []
    for day in range(days):
        length = chance.lognormvariate(4, 1)
        for place in range(each):
            job = WaitQuestion(
                day * DAY, f"lab{place % 5}", "gpu", 4, 3600.0, own_ahead=place // 5, own_waiting=each // 5,
                queue={"ahead": length * (1 + place / 50)},
            )  # fmt: skip
            found.append((job, 20 * length * (1 + place / 50) * chance.lognormvariate(0, 0.2)))
    return found


def scored(answers):
    compared = [said.compared(waited) for job, waited, said in answers if job.asked >= 12 * DAY]
    return calibration(compared, last=len(compared))


@needed
@pytest.mark.proves("queue-state-helps")
def test_with_the_state_of_the_queue_waits_are_foretold_better():
    history = looks(1, 24)
    without, with_queue = scored(waits_in_order(history)), scored(forecasts_in_order(history, every=4 * DAY))
    assert with_queue.within_twice > 1.2 * without.within_twice
    assert with_queue.within_twice > 0.8 * with_queue.estimates
    assert 0.7 <= with_queue.share <= 0.9


@pytest.fixture
def usual_in_memory(monkeypatch):
    """Models that expect the usual, where the extra is not installed."""
    if not available():
        return extras_in_memory.boosting(monkeypatch)
    return None


@pytest.mark.proves("prediction-knows-no-future")
def test_waits_that_end_later_change_no_forecast(usual_in_memory):
    history = looks(2, 10)
    changed = [(job, waited * 9 if job.asked >= 8 * DAY else waited) for job, waited in history]
    pairs = zip(forecasts_in_order(history), forecasts_in_order(changed), strict=True)
    assert all(one[2] == other[2] for one, other in pairs if one[0].asked <= 8 * DAY)


def test_with_too_few_waits_nothing_is_fitted_and_the_core_answers(usual_in_memory):
    history = looks(3, 3, each=LEAST // 5)
    for (_, _, plain), (_, _, said) in zip(waits_in_order(history), forecasts_in_order(history), strict=True):
        assert said == plain
    assert not WaitForecast().fitted


def test_figures_that_are_missing_are_not_known_and_no_error(usual_in_memory):
    history = [(job, waited) for job, waited in looks(4, 9) if job.asked < 7 * DAY or job.own_ahead]
    history[-1] = (WaitQuestion(history[-1][0].asked, "new", "never seen", 1, None), 60.0)
    *_, (_, _, last) = forecasts_in_order(history)
    assert last.expected is not None
    assert math.isfinite(last.expected)
    if usual_in_memory is not None:
        widths = {len(row) for rows in usual_in_memory for row in rows}
        assert len(widths) == 1
        assert any(math.isnan(value) for rows in usual_in_memory for row in rows for value in row)
