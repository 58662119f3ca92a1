"""How large a job is asked for: GPUs, CPUs, memory, time and partition, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.insights import size_amounts
from slurm_agent_tools.insights.run_sizes import advise
from slurm_agent_tools.insights.size_amounts import node_memory
from slurm_agent_tools.models.arguments import GenerateScript
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.remembered_job import JobRecord
from slurm_agent_tools.models.request import Resources
from slurm_agent_tools.policy.document import Limits
from slurm_agent_tools.units import format_duration, format_memory

_LONG = 24 * 3600


def gpus_needed(ask: GenerateScript, partitions: Mapping[str, Partition] | None, reasons: list[str]) -> int:
    """GPUs of the whole job: as asked, else one where there are any."""
    if ask.gpus is not None:
        number, why = ask.gpus, "as asked"
    elif partitions is not None and not any(p.gpus_per_node for p in _offered(ask, partitions)):
        number, why = 0, f"{'partition ' + ask.partition if ask.partition else 'the cluster'} has none"
    else:
        number, why = 1, "the default"
    if ask.distributed and number == 0:
        raise InputError("distributed", True, "needs GPUs, one for each process", hint="Set gpus, or leave it out.")
    reasons.append(f"GPUs: {number}, {why}.")
    return number


def _offered(ask: GenerateScript, partitions: Mapping[str, Partition]) -> list[Partition]:
    """The partition that was named, else all that take jobs. Raises InputError for an unknown name."""
    if ask.partition is None:
        return [partition for partition in partitions.values() if partition.state == "UP"]
    if ask.partition not in partitions:
        known = ", ".join(partitions)
        raise InputError("partition", ask.partition, "is not on this cluster", hint=f"It has: {known}.")
    return [partitions[ask.partition]]


def nodes_needed(ask: GenerateScript, gpus: int, partition: Partition | None, reasons: list[str]) -> int:
    """One, unless each GPU has a process of its own and one node has too few."""
    per_node = partition.gpus_per_node if partition is not None else 0
    if not per_node or gpus <= per_node:
        reasons.append("Nodes: 1, everything fits on one.")
        return 1
    if not ask.distributed:
        problem = f"are more than the {per_node} of one node, and one process uses one node only"
        raise InputError("gpus", gpus, problem, hint="Set distributed, or ask for fewer.")
    nodes = -(-gpus // per_node)
    reasons.append(f"Nodes: {nodes}, a node of partition {partition.name if partition else ''} has {per_node} GPUs.")
    return nodes


def partition_by_rule(ask: GenerateScript, gpus: int, seconds: int) -> str:
    """The partition's name where the cluster cannot be asked, and the first choice where it can."""
    if ask.partition is not None:
        return ask.partition
    if seconds > _LONG:
        return "special"
    return "gpu" if gpus else "cpu"


def partition_for(
    ask: GenerateScript,
    partitions: Mapping[str, Partition] | None,
    gpus: int,
    seconds: int,
    need: int,
    reasons: list[str],
) -> Partition | None:
    """What the cluster offers for this job; None where it could not be asked."""
    name = partition_by_rule(ask, gpus, seconds)
    if partitions is None:
        asked = "as asked" if ask.partition else "by rule; the cluster could not be asked"
        reasons.append(f"Partition: {name}, {asked}.")
        return None
    offered = _offered(ask, partitions)
    if ask.partition is not None:
        reasons.append(f"Partition: {name}, as asked.")
        return offered[0]
    fit = [partition for partition in offered if _holds(partition, ask, gpus)]
    long = [partition for partition in fit if _allows(partition, seconds)]
    if not fit:
        raise InputError("gpus", gpus, "are more than any partition offers", hint=_offers(offered))
    if not long and (ask.time_limit or ask.time_budget):
        field = "time_limit" if ask.time_limit else "time_budget"
        problem = "is longer than any fitting partition allows"
        raise InputError(field, format_duration(seconds), problem, hint=_offers(fit))
    best = min(long or fit, key=lambda partition: _order(partition, name, gpus, need))
    kind = "GPU work" if gpus else "work without GPUs"
    more = f" of up to {format_duration(seconds)}" if seconds > _LONG else ""
    reasons.append(f"Partition: {best.name}, for {kind}{more}.")
    return best


def _holds(partition: Partition, ask: GenerateScript, gpus: int) -> bool:
    return gpus <= (partition.total_gpus if ask.distributed else partition.gpus_per_node)


def _allows(partition: Partition, seconds: int) -> bool:
    return partition.max_time_seconds is None or seconds <= partition.max_time_seconds


def _order(partition: Partition, name: str, gpus: int, need: int) -> tuple[bool, bool, bool, bool, float, str]:
    """The rule's own name first; then enough memory, no idle GPUs, the default one, and the shortest limit."""
    memory = node_memory(partition)
    return (
        partition.name != name,
        bool(memory) and memory < need * max(1, min(gpus, partition.gpus_per_node)),
        not gpus and partition.gpus_per_node > 0,
        not partition.default,
        float("inf") if partition.max_time_seconds is None else partition.max_time_seconds,
        partition.name,
    )


def _offers(partitions: Sequence[Partition]) -> str:
    shown = [
        f"{p.name} ({p.gpus_per_node} GPUs and {format_memory(p.memory_per_node)} a node,"
        f" {'no time limit' if p.max_time_seconds is None else format_duration(p.max_time_seconds)})"
        for p in partitions
    ]
    return f"There is: {', '.join(shown) or 'no partition that takes jobs'}."


# --- How large a job is asked for: GPUs, CPUs, memory, time and partition, each with its reason -----------------------


@dataclass(frozen=True, slots=True)
class Size:
    """The numbers of one job: `memory` in bytes, per GPU or node as `memory_option` says; time in whole minutes."""

    gpus: int
    nodes: int
    tasks: int
    cpus_per_task: int
    memory_option: str
    memory: int
    seconds: int
    partition: str
    reasons: tuple[str, ...]


def size(
    ask: GenerateScript,
    partitions: Mapping[str, Partition] | None,
    limits: Limits,
    records: Sequence[JobRecord] = (),
) -> Size:
    """Every number of the script; what is not asked for comes from `records` of its runs where there are enough.

    Raises InputError naming what the cluster cannot give, or cannot be read.
    """
    reasons: list[str] = []
    gpus = gpus_needed(ask, partitions, reasons)
    runs = advise([one for one in records if (one.requested.gpus or 0) == gpus], Resources(gpus=gpus))
    wanted = size_amounts.seconds_needed(ask, runs, reasons)
    need = size_amounts.memory_needed(ask, gpus, limits, runs, reasons)
    partition = partition_for(ask, partitions, gpus, wanted, need, reasons)
    name = partition.name if partition is not None else partition_by_rule(ask, gpus, wanted)
    seconds = size_amounts.seconds_within(wanted, ask, partition, reasons)
    nodes = nodes_needed(ask, gpus, partition, reasons)
    tasks = gpus if ask.distributed else 1
    on_node = -(-gpus // nodes)
    cpus = size_amounts.cpus_needed(ask, gpus, on_node, partition, runs, reasons)
    memory = size_amounts.memory_capped(need, gpus, on_node, partition, reasons)
    option = "mem-per-gpu" if gpus else "mem"
    return Size(gpus, nodes, tasks, -(-cpus // tasks), option, memory, seconds, name, tuple(reasons))


def readable(ask: GenerateScript) -> None:
    """Raises InputError for a duration or a size that cannot be read; needs no cluster."""
    size_amounts.seconds_asked(ask)
    for field in ("memory", "data_size"):
        if getattr(ask, field) is not None:
            size_amounts.size_of(field, getattr(ask, field))
