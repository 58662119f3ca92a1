"""get_status over long queues and slow controllers, without a Slurm."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from datetime import UTC, datetime

import anyio
import pytest
from tests.unit.services.contexts import toolbox
from tests.unit.slurm.answers import Prepared, done
from tests.unit.slurm.clocks import queued

from slurm_agent_tools.api import brief, serialize
from slurm_agent_tools.models.arguments import GetStatus
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.transport.base import Completed

CONFIG = b"ClusterName             = test\nSLURM_VERSION           = 22.05.8\n"
FIGURES = b"Server thread count: 3\nAgent queue size: 0\n"


class Cluster:
    """Answers with `rows` after `seconds`, as each command says itself."""

    def __init__(self, folder, rows, seconds=0.01):
        self.rows, self.seconds = rows, seconds
        answers = {"squeue": self.queue, "scontrol": self.control, "sdiag": lambda _: self.say(FIGURES)}
        self.tools = toolbox(folder, Prepared(answers))

    def say(self, text):
        return Completed(("squeue",), 0, text, b"", self.seconds)

    def queue(self, _):
        return self.say(self.rows)

    def control(self, argv):
        return done(CONFIG) if argv[2] == "config" else self.say(b"")

    async def status(self, **more):
        return await self.tools.call("get_status", GetStatus(**more))


@pytest.mark.proves("long-queues-are-cheap")
async def test_of_many_jobs_all_count_and_the_newest_are_listed(tmp_path):
    rows = [queued(str(number), "PENDING", name="x" * 64) for number in range(1, 301)]
    rows += [queued(str(number), "COMPLETED") for number in range(301, 321)]
    rows += [queued("400_[0-9%3]", "PENDING"), queued("401", "PENDING", dependency="afterok:7(unfulfilled)")]
    rows += [queued(str(number), "PENDING", user="bob") for number in range(500, 600)]
    reply = await Cluster(tmp_path, b"".join(rows)).status()
    slurm = reply.slurm
    assert (slurm.pending_jobs, slurm.running_jobs, slurm.active_jobs, slurm.slots_left) == (302, 0, 303, 0)
    assert [job.job_id for job in slurm.jobs] == ["401", "400_[0-9%3]", *map(str, range(300, 294, -1))]
    assert [job.job_id for job in slurm.finished_recently] == ["320", "319", "318", "317"]
    assert slurm.not_shown == 302 + 20 - 8 - 4
    assert reply.queue.depth == 402
    assert len(serialize.text(serialize.document(reply))) < 10_000
    told = brief.brief(reply)
    assert [job["job_id"] for job in told["slurm"]["jobs"]] == ["401", "400_[0-9%3]", "300", "299"]
    assert told["slurm"]["not_shown"] == 302 + 20 - 4 - 2
    assert all(job.keys().isdisjoint({"nodes", "run_seconds"}) for job in told["slurm"]["finished_recently"])
    assert len(serialize.text(told)) < 3_000


@pytest.mark.proves("long-queues-are-cheap")
async def test_a_queue_that_was_looked_at_is_let_go_with_the_next_one(tmp_path):
    cluster = Cluster(tmp_path, queued("5", "PENDING") + queued("6", "COMPLETED"))
    await cluster.status(refresh=True)
    old = weakref.ref(await cluster.tools.context.slurm.queue())
    gc.disable()  # a long queue holds hardly anything that makes the interpreter look for garbage
    try:
        await cluster.status(refresh=True)
        assert old() is None
    finally:
        gc.enable()


async def test_of_jobs_that_ended_lately_only_what_is_known_is_told(tmp_path):
    reply = await Cluster(tmp_path, queued("5", "COMPLETED")).status()
    (ended,) = serialize.document(reply)["slurm"]["finished_recently"]
    assert {"job_id", "name", "state", "reason", "managed", "exit_code"} <= set(ended)
    assert {name for name, value in ended.items() if value is None} <= {"reason", "exit_code"}


async def test_the_exit_code_of_a_job_that_ended_lately_is_what_the_accounting_told(tmp_path):
    cluster = Cluster(tmp_path, queued("5", "FAILED") + queued("6", "FAILED") + queued("7", "COMPLETED"))
    context, now = cluster.tools.context, datetime.now(UTC)
    for number in (5, 7):
        context.store.add(
            context.owner,
            Submission(
                token=f"t{number}", idempotency_key=f"k{number}", phase="released", created=now, updated=now,
                script_path="a.sh", script_sha256="0", request_sha256="0", job_name="x", slots=1, decision_id="d",
                job_id=number, outcome="FAILED", failed=True, exit_code=3,
            ),
        )  # fmt: skip
    reply = await cluster.status()
    known = {job.job_id: (job.managed, job.exit_code) for job in reply.slurm.finished_recently}
    assert known == {"5": (True, 3), "6": (False, None), "7": (True, None)}  # of 7 the record is of an earlier end


async def test_few_jobs_are_listed_in_the_order_of_the_queue(tmp_path):
    reply = await Cluster(tmp_path, queued("9") + queued("3") + queued("5", "COMPLETED")).status()
    assert [job.job_id for job in reply.slurm.jobs] == ["9", "3"]
    assert (reply.slurm.active_jobs, reply.slurm.not_shown) == (2, 0)
    assert set(reply.age_seconds) == {"gpu", "jobs", "partitions", "queue"}
    assert 0 <= max(reply.age_seconds.values()) < 5


async def test_where_submissions_are_switched_off_nobody_is_told_to_submit(tmp_path):
    cluster = Cluster(tmp_path, queued("9"))
    context = cluster.tools.context
    off = load(shipped(), [("policies/off.yaml", b'submissions: "off"\n')])
    cluster.tools.registry.context = replace(context, policy=off)
    reply = await cluster.status()
    assert (reply.queue.recommendation, "switched all submissions off" in reply.queue.why) == ("WAIT", True)
    assert reply.summary.endswith("Submissions are switched off in the policy.")


async def test_simultaneous_calls_share_every_command(tmp_path):
    cluster = Cluster(tmp_path, queued("9"))
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(cluster.status)
    assert dict((await cluster.status(detailed=True)).slurm_calls) == {
        "squeue": 1, "scontrol show nodes": 1, "scontrol show partition": 1, "scontrol show config": 1,
    }  # fmt: skip


async def test_a_controller_that_limits_us_is_told_and_asked_less(tmp_path):
    cluster = Cluster(tmp_path, queued("9"), seconds=2.5)
    for _ in range(2):
        reply = await cluster.status(refresh=True)
    [alert] = [alert for alert in reply.alerts if alert.code.startswith("controller")]
    assert alert.code == "controller-limited"
    assert "3 times less often, and answers may be 30 s old" in alert.message
    cluster.seconds = 0.01
    for _ in range(3):
        reply = await cluster.status(refresh=True)
    assert not [alert for alert in reply.alerts if alert.code.startswith("controller")]
