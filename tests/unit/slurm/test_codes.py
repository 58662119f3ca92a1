"""Exit codes: whole while the controller knows the job, with a word of doubt afterwards."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.slurm.answers import Prepared, done
from tests.unit.slurm.clocks import START, accounted, queued
from tests.unit.slurm.told import NOTHING, UNKNOWN, Told

from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.units import parse_job_id

RECORD = (
    "JobId={0} JobName=n\n   UserId=alice(1001) GroupId=alice(1001) Priority=0 Nice=0 QOS=normal\n"
    "   JobState=FAILED Reason=NonZeroExitCode Dependency=(null)\n   Requeue=1 Restarts=0 BatchFlag=1 ExitCode=200:0\n"
    "   DerivedExitCode=0:0\n   RunTime=00:00:01 TimeLimit=00:05:00\n   SubmitTime=1800000000"
    " EligibleTime=1800000000\n   StartTime=1800000000 EndTime=1800000060\n"
    "   Partition=cpu NodeList=cpu01\n   NumNodes=1 NumCPUs=1\n   TRES=cpu=1,mem=1G,node=1\n   Command=(null)\n"
    "   WorkDir=/home/alice\n"
)


def ended(*numbers, state="FAILED", code="72:0"):
    return {
        "squeue": done(b"".join(queued(str(number), state) for number in numbers)),
        "sacct": done(b"".join(accounted(str(number), state, code) for number in numbers)),
        "scontrol": lambda argv: done(RECORD.format(argv[-1]).encode()),
    }


class Many(Told):
    """A queue too long for a listing of all jobs."""

    def __init__(self, numbers, **more) -> None:
        super().__init__()
        answers = ended(*numbers, **more)
        rest = b"".join(queued(str(number), "PENDING") for number in range(10_000, 11_001))
        answers["squeue"] = done(answers["squeue"].stdout + rest)
        self.runner = Prepared({name: lambda argv: self._told(argv, answers) for name in answers})
        self.slurm = SlurmClient(self.runner, self.clock, SlurmSettings(cache_seconds=10), user="alice")

    @staticmethod
    def _told(argv, answers):
        told = answers[argv[0]]
        return told(argv) if callable(told) else told


async def test_of_many_failed_jobs_in_a_long_queue_a_few_are_asked_about_and_the_others_say_what_is_not_known():
    numbers = range(1, 10)
    many = Many(numbers)
    views = await many.slurm.jobs([parse_job_id(str(number)) for number in numbers])
    assert [views[parse_job_id(str(number))].job.exit_code for number in numbers] == [200] * 4 + [72] * 5
    assert [views[parse_job_id(str(number))].job.other_code for number in numbers] == [None] * 4 + [200] * 5
    assert many.slurm.calls["scontrol show job"] == 4


@pytest.mark.parametrize("end", [("COMPLETED", "0:0"), ("CANCELLED", "0:0"), ("FAILED", "0:11")])
async def test_of_many_jobs_whose_end_is_plain_none_is_asked_about_in_a_long_queue(end):
    many = Many(range(1, 10), state=end[0], code=end[1])
    await many.slurm.jobs([parse_job_id(str(number)) for number in range(1, 10)])
    assert many.slurm.calls["scontrol show job"] == 0


async def test_a_job_that_the_controller_forgot_keeps_the_accountings_code_with_a_word_of_doubt():
    told = Told(sacct=done(accounted("5", "FAILED", "72:0")))
    job = await told.job()
    assert (job.exit_code, job.other_code, job.code_text) == (72, 200, "72 (or 200: the accounting keeps 7 bits)")
    assert replace(job, exit_code=1).code_text == "1"


async def test_a_code_that_the_controller_told_once_is_told_after_it_forgot_the_job_too():
    told = Told(squeue=done(queued("5", "FAILED")), sacct=done(accounted("5", "FAILED", "72:0")))
    told.answers["scontrol"] = done(RECORD.format(5).encode())
    assert (await told.job()).exit_code == 200
    told.answers |= {"squeue": NOTHING, "scontrol": UNKNOWN}
    told.clock.seconds += 1
    assert ((await told.job(fresh=True)).exit_code, (await told.job(fresh=True)).other_code) == (200, None)
    assert [job.exit_code for job in await told.slurm.recent(told.clock.now() - timedelta(hours=1))] == [200]
    told.clock.seconds += 1
    told.answers["sacct"] = done(accounted("5", "FAILED", "72:0", Start=START + 9))
    assert (await told.job(fresh=True)).code_text == "72 (or 200: the accounting keeps 7 bits)"  # of another run


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
