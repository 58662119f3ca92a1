"""Start slurmctld and the nodes, in the strongest way to limit memory with which they come up."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from slurm_agent_tools.devcluster import cgroups, folders, lifecycle, slurm_daemons
from slurm_agent_tools.devcluster.cgroups import Way
from slurm_agent_tools.devcluster.config_files import Choices
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, MemoryLimits

_COMPLAINT = re.compile(r"\b(?:fatal|error): (.+)")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a cluster's configuration is made from beside the way: accounting, lines to add, the version of Slurm."""

    accounting: bool
    extra: str
    version: tuple[int, int]


def configure(cluster: Cluster, settings: Settings, way: Way) -> None:
    """Write the configuration for one way to limit memory."""
    choices = Choices(way.grouped, settings.accounting, settings.extra)
    folders.configure(cluster, choices, cgroups.conf(way, settings.version))


async def up(
    cluster: Cluster, settings: Settings, ways: list[tuple[Way, str]], say: Callable[[str], None]
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
            return MemoryLimits(way.limits, why)
    await _attempt(cluster, settings, last)
    return MemoryLimits(last.limits, reason)


async def _attempt(cluster: Cluster, settings: Settings, way: Way) -> None:
    machine = cgroups.here()
    cgroups.make_ready(way, machine)
    configure(cluster, settings, way)
    await slurm_daemons.start(cluster, "slurmctld")
    await slurm_daemons.ready(cluster, "slurmctld")
    for node in cluster.nodes:
        await slurm_daemons.start(cluster, f"slurmd.{node}")
    await lifecycle.fit(cluster)
    cgroups.check(way, cluster, machine)


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
