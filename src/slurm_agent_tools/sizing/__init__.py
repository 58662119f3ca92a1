"""How large a job is asked for: GPUs, CPUs, memory, time and partition, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.catalogue import GenerateScript
from slurm_agent_tools.history.records import JobRecord
from slurm_agent_tools.history.sizing import advise
from slurm_agent_tools.model import Partition, Resources
from slurm_agent_tools.policy.document import Limits
from slurm_agent_tools.sizing import amounts, places, times
from slurm_agent_tools.sizing.times import budget_seconds

__all__ = ["Size", "budget_seconds", "readable", "size"]


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
    gpus = places.gpus(ask, partitions, reasons)
    runs = advise([one for one in records if (one.requested.gpus or 0) == gpus], Resources(gpus=gpus))
    wanted = times.seconds(ask, runs, reasons)
    need = amounts.memory(ask, gpus, limits, runs, reasons)
    partition = places.partition(ask, partitions, gpus, wanted, need, reasons)
    name = partition.name if partition is not None else places.by_rule(ask, gpus, wanted)
    seconds = times.within(wanted, ask, partition, reasons)
    nodes = places.nodes(ask, gpus, partition, reasons)
    tasks = gpus if ask.distributed else 1
    on_node = -(-gpus // nodes)
    cpus = amounts.cpus(ask, gpus, on_node, partition, runs, reasons)
    memory = amounts.capped(need, gpus, on_node, partition, reasons)
    option = "mem-per-gpu" if gpus else "mem"
    return Size(gpus, nodes, tasks, -(-cpus // tasks), option, memory, seconds, name, tuple(reasons))


def readable(ask: GenerateScript) -> None:
    """Raises InputError for a duration or a size that cannot be read; needs no cluster."""
    times.asked(ask)
    for field in ("memory", "data_size"):
        if getattr(ask, field) is not None:
            amounts.size_of(field, getattr(ask, field))
