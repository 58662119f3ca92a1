"""What a wait tells of a job that goes on: gathered in a moment, and what does not answer is not measured."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from tests.unit.services.clusters import ABOUT, NOW, Cluster, submitted
from tests.unit.slurm.clocks import queued
from tests.unit.virtual_time import in_no_time, passed
from tests.watchdog import SECONDS

from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.models.arguments import GetStatus
from slurm_agent_tools.models.status_answer import StatusReply


async def test_a_running_job_shows_what_it_uses_and_how_long_it_may_go_on(tmp_path: Path):
    reply = await Cluster(tmp_path).wait()
    now = reply.running
    assert now is not None
    assert (now.memory_bytes, now.memory_limit_bytes, now.memory_share) == (3 * 2**20, 4 * 2**20, 0.75)
    assert (now.memory, now.memory_limit, now.cpu_seconds, now.note) == ("3M", "4M", 10, None)
    assert now.cpu_share == pytest.approx(10 / 1200, abs=0.001)
    assert now.time_left_seconds == 3000
    assert now.estimated_from == "time limit"
    assert reply.alerts == []


async def test_progress_in_the_log_tells_when_it_ends(tmp_path: Path):
    cluster = Cluster(tmp_path)
    cluster.write("".join(f"step {number}/100 loss 0.1\n" for number in range(41)))
    now = (await cluster.wait()).running
    assert now is not None
    assert (now.progress, now.estimated_from) == (0.4, "progress")
    assert now.estimated_end is not None
    assert (now.estimated_end - datetime.fromtimestamp(NOW, UTC)).total_seconds() == 900
    assert now.estimated_end.microsecond == 0


async def test_a_pace_that_is_too_slow_for_the_limit_is_noted_and_told_of(tmp_path: Path):
    cluster = Cluster(tmp_path)
    cluster.write("".join(f"step {number}/100 loss 0.1\n" for number in range(11)))
    reply = await cluster.wait()
    assert reply.running is not None
    assert "it will not be done in time" in (reply.running.note or "")
    assert reply.running.estimated_from == "time limit"
    assert reply.running.elapsed_seconds == reply.job.run_seconds
    assert [alert.code for alert in reply.alerts] == ["time-left"]


@pytest.mark.parametrize("said", [b"!", b"lorem ipsum\n", b"", b"5.batch|1|0|00:00:00|cpu=00:00:00,mem=0\n"])
async def test_what_sstat_does_not_tell_is_not_measured_and_fails_nothing(tmp_path: Path, said: bytes):
    cluster = Cluster(tmp_path)
    cluster.answers["sstat"] = said
    reply = await cluster.wait()
    assert reply.status == "running"
    assert reply.running is not None
    assert (reply.running.memory_bytes, reply.running.memory_share) == (None, None)
    assert (reply.running.note or "").startswith("not measured: ")
    assert reply.running.time_left_seconds is not None


@in_no_time
async def test_commands_that_take_too_long_cost_a_second(tmp_path: Path):
    cluster = Cluster(tmp_path)
    cluster.slow = {"sstat": 3600, "scontrol show nodes": 3600}
    reply = await cluster.wait()
    assert passed() == 1
    assert reply.running is not None
    assert reply.running.note == "not measured: sstat took too long"


@pytest.mark.parametrize("name", ["scontrol show nodes", "scontrol show partition", "scontrol show reservation"])
async def test_a_question_that_fails_hides_no_other(tmp_path: Path, name: str):
    cluster = Cluster(tmp_path)
    cluster.answers[name] = b"lorem"
    reply = await cluster.wait()
    assert reply.running is not None
    assert reply.running.memory_share == 0.75


async def test_a_job_that_is_over_is_not_asked_for_what_it_uses(tmp_path: Path):
    cluster = Cluster(tmp_path, state="FAILED", end=NOW - 5)
    reply = await cluster.wait()
    assert reply.running is None
    assert {"sstat", "scontrol show nodes", "scontrol show reservation"}.isdisjoint(cluster.asked)


# --- long waits --------------------------------------------------------------------------------------------------


async def test_a_long_wait_for_a_job_that_is_over_ends_at_once(tmp_path: Path):
    cluster = Cluster(tmp_path, state="FAILED", end=NOW - 5)
    with anyio.fail_after(SECONDS):
        reply = await cluster.wait(3600)
    assert (reply.status, [alert.code for alert in reply.alerts]) == ("finished", ["job-failed"])


async def test_an_error_ends_a_long_wait_as_itself(tmp_path: Path):
    cluster = Cluster(tmp_path)
    cluster.answers["squeue"] = b"!"
    with anyio.fail_after(SECONDS), pytest.raises(SlurmUnreachable):
        await cluster.wait(3600)


# --- waiting -----------------------------------------------------------------------------------------------------


Make = Callable[[datetime], str]


@pytest.mark.parametrize(("estimate", "told"), [(60, True), (290, True), (310, False), (None, False)])
async def test_a_wait_is_compared_with_what_was_estimated_at_its_submission(
    tmp_path: Path, estimate: int | None, told: bool
):
    start = NOW + 900
    cluster = Cluster(tmp_path, state="PENDING", reason="Resources", start=start, elapsed="0:00", nodes="")
    sent = datetime.fromtimestamp(cluster.begun, UTC)
    then = None if estimate is None else sent + timedelta(seconds=estimate)
    context = cluster.box.context
    context.store.add(context.owner, submitted(sent, estimated_start=then))
    reply = await cluster.wait()
    assert ("long-wait" in {alert.code for alert in reply.alerts}) is told
    assert not told or "by Slurm at its submission" in reply.alerts[0].message
    assert reply.estimated_start == datetime.fromtimestamp(start, UTC)


# --- its words ---------------------------------------------------------------------------------------------------


async def test_a_summary_tells_memory_and_the_time_that_is_left(tmp_path: Path):
    summary = (await Cluster(tmp_path).wait()).summary
    start, _, left = summary.partition(", 00:")
    assert start == "Job 5 (train) is RUNNING for 00:10:00, memory 3M of 4M (75 %)"
    assert left.endswith(" left. Call wait_for_job again to go on waiting.")


async def test_a_summary_leaves_out_what_was_not_measured(tmp_path: Path):
    cluster = Cluster(tmp_path, limit="UNLIMITED")
    cluster.answers["sstat"] = b""
    told = (await cluster.wait()).summary
    assert told == "Job 5 (train) is RUNNING for 00:10:00. Call wait_for_job again to go on waiting."


@pytest.mark.parametrize("guarded", [True, False])
async def test_a_job_that_can_never_start_is_not_polled_for_ever(tmp_path: Path, guarded: bool):
    cluster = Cluster(
        tmp_path, state="PENDING", reason="DependencyNeverSatisfied", dependency="afterok:4(failed)", elapsed="0:00",
        start="N/A", nodes="",
    )  # fmt: skip
    context = cluster.box.context
    if guarded:
        context.store.add(context.owner, submitted(datetime.fromtimestamp(cluster.begun, UTC)))
    reply = await cluster.wait()
    assert (reply.status, reply.next_poll_seconds) == ("pending", None)
    assert reply.summary.startswith(
        "Job 5 (train) can never start: it waits for afterok:4(failed), which can no longer"
    )
    assert reply.summary.endswith("cancel_job frees its slot.") is guarded
    assert "wait_for_job" not in reply.summary


async def test_of_many_tasks_all_are_counted_and_some_are_shown(tmp_path: Path):
    cluster = Cluster(tmp_path)
    states = {7: "FAILED", 30: "RUNNING"}
    row = {"submitted": cluster.begun, "start": cluster.begun, "end": cluster.begun + 5}
    one = ABOUT.replace("JobId=5 ", "JobId=130 ArrayJobId=5 ArrayTaskId=30 ").format(cluster.begun, cluster.log)
    cluster.answers["scontrol show job"] = one.encode()
    numbers = {number: {"raw": str(100 + number), "again": str(100 + number)} for number in range(40)}
    cluster.answers["squeue"] = b"".join(
        queued(f"5_{number}", states.get(number, "COMPLETED"), **row | raw) for number, raw in numbers.items()
    ) + queued("5_[40-59%4]", "PENDING", reason="JobArrayTaskLimit", **row)
    reply = await cluster.wait()
    assert reply.tasks_by_state == {"COMPLETED": 38, "FAILED": 1, "RUNNING": 1, "PENDING": 20}
    assert [task.job_id for task in reply.tasks[:3]] == ["5_7", "5_30", "5_[40-59%4]"]
    assert (len(reply.tasks), reply.tasks_not_shown) == (20, 21)
    told = "Job 5 (train): 1 of 60 tasks FAILED (5_7), 1 RUNNING, 20 PENDING, 38 COMPLETED."
    assert reply.summary.startswith(told)


# --- get_status --------------------------------------------------------------------------------------------------


async def codes(cluster: Cluster) -> set[str]:
    reply = await cluster.box.call("get_status", GetStatus(sections=["jobs"], refresh=True))
    assert isinstance(reply, StatusReply)
    return {alert.code for alert in reply.alerts if alert.job_id == "5"}


async def test_get_status_tells_of_the_jobs_of_the_guard_and_measures_nothing(tmp_path: Path):
    cluster = Cluster(tmp_path, limit="12:00")
    assert await codes(cluster) == set()
    context = cluster.box.context
    context.store.add(context.owner, submitted(datetime.fromtimestamp(cluster.begun, UTC)))
    assert await codes(cluster) == {"time-left"}
    assert "sstat" not in cluster.asked
    assert cluster.asked.count("scontrol show reservation") == 1


async def test_a_failure_is_told_until_the_job_was_looked_at(tmp_path: Path):
    cluster = Cluster(tmp_path, state="FAILED", end=NOW - 5)
    context = cluster.box.context
    context.store.add(context.owner, submitted(datetime.fromtimestamp(cluster.begun, UTC), outcome="FAILED"))
    assert await codes(cluster) == {"job-failed"}
    assert await codes(cluster) == {"job-failed"}
    assert "scontrol show reservation" not in cluster.asked
    await cluster.wait()
    assert await codes(cluster) == set()
