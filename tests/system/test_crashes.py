"""The server dies at every point of a submission: no job is lost, none is sent twice, the ledger tells the truth."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from tests.system import dying
from tests.system.dying import POINTS
from tests.system.faces import Place, call

TIMES = 10 if os.environ.get("SOAK") else 1
SCRIPT = "#!/bin/bash\n#SBATCH --partition=cpu --time=5\n#SBATCH --output=/dev/null\nsleep 0.1\n"
BEFORE_SLURM = POINTS[: POINTS.index("sbatch:during")]
AGE = "UPDATE submissions SET created = created - 61, updated = updated - 61 WHERE phase NOT IN ('released')"


@dataclass
class Row:
    """What a ledger says of one submission."""

    token: str
    phase: str
    job_id: int | None
    job_name: str


def ledger(place: Place) -> Path:
    return place.project.parent / ".state/slurm-agent-tools/ledger.sqlite3"


def rows(place: Place) -> list[Row]:
    with sqlite3.connect(f"file:{ledger(place)}?mode=ro", uri=True, timeout=10) as db:
        found = db.execute("SELECT token, phase, job_id, job_name FROM submissions ORDER BY created").fetchall()
    db.close()
    return [Row(*row) for row in found]


def jobs(place: Place) -> dict[str, tuple[int, str, str]]:
    """What Slurm itself says: token -> job id, state, reason. After MinJobAge only the accounting knows a job."""
    told = place.slurm("squeue", "-h", "--me", "-t", "all", "-o", "%k\t%A\t%T\t%r").splitlines()
    found = {token: (int(job), state, reason) for token, job, state, reason in (line.split("\t") for line in told)}
    if all(row.token in found for row in rows(place) if row.job_id is not None):
        return found
    return {token: (int(job), state, "") for _, job, state, token in accounts(place) if job.isdigit()} | found


def accounts(place: Place) -> list[list[str]]:
    """Name, id, state and token of the user's jobs, from the accounting."""
    fields = "JobName,JobID,State,Comment"
    told = place.slurm("sacct", "-nXPS", "now-3hours", "-u", place.cluster.user, "-o", fields)
    return [row for line in told.splitlines() if len(row := line.split("|")) == 4]


def truthful(place: Place) -> None:
    """Every job of this place's submissions is in its ledger, and every entry of the ledger is so."""
    there = jobs(place)
    for row in rows(place):
        job = there.get(row.token)
        if row.phase in {"intent", "lost", "refused"}:
            assert (job, row.job_id) == (None, None), (row, job)
            continue
        assert job is not None, row
        assert job[0] == row.job_id, (row, job)
        held = job[1:] == ("PENDING", "JobHeldUser")
        assert {"held": held, "released": not held, "cancelled": job[1] == "CANCELLED"}[row.phase], (row, job)


def age(place: Place) -> None:
    """Let the minute pass in which a request may still be on its way to Slurm."""
    with sqlite3.connect(ledger(place), timeout=10) as db:
        db.execute(AGE)
    db.close()
    place.own()


class Lane:
    """A project with its own ledger; one submission after the other dies in it and is taken up again."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.told: dict[str, str] = {}
        shutil.copy(dying.__file__, place.project.parent / "dying.py")
        place.own()

    def argv(self, point: str, *words: str) -> list[str]:
        return self.place.cluster.as_user([sys.executable, str(self.place.project.parent / "dying.py"), point, *words])

    async def die(self, point: str, asked: dict[str, Any], *, mcp: bool) -> None:
        """Submit with a server, or a command line, that is killed at this point."""
        environment, project = self.place.environment(), str(self.place.project)
        if mcp:
            argv = self.argv(point, "serve")
            server = StdioServerParameters(command=argv[0], args=argv[1:], env=environment, cwd=project)
            async with Client(server) as client:
                with pytest.raises(MCPError, match="Connection closed"):
                    await call(client, "submit_job", **asked)
            return
        words = [f"--{name.replace('_', '-')}={value}" for name, value in asked.items()]
        pipes = {
            "stdout": asyncio.subprocess.PIPE,
            "stderr": asyncio.subprocess.PIPE,
            "stdin": asyncio.subprocess.DEVNULL,
        }
        process = await asyncio.create_subprocess_exec(
            *self.argv(point, "submit_job", *words), **pipes, env=environment, cwd=project
        )
        out, err = await process.communicate()
        assert (process.returncode, out) == (-signal.SIGKILL, b""), (point, process.returncode, out, err)

    async def one(self, other: Client, number: int, point: str, *, mcp: bool) -> None:
        """Die, look, take it up with another server; the answer is one job that runs."""
        await asyncio.to_thread(room, self.place)
        name = f"{point.replace(':', '-')}-{number}-{time.monotonic_ns()}"
        path = self.place.project / f"{name}.sh"
        path.write_text(SCRIPT)
        shutil.chown(path, self.place.cluster.user) if os.geteuid() == 0 else None
        asked: dict[str, Any] = {"script": path.name, "job_name": name}
        if (
            number + number // len(POINTS)
        ) % 2 or point == "delivered:after":  # only there a repetition without a key is a new request
            asked["idempotency_key"] = name
        await self.die(point, asked, mcp=mcp)
        await asyncio.sleep(0.3 if point.endswith("during") else 0)  # its orphaned command may still be on its way
        status = await call(other, "get_status", refresh=True)
        assert status["status"] == "ok", status
        assert [job for job in status["slurm"]["jobs"] if job["name"] == name and not job["managed"]] == []
        await asyncio.to_thread(truthful, self.place)
        reply = await call(other, "submit_job", **asked)
        if reply["status"] == "unconfirmed":
            assert point in (*BEFORE_SLURM, "sbatch:during"), (point, reply)
            assert [row.job_id for row in rows(self.place) if row.job_name == name] == [None]
            await asyncio.to_thread(age, self.place)
            reply = await call(other, "submit_job", **asked)
        assert reply["status"] == "submitted", (point, reply)
        self.told[name] = reply["job_id"]
        await asyncio.to_thread(truthful, self.place)

    async def run(self, points: list[tuple[int, str]]) -> None:
        async with self.place.client() as other:
            assert (await call(other, "get_status"))["status"] == "ok"
            for number, point in points:
                await self.one(other, number, point, mcp=bool(os.environ.get("SOAK")) or number % 3 == 0)


@pytest.mark.proves("killed-anywhere-loses-nothing", "crash-leaves-no-loose-job", "unconfirmed-is-found-again")
async def test_a_server_killed_at_any_point_of_a_submission_loses_no_job_and_doubles_none(fresh: Place):
    assert len(POINTS) >= 20
    assert fresh.another is not None
    begun = time.monotonic_ns()
    lanes = [Lane(fresh), Lane(fresh.another())]
    points = [(number, point) for number, point in enumerate(POINTS * TIMES)]
    await asyncio.gather(*(lane.run(points[start :: len(lanes)]) for start, lane in enumerate(lanes)))
    told = {name: job for lane in lanes for name, job in lane.told.items()}
    assert len(told) == len(points)
    names = await asyncio.to_thread(ran, fresh, set(told.values()), begun)
    assert names == {name: [job] for name, job in told.items()}
    phases = Counter(row.phase for lane in lanes for row in rows(lane.place))
    took = (time.monotonic_ns() - begun) / 1e9
    print(f"{len(points)} kills at {len(POINTS)} points: {took:.0f} s, ledger {dict(phases)}")  # noqa: T201
    assert phases["released"] == len(points)
    assert set(phases) <= {"released", "lost"}
    entries = [json.loads(line) for line in (ledger(fresh).parent / "decisions.jsonl").read_text().splitlines()]
    assert {entry["event"] for entry in entries} <= {"decided", "submitted", "unconfirmed"}
    verified = fresh.run([sys.executable, "-m", "slurm_agent_tools", "policy", "log", "--verify"])
    assert verified.returncode == 0, "a crash is no change of the log"


def room(place: Place) -> None:
    """Wait until most jobs before have ended: their slots are not what is tried here."""
    for _ in range(600):
        if len(place.slurm("squeue", "-h", "--me", "-t", "pending,running", "-o", "%A").split()) < 2:
            return
        time.sleep(0.1)
    raise AssertionError("the jobs before do not end")


def ran(place: Place, wanted: set[str], since: int) -> dict[str, list[str]]:
    """Jobs by name, from accounting, when all of the wanted ones have ended; only names that were made since then."""
    for _ in range(150):
        told = accounts(place)
        if wanted <= {job for _, job, state, _ in told if state == "COMPLETED"}:
            found: dict[str, list[str]] = {}
            for name, job, _, comment in told:
                made = name.rpartition("-")[2]
                if comment.startswith("sat-") and made.isdigit() and int(made) >= since:
                    found.setdefault(name, []).append(job)
            return found
        time.sleep(0.2)
    raise AssertionError(told)
