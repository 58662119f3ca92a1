from dataclasses import replace
from datetime import UTC, datetime

import pytest

from slurm_agent_tools.models.job import Job, JobView, Step
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.slurm import merge
from slurm_agent_tools.units import JobId, parse_job_id


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def job(text: str, state: str, source: str = "squeue", **more: object) -> Job:
    return Job(parse_job_id(text), "n", state, (source,), **more)  # type: ignore[arg-type]


def view(text: str, live=(), details=(), past=()):
    return merge.view(parse_job_id(text), live, details, past)


def test_the_controller_counts_while_it_has_the_job():
    seen = view("5", [job("5", "RUNNING", started=at(10))], [], [job("5", "PENDING", "sacct")])
    assert seen.job.state == "RUNNING"


def test_the_columns_of_the_queue_count_before_the_text_of_scontrol():
    seen = view("5", [job("5", "RUNNING")], [replace(job("5", "COMPLETED", "scontrol", restarts=2), name="forged")])
    assert (seen.job.name, seen.job.state, seen.job.restarts) == ("n", "RUNNING", 2)


def test_a_requeued_job_is_its_newest_run():
    past = job("5", "NODE_FAIL", "sacct", started=at(10), ended=at(20), exit_code=0)
    seen = view("5", [job("5", "PENDING", reason="BeginTime")], [job("5", "PENDING", "scontrol", restarts=1)], [past])
    assert (seen.job.state, seen.job.restarts, seen.job.ended, seen.job.exit_code) == ("PENDING", 1, None, None)


def test_a_job_that_only_a_slow_accounting_calls_running_is_unknown_and_not_over():
    assert view("5", past=[job("5", "RUNNING", "sacct")]).job.state == "UNKNOWN"


def test_a_finished_job_joins_exit_code_steps_and_who_cancelled():
    past = job(
        "5", "CANCELLED", "sacct", cancelled_by="1001", exit_code=0, steps=(Step("batch", "batch", "CANCELLED"),)
    )
    seen = view("5", [job("5", "CANCELLED", ended=at(3))], [], [past])
    assert (seen.job.cancelled_by, seen.job.exit_code, len(seen.job.steps)) == ("1001", 0, 1)
    assert set(seen.job.sources) == {"squeue", "sacct"}


def test_nothing_known_is_none():
    assert view("5", [job("6", "RUNNING")]) is None


def test_an_array_is_as_bad_as_its_worst_task_and_active_while_one_is():
    tasks = [job("9_0", "COMPLETED"), job("9_1", "FAILED", exit_code=5), job("9_2", "COMPLETED")]
    seen = view("9", tasks)
    assert (str(seen.job.job_id), seen.job.state, seen.job.exit_code) == ("9", "FAILED", 5)
    assert [str(task.job_id) for task in seen.tasks] == ["9_0", "9_1", "9_2"]
    assert view("9", [*tasks, job("9_[3-5%2]", "PENDING")]).job.state == "PENDING"
    assert view("9", [*tasks, job("9_3", "RUNNING"), job("9_[4-5]", "PENDING")]).job.state == "RUNNING"


@pytest.mark.parametrize(("wanted", "state"), [("9_0", "RUNNING"), ("9_4", "PENDING")])
def test_one_task_is_found_alone_or_in_a_pending_range(wanted, state):
    seen = view(wanted, [job("9_0", "RUNNING"), job("9_[2-50%4]", "PENDING")])
    assert seen.job.state == state


def test_the_controllers_record_of_a_cancelled_rest_is_no_task():
    seen = view("9", [], [job("9", "CANCELLED", "scontrol"), job("9_1", "CANCELLED", "scontrol")])
    assert [str(task.job_id) for task in seen.tasks] == ["9_1"]
    assert view("9", [], [job("9", "CANCELLED", "scontrol")]).job.state == "CANCELLED"


def test_a_fresh_look_keeps_the_tasks_that_ended_before():
    before = view("9", [job("9_0", "FAILED", exit_code=3), job("9_1", "RUNNING"), job("9_2", "RUNNING")])
    seen = merge.newer(view("9", [job("9_1", "RUNNING")]), before)
    assert [(str(task.job_id), task.state) for task in seen.tasks] == [("9_0", "FAILED"), ("9_1", "RUNNING")]


def test_a_task_outside_the_pending_range_is_not_found_there():
    assert view("9_1", [job("9_[2-50%4]", "PENDING")]) is None


def test_a_het_job_is_a_whole_with_components():
    seen = view("7", [job("7+0", "COMPLETED"), job("7+1", "FAILED", exit_code=2)])
    assert (str(seen.job.job_id), seen.job.state, len(seen.tasks)) == ("7", "FAILED", 2)
    assert view("7+0", [job("7+0", "COMPLETED"), job("7+1", "FAILED")]).job.job_id == JobId(7, component=0)


@pytest.mark.parametrize(
    ("live", "past"),
    [
        (
            {"derived_exit_code": 0},
            {"derived_exit_code": 0, "steps": (Step("0", "x", "FAILED", exit_code=3, signal=0),)},
        ),
        ({"derived_exit_code": 3, "derived_signal": 0}, {"derived_exit_code": 0, "derived_signal": 0}),
        (None, {"derived_exit_code": 0, "steps": (Step("0", "x", "FAILED", exit_code=3, signal=0),)}),
    ],
    ids=["the step's own line", "the controller", "the accounting alone"],
)
def test_a_step_that_failed_in_the_moment_of_the_jobs_end_is_told_whoever_counted_it(live, past):
    lists = ([job("5", "COMPLETED", **live)] if live else [], [], [job("5", "COMPLETED", exit_code=0, **past)])
    assert merge.view(JobId(5), *lists).job.derived_exit_code == 3


def test_a_task_that_waits_in_a_range_is_one_job():
    seen = view("9_5", [job("9_[3-5%2]", "PENDING", reason="JobArrayTaskLimit")])
    assert (str(seen.job.job_id), seen.job.state, seen.tasks) == ("9_5", "PENDING", ())


POLLED = Step("batch", "batch", "CANCELLED", cancelled_by="64030", max_rss_bytes=950)
OOM = Step("0", "python", "OUT_OF_MEMORY", exit_code=0, signal=125)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (job("5", "OUT_OF_MEMORY"), "more memory"),
        (job("5", "FAILED", exit_code=1, steps=(OOM,)), "step 0"),
        (
            job("5", "FAILED", signal=9, steps=(POLLED,), resources=Resources(memory_bytes=1000)),
            "more memory",
        ),
        (
            job(
                "5",
                "FAILED",
                signal=9,
                steps=(replace(POLLED, max_rss_bytes=500),),
                resources=Resources(memory_bytes=1000),
            ),
            "It ended by signal 9.",
        ),
        (job("5", "FAILED", signal=9, steps=(Step("batch", "batch", "CANCELLED"),)), "It ended by signal 9."),
        (job("5", "FAILED", exit_code=7), "exit code 7"),
        (job("5", "FAILED", exit_code=1, elapsed_seconds=0), "It never ran"),
        (job("5", "FAILED", exit_code=1, elapsed_seconds=0, nodes="cpu01"), "exit code 1"),
        (job("5", "FAILED", signal=11, exit_code=0), "signal 11"),
        (job("5", "FAILED", signal=53, exit_code=0), "working folder or an output file"),
        (job("5", "COMPLETED", exit_code=0, derived_exit_code=1), "step of it failed"),
        (job("5", "CANCELLED", cancelled_by="1001"), "by 1001"),
        (job("5", "TIMEOUT"), "time limit"),
        (job("5", "NODE_FAIL"), "node"),
    ],
)
def test_the_cause_is_told_in_a_sentence(record, words):
    assert words in merge.cause(record)


@pytest.mark.parametrize("record", [job("5", "COMPLETED", exit_code=0), job("5", "RUNNING"), job("5", "UNKNOWN")])
def test_a_success_and_a_job_that_goes_on_have_no_cause(record):
    assert merge.cause(record) is None
    assert merge.cause(replace(record, steps=(Step("batch", "batch", "COMPLETED", exit_code=0),))) is None


def codes(seen: JobView) -> tuple[object, ...]:
    return (seen.job.exit_code, seen.job.signal, [step.exit_code for step in seen.job.steps], merge.cause(seen.job))


def accounted(code: int, signal: int | None = None, **more: object) -> Job:
    return job("5", "FAILED", "sacct", exit_code=code, signal=signal, short_code=True, **more)


@pytest.mark.parametrize("code", [128, 137, 200, 255])
def test_the_controllers_exit_code_counts_where_the_accounting_kept_seven_bits_of_it(code):
    steps = (
        Step("batch", "batch", "FAILED", exit_code=code & 127, signal=0),
        Step("0", "a", "FAILED", exit_code=143 & 127),
        Step("1", "b", "COMPLETED", exit_code=0),
    )
    detail = job("5", "FAILED", "scontrol", exit_code=code, short_code=False, derived_exit_code=143)
    seen = view("5", [job("5", "FAILED")], [detail], [accounted(code & 127, steps=steps)])
    assert codes(seen) == (code, None, [code, 143, 0], f"Its script ended with exit code {code}.")


@pytest.mark.parametrize(("code", "signal"), [(7, None), (201, None), (200, 9)])
def test_an_end_that_is_not_the_accountings_is_not_mixed_with_it(code, signal):
    detail = job("5", "FAILED", "scontrol", exit_code=code, signal=signal, short_code=False)
    seen = view("5", [], [detail], [accounted(72)])
    assert (seen.job.exit_code, seen.job.signal, seen.job.other_code) == (72, None, 200)


def test_two_steps_that_may_have_ended_so_keep_the_accountings_codes():
    steps = tuple(Step(number, "a", "FAILED", exit_code=15) for number in "01")
    detail = job("5", "FAILED", "scontrol", exit_code=1, short_code=False, derived_exit_code=143)
    assert codes(view("5", [], [detail], [accounted(1, steps=steps)]))[2] == [15, 15]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (72, "72 (or 200: the accounting keeps 7 bits)"),
        (0, "0 (or 128: the accounting keeps 7 bits)"),
        (1, "1"),  # nearly every program that fails
    ],
)
@pytest.mark.parametrize("live", [[], [job("5", "FAILED")]], ids=["forgotten", "the queue without its details"])
def test_a_code_that_may_be_a_part_of_one_says_so(live, code, words):
    seen = view("5", live, [], [accounted(code)])
    assert seen.job.exit_code == code
    assert merge.cause(seen.job) == f"Its script ended with exit code {words}."


@pytest.mark.parametrize("past", [accounted(0, 11), replace(accounted(0), state="COMPLETED"), accounted(200)])
def test_a_signal_a_success_and_a_whole_code_leave_no_doubt(past):
    assert view("5", past=[past]).job.other_code is None
    assert "(or" not in (merge.cause(past) or "")
