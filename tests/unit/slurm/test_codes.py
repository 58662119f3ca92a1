"""Exit codes: whole while the controller knows the job, with a word of doubt afterwards."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.slurm.answers import done
from tests.unit.slurm.clocks import accounted, queued
from tests.unit.slurm.told import Told

from slurm_agent_tools.devcluster.fake.fake_files import MemoryFiles
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.units import JobId

HOME = "/home/alice"


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm(files=MemoryFiles())


@pytest.fixture
def client(slurm: FakeSlurm) -> SlurmClient:
    return SlurmClient(slurm, slurm.clock, SlurmSettings(cache_seconds=10), user=slurm.user)


async def ended(slurm: FakeSlurm, count: int, script: str, cancel: bool = False) -> list[JobId]:
    """So many jobs that have ended, before a queue too long for a listing of all jobs where they are many."""
    numbers = [slurm.submit(f"#!/bin/bash\n{script}\n", cwd=HOME) for _ in range(count)]
    await slurm.clock.advance(5)
    if cancel:
        slurm.command("scancel", *map(str, numbers))
    for _ in range(1001 if count > 1 else 0):
        slurm.submit("#!/bin/bash\ntrue\n", "--hold", cwd=HOME)
    return [JobId(number) for number in numbers]


async def test_of_many_failed_jobs_in_a_long_queue_a_few_are_asked_about_and_the_others_say_what_is_not_known(
    slurm, client
):
    jobs = await ended(slurm, 9, "exit 200")
    views = await client.jobs(jobs)
    assert [views[job].job.exit_code for job in jobs] == [200] * 4 + [72] * 5
    assert [views[job].job.other_code for job in jobs] == [None] * 4 + [200] * 5
    assert client.calls["scontrol show job"] == 4


@pytest.mark.parametrize("end", [("true", False), ("sleep 600", True), ("kill -SEGV $$", False)])
async def test_of_many_jobs_whose_end_is_plain_none_is_asked_about_in_a_long_queue(slurm, client, end):
    await client.jobs(await ended(slurm, 9, *end))
    assert client.calls["scontrol show job"] == 0


async def test_a_job_that_the_controller_forgot_keeps_the_accountings_code_with_a_word_of_doubt(slurm, client):
    (number,) = await ended(slurm, 1, "exit 200")
    slurm.forget(number.base)
    job = (await client.job(number)).job
    assert (job.exit_code, job.other_code, job.code_text) == (72, 200, "72 (or 200: the accounting keeps 7 bits)")
    assert replace(job, exit_code=1).code_text == "1"


async def test_a_code_that_the_controller_told_once_is_told_after_it_forgot_the_job_too(slurm, client):
    (number,) = await ended(slurm, 1, "exit 200")
    assert (await client.job(number)).job.exit_code == 200
    kept = slurm.job(number.base)
    slurm.forget(number.base)
    job = (await client.job(number, fresh=True)).job
    assert (job.sources, job.exit_code, job.other_code) == (("sacct",), 200, None)
    assert [one.exit_code for one in await client.accounting.recent(slurm.clock.now() - timedelta(hours=1))] == [200]
    slurm.controller.jobs[number.base] = kept
    slurm.command("scontrol", "requeue", str(number))
    await slurm.clock.advance(130)
    slurm.forget(number.base)
    job = (await client.job(number, fresh=True)).job
    assert job.code_text == "72 (or 200: the accounting keeps 7 bits)"  # of another run


@pytest.mark.parametrize(
    ("state", "reason", "told_reason"),
    [
        ("FAILED", "JobArrayTaskLimit", None),
        ("COMPLETED", "Priority", None),
        ("FAILED", "RaisedSignal:11(Segmentation_fault)", "RaisedSignal:11(Segmentation_fault)"),
        ("TIMEOUT", "TimeLimit", "TimeLimit"),
        ("PENDING", "Resources", "Resources"),
    ],
)
async def test_a_job_that_ran_has_no_reason_for_waiting(state, reason, told_reason):
    told = Told(squeue=done(queued("5", state, reason=reason)), sacct=done(accounted("5", state, Reason=reason)))
    assert (await told.job()).reason == told_reason
