"""What is foretold of this user's next job by records, and how often that is told to have held."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.insights.records import ASKED, NOW, record, run

from slurm_agent_tools.models.job import EndedEstimate, GivenEstimate, Job, KnownBefore, PastWait
from slurm_agent_tools.planning import foretold
from slurm_agent_tools.planning.foretold import RecentStarts, RunHistory, SubmittedJob, how_often_held, of_submission
from slurm_agent_tools.units import JobId

HOUR = 3600
AT = NOW.timestamp() + 40 * 86_400


def runs(number, *, seconds=1000, first=1, **facts):
    return [run(first + one, seconds=seconds, **facts) for one in range(number)]


def starts(number, *, seconds=300, user="ada", first=0, every=600, **asked):
    """Jobs that could run one after another."""
    wanted = replace(ASKED, **asked)
    return [
        PastWait(first + one, wanted.partition or "", seconds + one % 7, wanted, user, NOW + timedelta(seconds=every * one))
        for one in range(number)
    ]  # fmt: skip


def known(*records, **more):
    return KnownBefore(tuple(records), **more)


@pytest.mark.proves("predictions-are-used")
def test_the_runs_of_the_same_script_say_how_long_it_takes_and_how_many_they_are():
    said = RunHistory(known(*runs(60, seconds=1000))).estimate("train", "train.sh", ASKED)
    assert said.expected == pytest.approx(1000, rel=0.05)
    assert said.low <= 1000 <= said.high
    assert said.basis == 20
    assert "00:16:40" in said.text
    assert "by 20 jobs, the nearest of the same user, name, limit and size" in said.text


@pytest.mark.proves("predictions-are-used")
def test_with_another_limit_and_size_the_same_script_still_counts_before_other_scripts():
    others = runs(20, seconds=20_000, first=100, name="other", script_path="other.sh")
    history = RunHistory(known(*others, *runs(20, seconds=1000)))
    said = history.estimate("train", "train.sh", replace(ASKED, cpus=64, time_limit_seconds=40_000))
    assert said.likeness == "the same user and name"
    assert said.expected < 3000


def test_the_time_of_a_whole_array_is_not_taken_for_that_of_a_task():
    when = {"usage": None, "started": NOW, "ended": NOW + timedelta(seconds=9000)}
    array = [replace(one, requested=replace(ASKED, array_tasks=8), tasks=8, **when) for one in runs(5)]
    alone = [replace(one, **when) for one in runs(1, first=50)]
    assert RunHistory(known(*array)).estimate("train", "train.sh", ASKED).basis == 0
    assert RunHistory(known(*alone)).estimate("train", "train.sh", ASKED).basis == 1


def test_a_job_that_the_accounting_alone_knows_is_of_the_script_that_had_its_name():
    alone = [replace(one, script_path="", managed=False) for one in runs(5, first=50)]
    history = RunHistory(known(*alone, *runs(1)))
    assert history.estimate("any", "train.sh", ASKED).basis == 6


@pytest.mark.proves("predictions-are-used")
def test_without_any_job_the_limit_counts_and_nothing_rests_on_jobs():
    said = RunHistory(known()).estimate("train", "train.sh", ASKED)
    assert (said.expected, said.basis) == (7200, 0)
    assert "time limit alone" in said.text


def test_failed_jobs_and_those_that_are_short_by_design_say_nothing_of_a_whole_run():
    failed = [run(one, seconds=3, state="FAILED") for one in range(5)]
    smoke = runs(5, seconds=3, first=10)
    history = RunHistory(known(*failed, *smoke, short={one.job_id for one in smoke}))
    assert history.estimate("train", "train.sh", ASKED).basis == 0
    used_up = [run(one, seconds=7200, state="TIMEOUT") for one in range(5)]
    assert RunHistory(known(*used_up)).estimate("train", "train.sh", ASKED).basis == 5


def test_a_job_without_usage_is_known_by_its_start_and_end():
    bare = [record(one, started=NOW, ended=NOW + timedelta(seconds=500)) for one in range(5)]
    assert RunHistory(known(*bare)).estimate("train", "train.sh", ASKED).basis == 5
    assert RunHistory(known(record(1), record(2, job_id="7_3"))).estimate("train", "train.sh", ASKED).basis == 0


@pytest.mark.proves("predictions-are-used")
def test_the_wait_is_that_of_jobs_with_as_many_before_them():
    said = RecentStarts(known(starts=starts(60))).estimate(ASKED, "ada", (), AT)
    assert 150 <= said.expected <= 600
    assert said.basis > 20
    assert said.low <= said.high


def test_own_jobs_that_wait_push_the_next_one_back():
    burst = [
        replace(one, seconds=100 * (place % 10 + 1) ** 2)
        for place, one in enumerate(starts(300, every=1))
    ]  # fmt: skip
    history = RecentStarts(known(starts=burst))
    waiting = [
        Job(JobId(900 + one), "a", "PENDING", ("squeue",), reason="Priority", resources=ASKED) for one in range(200)
    ]
    first, last = history.estimate(ASKED, "ada", (), AT), history.estimate(ASKED, "ada", waiting, AT)
    assert first.likeness != last.likeness or first.expected != last.expected


def test_held_and_dependent_jobs_stand_before_nobody():
    history = RecentStarts(known(starts=starts(60)))
    idle = [
        Job(JobId(1), "a", "PENDING", ("squeue",), reason="JobHeldUser", resources=ASKED),
        Job(JobId(2), "a", "PENDING", ("squeue",), dependency="afterok:1", resources=ASKED),
        Job(JobId(3), "a", "RUNNING", ("squeue",), resources=ASKED),
    ]
    assert history.estimate(ASKED, "ada", idle, AT) == history.estimate(ASKED, "ada", (), AT)


def test_an_array_counts_as_its_first_part_and_what_has_no_time_not_at_all():
    parts = [replace(one, job=1) for one in starts(40)]
    timeless = [replace(one, ready=None, job=99) for one in starts(40)]
    assert RecentStarts(known(starts=[*parts, *timeless])).estimate(ASKED, "ada", (), AT).basis == 1


@pytest.mark.proves("estimates-are-compared")
def test_intervals_are_corrected_by_what_was_really_told():
    jobs = runs(40, seconds=1000)
    wrong = [
        EndedEstimate(int(one.job_id), GivenEstimate("run", 10.0, None, None, 5, (10.0, 10.0, 10.0)), 1000.0)
        for one in jobs
    ]
    plain = RunHistory(known(*jobs)).estimate("train", "train.sh", ASKED)
    corrected = RunHistory(known(*jobs, ended=wrong)).estimate("train", "train.sh", ASKED)
    assert corrected.answers == plain.answers
    assert corrected.high > 2 * plain.high


def job(**facts):
    return SubmittedJob(**({"name": "train", "script": "train.sh", "asked": ASKED, "user": "ada", "at": AT} | facts))


@pytest.mark.proves("estimates-are-compared")
def test_a_submission_has_both_as_facts_and_in_words():
    facts, words = of_submission(job(), known(*runs(60), starts=starts(60)))
    assert [one.kind for one in facts] == ["run", "wait"]
    assert all(one.low <= one.expected <= one.high and one.basis for one in facts)
    assert "in eight of ten cases" in words.run
    assert "in eight of ten cases" in words.wait


def test_what_rests_on_no_job_is_not_kept_as_an_estimate():
    assert of_submission(job(), known()) == ((), None)
    facts, words = of_submission(job(runs=False), known(*runs(9), starts=starts(9)))
    assert ([one.kind for one in facts], words.run) == (["wait"], None)
    facts, words = of_submission(job(waits=False, slurm=60.0), known(*runs(9), starts=starts(9)))
    assert ([one.kind for one in facts], words.wait) == (["run"], None)


def ended(number, happened, kind="run", low=80.0, high=120.0):
    return [EndedEstimate(one, GivenEstimate(kind, 100.0, low, high, 9, (90.0, 100.0, 110.0)), happened) for one in range(number)]  # fmt: skip


@pytest.mark.proves("estimates-are-compared", "calibration-is-told")
def test_how_often_estimates_held_is_told_where_enough_were_compared():
    assert how_often_held([*ended(9, 500.0), *ended(41, 100.0)]) == (
        "Run times: of the last 50 estimates 41 held; most of the others were shorter than what happened."
    )
    both = how_often_held([*ended(20, 100.0), *ended(12, 100.0, "wait")])
    assert both == "Run times: of the last 20 estimates 20 held. Waits: of the last 12 estimates 12 held."
    assert how_often_held(ended(foretold.TOLD - 1, 100.0)) is None
    assert how_often_held(ended(50, 100.0, low=None, high=None)) is None
