"""Sentences that an agent repeats: how a job goes, and how many jobs were found."""

from __future__ import annotations

import pytest
from tests.unit.services.scenes import Scene

from slurm_agent_tools.api.search_history import HistoryQuestion, search_history
from slurm_agent_tools.diagnosis.job_parts import describe
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.shapes import RunningShown
from slurm_agent_tools.units import JobId

GIB = 2**30
KNOWN = {
    "memory_bytes": 3 * GIB, "memory": "3G", "memory_limit_bytes": 4 * GIB, "memory_limit": "4G", "memory_share": 0.75,
}  # fmt: skip


def job(state: str, **more: object) -> Job:
    return Job(JobId(7), "train", state, ("squeue",), **more)  # type: ignore[arg-type]


def running(left: int | None = None, **more: object) -> RunningShown:
    return RunningShown(
        job_id="7",
        parts=1,
        elapsed_seconds=90,
        time_left_seconds=left,
        estimated_end=None,
        estimated_from=None,
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (job("PENDING", reason="Priority"), "PENDING (Priority)"),
        (job("PENDING"), "PENDING"),
        (job("RUNNING", elapsed_seconds=90), "RUNNING for 90 s"),
        (job("RUNNING"), "RUNNING"),
        (job("COMPLETING", elapsed_seconds=90), "COMPLETING after running 90 s"),
    ],
)
def test_a_job_that_goes_on_is_told_by_its_state_and_what_goes_with_it(made, words):
    assert describe(made) == words


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (running(), ""),
        (running(600), ", 00:10:00 left"),
        (running(memory_share=0.5), ", memory at 50 %"),
        (running(600, memory_share=0.5), ", memory at 50 %, 00:10:00 left"),
        (running(**KNOWN), ", memory 3G of 4G (75 %)"),
        (running(600, **KNOWN), ", memory 3G of 4G (75 %), 00:10:00 left"),
        (running(**{**KNOWN, "memory_share": 0.9}), ", memory 3G of 4G (90 % of that of one node)"),
    ],
)
def test_memory_and_time_are_told_where_they_are_known(now, words):
    assert describe(job("RUNNING", elapsed_seconds=90), now) == f"RUNNING for 90 s{words}"


@pytest.mark.parametrize(
    ("jobs", "limit", "words"),
    [
        (0, 20, "No job of the last 30 days fits."),
        (1, 20, "1 job of the last 30 days."),
        (2, 20, "2 jobs of the last 30 days."),
        (3, 3, "3 jobs of the last 30 days."),
        (3, 2, "3 jobs of the last 30 days, 2 shown."),
        (3, 1, "3 jobs of the last 30 days, 1 shown."),
    ],
)
async def test_the_number_of_jobs_found_and_of_those_shown_is_told(scene: Scene, jobs, limit, words):
    for number in range(jobs):
        scene.write(f"train{number}.sh", (scene.project / "train.sh").read_text() + f"echo {number}\n")
        await scene.submit(f"train{number}.sh")
        scene.slurm.clock.move(70)

    answer = await search_history(scene.context, HistoryQuestion(limit=limit, days=30))

    assert answer.summary == words
    assert len(answer.jobs) == min(jobs, limit)
