"""How soon answers come on a private Slurm: of waits that outlive the call, and while the controller is away."""

from __future__ import annotations

import signal
import time
from contextlib import AsyncExitStack

import anyio
from benchmarks.table import Row
from mcp import Client
from tests.system import scale
from tests.system.faces import Place

from slurm_agent_tools.devcluster import lifecycle

LATE, PROMISED, COMES_UP = 2.0, 15.0, 30.0
READING: list[tuple[str, dict[str, object]]] = [
    ("get_status", {"refresh": True}),
    ("analyze_log", {"recent_errors": 3}),
]
OF_THE_JOB: list[tuple[str, dict[str, object]]] = [
    ("wait_for_job", {"timeout_seconds": 0}),
    ("wait_for_job", {"timeout_seconds": 5}),
    ("analyze_log", {}),
    ("cancel_job", {"reason": "no longer needed"}),
    ("save_result", {"name": "x", "status": "success"}),
]


def rows() -> list[Row]:
    return anyio.run(_measured)


async def _measured() -> list[Row]:
    async with AsyncExitStack() as stack:
        begun = time.monotonic()
        place = await stack.enter_async_context(scale.private())
        found = [Row("devcluster up, clock", time.monotonic() - begun, "s", limit=COMES_UP)]
        client = await stack.enter_async_context(place.client())
        stdin = b"#!/bin/sh\nsleep 600\n"
        job = place.slurm("sbatch", "--parsable", "-pcpu", "-t20", "--mem=1", "-o/dev/null", stdin=stdin)
        found += [await _outlived(client, job)]
        for how in ("down", "stopped"):
            found += await _away(place, client, job, how)
        found += [await _silent(place, client, job)]
    return found


async def _asked(client: Client, tool: str, arguments: dict[str, object]) -> float:
    start = time.monotonic()
    await client.call_tool(tool, arguments)
    return time.monotonic() - start


async def _outlived(client: Client, job: str) -> Row:
    """How much later than asked a wait returns."""
    late = [
        await _asked(client, "wait_for_job", {"job_id": job, "timeout_seconds": seconds}) - seconds
        for seconds in (0, 2, 3, 12)
    ]
    return Row("wait_for_job of a job that goes on, beyond the asked time", max(late), "s", limit=LATE)


async def _away(place: Place, client: Client, job: str, how: str) -> list[Row]:
    """The slowest answer while the controller is away."""
    await _change(place, how, begin=True)
    try:
        asked = [*READING, *((tool, {"job_id": job} | more) for tool, more in OF_THE_JOB)]
        times = {f"{tool} {arguments}": await _asked(client, tool, arguments) for tool, arguments in asked}
    finally:
        await _change(place, how, begin=False)
    slowest = max(times, key=lambda name: times[name])
    what = f"slowest answer while the controller is {how} ({slowest.split()[0]})"
    return [Row(what, times[slowest], "s", limit=PROMISED)]


async def _silent(place: Place, client: Client, job: str) -> Row:
    """How much later than asked a wait ends during which the controller was stopped."""
    await _asked(client, "wait_for_job", {"job_id": job, "timeout_seconds": 0})
    await _change(place, "stopped", begin=True)
    try:
        took = await _asked(client, "wait_for_job", {"job_id": job, "timeout_seconds": 13})
    finally:
        await _change(place, "stopped", begin=False)
    what = "wait_for_job whose controller stops meanwhile, beyond the asked time"
    return Row(what, max(0.0, took - 13), "s", limit=LATE)


async def _change(place: Place, how: str, *, begin: bool) -> None:
    """Take the controller away, or give it back and wait until it answers."""
    if how == "down":
        await (lifecycle.stop_daemon if begin else lifecycle.start_daemon)(place.cluster, "slurmctld")
    else:
        await lifecycle.signal_daemon(place.cluster, "slurmctld", signal.SIGSTOP if begin else signal.SIGCONT)
    with anyio.fail_after(60):
        while not begin and place.run(["sinfo"]).returncode:  # noqa: ASYNC110 - another process
            await anyio.sleep(0.2)
