"""The facts of the moment about the jobs that a request waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.services.contexts import NothingReachesSlurm, toolbox

from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.models.request import JobRequest, ScriptReading
from slurm_agent_tools.policy.plan import LiveFacts
from slurm_agent_tools.services import submission_facts
from slurm_agent_tools.slurm.client import JobViews, SlurmClient
from slurm_agent_tools.units import JobId


def job(number: int, state: str, *sources: str) -> Job:
    return Job(JobId(number), name="prepare", user="alice", state=state, sources=sources)


VIEWS = {
    17: JobView(job(17, "RUNNING", "squeue")),
    18: JobView(job(18, "FAILED", "sacct")),
    19: JobView(job(19, "COMPLETED", "scontrol")),
    20: JobView(job(20, "FAILED", "sacct"), (replace(job(20, "FAILED", "sacct"), job_id=JobId(20, task=1)),)),
}


async def facts(folder: Path, dependency: str, monkeypatch: pytest.MonkeyPatch) -> LiveFacts:
    async def views(self: SlurmClient, ids: Sequence[JobId]) -> JobViews:
        found = JobViews()
        found.update({job_id: VIEWS[job_id.base] for job_id in ids if job_id.base in VIEWS})
        return found

    monkeypatch.setattr(SlurmClient, "jobs", views)
    made = toolbox(folder, NothingReachesSlurm())
    try:
        reading = ScriptReading("a.sh", "s", "", JobRequest(dependency=dependency))
        return await submission_facts.live_facts(made.context, submission_facts.Snapshot({}, (), ()), reading)
    finally:
        await made.close()


async def test_of_jobs_that_are_waited_for_it_is_known_which_are_there_and_how_the_others_ended(tmp_path, monkeypatch):
    known = await facts(tmp_path, "afterok:17:18:19,afterany:21", monkeypatch)

    assert known.known_jobs == {"17", "19"}
    assert known.ended_jobs == {"18": "FAILED", "19": "COMPLETED"}


async def test_the_end_of_a_job_with_parts_is_not_told_as_one(tmp_path, monkeypatch):
    known = await facts(tmp_path, "afterok:20", monkeypatch)

    assert (known.known_jobs, known.ended_jobs) == (frozenset(), {})
