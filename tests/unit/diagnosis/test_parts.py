"""Many parts of one job: how many stand where, and which are shown."""

from __future__ import annotations

from tests.unit.insights.parts import job

from slurm_agent_tools.diagnosis import job_parts
from slurm_agent_tools.units import JobId


def task(number: int, state: str = "COMPLETED", **facts: object):
    return job(job_id=JobId(48, task=number), state=state, **facts)


def test_few_parts_are_all_shown_in_their_order():
    few = [task(0), task(1, "FAILED", exit_code=1), task(2, "RUNNING")]
    assert job_parts.shown(few) == few


def test_of_many_parts_those_that_failed_come_first_then_those_that_go_on():
    many = [task(number) for number in range(60)]
    many[40], many[50], many[59] = task(40, "RUNNING"), task(50, "FAILED", exit_code=1), task(59, "OUT_OF_MEMORY")
    found = [part.job_id.task for part in job_parts.shown(many)]
    assert found == [50, 59, 40, *range(17)]
    assert job_parts.by_state(many) == {"COMPLETED": 57, "RUNNING": 1, "FAILED": 1, "OUT_OF_MEMORY": 1}


def test_which_tasks_failed_is_told_first():
    told = job_parts.counted([task(0), task(1), task(2, "FAILED", exit_code=1)])
    assert told == "1 of 3 tasks FAILED (48_2, exit code 1), 2 COMPLETED"
    both = job_parts.counted([task(0), task(1, "TIMEOUT"), task(2, "FAILED", exit_code=1)])
    assert both == "1 of 3 tasks TIMEOUT (48_1), 1 FAILED (48_2, exit code 1), 1 COMPLETED"
    assert job_parts.counted([task(0), task(1)]) == "2 of 2 tasks COMPLETED"


def test_of_many_failures_the_first_are_named():
    told = job_parts.counted([task(number, "FAILED", exit_code=1) for number in range(9)])
    assert told.startswith("9 of 9 tasks FAILED (48_0, exit code 1; 48_1, exit code 1;")
    assert told.endswith("and 4 more)")


def test_tasks_that_wait_together_count_as_many():
    waiting = job(job_id=JobId(48, tasks="3-59%4"), state="PENDING")
    cut = job(job_id=JobId(48, tasks="61,63,..."), state="PENDING")
    assert job_parts.by_state([task(0, "RUNNING"), waiting]) == {"RUNNING": 1, "PENDING": 57}
    assert job_parts.width(cut) == 1


def test_components_are_called_so():
    told = job_parts.counted([job(job_id=JobId(5, component=number)) for number in range(2)])
    assert told == "2 of 2 components COMPLETED"
