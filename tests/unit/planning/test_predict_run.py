"""How long jobs will run, from those that had ended."""

from dataclasses import replace

import pytest
from tests.effort import whole
from tests.unit.planning.histories import ended, habits

from slurm_agent_tools.planning.calibration import calibration, too_few
from slurm_agent_tools.planning.predict_run import (
    GRACE,
    RunPredictor,
    RunQuestion,
    estimates_in_order,
    most_likely,
    next_step,
)
from slurm_agent_tools.planning.simulate import replay
from slurm_agent_tools.planning.strategies import STRATEGIES
from slurm_agent_tools.planning.workload import Workload


def told(*jobs):
    predictor = RunPredictor()
    for job in jobs:
        predictor.observe(job)
    return predictor


def practised(seed=1, count=400):
    """A predictor with enough answers behind it to show intervals, and jobs of `ann` besides."""
    predictor = RunPredictor()
    for _ in estimates_in_order(habits(seed, count), predictor):
        pass
    return predictor


def asked(user="ann", processors=1, limit=7200.0, name=""):
    return RunQuestion(processors, limit, user, name)


@pytest.mark.proves("run-times-are-foretold")
def test_a_job_is_expected_to_take_what_those_like_it_took():
    said = told(*(ended(number, 600) for number in range(1, 9))).estimate(asked())
    assert said.expected == pytest.approx(600)
    assert said.basis == 8
    assert said.likeness == "the same user, limit and size"


def test_a_few_far_away_do_not_move_it_as_they_would_a_mean():
    times = [600, 590, 7000, 620, 610, 7000, 605]
    said = told(*(ended(number, run) for number, run in enumerate(times))).estimate(asked())
    assert 500 < said.expected < 700


@pytest.mark.parametrize(
    ("alike", "question", "likeness"),
    [
        ({"processors": 8}, asked(processors=8), "the same user, limit and size"),
        ({"limit": 3600.0}, asked(processors=64, limit=3600.0), "the same user and limit"),
        ({"name": "train"}, asked(name="train"), "the same user, name, limit and size"),
        ({"user": "bob", "limit": 600.0}, asked(user="bob", limit=1.5e4), "the same user"),
        ({"user": "bob", "limit": 600.0}, asked(user="eve", limit=600.0), "the same limit and size, of other users"),
        (
            {"user": "bob", "limit": 600.0},
            asked(user="eve", limit=600.0, processors=3),
            "the same limit, of other users",
        ),
    ],
)
@pytest.mark.proves("run-times-are-foretold")
def test_the_more_alike_a_job_is_the_more_it_counts(alike, question, likeness):
    alien = [ended(number, 7000) for number in range(1, 9)]
    own = [ended(number, 300, **alike) for number in range(11, 15)]
    said = told(*own, *alien).estimate(question)
    assert said.likeness == likeness
    assert 200 < said.expected < 450  # the limit may draw it up a little


def test_what_was_submitted_last_counts_most():
    said = told(*(ended(number, 100 if number < 10 else 3000) for number in range(1, 16))).estimate(asked())
    assert 2000 < said.expected < 6000


def test_the_order_in_which_ends_are_told_does_not_matter():
    jobs = habits(3, 100)
    question = asked(user=jobs[0].user, processors=jobs[0].processors, limit=jobs[0].limit)
    assert told(*jobs).estimate(question) == told(*reversed(jobs)).estimate(question)


def test_of_nobody_like_it_the_limit_is_all_that_is_known():
    said = told().estimate(asked())
    assert (said.expected, said.basis, said.likeness) == (7200, 0, "its time limit alone")


def test_without_a_limit_too_nothing_is_known_and_it_says_why():
    said = told().estimate(asked(limit=None))
    assert said.expected is None
    assert "no job like it" in said.reason
    assert told().predict(asked(limit=None)) is None
    assert said.corrected(100).expected is None


def test_nothing_is_expected_beyond_the_limit():
    said = told(*(ended(number, 9000, limit=None) for number in range(1, 20))).estimate(asked(limit=7200.0))
    assert said.expected == 7200


def test_a_job_that_never_ran_says_nothing():
    assert told(ended(1, 0)).estimate(asked()).basis == 0


# --- Only what had ended ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.proves("prediction-knows-no-future")
def test_a_job_that_ends_later_changes_no_earlier_answer(seed):
    jobs = habits(seed, 300)
    plain = [said for _, said in estimates_in_order(jobs)]
    for place in (0, 100, 299):
        late = jobs[place]
        end = late.submit + late.wait + late.run
        changed = [*jobs[:place], replace(late, run=late.run * 50), *jobs[place + 1 :]]
        for job, before, (_, after) in zip(jobs, plain, estimates_in_order(changed), strict=True):
            if job.submit < end:
                assert before == after


@pytest.mark.proves("prediction-knows-no-future")
def test_the_jobs_own_run_and_wait_are_not_looked_at():
    predictor = practised()
    job = habits(1, 500)[-1]
    other = replace(job, run=job.run * 7, wait=None)
    assert predictor.estimate(job) == predictor.estimate(other)
    assert predictor.predict(job) == predictor.estimate(job).expected


# --- Intervals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", whole(2))
@pytest.mark.parametrize("burst", [1, 10])
@pytest.mark.proves("run-times-are-foretold")
def test_intervals_hold_as_often_as_they_say(seed, burst):
    answers = list(estimates_in_order(habits(seed, 6000, burst=burst)))[3000:]
    judged = calibration((said.compared(job.run) for job, said in answers), last=len(answers))
    assert judged.estimates == len(answers)
    assert 0.77 <= judged.share <= 0.83


@pytest.mark.parametrize(
    ("answers", "told"),
    [(0, "no earlier estimate has"), (1, "only 1 earlier estimate has"), (2, "only 2 earlier estimates have")],
)
def test_too_few_estimates_are_counted_in_words(answers, told):
    assert too_few(answers) == f"{told} been compared with what happened"


def test_raw_quantiles_are_never_shown():
    said = told(*(ended(number, 600 + number) for number in range(1, 19))).estimate(asked())
    assert (said.low, said.median, said.high) == (None, None, None)
    assert said.reason == "no earlier estimate has been compared with what happened"
    assert "raw" not in repr(said)
    assert "similar" not in repr(said)


def test_an_interval_is_in_order_and_within_the_limit():
    for _, said in list(estimates_in_order(habits(5, 600)))[100:]:
        assert said.low <= said.median <= said.high <= said.limit + GRACE


# --- Expired ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [7200.0, None])
@pytest.mark.proves("expired-predictions-are-corrected")
def test_a_prediction_that_has_expired_is_corrected(limit):
    predictor = practised()
    for number, run in enumerate([100, 110, 105, 900, 950, 2000], 10_000):
        predictor.observe(ended(number, run, limit=limit))
    said = predictor.estimate(asked(limit=limit))
    before = 0.0
    for elapsed in (1, 50, 99, 120, 500, 940, 1999, 2500, 5000, 7100):
        now = said.corrected(elapsed)
        assert now.expected > elapsed
        assert now.expected >= before
        assert elapsed <= now.low <= now.median
        assert now.high is None or elapsed < now.high
        assert limit is None or now.expected <= limit + GRACE
        before = now.expected
    assert said.corrected(50).expected == said.expected
    assert 800 < said.corrected(300).expected < 1500


def test_beyond_the_limit_it_still_is_expected_to_end_later():
    said = practised().estimate(asked(limit=600.0)).corrected(10_000)
    assert said.expected > 10_000
    assert said.high is None
    assert "longer than was expected" in said.reason


def test_steps_grow_and_have_no_end():
    steps = [next_step(elapsed) for elapsed in (0, 60, 3000, 10**5, 10**7)]
    assert steps == sorted(steps)
    assert steps[0] == 60
    assert steps[-1] == 1.5e7


def test_the_mode_is_within_twice_of_all_that_it_stands_for():
    assert most_likely([(100.0, 1.0), (400.0, 1.0), (5000.0, 1.5)]) == pytest.approx(200)
    assert most_likely([(100.0, 1.0), (401.0, 1.0), (5000.0, 1.5)]) == 5000


def test_the_simulator_takes_it_as_a_predictor():
    jobs = habits(2, 400)
    load = Workload("made up", tuple(sorted(jobs, key=lambda job: job.submit)), 32, {})
    done = replay(load, STRATEGIES["easy-predicted"], expectation=RunPredictor())
    assert len(done.starts) == len(jobs)
