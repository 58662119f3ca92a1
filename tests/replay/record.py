"""Record Slurm's own answers about jobs of every fate: `python -m tests.replay.record FOLDER [24.11|26.05]`.

Run it from the repository's root, as root, on a machine with nothing else to do. FOLDER must not exist; a private
cluster is brought up in it, of the distribution's Slurm or of the named version, and it is deleted at the end.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from tests.replay.replaying import RECORDINGS, Answer, save
from tests.scenarios.either import AsUser
from tests.system import test_fates
from tests.system.faces import Place
from tests.system.test_fates import FATES, Fate, running

from slurm_agent_tools.devcluster import lifecycle
from slurm_agent_tools.devcluster.definition import Cluster
from slurm_agent_tools.errors import SlurmRefused, UnknownJob
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.transport.local import SystemClock
from slurm_agent_tools.units import JobId

_PORTS = {None: 34000, "24.11": 35000, "26.05": 36000}
_PLAIN = ("completed", "exit-7", "signal", "cancelled", "array", "pending-array", "never")


class RecordingRunner:
    """Runs commands as the cluster's user and keeps every answer."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.version, self.answers = cluster, "", dict[tuple[str, ...], Answer]()
        self._inner = AsUser(cluster)

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", **more: Any) -> Completed:
        done = await self._inner.run(argv, stdin=stdin, **more)
        self.answers[done.argv] = Answer(
            done.argv, stdin.decode("latin-1"), done.stdout.decode("latin-1"), done.stderr.decode("latin-1"),
            done.exit_code, self.version,
        )  # fmt: skip
        return done


def administer(place: Place, *argv: str) -> None:
    subprocess.run(argv, env=place.environment(), check=True, capture_output=True)


def suspend(place: Place, job_id: str) -> None:
    running(place, job_id)
    administer(place, "scontrol", "suspend", job_id)


def preempt(place: Place, job_id: str) -> None:
    running(place, job_id)
    strong = ["--exclusive", "--qos=high", f"-w{node(place, 'spec01')}", "-pspecial", "-t1", "-o/dev/null"]
    place.slurm("sbatch", *strong, stdin=b"#!/bin/bash\nsleep 1\n")


def fail_node(place: Place, job_id: str) -> None:
    running(place, job_id)
    administer(place, "scontrol", "update", f"nodename={node(place, 'cpu02')}", "state=down", "reason=broken")


def node(place: Place, kind: str) -> str:
    return next(name for name in place.cluster.nodes if name.endswith(kind))


def more_fates(place: Place, version: str | None) -> list[Fate]:
    # 22.05 lets a held job's deadline pass; later versions refuse a deadline that a later start cannot keep.
    waits = ("--begin=now+30", "--deadline=now+75") if version is None else ("--hold", "--deadline=now+65")
    deadline = ("--time=1", *waits)
    return [
        Fate("preempted", "sleep 600", ("--qos=scavenger", "-pspecial", "--exclusive", "--no-requeue"), then=preempt),
        Fate("node-failure", "sleep 600", (f"-w{node(place, 'cpu02')}", "--no-requeue"), then=fail_node),
        Fate("deadline", "true", deadline),
        Fate("held", "true", ("--hold",), status="pending"),
        Fate("suspended", "sleep 600", status="running", then=suspend),
        Fate("running", "sleep 600", status="running", then=running),
        Fate("cancelled-pending", "true", ("--hold",), then=lambda where, job_id: where.slurm("scancel", job_id)),
        Fate("gpus", "true", ("-pgpu", "--gres=gpu:a100:2")),
    ]


def make(place: Place, fates: list[Fate]) -> dict[str, str]:
    """The jobs, and a wait until those that end have ended; their ids by name."""
    (place.project / "logs/slurm").mkdir(parents=True, exist_ok=True)
    place.own()
    made: dict[str, str] = {}
    for fate in fates:
        made[fate.name] = test_fates.submit(place, fate, made)
    end = time.monotonic() + 500
    for last in (False, True):  # the node fails when all others that end have: some of them run on it
        some = [fate for fate in fates if (fate.name == "node-failure") is last]
        for fate in some:
            if fate.then:
                fate.then(place, made[fate.name])
        wanted = {made[fate.name] for fate in some if fate.status == "finished"}
        while wanted & active(place):
            assert time.monotonic() < end, "the jobs did not end"
            time.sleep(0.5)
    while "requeued" in made and state(place, made["requeued"]) != "RUNNING":
        assert time.monotonic() < end, "the requeued job did not run again"
        time.sleep(0.5)
    time.sleep(2)  # accounting follows within a second
    return made


def state(place: Place, job_id: str) -> str:
    return place.slurm("squeue", "-h", "-j", job_id, "-o", "%T")


def active(place: Place) -> set[str]:
    rows = [row.split() for row in place.slurm("squeue", "-h", "-t", "all", "-o", "%F %T").splitlines()]
    return {job_id for job_id, state in rows if state not in test_fates.ENDED}


async def record(cluster: Cluster, path: Path, ask: Callable[[SlurmClient], Awaitable[object]]) -> None:
    """All commands that one question costs, as a file."""
    runner = RecordingRunner(cluster)
    told = await runner.run(["sinfo", "--version"])
    runner.version = told.stdout.decode().split()[1]
    runner.answers.clear()
    await ask(SlurmClient(runner, SystemClock(), SlurmSettings(), user=cluster.user, mark=str))
    save(path, list(runner.answers.values()))


async def one(job_id: str, client: SlurmClient) -> None:
    """One job, and what the accounting says of it also where it goes on."""
    await client.job(JobId(int(job_id)))
    await client.accounting.jobs([int(job_id)], 0)


async def whole(client: SlurmClient) -> None:
    """The cluster as get_status sees it, and a job that never was."""
    await client.queue()
    await client.partitions()
    await client.info()
    await client.accounting.recent(SystemClock().now() - timedelta(hours=1))
    try:
        await client.job(JobId(999999))
    except UnknownJob:
        return
    raise AssertionError("999999 is known")


OPTIONS = ("--partition=gpu", "--gpus=2", "--mem=4G", "--time=10", "--job-name=kept", "--comment=token", "--no-requeue")
ARGS = ("a b", "c")
SCRIPT = b'#!/bin/bash\n#SBATCH --error=e-%j.txt\necho "$@"\n'
GONE = "--power=level"
REFUSED = "--partition=none"
LOST = "--dependency=afterok:999999"


async def changes(folder: Path, client: SlurmClient) -> None:
    """What a submission costs: asked, refused, held, looked at, released, cancelled; and the end of a job unknown."""
    at = {"cwd": str(folder), "env": {}}
    for more in ((), (GONE,), (REFUSED,), (LOST,)):
        await client.test_only([*OPTIONS, *more], SCRIPT, ARGS, **at)
    for more in (REFUSED, LOST):
        with suppress(SlurmRefused):
            await client.submit([*OPTIONS, more, "--hold"], SCRIPT, ARGS, **at)
    made = await client.submit([*OPTIONS, "--hold"], SCRIPT, ARGS, **at)
    job_id = JobId(made.job_id)
    await client.held(job_id)
    await client.batch_script(job_id)
    await client.release(job_id)
    await client.cancel(job_id)
    await client.cancel(JobId(999999))
    with suppress(SlurmRefused):
        await client.release(JobId(999999))


def settled_place(cluster: Cluster) -> Place:
    project = cluster.project.parent / "place" / "project"
    project.mkdir(parents=True, exist_ok=True)
    return Place(cluster, project)


async def session(folder: Path, version: str | None, *, accounting: bool) -> None:
    """One cluster, its jobs, its recordings; down and away at the end."""
    up = partial(lifecycle.up, base_port=_PORTS[version], slurm=version, yes=True, accounting=accounting)
    target = RECORDINGS / (version or "22.05") / ("accounting" if accounting else "no-accounting")
    try:
        cluster = await up(folder)
        place = settled_place(cluster)
        fates = [*FATES, *more_fates(place, version)] if accounting else [fate for fate in FATES if fate.name in _PLAIN]
        ids = await anyio.to_thread.run_sync(make, place, fates)
        for name, job_id in ids.items():
            await record(cluster, target / f"{name}.json", partial(one, job_id))
        await record(cluster, target / "cluster.json", whole)
        if accounting:
            await record(cluster, target.parent / "changes.json", partial(changes, place.project))
    finally:
        await lifecycle.down(folder, wipe=True)


async def main(folder: Path, version: str | None = None) -> None:
    for accounting in (True, False):
        await session(folder, version, accounting=accounting)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), *sys.argv[2:])
