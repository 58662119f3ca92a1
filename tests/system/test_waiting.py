"""Waiting, with progress. What a crowd costs is in test_scale, when answers come in tests/unit/toolbox/test_deadlines."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest
from tests.system.faces import call

SLEEPER = b"#!/bin/bash\nsleep 60\n"


@pytest.fixture
def sleeper(place):
    job_id = place.slurm("sbatch", "--parsable", "-pcpu", "--time=5", "-J", "sleeper", "-o", "/dev/null", stdin=SLEEPER)
    yield job_id
    place.slurm("scancel", job_id)


@pytest.mark.proves("wait-is-bounded", "both-eras")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_wait_that_outlives_the_call_returns_with_progress_and_goes_on(place, sleeper, mode):
    seen: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, message))

    async with place.client(mode) as client:
        for seconds in (3, 2):
            result = await client.call_tool(
                "wait_for_job",
                {"job_id": sleeper, "timeout_seconds": seconds, "detail": "full"},
                progress_callback=progress,
            )
            reply = result.structured_content
            assert reply["status"] in {"running", "pending"}
            assert reply["next_poll_seconds"] == 10
            assert seen
            assert sleeper in (seen[-1][1] or "")
            seen.clear()
        place.slurm("scancel", sleeper)
        reply = await call(client, "wait_for_job", job_id=sleeper, timeout_seconds=20)
        assert (reply["status"], reply["job"]["state"]) == ("finished", "CANCELLED")


# --- jobs that no waiting starts, as the real Slurm words it ---------------------------------------------------------


def sent(place, name: str, *options: str) -> str:
    return place.slurm("sbatch", "--parsable", f"--job-name={name}", "-o", "/dev/null", *options, stdin=SLEEPER)


def administer(place, *argv: str) -> None:
    done = subprocess.run(
        argv, env={"PATH": os.environ["PATH"], **place.cluster.environment()}, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def cleared(fresh):
    """As `fresh`, and nothing is left of its jobs for those who come after."""
    yield fresh
    fresh.slurm("scancel", f"--user={fresh.cluster.user}")
    for _ in range(600):
        if not fresh.slurm("squeue", "-h", f"--user={fresh.cluster.user}"):
            return
        time.sleep(0.1)
    raise AssertionError(fresh.slurm("squeue"))


@pytest.fixture
def waiting(cleared):
    """Jobs that nothing starts by itself, by who has to act, and some that start once others let them."""
    free, broken = [node for node in cleared.cluster.nodes if "gpu" in node]
    jobs = {
        "held": sent(cleared, "held", "-pcpu", "-t5", "--hold"),
        "held-array": sent(cleared, "held-array", "-pcpu", "-t5", "-a0-39%2", "--hold"),
        "too-long": sent(cleared, "too-long", "-pspecial", "-t10:00:00"),
        "too-wide": sent(cleared, "too-wide", "-pspecial", "-N2", "-t5"),
        "too-long-for-qos": sent(cleared, "too-long-for-qos", "-pcpu", "-t10", "--qos=short"),
        "kept": sent(cleared, "kept", "-pcpu", "-t5", "--begin=now+1hour"),
        "fills": sent(cleared, "fills", "-pgpu", "-t5", "--exclusive", "-w", free),
        "sleeps": sent(cleared, "sleeps", "-pcpu", "-t5"),
    }
    try:
        administer(cleared, "scontrol", "hold", jobs["kept"])
        # Not DOWN: the devcluster's nodes return from that by themselves (ReturnToService=2).
        administer(cleared, "scontrol", "update", f"NodeName={broken}", "State=DRAIN", "Reason=disk")
        jobs["behind"] = sent(cleared, "behind", "-pgpu", "-t5", "--exclusive", "-w", free)
        jobs["wants-broken"] = sent(cleared, "wants-broken", "-pgpu", "-t5", "-w", broken)
        until(cleared, "too-long", "PENDING PartitionTimeLimit")
        until(cleared, "too-wide", "PENDING PartitionNodeLimit")
        until(cleared, "wants-broken", "PENDING ReqNodeNotAvail")
        until(cleared, "sleeps", "RUNNING None")
        administer(cleared, "scontrol", "suspend", jobs["sleeps"])
        administer(cleared, "scontrol", "update", "PartitionName=special", "State=DRAIN")
        yield cleared, jobs
    finally:
        for argv in (
            ["update", "PartitionName=special", "State=UP"], ["update", f"NodeName={broken}", "State=RESUME"],
            ["resume", jobs["sleeps"]],
        ):  # fmt: skip
            subprocess.run(["scontrol", *argv], env=os.environ | cleared.cluster.environment(), capture_output=True)


def until(place, name: str, wanted: str) -> None:
    seen = ""
    for _ in range(600):
        seen = place.slurm("squeue", "-h", f"--name={name}", "-o", "%T %r")
        if seen.startswith(wanted):
            return
        time.sleep(0.1)
    raise AssertionError((name, wanted, seen))


@pytest.mark.proves("stuck-jobs-say-who-acts")
async def test_a_job_that_nothing_starts_by_itself_says_who_has_to_act(waiting):
    place, jobs = waiting
    async with place.client() as client:
        told = {name: await call(client, "wait_for_job", job_id=job, timeout_seconds=0) for name, job in jobs.items()}
    said = {name: reply["summary"] for name, reply in told.items()}
    act = {
        "held": f"`scontrol release {jobs['held']}` lets it go.",
        "held-array": f"`scontrol release {jobs['held-array']}` lets it go.",
        "kept": "Only an administrator can release it.",
        "too-long": "more than partition special allows (PartitionTimeLimit). Ask for less with submit_job",
        "too-wide": "does not allow its number of nodes",
        "too-long-for-qos": "(QOSMaxWallDurationPerJobLimit). Ask for less with submit_job",
    }
    for name, words in act.items():
        assert words in said[name]
        assert "wait_for_job" not in said[name]
        assert told[name]["next_poll_seconds"] is None
    for name in jobs.keys() - act:
        assert said[name].endswith("Call wait_for_job again to go on waiting."), said[name]
        assert told[name]["next_poll_seconds"] == 10
    alerts = {name: {alert["code"]: alert["message"] for alert in reply["alerts"]} for name, reply in told.items()}
    stuck = {name for name, found in alerts.items() if "cannot-start" in found}
    assert stuck == {"too-long", "too-wide", "too-long-for-qos", "wants-broken"}, alerts
    assert "is drain (disk)" in alerts["wants-broken"]["cannot-start"]
    assert alerts["too-long"]["partition-down"].endswith("What waits there may start, nothing new is taken.")
    assert "SUSPENDED after running " in said["sleeps"]
    for name in ("held", "held-array"):
        place.slurm("scontrol", "release", jobs[name])  # as the answer says, by the user
    assert place.run(["scontrol", "release", jobs["kept"]]).returncode != 0
    until(place, "held", "RUNNING")


def under_way(place, job_id: str, number: int) -> None:
    """Wait for all tasks of an array to run, or to have failed."""
    seen: list[str] = []
    for _ in range(600):
        seen = place.slurm("squeue", "-h", "-r", "-t", "running,failed", "-j", job_id, "-o", "%i").split()
        if len(seen) == number:
            return
        time.sleep(0.1)
    raise AssertionError(seen)


async def test_the_tasks_of_an_array_tell_only_what_is_their_own(cleared):
    body = b"#!/bin/bash\n[ $SLURM_ARRAY_TASK_ID = 3 ] && exit 3\nsleep 60\n"
    argv = ["sbatch", "--parsable", "-pcpu", "-t5", "--mem=10M", "-a0-39", "-o", "/dev/null"]
    job_id = cleared.slurm(*argv, stdin=body)
    under_way(cleared, job_id, 40)
    async with cleared.client() as client:
        reply = await call(client, "wait_for_job", job_id=job_id, timeout_seconds=0)
        number = cleared.slurm("squeue", "-h", "-r", "-j", f"{job_id}_5", "-o", "%A")
        unknown = await call(client, "wait_for_job", job_id=number, timeout_seconds=0)
    assert unknown.get("error", {}).get("code") == "unknown_job", (number, unknown)
    assert f"{number} is Slurm's own number of {job_id}_5" in unknown["error"]["hint"]
    tasks = reply["tasks"]
    assert (len(tasks), reply["tasks_by_state"]) == (20, {"FAILED": 1, "RUNNING": 39})
    assert (tasks[0]["job_id"], tasks[0]["state"], tasks[0]["exit_code"]) == (f"{job_id}_3", "FAILED", 3)
    for task in tasks:
        assert {"job_id", "name", "state", "reason", "exit_code", "signal", "started", "ended"} <= set(task)
        assert {"user", "partition", "submitted"}.isdisjoint(task)
    assert len(json.dumps(reply)) < 8000


@pytest.mark.proves("wait-is-bounded")
async def test_a_wait_for_any_of_several_jobs_ends_with_the_first(place, sleeper):
    words = ("-pcpu", "--time=5", "-J", "short", "-o", "/dev/null")
    short = place.slurm("sbatch", "--parsable", *words, stdin=b"#!/bin/sh\nsleep 4\n")
    async with place.client() as client:
        reply = await call(client, "wait_for_job", job_ids=[sleeper, short], timeout_seconds=60)
        assert (reply["status"], reply["job"]["job_id"], reply["job"]["state"]) == ("finished", short, "COMPLETED")
        assert {job["job_id"]: job["state"] for job in reply["jobs"]}[sleeper] in {"RUNNING", "PENDING"}
        both = await call(client, "wait_for_job", job_ids=[sleeper, short], until="all", timeout_seconds=3)
        assert both["status"] in {"running", "pending"}
        assert 45 <= both["suggested_timeout_seconds"] <= 300
