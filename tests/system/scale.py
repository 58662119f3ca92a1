"""Many waits and a long queue on a private Slurm of their own, measured."""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from tests.system import dashboards
from tests.system.faces import Place, call

from slurm_agent_tools.devcluster import lifecycle
from slurm_agent_tools.slurm.client import offset

TICK = 10
LOOP = (
    'i=0; while [ $i -lt "$1" ]; do'
    ' printf "#!/bin/sh\\nsleep 600\\n" | sbatch -Q --hold -pcpu -t60 -o/dev/null -J"held-$i"; i=$((i+1)); done'
)


@dataclass(frozen=True)
class Size:
    """How many waits for how many seconds over how many jobs, of which `ending` end meanwhile; and the queue's length.

    `ends`: seconds after which they end, 3 before a tick: a slow machine has the time to see it before the last look.
    """

    waits: int
    jobs: int
    ending: int
    seconds: int
    ends: int
    queued: int
    nodes: int = 2000


SHORT = Size(waits=100, jobs=40, ending=4, seconds=14, ends=2, queued=800)
FULL = Size(waits=500, jobs=200, ending=20, seconds=60, ends=32, queued=20_000)


@dataclass
class Waited:
    """What a crowd of waits cost: Slurm's commands, how late each answer was, and how long all took, in seconds."""

    calls: Counter[str]
    late: list[float]
    states: Counter[str]
    seconds: float


@dataclass
class Asked:
    """Seconds of get_status and of bare squeue and sinfo, in turn; the answer's bytes."""

    ours: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    size: int = 0
    memory: float = 0.0
    depth: int = 0

    @property
    def ratio(self) -> float:
        """The least of ours over the least of bare."""
        return min(self.ours) / min(self.bare)


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    folder.chmod(0o755)
    return folder


@asynccontextmanager
async def private(nodes: int = 0) -> AsyncIterator[Place]:
    """A place on a cluster of its own, which is taken down and deleted whatever happens.

    `nodes`: so many more with four GPUs each, of which Slurm has nothing but their names: they are down.
    """
    folder = _folder()
    try:
        cluster = await lifecycle.up(folder, extra_conf=_more(nodes), yes=True, say=lambda _: None)
        project = cluster.project.parent / "place" / "project"
        project.mkdir(parents=True)
        place = Place(cluster, project)
        place.own()
        yield place
    finally:
        with anyio.CancelScope(shield=True):
            await lifecycle.down(folder, wipe=True, say=lambda _: None)


def _more(nodes: int) -> str:
    if not nodes:
        return ""
    names = f"more[{1:04}-{nodes:04}]"
    what = "NodeAddr=127.0.0.1 Port=1 CPUs=64 RealMemory=256000 Gres=gpu:a100:4 State=DOWN Reason=made"
    return f"NodeName={names} {what}\nPartitionName=more Nodes={names} MaxTime=1-00:00:00 State=UP\n"


async def fill(place: Place, queued: int) -> None:
    """So many held jobs in the queue, sent by two loops."""
    half = math.ceil(queued / 2)
    async with anyio.create_task_group() as group:
        for count in (half, queued - half):
            argv = place.cluster.as_user(["sh", "-c", LOOP, "sh", str(count)])
            group.start_soon(partial(anyio.run_process, argv, env=place.environment(), cwd=place.project))


def submit(place: Place, size: Size) -> list[str]:
    """The jobs to wait for: held ones, and some that end when a file is there."""
    script = b'#!/bin/sh\nuntil [ -e "$1" ]; do sleep 0.5; done\n'
    common = ("sbatch", "--parsable", "-pcpu", "-t5", "--mem=1", "-o/dev/null")
    (place.project / "until").write_bytes(script)
    ending = [place.slurm(*common, "until", str(_end(place))) for _ in range(size.ending)]
    return ending + [place.slurm(*common, "--hold", stdin=script) for _ in range(size.jobs - size.ending)]


def _end(place: Place) -> Path:
    return place.project / "end"


async def calls(client: Client) -> Counter[str]:
    """Slurm's commands so far, by kind."""
    return Counter((await call(client, "get_status", sections=["policy"], detailed=True))["slurm_calls"])


async def wait(place: Place, client: Client, ids: list[str], waits: int, size: Size) -> Waited:
    """So many waits at once, spread over the jobs."""
    seconds = size.seconds
    ticks = offset(place.cluster.user)
    late: list[float] = []
    states: Counter[str] = Counter()

    async def one(job_id: str) -> None:
        begun = time.time()
        reply = await call(client, "wait_for_job", job_id=job_id, timeout_seconds=seconds)
        states[reply["job"]["state"] if "job" in reply else str(reply)] += 1
        late.append(time.time() - min(begun + seconds, _due(reply, ticks)))

    await calls(client)  # what a first call asks once is asked now
    await anyio.sleep((ticks + TICK / 2 - time.time()) % TICK)  # so that each measured wait meets as many ticks
    before = await calls(client)
    own = await calls(client) - before
    start = time.monotonic()
    async with anyio.create_task_group() as group:
        for number in range(waits):
            group.start_soon(one, ids[number % len(ids)])
        await anyio.sleep(size.ends)
        _end(place).touch()
    took = time.monotonic() - start
    return Waited(await calls(client) - before - own - own, late, states, took)


def _due(reply: dict[str, Any], ticks: float) -> float:
    """When the end could be seen: at the tick after it. Slurm tells it in whole seconds, and a moment later."""
    ended = reply.get("job", {}).get("ended")
    if ended is None:
        return math.inf
    return math.ceil((datetime.fromisoformat(ended).timestamp() + 1.5 - ticks) / TICK) * TICK + ticks


async def status(place: Place, client: Client, rounds: int) -> Asked:
    """get_status beside bare squeue and sinfo, in turn."""
    found = Asked()
    for _ in range(rounds):
        begun = time.perf_counter()
        for command in ("squeue", "sinfo"):
            await anyio.run_process(place.cluster.as_user([command]), env=place.environment())
        middle = time.perf_counter()
        result = await client.call_tool("get_status", {"refresh": True})
        found.ours.append(time.perf_counter() - middle)
        found.bare.append(middle - begun)
        found.size = max(found.size, len(json.dumps(result.structured_content)))
        found.depth = (result.structured_content or {})["queue"]["depth"]
    return found


def peak() -> float:
    """Megabytes that the server of this process held at most, what it shares with others included."""
    return max(memory for words, memory in dashboards.children() if b"serve" in words)
