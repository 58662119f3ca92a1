"""The workload that a cluster ran lately, from its own accounting, for a replay; and the priorities that it has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from slurm_agent_tools.errors import AccountingUnreachable, InputError
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.planning.strategies import PriorityWeights
from slurm_agent_tools.planning.workload import Unit, Workload, from_accounting
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.units import parse_time_limit

MOST_DAYS = 366

_NEVER = 1e12  # seconds: a half-life of 0 in Slurm is none at all


@dataclass(frozen=True, slots=True)
class PastWorkload:
    """What ran in the last `days`. `own`: only this user's jobs were to be seen, or there were no others.

    `weights`: what counts for the site's priorities; None where it starts jobs in the order of submission.
    """

    workload: Workload
    days: int
    own: bool
    weights: PriorityWeights | None


async def past_workload(
    context: ClusterContext, *, days: int, unit: Unit = "cpus", partition: str | None = None
) -> PastWorkload:
    """What the accounting tells of all users' jobs, and the size of the pool that they had, counted in `unit`.

    `partition`: only jobs that ran in it, on its nodes alone. Raises InputError, SlurmError, and AccountingUnreachable
    on a cluster without accounting.
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
    nodes = [node for node in await context.slurm.nodes() if partition is None or partition in node.partitions]
    jobs = await context.slurm.accounting.everyone(context.clock.now() - timedelta(days=days))
    records = [job for job in jobs if partition is None or job.partition == partition]
    name = f"accounting of {info.name}, last {days} days" + (f", partition {partition}" if partition else "")
    found = from_accounting(_array_tasks(records), name=name, unit=unit, processors=_size(nodes, unit) or None)
    own = {job.user for job in jobs} <= {context.slurm.user}
    return PastWorkload(found, days, own, site_weights(await context.slurm.configuration()))


def _array_tasks(records: Sequence[Job]) -> Sequence[Job]:
    """Without the row that stands for the tasks of an array that have not started: each that has is a row by itself."""
    return [job for job in records if job.job_id.tasks is None]


def _size(nodes: Sequence[Node], unit: Unit) -> int:
    each = {node.name: node for node in nodes}.values()  # sinfo tells of a node once for each of its partitions
    if unit == "nodes":
        return len(each)
    return sum(node.cpus if unit == "cpus" else node.gpus for node in each)


def site_weights(configuration: Mapping[str, str]) -> PriorityWeights | None:
    """What slurm.conf says of priorities; None where jobs go by their submission alone (priority/basic)."""
    if configuration.get("PriorityType") != "priority/multifactor":
        return None
    weights = PriorityWeights()
    return PriorityWeights(
        age=_number(configuration.get("PriorityWeightAge")),
        fair_share=_number(configuration.get("PriorityWeightFairShare", configuration.get("PriorityWeightFairshare"))),
        size=_number(configuration.get("PriorityWeightJobSize")),
        max_age=_seconds(configuration.get("PriorityMaxAge"), weights.max_age),
        half_life=_seconds(configuration.get("PriorityDecayHalfLife"), weights.half_life),
    )


def _number(text: str | None) -> float:
    return float(text) if text is not None and text.isdecimal() else 0.0


def _seconds(text: str | None, otherwise: float) -> float:
    """A time as slurm.conf has it, `7-00:00:00`; 0 is never."""
    try:
        found = float(parse_time_limit(text)) if text else otherwise
    except ValueError:
        return otherwise
    return found if 0 < found < math.inf else _NEVER
