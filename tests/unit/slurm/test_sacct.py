"""Amounts and usages in sacct's rows; the rows are those of real jobs, and of what the manual says of GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.unit.slurm.answers import Prepared, done
from tests.unit.slurm.clocks import accounted
from tests.unit.slurm.told import DISABLED

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.devcluster.fake.fake_files import MemoryFiles
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import InputError, SlurmGarbled
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.slurm.commands import sacct
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import JobId

MIB = 2**20
WIDE = {
    "AllocTRES": "cpu=4,mem=1000M,node=2",
    "NTasks": 4,
    "MaxRSS": "64248K",
    "TotalCPU": "00:04.032",
    "TRESUsageInTot": "cpu=00:00:03,energy=0,fs/disk=180448,mem=128492K,pages=0,vmem=128492K",
    "TRESUsageInMin": "cpu=00:00:00,energy=0,fs/disk=45112,mem=0,pages=0,vmem=0",
    "TRESUsageInAve": "cpu=00:00:00,gres/gpumem=2.50G,gres/gpuutil=87,mem=32123K",
}


def read(*rows: bytes):
    return sacct.parse(done(b"".join(rows), argv=("sacct",)))


def test_what_was_asked_and_what_was_given_are_kept_apart():
    (job,) = read(
        accounted(
            "5",
            ReqTRES="billing=2,cpu=2,gres/gpu=1,mem=400M,node=1",
            AllocTRES="billing=4,bb/datawarp=100G,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=1.50G,node=1",
            QOS="high",
            AdminComment="JS1:None",
        )
    )
    assert job.requested == {"billing": 2, "cpu": 2, "gres/gpu": 1, "mem": 400 * MIB, "node": 1}
    assert job.allocated == {
        "billing": 4, "cpu": 4, "gres/gpu:a100": 2, "gres/gpu": 2, "mem": 1536 * MIB, "node": 1,
    }  # fmt: skip
    assert (job.qos, job.admin_comment, job.resources.cpus) == ("high", "JS1:None", 4)


def test_a_job_that_was_given_nothing_says_so():
    (job,) = read(accounted("5", "CANCELLED", ReqTRES="cpu=1,mem=100M,node=1"))
    assert (job.requested, job.allocated) == ({"cpu": 1, "mem": 100 * MIB, "node": 1}, None)


def test_a_step_tells_its_tasks_its_share_and_what_it_used():
    (job,) = read(accounted("5"), accounted("5.0", **WIDE))
    (step,) = job.steps
    assert (step.tasks, step.allocated) == (4, {"cpu": 4, "mem": 1000 * MIB, "node": 2})
    assert (step.max_rss_bytes, step.cpu_seconds) == (64248 * 1024, 4.032)
    assert step.tres_usage_in_tot["mem"] == 128492 * 1024
    assert step.tres_usage_in_tot["cpu"] == 3
    assert step.tres_usage_in_min["mem"] == 0
    assert (step.tres_usage_in_ave["gres/gpuutil"], step.tres_usage_in_ave["gres/gpumem"]) == (87, 2560 * MIB)
    assert step.started is not None


def test_the_zero_of_a_step_of_which_no_word_came_is_no_cpu_time():
    (job,) = read(accounted("5", "RUNNING"), accounted("5.batch", "RUNNING", TotalCPU="00:00:00", NTasks=1))
    assert (job.steps[0].cpu_seconds, job.steps[0].tres_usage_in_tot) == (None, {})


def test_a_row_with_an_amount_that_cannot_be_read_is_an_error():
    with pytest.raises(SlurmGarbled, match="much"):
        read(accounted("5", AllocTRES="cpu=4,mem=much"))


@pytest.mark.parametrize(("version", "shown"), [("22.05", False), ("24.11", True)])
async def test_columns_of_later_versions_are_asked_for_where_they_are(version: str, shown: bool):
    fake = FakeSlurm(version=version, files=MemoryFiles())
    fake.memory.add_folder("/home/a/logs")
    number = fake.submit("#!/bin/bash\ntrue\n", "-Jtrain", "-oo-%x-%j.txt", "-elogs/%A_%a.err", cwd="/home/a")
    await fake.clock.advance(30)
    fake.forget(number)
    slurm = SlurmClient(fake, fake.clock, SlurmSettings(), user=fake.user)
    for _ in range(2):
        job = (await slurm.job(JobId(number), fresh=True)).job
    assert fake.asked.count(("sacct", "--helpformat")) == 1
    paths = ("/home/a/o-train-1.txt", "/home/a/logs/1_4294967294.err") if shown else (None, None)
    assert (job.stdout, job.stderr) == paths


class Measured(Prepared):
    """Notes the time limit of each command."""

    def __init__(self, answer: Completed) -> None:
        super().__init__({"sacct": lambda _: answer})
        self.limits: list[float] = []

    async def run(self, argv: Sequence[str], *, timeout: float = 10.0, **more: object) -> Completed:  # type: ignore[override]
        self.limits.append(timeout)
        return await super().run(argv)


def of_all_users(answer: Completed) -> tuple[Measured, SlurmClient, datetime]:
    """A client over this one answer, and a time two days ago."""
    runner, clock = Measured(answer), FakeClock()
    return runner, SlurmClient(runner, clock, SlurmSettings(), user="alice"), clock.now() - timedelta(days=2)


@pytest.mark.parametrize("question", ["everyone", "weeks"])
async def test_weeks_of_all_users_get_the_time_of_six_commands(question: str):
    runner, slurm, since = of_all_users(done(b""))
    assert await getattr(slurm.accounting, question)(since) == ()
    (argv,) = runner.asked
    assert {"--allusers", "--starttime=now-48hours", "--endtime=now"} <= set(argv)
    assert ("--allocations" in argv) == (question == "everyone")
    assert runner.limits == [6 * SlurmSettings().read_timeout]


@pytest.mark.parametrize("question", ["everyone", "weeks"])
async def test_more_jobs_than_one_answer_holds_are_an_error_that_asks_for_fewer_days(question: str):
    _, slurm, since = of_all_users(replace(done(b""), truncated=True))
    with pytest.raises(InputError) as caught:
        await getattr(slurm.accounting, question)(since)
    assert (caught.value.field, caught.value.value) == ("days", 2)
    assert "fewer" in (caught.value.hint or "")


@pytest.mark.parametrize("question", ["everyone", "weeks"])
async def test_a_cluster_without_accounting_has_no_jobs_of_all_users(question: str):
    _, slurm, since = of_all_users(DISABLED)
    assert await getattr(slurm.accounting, question)(since) == ()
    assert slurm.accounting.absent
