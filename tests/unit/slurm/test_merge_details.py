"""What is kept, what is filled in and what is left out where several looks at one job come together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.slurm.test_merge import accounted, at, job, view

from slurm_agent_tools.models.job import JobView, Step
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.slurm import merge

BATCH = Step("batch", "batch", "RUNNING")


def test_an_unknown_end_says_why_it_is_unknown():
    reason = view("5", past=[job("5", "RUNNING", "sacct", reason="Priority")]).job.reason
    assert reason is not None
    assert "accounting has not been told its end" in reason


def test_a_job_whose_end_is_unknown_has_no_cause_whatever_its_codes():
    assert merge.cause(job("5", "UNKNOWN", exit_code=7, derived_exit_code=7)) is None


def test_a_code_that_the_controller_told_earlier_leaves_no_doubt():
    whole = merge.coded(accounted(72), 200)
    assert (whole.exit_code, whole.short_code, whole.other_code) == (200, False, None)


@pytest.mark.parametrize("code", [None, 71, 201])
def test_a_code_that_cannot_be_the_same_end_changes_nothing(code):
    assert merge.coded(accounted(72), code) == accounted(72)
    assert merge.coded(accounted(72, 9), 200) == accounted(72, 9)


# --- a fresh look at an active job --------------------------------------------------------------------------------


def test_a_fresh_look_keeps_what_an_earlier_and_fuller_one_told():
    before = JobView(job("5", "PENDING", work_dir="/p", steps=(BATCH,), resources=Resources(gpus=2)))
    seen = merge.newer(JobView(job("5", "RUNNING", started=at(10))), before).job
    assert (seen.state, seen.started, seen.work_dir, seen.steps) == ("RUNNING", at(10), "/p", (BATCH,))
    assert seen.resources.gpus == 2


def test_a_fresh_look_at_a_later_run_keeps_nothing_of_the_earlier_one():
    before = JobView(job("5", "RUNNING", started=at(10), work_dir="/p", steps=(BATCH,)))
    same = merge.newer(JobView(job("5", "RUNNING", started=at(10))), before).job
    later = merge.newer(JobView(job("5", "RUNNING", started=at(90))), before).job
    waits = merge.newer(JobView(job("5", "PENDING")), before).job
    assert (same.work_dir, later.work_dir, waits.work_dir) == ("/p", None, None)
    assert waits.started is None


def test_a_fresh_look_at_a_task_keeps_what_an_earlier_one_told_of_it():
    before = view("9", [job("9_0", "RUNNING", work_dir="/p", steps=(BATCH,)), job("9_1", "RUNNING", work_dir="/q")])
    seen = merge.newer(view("9", [job("9_0", "RUNNING"), job("9_1", "RUNNING", work_dir="/r")]), before)
    assert [(task.work_dir, task.steps) for task in seen.tasks] == [("/p", (BATCH,)), ("/r", ())]


def test_a_task_that_is_new_to_the_look_is_there_and_one_that_vanished_while_active_is_not():
    before = view("9", [job("9_0", "RUNNING"), job("9_1", "UNKNOWN"), job("9_[2-3]", "PENDING")])
    seen = merge.newer(view("9", [job("9_2", "RUNNING"), job("9_3", "PENDING")]), before)
    assert [str(task.job_id) for task in seen.tasks] == ["9_2", "9_3"]


# --- the record of one job ----------------------------------------------------------------------------------------


def test_the_accountings_reason_and_sources_do_not_replace_the_controllers():
    seen = view("5", [job("5", "PENDING", reason=None)], [], [job("5", "PENDING", "sacct", reason="Priority", nice=3)])
    assert (seen.job.reason, seen.job.nice, seen.job.sources) == (None, 3, ("squeue", "sacct"))


@pytest.mark.parametrize(
    ("started", "requested", "kept"),
    [(at(10), "PENDING", True), (at(9), "RUNNING", False), (at(10), "FAILED", False), (None, "RUNNING", True)],
)
def test_an_earlier_run_of_a_requeued_job_is_no_word_about_this_one(started, requested, kept):
    past = job("5", requested, "sacct", started=started, qos="debug")
    assert (view("5", [job("5", "RUNNING", started=at(10))], [], [past]).job.qos == "debug") == kept


def test_an_end_of_another_state_in_the_accounting_gives_no_exit_code_over_the_controllers():
    detail = job("5", "FAILED", "scontrol", exit_code=200, short_code=False)
    past = job("5", "TIMEOUT", "sacct", exit_code=0, signal=15, cancelled_by="7")
    seen = view("5", [], [detail], [past]).job
    assert (seen.state, seen.exit_code, seen.derived_exit_code) == ("FAILED", 200, None)


def test_the_worst_step_is_the_one_with_the_highest_code_then_the_highest_signal():
    steps = (Step("batch", "b", "FAILED", exit_code=99), Step("0", "a", "FAILED", exit_code=0, signal=9))
    steps += (Step("1", "a", "FAILED", exit_code=0, signal=11), Step("2", "a", "RUNNING"))
    seen = view("5", past=[job("5", "COMPLETED", "sacct", exit_code=0, steps=steps)]).job
    assert (seen.derived_exit_code, seen.derived_signal) == (0, 11)
    assert view("5", past=[job("5", "COMPLETED", "sacct", exit_code=0)]).job.derived_exit_code is None


# --- many parts ---------------------------------------------------------------------------------------------------


def test_an_array_began_with_its_first_task_and_ended_with_its_last():
    tasks = [job(f"9_{n}", "COMPLETED", started=at(10 + n), ended=at(30 - n), steps=(BATCH,)) for n in range(2)]
    whole = view("9", tasks).job
    assert (whole.started, whole.ended, len(whole.steps)) == (at(10), at(30), 2)
    assert view("9", [*tasks, job("9_[2]", "PENDING")]).job.ended is None
    assert view("9", [job("9_[2-3]", "PENDING")]).job.started is None


def test_an_end_that_is_not_known_here_counts_before_all_others():
    assert view("9", [job("9_0", "FAILED"), job("9_1", "SOMETHING_NEW")]).job.state == "SOMETHING_NEW"
    assert view("9", [job("9_0", "FAILED"), job("9_1", "NODE_FAIL")]).job.state == "NODE_FAIL"


def test_it_is_over_when_every_part_is():
    ended, unknown, active = job("9_0", "FAILED"), job("9_1", "UNKNOWN"), job("9_1", "RUNNING")
    assert JobView(ended, (ended,)).over
    assert not JobView(ended, (ended, unknown)).over
    assert not JobView(ended, (ended, active)).over
    assert not JobView(unknown).over


def test_a_range_that_slurm_has_cut_short_may_hold_the_task():
    assert view("9_700", [job("9_[2,9,...]", "PENDING")]) is not None
    assert view("9_3", [job("9_[2,9]", "PENDING")]) is None
    assert view("9_9", [job("9_[2,9%1]", "PENDING")]).job.state == "PENDING"


# --- why it ended as it did ---------------------------------------------------------------------------------------


def test_a_task_with_a_record_of_its_own_is_not_one_of_a_range_that_was_cancelled():
    rest, ran = job("9_[2-5%3]", "CANCELLED"), job("9_2", "COMPLETED", nodes="a1")
    assert view("9_2", [ran], past=[rest]).job.state == "COMPLETED"
    assert view("9_4", [ran], past=[rest]).job.state == "CANCELLED"
    whole = view("9", [ran], past=[rest])
    assert [str(task.job_id) for task in whole.tasks] == ["9_2", "9_[3-5]"]


STOPPED = Step("0", "a", "CANCELLED", cancelled_by="0", tres_usage_in_tot={"mem": 900})
SMALL = Resources(memory_bytes=1000)


@pytest.mark.parametrize(
    ("record", "killed"),
    [
        (job("5", "OUT_OF_MEMORY"), True),
        (job("5", "FAILED", exit_code=1, steps=(Step("0", "a", "CANCELLED", exit_code=0, signal=125),)), True),
        (job("5", "FAILED", exit_code=1, steps=(Step("0", "a", "FAILED", exit_code=0, signal=126),)), False),
        (job("5", "FAILED", signal=9, steps=(STOPPED,), resources=SMALL), True),
        (job("5", "FAILED", signal=9, steps=(STOPPED,)), False),
        (
            job("5", "FAILED", signal=9, steps=(replace(STOPPED, tres_usage_in_tot={"mem": 899}),), resources=SMALL),
            False,
        ),
        (job("5", "FAILED", signal=9, steps=(replace(STOPPED, cancelled_by=None),), resources=SMALL), False),
        (job("5", "FAILED", signal=15, steps=(STOPPED,), resources=SMALL), False),
        (job("5", "CANCELLED", signal=9, steps=(STOPPED,), resources=SMALL), False),
    ],
)
def test_a_job_was_killed_for_its_memory_where_slurm_says_so_of_it_or_of_a_step(record, killed):
    assert merge.out_of_memory(record) == killed


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"steps": (Step("0", "a", "FAILED"),)}, True), ({"derived_signal": 9}, True), ({}, False)],
)
def test_a_step_that_failed_is_told_though_the_script_ended_with_zero(changes, told):
    cause = merge.cause(replace(job("5", "COMPLETED", exit_code=0), **changes))
    assert (cause is not None and "A step of it failed" in cause) == told


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("BOOT_FAIL", "did not start"),
        ("PREEMPTED", "make room"),
        ("DEADLINE", "before its deadline"),
        ("REVOKED", "Another cluster"),
        ("CANCELLED", "It was cancelled."),
    ],
)
def test_every_end_that_slurm_has_a_word_for_has_a_sentence(state, words):
    assert words in (merge.cause(job("5", state, exit_code=0)) or "")
