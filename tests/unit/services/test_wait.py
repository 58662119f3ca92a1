"""What a wait says of a job that stands still, and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.services.clusters import ABOUT, NOW, Cluster, submitted
from tests.unit.slurm.clocks import queued

from slurm_agent_tools.models.arguments import GetStatus
from slurm_agent_tools.models.report import WaitReply
from slurm_agent_tools.store.ledger import Store

WAITING = {"state": "PENDING", "elapsed": "0:00", "start": "N/A", "nodes": ""}


@pytest.mark.parametrize(
    ("reason", "what", "who"),
    [
        ("JobHeldUser", "its user holds it", "`scontrol release 5` lets it go."),
        ("PartitionTimeLimit", "its time limit of 01:00:00 is more than partition cpu allows", "submit_job"),
        ("PartitionInactive", "partition cpu starts nothing", "An administrator has to set it up again."),
    ],
)
async def test_a_job_that_waits_for_somebody_says_for_whom(tmp_path: Path, reason: str, what: str, who: str):
    reply = await Cluster(tmp_path, **WAITING, reason=reason).wait()
    assert (reply.status, reply.next_poll_seconds) == ("pending", None)
    assert reply.summary.startswith(f"Job 5 (train) cannot start: {what} ({reason}). ")
    assert who in reply.summary
    assert "wait_for_job" not in reply.summary


async def test_components_that_are_held_are_one_job(tmp_path: Path):
    cluster = Cluster(tmp_path)
    row = WAITING | {"submitted": cluster.begun, "reason": "JobHeldUser"}
    cluster.answers |= {"squeue": queued("5+0", raw="5", again="5", **row) + queued("5+1", raw="6", again="6", **row)}
    cluster.answers["scontrol show job"] = b""
    told = (await cluster.wait()).summary
    assert told == "Job 5 (train) cannot start: its user holds it (JobHeldUser). `scontrol release 5` lets it go."


async def test_a_job_that_could_not_be_set_up_did_not_end_by_a_signal(tmp_path: Path):
    cluster = Cluster(tmp_path, state="FAILED", end=NOW - 5)
    about = ABOUT.replace("JobState=RUNNING", "JobState=FAILED").replace("ExitCode=0:0", "ExitCode=0:53")
    cluster.answers["scontrol show job"] = about.format(cluster.begun, cluster.log).encode()
    reply = await cluster.wait()
    assert reply.summary.startswith("Job 5 (train) ended in FAILED: Slurm could not set it up: its working folder")
    assert reply.alerts[0].message == "Job 5 (train) ended in FAILED (could not be set up)."


async def test_a_job_whose_other_tasks_go_on_is_waited_for(tmp_path: Path):
    cluster = Cluster(tmp_path)
    row = {"submitted": cluster.begun, "start": cluster.begun}
    held = queued("5_[1-9]", **row | WAITING, reason="JobHeldUser")
    about = ABOUT.replace("JobId=5 ", "JobId=5 ArrayJobId=5 ArrayTaskId=0 ").format(cluster.begun, cluster.log)
    cluster.answers |= {"squeue": queued("5_0", raw="6", again="6", **row) + held, "scontrol show job": about.encode()}
    reply = await cluster.wait()
    assert reply.next_poll_seconds is not None
    assert reply.summary.endswith(": 1 of 10 tasks RUNNING, 9 PENDING. Call wait_for_job again to go on waiting.")


async def test_nobody_is_told_to_release_what_the_guard_holds(tmp_path: Path):
    cluster = Cluster(tmp_path, **WAITING, reason="JobHeldUser")
    context = cluster.box.context
    context.store.add(context.owner, replace(submitted(context.clock.now()), phase="held"))
    reply = await cluster.wait()
    assert "scontrol release" not in reply.summary
    assert "submit_job with idempotency_key k goes on with it" in reply.summary


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("CONFIGURING", "for 00:10:00"),
        ("SUSPENDED", "after running 00:10:00"),
        ("COMPLETING", "after running 00:10:00"),
    ],
)
async def test_how_long_it_ran_is_not_called_how_long_it_stands_still(tmp_path: Path, state: str, told: str):
    reply = await Cluster(tmp_path, state=state).wait()
    assert reply.status == "running"
    assert reply.summary == f"Job 5 (train) is {state} {told}. Call wait_for_job again to go on waiting."


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "FAILED"])
async def test_the_ledger_is_asked_once_for_what_one_answer_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
):
    asked: list[str] = []

    def counted(name: str) -> Callable[..., object]:
        real = getattr(Store, name)
        return lambda *words: (asked.append(name), real(*words))[1]

    cluster = Cluster(tmp_path, state=state, end=NOW - 5)
    context = cluster.box.context
    context.store.add(context.owner, submitted(datetime.fromtimestamp(cluster.begun, UTC)))
    for name in ("by_job", "by_jobs", "managed_ids"):
        monkeypatch.setattr(Store, name, counted(name))
    assert (await cluster.wait()).job.managed
    assert sorted(asked) == ["by_jobs", "managed_ids"]
    asked.clear()
    await cluster.box.call("get_status", GetStatus(refresh=True))
    assert asked.count("managed_ids") == 1


async def test_a_task_tells_only_what_is_its_own(tmp_path: Path):
    cluster = Cluster(tmp_path)
    row = {"submitted": cluster.begun, "start": cluster.begun}
    about = ABOUT.replace("JobId=5 ", "JobId=5 ArrayJobId=5 ArrayTaskId=0 ").format(cluster.begun, cluster.log)
    rows = queued("5_0", raw="6", again="6", **row) + queued("5_[1-39]", **row | WAITING, reason="Resources")
    cluster.answers |= {"squeue": rows, "scontrol show job": about.encode()}
    reply = await cluster.wait()
    shown = reply.model_dump(mode="json")
    waits, runs = shown["tasks"]
    always = {"job_id", "name", "state", "reason", "exit_code", "signal", "started", "ended"}
    assert set(waits) == always | {"sources"}
    assert set(runs) == always | {"queue_seconds", "run_seconds", "nodes", "restarts"}
    assert {"partition", "user", "submitted", "time_limit_seconds", "managed"} <= set(shown["job"])
    assert WaitReply.model_validate(shown) == reply
