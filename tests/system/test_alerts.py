"""Every alert, raised by real jobs: in the result and as a log notification, in both eras, and on the command line.

All jobs are started at once and looked at afterwards, so that they wait and run beside each other.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import LoggingMessageNotificationParams
from tests.system.faces import Place, call, laptop
from tests.watchdog import SECONDS, eventually

from slurm_agent_tools.devcluster import lifecycle
from slurm_agent_tools.devcluster.login_node import LoginNode
from slurm_agent_tools.diagnosis.alert_types import KINDS
from slurm_agent_tools.models.shapes import ESCALATION
from slurm_agent_tools.server.mcp_server import LEVELS

HUNGRY = "exec python3 -c 'import time; held = bytearray(190 * 2**20); time.sleep(200)'"
WORK = '#!/bin/bash\n#SBATCH --partition=cpu --time=30 --mem=100M\n#SBATCH --output=/dev/null\nsleep "${1:-1}"\n'
RAISED = {
    "memory-high": "hungry", "time-left": "too-slow", "job-failed": "failing", "node-trouble": "on-failing-node",
    "cannot-start": "too-wide", "queue-backup": "short", "preempted": "giving-way", "partition-down": "in-line",
    "maintenance": "into-maintenance", "long-wait": "in-line", "slow-run": "slow", "requeued": "requeued",
}  # fmt: skip
"""Which job raises which alert."""


@dataclass
class Scene:
    """Jobs by what they are."""

    place: Place
    jobs: dict[str, str] = field(default_factory=dict)

    def send(self, name: str, *options: str, body: str = "sleep 200") -> str:
        argv = ["sbatch", "--parsable", f"--job-name={name}", "--output=/dev/null", *options]
        self.jobs[name] = self.place.slurm(*argv, stdin=f"#!/bin/bash\n{body}\n".encode())
        return self.jobs[name]

    def submit(self, *args: str) -> str:
        """Through the guard, so that it is remembered."""
        code, reply = self.place.cli("submit_job", "--script=work.sh", *(f"--args={word}" for word in args))
        assert (code, reply["status"]) == (0, "submitted"), reply
        return reply["job_id"]

    def until(self, job: str, *states: str) -> None:
        for _ in range(600):
            if self.place.slurm("squeue", "-h", "-t", "all", "-j", job, "-o", "%T") in states:
                return
            time.sleep(0.1)
        raise AssertionError((job, states, self.place.slurm("squeue", "-t", "all", "-j", job)))


def administer(place: Place, *argv: str) -> None:
    done = subprocess.run(
        argv, env={"PATH": os.environ["PATH"], **place.cluster.environment()}, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def scene(place: Place) -> Iterator[Scene]:
    made = Scene(place)
    place.slurm("scancel", f"--user={place.cluster.user}")
    nodes = place.slurm("sinfo", "-hN", "-o", "%N").split()
    cpu, gpu, special = ([node for node in nodes if kind in node] for kind in ("cpu", "gpu", "spec"))
    try:
        remembered(made)
        running(made, cpu, gpu, special)
        waiting(made)
        trouble(made, cpu, gpu, special)
        yield made
    finally:
        restore(place, cpu[1], gpu[0])


def restore(place: Place, failing: str, killed: str) -> None:
    """The cluster as it was, whatever came of the scene."""
    place.run(["scancel", f"--user={place.cluster.user}"])
    for argv in (
        ["delete", "ReservationName=works"], ["update", "PartitionName=gpu", "State=UP"],
        ["update", f"NodeName={failing}", "State=RESUME"],
    ):  # fmt: skip
        subprocess.run(["scontrol", *argv], env=os.environ | place.cluster.environment(), capture_output=True)
    anyio.run(lifecycle.start_daemon, place.cluster, f"slurmd.{killed}")
    idle(place, failing, killed)


def remembered(scene: Scene) -> None:
    """Three runs of one script that took a second, and a fourth that takes longer."""
    (scene.place.project / "work.sh").write_text(WORK)
    scene.place.own()
    assert scene.place.cli("get_status")[0] == 0
    for job in [scene.submit(word) for word in ("0.1", "0.2", "0.3")]:
        code, reply = scene.place.cli("wait_for_job", f"--job-id={job}", "--timeout=60")
        assert (code, reply["job"]["state"]) == (0, "COMPLETED"), reply
    scene.jobs["slow"] = scene.submit("200")


def running(scene: Scene, cpu: list[str], gpu: list[str], special: list[str]) -> None:
    scene.send("hungry", "-pcpu", f"-w{cpu[0]}", "--mem=200M", "-t30", body=HUNGRY)
    scene.send("short", "-pcpu", f"-w{cpu[0]}", "--mem=50M", "-t4", "-oshort.out", body="echo step 25/50; sleep 200")
    scene.send("too-slow", "-pcpu", f"-w{cpu[0]}", "--mem=50M", "-t4", "-oslow.out", body="echo step 5/100; sleep 200")
    scene.send("failing", "-pcpu", "--mem=50M", "-t4", body="exit 3")
    scene.send("requeued", "-pcpu", f"-w{cpu[0]}", "--mem=50M", "-t30", "--requeue")
    scene.send("on-failing-node", "-pcpu", f"-w{cpu[1]}", "--mem=50M", "-t30")
    scene.send("on-killed-node", "-pgpu", f"-w{gpu[0]}", "--mem=50M", "-t30", "--no-requeue")
    scene.send("into-maintenance", "-pspecial", "--mem=50M", "-t30")
    scene.send("giving-way", "-pspecial", "-c90", "--mem=50M", "-t30", "--qos=scavenger", "--no-requeue")
    for number in range(5):  # what jobs like the one in line waited
        scene.send(f"before-{number}", "-pgpu", f"-w{gpu[1]}", "--mem=50M", "-t10", body="true")
    for name in ("hungry", "short", "requeued", "on-failing-node", "on-killed-node", "into-maintenance", "giving-way"):
        scene.until(scene.jobs[name], "RUNNING")
    for number in range(5):
        scene.until(scene.jobs[f"before-{number}"], "COMPLETED")


def waiting(scene: Scene) -> None:
    """Jobs that cannot start, and more of them than a person may know of."""
    administer(scene.place, "scontrol", "update", "PartitionName=gpu", "State=DOWN")
    scene.send("in-line", "-pgpu", "--mem=50M", "-t10")
    scene.send("too-wide", "-pspecial", "--nodes=2", "--mem=50M", "-t10")
    for number in range(21):
        scene.send(f"held-{number}", "-pcpu", "--mem=50M", "-t10", "--hold")


def trouble(scene: Scene, cpu: list[str], gpu: list[str], special: list[str]) -> None:
    """What administrators do, and what happens to nodes."""
    place = scene.place
    scene.send("first", "-pspecial", "-c90", "--mem=50M", "-t1", "--qos=high", body="true")
    place.slurm("scontrol", "requeue", scene.jobs["requeued"])
    administer(place, "scontrol", "update", f"NodeName={cpu[1]}", "State=FAIL", "Reason=disk is dying")
    anyio.run(partial(lifecycle.signal_daemon, place.cluster, f"slurmd.{gpu[0]}", signal.SIGKILL))
    administer(place, "scontrol", "update", f"NodeName={gpu[0]}", "State=DOWN", "Reason=killed")
    administer(
        place, "scontrol", "create", "reservation", "ReservationName=works", "StartTime=now+600", "Duration=60",
        "Flags=maint,ignore_jobs", f"Nodes={special[0]}", "Users=root",
    )  # fmt: skip


def idle(place: Place, *nodes: str) -> None:
    for _ in range(600):
        if set(place.slurm("sinfo", "-hN", "-n", ",".join(nodes), "-o", "%t").split()) == {"idle"}:
            return
        time.sleep(0.1)
    raise AssertionError(place.slurm("sinfo", "-N"))


# --- over MCP ----------------------------------------------------------------------------------------------------


class Ear:
    """What a client hears beside the results."""

    def __init__(self) -> None:
        self.notes: list[LoggingMessageNotificationParams] = []

    async def __call__(self, params: LoggingMessageNotificationParams) -> None:
        self.notes.append(params)

    async def hear(self, client: Client, tool: str, **arguments: object) -> dict[str, Any]:
        """One call; the alerts of its result by code, each of which was heard once, at its level."""
        self.notes.clear()
        reply = await call(client, tool, **arguments)
        assert "error" not in reply, reply
        with anyio.fail_after(SECONDS):
            while len(self.notes) < len(reply["alerts"]):  # noqa: ASYNC110 - the client calls back when it likes
                await anyio.sleep(0.01)
        assert [note.data for note in self.notes] == [{"tool": tool, **alert} for alert in reply["alerts"]]
        assert [note.level for note in self.notes] == [LEVELS[alert["severity"]] for alert in reply["alerts"]]
        return {alert["code"]: alert for alert in reply["alerts"]} | {"": reply}


@asynccontextmanager
async def listening(place: Place, mode: str = "auto", level: Any = "warning") -> AsyncIterator[tuple[Client, Ear]]:
    ear = Ear()
    async with Client(place.server(), mode=mode, logging_callback=ear, log_level=level) as client:
        yield client, ear


@pytest.mark.proves("alerts-are-log-notifications", "both-eras")
async def test_a_client_of_the_older_era_hears_of_what_is_grave_enough_for_it(scene: Scene):
    async with listening(scene.place, "legacy", None) as (client, ear):
        heard = await ear.hear(client, "wait_for_job", job_id=scene.jobs["short"], timeout_seconds=0)
        assert "queue-backup" in heard
        assert "time-left" not in heard  # it is half done in a few seconds
        assert (heard[""]["running"]["progress"], heard[""]["running"]["estimated_from"]) == (0.5, "progress")
        with pytest.warns(MCPDeprecationWarning):
            await client.set_logging_level("critical")
        ear.notes.clear()
        reply = await call(client, "wait_for_job", job_id=scene.jobs["on-failing-node"], timeout_seconds=0)
        await call(client, "get_status", sections=["policy"])
    assert len(reply["alerts"]) > 1
    assert {note.level for note in ear.notes} == {"critical"}


async def test_a_client_that_asked_for_nothing_hears_nothing(scene: Scene):
    async with listening(scene.place, level=None) as (client, ear):
        reply = await call(client, "wait_for_job", job_id=scene.jobs["short"], timeout_seconds=0)
    assert reply["alerts"]
    assert ear.notes == []


async def test_a_long_wait_ends_when_something_grave_happens_and_not_for_what_was_there(scene: Scene, monkeypatch: Any):
    monkeypatch.setitem(scene.place.extra, "SLURM_AGENT_SLURM__POLL_SCALE", "0.05")  # looks every 3 seconds
    job = scene.send("shrinking", "-pcpu", "--mem=50M", "-t30", "-oshrinking.out", body="echo step 5/100; sleep 200")
    scene.until(job, "RUNNING")
    waits, replies = {"on-failing-node": anyio.Event(), "shrinking": anyio.Event()}, dict[str, Any]()

    async with scene.place.client() as client, anyio.create_task_group() as group:

        async def wait(name: str) -> None:
            async def begun(*_: object) -> None:
                waits[name].set()

            asked = {"job_id": scene.jobs[name], "timeout_seconds": 600, "detail": "full"}
            result = await client.call_tool("wait_for_job", asked, progress_callback=begun)
            replies[name] = result.structured_content

        there = await call(client, "wait_for_job", job_id=scene.jobs["on-failing-node"], timeout_seconds=0)
        for name, begun in waits.items():
            group.start_soon(wait, name)
            await begun.wait()
        scene.place.slurm("scontrol", "update", f"JobId={job}", "TimeLimit=1")
        await eventually(lambda: replies)
        group.cancel_scope.cancel()
    assert "node-trouble" in {alert["code"] for alert in there["alerts"]}
    assert list(replies) == ["shrinking"], replies
    assert "time-left" in {alert["code"] for alert in replies["shrinking"]["alerts"]}, replies


# --- on the command line -----------------------------------------------------------------------------------------


def test_the_command_line_tells_the_same(scene: Scene):
    for name, code in (("hungry", "memory-high"), ("on-failing-node", "node-trouble"), ("failing", "job-failed")):
        reply = scene.place.cli("wait_for_job", f"--job-id={scene.jobs[name]}", "--timeout=0")[1]
        [alert] = [one for one in reply["alerts"] if one["code"] == code]
        assert alert["escalation"] == ESCALATION[KINDS[code][0]], alert
        assert alert["job_id"] == scene.jobs[name]


def test_get_status_tells_of_jobs_that_nobody_waits_for(scene: Scene):
    reply = scene.place.cli("get_status", "--no-cache")[1]
    told = {alert["code"]: alert for alert in reply["alerts"]}
    assert told["queue-backup"]["severity"] == "high", told
    assert "nodes-down" in told


def test_over_ssh_the_memory_is_measured_as_well(scene: Scene, login: LoginNode):
    far = laptop(scene.place, login)
    reply = far.cli("wait_for_job", f"--job-id={scene.jobs['hungry']}", "--timeout=0")[1]
    assert "memory-high" in {alert["code"] for alert in reply["alerts"]}, reply
    assert reply["running"]["memory_share"] > 0.95


# --- all of them, at the end: one comes only after a while -------------------------------------------------------------


@pytest.mark.proves("alerts-are-raised-by-real-jobs", "alerts-are-log-notifications")
async def test_every_alert_is_raised_by_a_job_and_reaches_the_client_in_both_ways(scene: Scene):
    assert set(RAISED) == set(KINDS)
    async with listening(scene.place) as (client, ear):
        found = dict[str, dict[str, Any]]()
        for code, name in RAISED.items():
            # With 0 it would have the form of a view's look, of which a client hears each alert once.
            seconds = 20 if code in {"job-failed", "preempted"} else 1
            with anyio.fail_after(2 * SECONDS):
                while code not in found.get(code, {}):  # a long wait and a slow run become that after half a minute
                    hear = ear.hear(client, "wait_for_job", job_id=scene.jobs[name], timeout_seconds=seconds)
                    found[code] = await hear
        lost = await ear.hear(client, "wait_for_job", job_id=scene.jobs["on-killed-node"], timeout_seconds=20)
    for code, alerts in found.items():
        assert alerts[code]["severity"] == KINDS[code][0], alerts[code]
        assert alerts[code]["escalation"] == ESCALATION[KINDS[code][0]]
    assert {"job-failed", "node-trouble"} <= set(lost), lost
    told = {code: alerts[code]["message"] for code, alerts in found.items()}
    assert "disk is dying" in told["node-trouble"]
    assert "ended in FAILED" in told["job-failed"]
    assert "at this pace the whole run takes" in told["time-left"]
    assert "PartitionNodeLimit" in told["cannot-start"]
    assert "works" in told["maintenance"]
    assert "jobs like it here lately" in told["long-wait"]
    assert "of 3 like runs" in told["slow-run"]
    assert "gpu is DOWN" in told["partition-down"]
    running_now(scene, found["memory-high"][""]["running"])


def running_now(scene: Scene, shown: dict[str, Any]) -> None:
    """What the answer says of the hungry job, against what the job does."""
    assert shown["memory_limit_bytes"] == 200 * 2**20
    assert 190 * 2**20 <= shown["memory_bytes"] <= 200 * 2**20
    most = max(shown["memory_bytes"], shown["memory_task_peak_bytes"])
    assert shown["memory_share"] == pytest.approx(most / shown["memory_limit_bytes"], abs=0.001)
    assert shown["time_left_seconds"] == pytest.approx(1800 - shown["elapsed_seconds"], abs=2)
    assert (shown["estimated_from"], shown["parts"], shown["note"]) == ("time limit", 1, None)
    assert 0 <= shown["cpu_share"] < 0.5
