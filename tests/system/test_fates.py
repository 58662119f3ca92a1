"""Jobs of known fate on the real cluster, and what every tool says of them over both faces."""

from __future__ import annotations

import re
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from tests.system.faces import Place, call, connected, laptop

WHOLE = "Its script ended with exit code 200."
PYTHON_HOG = "b=[]\nwhile True: b.append(bytearray(8<<20))"


@dataclass(frozen=True)
class Fate:
    """A job, how it is made, and what is true of it."""

    name: str
    body: str
    options: tuple[str, ...] = ()
    status: str = "finished"
    state: str | tuple[str, ...] = "COMPLETED"
    exit_code: int | None = None
    signal: int | None = None
    category: str | tuple[str, ...] | None = None
    reason: str | None = None
    job_name: str | None = None
    then: Callable[[Place, str], None] | None = None
    check: Callable[[dict[str, Any]], object] | None = None
    after: str | None = None
    fields: dict[str, object] = field(default_factory=dict)


def running(place: Place, job_id: str) -> None:
    for _ in range(600):
        if place.slurm("squeue", "-h", "-j", job_id, "-o", "%T") == "RUNNING":
            return
        time.sleep(0.1)
    raise AssertionError(f"{job_id} never ran")


def cancel(place: Place, job_id: str) -> None:
    """Once its script runs: before, it may miss the first signal, and ends by the second."""
    log = place.project / f"logs/slurm/cancelled-{job_id}.out"
    for _ in range(600):
        if log.exists() and "up" in log.read_text():
            break
        time.sleep(0.1)
    else:
        raise AssertionError(f"{job_id} never ran")
    place.slurm("scancel", job_id)


def requeue(place: Place, job_id: str) -> None:
    running(place, job_id)
    place.slurm("scontrol", "requeue", job_id)


def tasks(wait: dict[str, Any]) -> dict[str, str]:
    return {task["job_id"].split("_", 1)[-1]: task["state"] for task in wait["tasks"]}


FATES = [
    Fate("completed", "echo loss: 0.25; sleep 1", exit_code=0),
    Fate("exit-7", "echo boom >&2; exit 7", state="FAILED", exit_code=7),
    Fate("exit-200", "exit 200", state="FAILED", exit_code=200, category="unknown", fields={"cause": WHOLE}),
    Fate("signal", "kill -SEGV $$", state="FAILED", signal=11, category="segmentation-fault"),
    Fate("cancelled", "echo up; sleep 600", state="CANCELLED", then=cancel, category="cancelled"),
    Fate("timeout", "sleep 600", ("--time=1",), state="TIMEOUT", category="time-limit"),
    Fate("memory", f"/usr/bin/python3 -c '{PYTHON_HOG}'", ("--mem=100",), state=("OUT_OF_MEMORY", "FAILED"),
         category="host-out-of-memory"),
    Fate("memory-in-step", f"srun /usr/bin/python3 -c '{PYTHON_HOG}'", ("--mem=100",), state=("FAILED", "OUT_OF_MEMORY"),
         category="host-out-of-memory"),
    Fate("failed-step", "srun false; exit 0", state="COMPLETED", exit_code=0, fields={"derived_exit_code": 1}),
    Fate("array", "sleep 1; [ $SLURM_ARRAY_TASK_ID != 2 ] || exit 5", ("--array=0-3",), state="FAILED",
         check=lambda wait: tasks(wait) == {"0": "COMPLETED", "1": "COMPLETED", "2": "FAILED", "3": "COMPLETED"}),
    Fate("pending-array", "sleep 600", ("--array=0-49%2", "--begin=now+1hour"), status="pending", state="PENDING",
         check=lambda wait: "PENDING" in tasks(wait).values() or not wait["tasks"]),
    Fate("het", "sleep 1", ("-n1", ":", "-n1", "-pcpu"), exit_code=0),
    Fate("requeued", "sleep 600", ("--requeue",), status=("pending", "running"), state=("PENDING", "RUNNING"),  # type: ignore[arg-type]
         then=requeue, fields={"restarts": 1}),
    Fate("never", "true", status="pending", state="PENDING", reason="DependencyNeverSatisfied", after="exit-7"),
    Fate("odd-name", "true", job_name='a|b "c"', exit_code=0),
    Fate("odd-lines", "true", job_name="x JobState=RUNNING\n   JobState=RUNNING", exit_code=0),
]  # fmt: skip


def submit(place: Place, fate: Fate, ids: dict[str, str]) -> str:
    script = f"#!/bin/bash\n{fate.body}\n".encode()
    name = fate.job_name or fate.name
    options = ["--parsable", f"--job-name={name}", "-pcpu", f"--output={place.project}/logs/slurm/{fate.name}-%j.out"]
    if fate.after:
        options.append(f"--dependency=afterok:{ids[fate.after]}")
    if not any(option.startswith("--time") for option in fate.options):
        options.append("--time=5")
    return place.slurm("sbatch", *options, *fate.options, stdin=script)


def settled(place: Place, ids: dict[str, str]) -> bool:
    live = place.slurm("squeue", "-h", "-t", "all", "-o", "%F %T").split("\n")
    active = {row.split()[0] for row in live if row and row.split()[1] not in ENDED}
    return not {ids[fate.name] for fate in FATES if fate.status == "finished"} & active


ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "DEADLINE"}


@pytest.fixture(scope="module")
def ids(place: Place) -> dict[str, str]:
    (place.project / "logs/slurm").mkdir(parents=True, exist_ok=True)
    place.own()
    made: dict[str, str] = {}
    for fate in FATES:
        made[fate.name] = submit(place, fate, made)
    for fate in FATES:
        if fate.then:
            fate.then(place, made[fate.name])
    for _ in range(300):
        if settled(place, made):
            break
        time.sleep(0.5)
    else:
        raise AssertionError("the jobs did not end")
    time.sleep(2)  # accounting follows within a second
    return made


TOOLS = ("wait_for_job", "analyze_log", "save_result", "cancel_job", "get_status")


def words(tool: str, job_id: str) -> dict[str, object]:
    return {
        "wait_for_job": {"job_id": job_id, "timeout_seconds": 0},
        "analyze_log": {"job_id": job_id},
        "save_result": {"name": "fate", "status": "failed", "job_id": job_id, "dry_run": True},
        "cancel_job": {"job_id": job_id, "reason": "the test is over"},
        "get_status": {"sections": ["jobs", "errors"], "refresh": True},
    }[tool]


def options_of(arguments: dict[str, object]) -> list[str]:
    found: list[str] = []
    for name, value in arguments.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            found.append(option)
        elif isinstance(value, list):
            found += [f"{option}={item}" for item in value]
        else:
            found.append(f"{option}={value}")
    return found


@pytest.fixture(scope="module", params=["mcp", "cli", "ssh", "connect"])
def told(request: pytest.FixtureRequest, place: Place, ids: dict[str, str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Every tool's answer about every job; `ssh`: from a server on a machine without Slurm, through the login node.

    `connect`: where a site's service judges, which is asked nothing about jobs: it only has to be there.
    """
    wanted = [(fate, tool) for tool in TOOLS for fate in FATES if tool != "cancel_job" or fate.status == "finished"]
    if request.param == "cli":
        calls = [(tool, options_of(words(tool, ids[fate.name]))) for fate, tool in wanted]
        with ThreadPoolExecutor(3) as pool:
            replies = list(pool.map(lambda call: place.cli(call[0], *call[1])[1], calls))
        return {(fate.name, tool): reply for (fate, tool), reply in zip(wanted, replies, strict=True)}
    where = laptop(place, request.getfixturevalue("login")) if request.param == "ssh" else place

    async def ask() -> dict[tuple[str, str], dict[str, Any]]:
        async with where.client() if request.param != "connect" else at_a_site(where) as client:
            return {(fate.name, tool): await call(client, tool, **words(tool, ids[fate.name])) for fate, tool in wanted}

    return anyio.run(ask)


@asynccontextmanager
async def at_a_site(place: Place) -> AsyncIterator[Client]:
    """A client of `connect`, beside a socket at which nobody answers."""
    with tempfile.TemporaryDirectory(prefix="sat-") as folder, socket.socket(socket.AF_UNIX) as listening:
        Path(folder).chmod(0o755)  # noqa: ASYNC240 - a test
        listening.bind(f"{folder}/site.sock")
        async with connected(place, f"{folder}/site.sock") as client:
            yield client


def among(value: object, wanted: object) -> bool:
    return value in wanted if isinstance(wanted, tuple) else value == wanted


@pytest.mark.parametrize("fate", [fate for fate in FATES if fate.status == "finished"], ids=lambda fate: fate.name)
def test_cancel_job_says_that_a_job_is_over(told, fate):
    assert told[fate.name, "cancel_job"]["status"] == "already_finished"


@pytest.mark.proves("truth-of-fates", "memory-kill-is-named")
@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.name)
class TestEveryToolTellsTheTruth:
    def test_wait_for_job(self, told, ids, fate):
        reply = told[fate.name, "wait_for_job"]
        job = reply["job"]
        assert among(reply["status"], fate.status), reply
        assert among(job["state"], fate.state), reply
        assert job["name"] == (fate.job_name or fate.name).replace("\n", r"\n")  # shown, never sent to a terminal
        assert job["job_id"] == ids[fate.name]
        if fate.exit_code is not None:
            assert (job["exit_code"], job["signal"]) == (fate.exit_code, None)
        if fate.signal is not None:
            assert job["signal"] == fate.signal
        if fate.reason is not None:
            assert job["reason"] == fate.reason
        assert {name: job[name] for name in fate.fields} == fate.fields
        if fate.check is not None:
            assert fate.check(reply), reply
        assert ("report" in reply and reply["report"] is not None) == (fate.status == "finished")

    def test_analyze_log(self, told, fate):
        reply = told[fate.name, "analyze_log"]
        assert among(reply["job"]["state"], fate.state), reply
        assert reply["diagnosis"]["retry"] is False
        if fate.category is not None:
            assert among(reply["diagnosis"]["category"], fate.category), reply["diagnosis"]
        if fate.state == "COMPLETED" and fate.name != "failed-step":
            assert reply["diagnosis"]["escalation"] == "none", reply["diagnosis"]

    def test_save_result(self, told, fate):
        reply = told[fate.name, "save_result"]
        assert reply["status"] == "dry_run", reply
        assert among(reply["result"]["environment"]["slurm_job"]["job"]["state"], fate.state)

    def test_get_status(self, told, ids, fate):
        slurm = told[fate.name, "get_status"]["slurm"]
        listed = {re.split(r"[_+]", job["job_id"])[0]: job for job in slurm["jobs"]}
        if fate.status == "finished":
            assert ids[fate.name] not in listed
        else:
            assert among(listed[ids[fate.name]]["state"], fate.state)
            assert listed[ids[fate.name]]["managed"] is False


def test_a_dependency_on_an_unknown_job_is_refused(place):
    (place.project / "after.sh").write_text("#!/bin/bash\n#SBATCH --partition=cpu\necho never\n")
    place.own()
    assert place.cli("get_status")[0] == 0
    code, reply = place.cli("submit_job", "--script=after.sh", "--dependency=afterok:999999")
    assert code == 3
    assert reply["status"] == "blocked"
    assert "dependency" in {rule["id"] for rule in reply["decision"]["rules"] if rule["outcome"] == "deny"}
    assert "after.sh" not in place.slurm("squeue", "-h", "-t", "all", "-o", "%j")
