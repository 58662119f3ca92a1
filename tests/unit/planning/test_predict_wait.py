"""How long jobs will still wait, from waits that had ended."""

import random
from dataclasses import replace

import pytest
from tests.effort import whole

from slurm_agent_tools.planning.calibration import ENOUGH, calibration
from slurm_agent_tools.planning.predict_wait import DAY, WaitPredictor, WaitQuestion, waits_in_order


def asked(at=0.0, *, account="lab", partition="gpu", ahead=0, **more):
    return WaitQuestion(float(at), account, partition, 8, more.pop("limit", 3600.0), own_ahead=ahead, **more)


def told(*waits, **facts):
    """A predictor that saw jobs wait so long, one after the other."""
    predictor = WaitPredictor()
    for place, wait in enumerate(waits):
        job = asked(place * 1e6, **facts)
        predictor.observe(job, wait, predictor.estimate(job))
    return predictor


def queues(seed, count):
    """Questions and waits: partitions of different usual waits, bursts whose last waits longest, moods of hours."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    usual = {"gpu": 7200.0, "cpu": 900.0, "big": 40_000.0}
    found, at = [], 0.0
    while len(found) < count:
        partition, account = chance.choice(list(usual)), f"lab{chance.randrange(9)}"
        burst, mood = 2 ** chance.randrange(0, 4), chance.lognormvariate(0, 0.3)
        for place in range(burst):
            job = asked(at, account=account, partition=partition, ahead=place, alike_ahead=place, own_waiting=burst)
            found.append((job, usual[partition] * mood * (1 + place / 4) * chance.lognormvariate(0, 0.3)))
        at += chance.expovariate(1 / 900)
    return found[:count]


@pytest.mark.proves("waits-are-foretold")
def test_a_job_is_expected_to_wait_as_those_like_it_did():
    said = told(*[3000, 3100, 2900] * 10).estimate(asked(1e9))
    assert 2500 < said.expected < 3600
    assert said.basis == 30
    assert "the same account and partition" in said.likeness


def test_one_wait_and_several_are_told_as_such():
    assert "by 1 wait of" in told(600).estimate(asked(1e9)).text
    assert "by 2 waits of" in told(600, 700).estimate(asked(1e9)).text


@pytest.mark.proves("waits-are-foretold")
def test_the_place_in_its_own_burst_counts():
    predictor = told(*[600] * 20)
    for number in range(20):
        predictor.observe(asked(1e8 + number, ahead=63), 20_000)
    assert predictor.estimate(asked(1e9, ahead=0)).expected < 2000
    assert predictor.estimate(asked(1e9, ahead=63)).expected > 10_000


def test_its_own_partition_counts_more_than_another():
    predictor = told(*[600] * 20)
    for number in range(20):
        predictor.observe(asked(1e8 + number, partition="cpu"), 30_000)
    assert predictor.estimate(asked(1e9)).expected < 2000


def test_slurms_estimate_is_all_there_is_where_nothing_is_known():
    said = WaitPredictor().estimate(asked(slurm=500.0))
    assert said.expected == 500
    assert "by Slurm's own estimate alone" in said.text


def test_slurms_estimate_outweighs_no_waits_that_were():
    said = told(*[3000] * 30).estimate(asked(1e9, slurm=5.0))
    assert said.expected == pytest.approx(3000)


def test_nothing_known_says_why():
    said = WaitPredictor().estimate(asked())
    assert (said.expected, said.beyond_a_day) == (None, None)
    assert said.text.startswith("not known: no wait of a job like it is known")


@pytest.mark.proves("waits-are-foretold")
def test_a_wait_beyond_a_day_is_said_as_that():
    said = told(*[4 * DAY] * ENOUGH, 4 * DAY).estimate(asked(1e9))
    assert said.beyond_a_day
    assert said.text.startswith("more than a day, in eight of ten cases more than a day to more than a day")
    assert "4-" not in said.text


def test_an_interval_is_told_in_words():
    said = told(*[3000, 2000, 4000] * 20).estimate(asked(1e9))
    assert said.low <= said.median <= said.high
    assert "in eight of ten cases" in said.text


@pytest.mark.proves("calibration-is-told")
def test_raw_quantiles_of_waits_are_never_shown():
    said = told(*[3000] * (ENOUGH - 1)).estimate(asked(1e9))
    assert (said.low, said.median, said.high) == (None, None, None)
    assert "only 18 earlier estimates have been compared" in said.text
    assert "raw" not in repr(said)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.proves("prediction-knows-no-future")
def test_a_wait_that_ends_later_changes_no_earlier_answer(seed):
    history = queues(seed, 300)
    plain = [said for _, _, said in waits_in_order(history)]
    for place in (0, 100, 299):
        job, wait = history[place]
        changed = [*history[:place], (job, wait * 50), *history[place + 1 :]]
        for (other, _), before, (_, _, after) in zip(history, plain, waits_in_order(changed), strict=True):
            if other.asked < job.asked + wait:
                assert before == after


@pytest.mark.parametrize("seed", whole(2))
@pytest.mark.proves("waits-are-foretold")
def test_intervals_of_waits_hold_as_often_as_they_say(seed):
    answers = list(waits_in_order(queues(seed, 3000)))[1500:]
    judged = calibration((said.compared(waited) for _, waited, said in answers), last=len(answers))
    assert judged.estimates == len(answers)
    assert 0.77 <= judged.share <= 0.9  # the first answers, which knew little, still make them wide
    assert judged.within_twice > 0.5 * len(answers)


def test_an_answer_does_not_depend_on_who_asked_before():
    predictor = told(*[3000] * 30)
    first = predictor.estimate(asked(1e9))
    predictor.estimate(replace(asked(1e9), partition="cpu", slurm=3.0))
    assert predictor.estimate(asked(1e9)) == first
