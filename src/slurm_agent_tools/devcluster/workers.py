"""The workers: started in the strongest way to limit memory with which they come up, asked, and emptied of jobs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from slurm_agent_tools.devcluster import cgroups, folders, processes, slurm_daemons
from slurm_agent_tools.devcluster.cgroups import Way
from slurm_agent_tools.devcluster.config_files import Choices
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, MemoryLimits

_FIT = {"idle", "mixed", "allocated"}
_COMPLAINT = re.compile(r"\b(?:fatal|error): (.+)")


@dataclass(frozen=True, slots=True)
class SlurmSetup:
    """What a cluster's configuration is made from beside the way: accounting, lines to add, the version of Slurm."""

    accounting: bool
    extra: str
    version: tuple[int, int]


def configure(cluster: Cluster, settings: SlurmSetup, way: Way) -> None:
    """Write the configuration for one way to limit memory."""
    choices = Choices(way.grouped, settings.accounting, settings.extra)
    folders.configure(cluster, choices, cgroups.conf(way, settings.version, held(cluster, way)))


def held(cluster: Cluster, way: Way) -> tuple[str, ...]:
    """The walls between its jobs. The devcluster has one for memory alone: its GPUs are no devices of their own."""
    possible = cgroups.walls(way, cgroups.here())
    return possible if cluster.machine is not None else tuple(wall for wall in possible if wall == cgroups.MEMORY)


async def up(
    cluster: Cluster, settings: SlurmSetup, ways: list[tuple[Way, str]], say: Callable[[str], None]
) -> MemoryLimits:
    """Start them in the first of the ways that works; DevclusterError of the last one when none does."""
    *stronger, (last, reason) = ways
    for way, why in stronger:
        try:
            await _attempt(cluster, settings, way)
        except DevclusterError as error:
            reason = f"{way} does not work here: {_cause(str(error))}"
            say(f"{reason}; memory will be polled")
            await _withdraw(cluster)
        else:
            return MemoryLimits(way.limits, why, held(cluster, way))
    await _attempt(cluster, settings, last)
    return MemoryLimits(last.limits, reason, held(cluster, last))


async def _attempt(cluster: Cluster, settings: SlurmSetup, way: Way) -> None:
    machine = cgroups.here()
    cgroups.make_ready(way, machine)
    configure(cluster, settings, way)
    await slurm_daemons.start(cluster, "slurmctld")
    await slurm_daemons.ready(cluster, "slurmctld")
    await _forget_dead(cluster)
    for node in cluster.nodes:
        await slurm_daemons.start(cluster, f"slurmd.{node}")
    await fit(cluster)
    cgroups.check(way, cluster, machine)


async def _forget_dead(cluster: Cluster) -> None:
    """Tell slurmctld of jobs that a power cut ended: it takes them for running until a node says otherwise, twice.

    Before its node starts, so that none is meant that began since. A node that is down ends its jobs, each as it asked
    for (requeued, or NODE_FAIL), and is up again when it registers.
    """
    if cluster.machine is None or processes.steps(cluster) or not await running_jobs(cluster):
        return
    for node in cluster.nodes:
        words = ["scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=restarted with no job alive"]
        await slurm_daemons.call(cluster, words)


async def _withdraw(cluster: Cluster) -> None:
    """End what an attempt started. slurmctld goes too: it holds the configuration of that attempt."""
    for node in cluster.nodes:
        await slurm_daemons.stop(cluster, f"slurmd.{node}")
    await slurm_daemons.stop(cluster, "slurmctld")


def _cause(text: str) -> str:
    """The first complaint of a daemon about control groups, else its last one, else the first line of the text.

    The last ones are often that slurmd ends.
    """
    complaints = [str(found) for found in _COMPLAINT.findall(text)]
    about = [found for found in complaints if "cgroup" in found]
    return next(iter([*about, *complaints[-1:], text.partition("\n")[0]]))


async def fit(cluster: Cluster) -> None:
    """Wait until every node takes jobs; DevclusterError with the last words of one that does not."""
    end = time.monotonic() + 30
    while True:
        found = await node_states(cluster)
        waiting = [node for node in cluster.nodes if found.get(node) not in _FIT]
        if not waiting:
            return
        dead = [node for node in waiting if processes.running(cluster, f"slurmd.{node}") is None]
        if dead or time.monotonic() > end:
            node = (dead or waiting)[0]
            words = slurm_daemons.last_words(cluster, f"slurmd.{node}")
            raise DevclusterError(f"node {node} did not come up ({found.get(node, 'unknown')})\n{words}")
        await anyio.sleep(0.1)


async def heard_of(cluster: Cluster) -> None:
    """A slurmctld that starts again gives jobs only to nodes that have answered it; waits for those that run."""
    running = [node for node in cluster.nodes if processes.running(cluster, f"slurmd.{node}")]
    with anyio.move_on_after(10):
        found = await node_states(cluster)
        while any(found.get(node) == "unknown" for node in running):
            await anyio.sleep(0.1)
            found = await node_states(cluster)


async def node_states(cluster: Cluster) -> dict[str, str]:
    """Slurm's word for each node; empty when slurmctld does not answer."""
    ended = await slurm_daemons.call(cluster, ["sinfo", "-h", "-N", "-o", "%N %T"])
    rows = [line.split() for line in ended.stdout.decode(errors="replace").splitlines()]
    return {row[0]: row[1] for row in rows if len(row) == 2}


async def partitions(cluster: Cluster, state: str) -> None:
    """Set every partition UP or DOWN."""
    ended = await slurm_daemons.call(cluster, ["sinfo", "-h", "-o", "%R"])
    for name in sorted(set(ended.stdout.decode(errors="replace").split())):
        await slurm_daemons.call(cluster, ["scontrol", "update", f"PartitionName={name}", f"State={state}"])


async def end_jobs(cluster: Cluster) -> None:
    """Cancel what runs. Partitions go DOWN first: else every cancelled job lets a pending one start."""
    if (await slurm_daemons.call(cluster, ["scontrol", "ping"], 3)).exit_code != 0:
        return
    await partitions(cluster, "DOWN")
    end = time.monotonic() + 10
    asked = False
    while jobs := await running_jobs(cluster):
        if not asked:
            await slurm_daemons.call(cluster, ["scancel", "--quiet", *jobs], 60)
            asked = True
        if time.monotonic() > end:
            return
        await anyio.sleep(0.1)


async def running_jobs(cluster: Cluster) -> list[str]:
    """The ids of the jobs that Slurm takes for running."""
    ended = await slurm_daemons.call(cluster, ["squeue", "-h", "-t", "R,S,CG", "-o", "%A"])
    return sorted(set(ended.stdout.decode(errors="replace").split()))
