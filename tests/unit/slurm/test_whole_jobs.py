"""A job of several parts as one: its times, its steps, and the part that speaks for all."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slurm_agent_tools.models.job import Job, JobView, Step
from slurm_agent_tools.slurm import client, merge
from slurm_agent_tools.units import parse_job_id


def at(second: int) -> datetime:
    return datetime.fromtimestamp(1_800_000_000 + second, UTC)


def part(
    number: str, state: str = "COMPLETED", start: int | None = None, end: int | None = None, **more: object
) -> Job:
    return Job(
        parse_job_id(number),
        "train",
        state,
        ("squeue",),
        started=None if start is None else at(start),
        ended=None if end is None else at(end),
        **more,  # type: ignore[arg-type]
    )


def whole(*parts: Job, wanted: str = "5") -> JobView:
    found = merge.view(parse_job_id(wanted), parts, [], [])
    assert found is not None
    return found


def test_an_array_began_with_its_first_task_and_ended_with_its_last():
    seen = whole(part("5_0", start=20, end=40), part("5_1", start=10, end=90), part("5_2", start=30, end=50))
    assert (str(seen.job.job_id), seen.job.started, seen.job.ended) == ("5", at(10), at(90))
    assert [str(task.job_id) for task in seen.tasks] == ["5_0", "5_1", "5_2"]


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "COMPLETING", "SUSPENDED"])
def test_an_array_has_no_end_while_a_task_of_it_goes_on(state):
    seen = whole(part("5_0", start=10, end=40), part("5_1", state))
    assert (seen.job.state, seen.job.started, seen.job.ended) == (state, at(10), None)
    assert not seen.over


def test_times_that_no_part_has_are_not_known():
    seen = whole(part("5_0"), part("5_1"))
    assert (seen.job.started, seen.job.ended) == (None, None)


def test_of_parts_that_go_on_one_that_runs_speaks_for_all():
    waiting, running = part("5_0", "PENDING", reason="Priority"), part("5_1", "RUNNING", nodes="cpu1")
    for parts in ((waiting, running), (running, waiting)):
        assert (whole(*parts).job.state, whole(*parts).job.nodes) == ("RUNNING", "cpu1")
    assert whole(waiting, part("5_2", "PENDING", reason="Resources")).job.reason == "Priority"


@pytest.mark.parametrize("worst", ["FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "CANCELLED"])
def test_of_parts_that_are_over_the_worst_speaks_for_all(worst):
    for parts in ((part("5_0"), part("5_1", worst, exit_code=3)), (part("5_0", worst, exit_code=3), part("5_1"))):
        assert (whole(*parts).job.state, whole(*parts).job.exit_code) == (worst, 3)


def test_the_steps_of_all_parts_are_the_wholes():
    first, second = Step("batch", "batch", "COMPLETED"), Step("0", "train", "FAILED", exit_code=2)
    assert whole(part("5_0", steps=(first,)), part("5_1", steps=(second,))).job.steps == (first, second)


def test_components_of_a_heterogeneous_job_are_a_whole_as_tasks_are():
    seen = whole(part("5+0", start=10, end=40), part("5+1", start=10, end=60))
    assert (seen.job.started, seen.job.ended, len(seen.tasks)) == (at(10), at(60), 2)


@pytest.mark.parametrize("wanted", ["5", "5_1", "5_4", "5_9", "6", "6+1", "7", "7_1"])
def test_a_job_among_those_that_may_belong_to_it_is_the_one_among_all(wanted: str):
    jobs = [
        part("5_1", start=1, end=2), part("5_[3-5]", "PENDING"), part("5_[7-...]", "PENDING"), part("5_1", "FAILED"),
        part("6+0", start=1, end=2), part("6+1", start=1, end=3), part("7", start=1, end=2), part("15_1"),
    ]  # fmt: skip
    near = client._near(parse_job_id(wanted), client._by_part(jobs))
    assert merge.view(parse_job_id(wanted), near, [], []) == merge.view(parse_job_id(wanted), jobs, [], [])
