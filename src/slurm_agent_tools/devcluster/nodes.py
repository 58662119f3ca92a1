"""What `up` and `down` ask and tell slurmctld: its nodes, its partitions, the jobs that run."""

from __future__ import annotations

import time

import anyio

from slurm_agent_tools.devcluster import daemons, services
from slurm_agent_tools.devcluster.place import Cluster, DevclusterError

_FIT = {"idle", "mixed", "allocated"}


async def fit(cluster: Cluster) -> None:
    """Wait until every node takes jobs; DevclusterError with the last words of one that does not."""
    end = time.monotonic() + 30
    while True:
        found = await states(cluster)
        waiting = [node for node in cluster.nodes if found.get(node) not in _FIT]
        if not waiting:
            return
        dead = [node for node in waiting if daemons.running(cluster, f"slurmd.{node}") is None]
        if dead or time.monotonic() > end:
            node = (dead or waiting)[0]
            words = services.last_words(cluster, f"slurmd.{node}")
            raise DevclusterError(f"node {node} did not come up ({found.get(node, 'unknown')})\n{words}")
        await anyio.sleep(0.1)


async def heard_of(cluster: Cluster) -> None:
    """A slurmctld that starts again gives jobs only to nodes that have answered it; waits for those that run."""
    running = [node for node in cluster.nodes if daemons.running(cluster, f"slurmd.{node}")]
    with anyio.move_on_after(10):
        found = await states(cluster)
        while any(found.get(node) == "unknown" for node in running):
            await anyio.sleep(0.1)
            found = await states(cluster)


async def states(cluster: Cluster) -> dict[str, str]:
    """Slurm's word for each node; empty when slurmctld does not answer."""
    ended = await services.call(cluster, ["sinfo", "-h", "-N", "-o", "%N %T"])
    rows = [line.split() for line in ended.stdout.decode(errors="replace").splitlines()]
    return {row[0]: row[1] for row in rows if len(row) == 2}


async def partitions(cluster: Cluster, state: str) -> None:
    """Set every partition UP or DOWN."""
    ended = await services.call(cluster, ["sinfo", "-h", "-o", "%R"])
    for name in sorted(set(ended.stdout.decode(errors="replace").split())):
        await services.call(cluster, ["scontrol", "update", f"PartitionName={name}", f"State={state}"])


async def end_jobs(cluster: Cluster) -> None:
    """Cancel what runs. Partitions go DOWN first: else every cancelled job lets a pending one start."""
    if (await services.call(cluster, ["scontrol", "ping"], 3)).exit_code != 0:
        return
    await partitions(cluster, "DOWN")
    end = time.monotonic() + 10
    asked = False
    while jobs := await _jobs(cluster):
        if not asked:
            await services.call(cluster, ["scancel", "--quiet", *jobs], 60)
            asked = True
        if time.monotonic() > end:
            return
        await anyio.sleep(0.1)


async def _jobs(cluster: Cluster) -> list[str]:
    ended = await services.call(cluster, ["squeue", "-h", "-t", "R,S,CG", "-o", "%A"])
    return sorted(set(ended.stdout.decode(errors="replace").split()))
