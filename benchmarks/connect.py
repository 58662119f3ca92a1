"""An MCP server that asks a site's service beside one that judges by itself: start, and calls on a private Slurm."""

from __future__ import annotations

import socket
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path

import anyio
from benchmarks.start import answered
from benchmarks.table import Row
from benchmarks.timing import environment, in_turn, python
from mcp import Client
from tests.system.faces import Place, call, connected
from tests.system.site_service import SiteOnCluster, installed, wait

LIMIT = 1.3
SCRIPT = "#!/bin/bash\n#SBATCH --partition=cpu --mem=100M --time=5\n#SBATCH --output=/dev/null\ntrue {number}\n"
_ROUNDS = 12
_STDIO = "`serve` over stdio"


def rows() -> list[Row]:
    with installed() as site:
        return [*_starts(), *anyio.run(_calls, site)]


def _starts() -> list[Row]:
    """From process start to the answer to `initialize`; the service is not asked before a call."""
    with tempfile.TemporaryDirectory(prefix="sat-bench-") as name, socket.socket(socket.AF_UNIX) as listening:
        folder, path = Path(name), f"{name}/site.sock"
        listening.bind(path)
        env = environment(folder)
        kinds = (("serve",), ("connect", "--socket", path))
        made = [partial(answered, python("-m", "slurm_agent_tools", *words), env, folder) for words in kinds]
        stdio, connects = in_turn(made, _ROUNDS)
    return [
        Row("start to `initialize` over `connect`, clock", connects.wall * 1e3, "ms", _STDIO, stdio.wall * 1e3, LIMIT),
        Row("start to `initialize` over `connect`, processor", connects.cpu * 1e3, "ms", _STDIO, stdio.cpu * 1e3),
    ]


async def _calls(site: SiteOnCluster) -> list[Row]:
    """The least of several of each, in turn."""
    plain, asking = site.another(), site.another()
    plain.extra.pop("SLURM_AGENT_SITE_SOCKET")
    times = defaultdict[tuple[str, str], list[float]](list)
    async with plain.client() as stdio, connected(asking, str(site.socket)) as connects:
        for number in range(_ROUNDS):
            both = (("stdio", plain, stdio), ("connect", asking, connects))
            for kind, place, client in both if number % 2 else both[::-1]:
                for tool, took in (await _timed(place, client, number)).items():
                    times[tool, kind].append(took)
                await anyio.to_thread.run_sync(_emptied, site)
    least = {key: min(column) * 1e3 for key, column in times.items()}
    return [
        Row(f"{tool} over `connect`", least[tool, "connect"], "ms", _STDIO, least[tool, "stdio"], LIMIT)
        for tool in ("get_status", "submit_job", "wait_for_job")
    ]


async def _timed(place: Place, client: Client, number: int) -> dict[str, float]:
    script = place.project / f"job-{number}.sh"
    script.write_text(SCRIPT.format(number=number))
    place.own()
    took, job = dict[str, float](), ""
    for tool in ("get_status", "submit_job", "wait_for_job"):
        asked: dict[str, object] = {
            "get_status": {"refresh": True}, "submit_job": {"script": script.name},
            "wait_for_job": {"job_id": job, "timeout_seconds": 0},
        }[tool]  # fmt: skip
        start = time.perf_counter()
        reply = await call(client, tool, **asked)
        took[tool] = time.perf_counter() - start
        job = str(reply.get("job_id", job))
        if tool == "submit_job" and reply["status"] != "submitted":
            raise RuntimeError(f"{tool}: {reply}")
    return took


def _emptied(site: SiteOnCluster) -> None:
    wait(lambda: not site.place.slurm("squeue", "-h", "--me"), "an empty queue")
