"""What waited and ran here lately, as far as the accounting tells it.

For the waits nobody is kept waiting long; all that ran is asked for by whoever wants to play it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import anyio

from slurm_agent_tools.errors import AccountingUnreachable, InputError, SlurmError
from slurm_agent_tools.insights.accounting_history import JobSources
from slurm_agent_tools.models.job import Job, PastWaits
from slurm_agent_tools.models.node import Node

_PATIENCE = 3.0  # seconds


async def recent_waits(
    context: JobSources,
    *,
    ask: bool = True,
    fresh: bool = False,
    otherwise: str = "ask for the section queue by its name",
) -> PastWaits:
    """What ran here lately; empty with a note where it was not asked or the accounting does not answer in time.

    `fresh`: not from what is kept. `otherwise`: who asks it, for the note.
    """
    with anyio.move_on_after(_PATIENCE):
        try:
            found = await context.slurm.past(ask=ask, fresh=fresh)
        except SlurmError as error:
            return PastWaits(note=f"the accounting could not be asked: {error.message}")
        if found is not None:
            return found
        why = "Slurm is slow, or it gave no answer a moment ago" if ask else otherwise
        return PastWaits(note=f"the accounting was not asked: {why}")
    return PastWaits(note=f"the accounting did not answer within {_PATIENCE:.0f} s")


async def maintenance(context: JobSources) -> datetime | None:
    """When the next maintenance begins, as far as the reservations tell in time."""
    kept = None
    with contextlib.suppress(SlurmError), anyio.move_on_after(_PATIENCE):
        kept = await context.slurm.running.reservations()
    now = context.clock.now()
    return min((one.start for one in kept or () if one.maintenance and one.start > now), default=None)


# --- All that ran, and what there was to run it on --------------------------------------------------------------------

MOST_DAYS = 366


@dataclass(frozen=True, slots=True)
class ClusterPast:
    """Jobs and array tasks of the last `days`, and the nodes that they could have, each once.

    `own`: only this user's jobs were to be seen, or there were no others. `configuration`: slurm.conf, as the
    controller tells it.
    """

    cluster: str
    days: int
    jobs: tuple[Job, ...]
    own: bool
    nodes: tuple[Node, ...]
    configuration: Mapping[str, str]

    @property
    def sizes(self) -> dict[str, int]:
        """How many CPUs, GPUs and nodes there are."""
        return {
            "cpus": sum(node.cpus for node in self.nodes),
            "gpus": sum(node.gpus for node in self.nodes),
            "nodes": len(self.nodes),
        }


async def cluster_past(context: JobSources, *, days: int, partition: str | None = None) -> ClusterPast:
    """What the accounting tells of all users' jobs. `partition`: only jobs that ran in it, and its nodes alone.

    Raises InputError, SlurmError, and AccountingUnreachable on a cluster without accounting.
    """
    if not 1 <= days <= MOST_DAYS:
        raise InputError("days", days, "is out of range", hint=f"Give a number from 1 to {MOST_DAYS}.")
    info = await context.slurm.info()
    if not info.accounting:
        hint = "Give a trace in the Standard Workload Format instead."
        raise AccountingUnreachable("This cluster keeps no accounting (slurmdbd), so its past is not known.", hint=hint)
    known = await context.slurm.partitions()
    if partition is not None and partition not in known:
        raise InputError("partition", partition, "is not known here", hint=f"Known: {', '.join(sorted(known))}.")
    told = await context.slurm.nodes()  # a node once for each of its partitions
    nodes = {node.name: node for node in told if partition is None or partition in node.partitions}
    jobs = await context.slurm.accounting.everyone(context.clock.now() - timedelta(days=days))
    wanted = [job for job in jobs if partition is None or job.partition == partition]
    return ClusterPast(
        cluster=info.name,
        days=days,
        jobs=tuple(_each_task(wanted)),
        own={job.user for job in jobs} <= {context.slurm.user},
        nodes=tuple(nodes.values()),
        configuration=await context.slurm.configuration(),
    )


def _each_task(records: Sequence[Job]) -> Sequence[Job]:
    """Without the row that stands for the tasks of an array that have not started: each that has is a row by itself."""
    return [job for job in records if job.job_id.tasks is None]
