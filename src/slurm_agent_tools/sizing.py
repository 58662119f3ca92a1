"""How large a job is asked for: GPUs, CPUs, memory, time and partition, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.catalogue import GenerateScript
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.model import Partition
from slurm_agent_tools.policy.document import Limits
from slurm_agent_tools.units import (
    UNLIMITED,
    format_duration,
    format_memory,
    human_memory,
    parse_memory,
    parse_time_limit,
)

_GIB = 2**30
_MEMORY = 16 * _GIB
_TIME = 2 * 3600
_LONG = 24 * 3600
_CPUS_MIN, _CPUS_MAX, _CPUS_ALONE = 4, 8, 4


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


def size(ask: GenerateScript, partitions: Mapping[str, Partition] | None, limits: Limits) -> Size:
    """Every number of the script. Raises InputError naming what the cluster cannot give, or cannot be read."""
    reasons: list[str] = []
    gpus = _gpus(ask, partitions, reasons)
    wanted = _seconds(ask, reasons)
    need = _memory(ask, gpus, limits, reasons)
    partition = _partition(ask, partitions, gpus, wanted, need, reasons)
    name = partition.name if partition is not None else _by_rule(ask, gpus, wanted)
    seconds = _within(wanted, ask, partition, reasons)
    nodes = _nodes(ask, gpus, partition, reasons)
    tasks = gpus if ask.distributed else 1
    on_node = -(-gpus // nodes)
    cpus = _cpus(ask, gpus, on_node, partition, reasons)
    memory = _capped(need, gpus, on_node, partition, reasons)
    option = "mem-per-gpu" if gpus else "mem"
    return Size(gpus, nodes, tasks, -(-cpus // tasks), option, memory, seconds, name, tuple(reasons))


def readable(ask: GenerateScript) -> None:
    """Raises InputError for a duration or a size that cannot be read; needs no cluster."""
    for field in ("time_limit", "time_budget"):
        _duration(field, getattr(ask, field))
    for field in ("memory", "data_size"):
        if getattr(ask, field) is not None:
            _bytes(field, getattr(ask, field))


# --- GPUs and nodes ------------------------------------------------------------------------------------------


def _gpus(ask: GenerateScript, partitions: Mapping[str, Partition] | None, reasons: list[str]) -> int:
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


def _nodes(ask: GenerateScript, gpus: int, partition: Partition | None, reasons: list[str]) -> int:
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


# --- time ----------------------------------------------------------------------------------------------------


def _seconds(ask: GenerateScript, reasons: list[str]) -> int:
    asked = {field: _duration(field, getattr(ask, field)) for field in ("time_limit", "time_budget")}
    given = {field: seconds for field, seconds in asked.items() if seconds is not None}
    if not given:
        reasons.append(f"Time: {format_duration(_TIME)}, the default.")
        return _TIME
    field = min(given, key=lambda name: given[name])
    why = "as asked" if field == "time_limit" else "later than the time budget it is of no use"
    reasons.append(f"Time: {format_duration(given[field])}, {why}.")
    return given[field]


def _duration(field: str, text: str | None) -> int | None:
    if text is None:
        return None
    hint = "Write MINUTES, HH:MM:SS or D-HH:MM:SS."
    try:
        seconds = parse_time_limit(text)
    except ValueError as error:
        raise InputError(field, text, "is not a duration", hint=hint) from error
    if seconds == UNLIMITED:
        raise InputError(field, text, "means no limit", hint=hint)
    return seconds


def _within(wanted: int, ask: GenerateScript, partition: Partition | None, reasons: list[str]) -> int:
    """A default is lowered to what the partition allows; a time that was asked for is not."""
    most = partition.max_time_seconds if partition is not None else None
    if most is None or wanted <= most or partition is None:
        return wanted
    if ask.time_limit is not None:
        problem = f"is more than partition {partition.name} allows, {format_duration(most)}"
        raise InputError("time_limit", ask.time_limit, problem, hint="Ask for less, or name another partition.")
    reasons.append(f"Time lowered to {format_duration(most)}: partition {partition.name} allows no more.")
    return most // 60 * 60


# --- memory and CPUs -----------------------------------------------------------------------------------------


def _memory(ask: GenerateScript, gpus: int, limits: Limits, reasons: list[str]) -> int:
    """Bytes per GPU, or for the whole job without GPUs."""
    unit = "per GPU" if gpus else "on the node"
    if ask.memory is not None:
        share = -(-_bytes("memory", ask.memory) // max(1, gpus) // 2**20) * 2**20
        reasons.append(f"Memory: {human_memory(share)} {unit}, as asked ({ask.memory} in all).")
        return share
    if ask.data_size is not None:
        total = -(-_bytes("data_size", ask.data_size) * 18 // 5)  # x 3 for loading, work and output, and 20 %
        share = max(1, -(-total // max(1, gpus) // _GIB)) * _GIB
        reasons.append(f"Memory: {human_memory(share)} {unit}, 3 times {ask.data_size} of data plus 20 %.")
        return share
    bands = limits.memory_per_gpu if gpus else limits.memory_without_gpus
    share = min(_MEMORY, bands.free)
    reasons.append(f"Memory: {human_memory(share)} {unit}, the default.")
    return share


def _bytes(field: str, text: str) -> int:
    try:
        number = parse_memory(text)
    except ValueError as error:
        raise InputError(field, text, "is not a size", hint="Write 512M, 16G or 1T.") from error
    if number == 0:
        raise InputError(field, text, "is nothing; to Slurm it means a whole node", hint="Write 512M, 16G or 1T.")
    return number


def _capped(need: int, gpus: int, on_node: int, partition: Partition | None, reasons: list[str]) -> int:
    has = _node_memory(partition)
    most = has // max(1, on_node) // 2**20 * 2**20 if gpus else has
    if not has or need <= most:
        return need
    unit = "GPU" if gpus else "node"
    reasons.append(f"Memory lowered to {human_memory(most)}: a {unit} of this partition has no more.")
    return most


def _node_memory(partition: Partition | None) -> int:
    """What one node can give a job; 0 where it is not known."""
    if partition is None:
        return 0
    return min((known for known in (partition.memory_per_node, partition.max_mem_per_node) if known), default=0)


def _cpus(ask: GenerateScript, gpus: int, on_node: int, partition: Partition | None, reasons: list[str]) -> int:
    """CPUs of the whole job."""
    has = partition.cpus_per_node if partition is not None else 0
    if ask.cpus is not None:
        _enough(ask.cpus, ask, gpus, has)
        reasons.append(f"CPUs: {ask.cpus}, as asked.")
        return ask.cpus
    if not gpus:
        number = min(_CPUS_ALONE, has or _CPUS_ALONE)
        reasons.append(f"CPUs: {number}, the default without GPUs.")
        return number
    each, why = _CPUS_MIN, "the default"
    if has and partition is not None:
        each = min(_CPUS_MAX, max(_CPUS_MIN, has // max(1, partition.gpus_per_node)))
        each = min(each, max(1, has // max(1, on_node)))
        why = f"of the {has} that a node has for its {partition.gpus_per_node} GPUs"
    reasons.append(f"CPUs: {each} per GPU, {why}.")
    return each * gpus


def _enough(cpus: int, ask: GenerateScript, gpus: int, has: int) -> None:
    if ask.distributed and cpus < gpus:
        problem = f"are fewer than the {gpus} GPUs, and each has a process of its own"
        raise InputError("cpus", cpus, problem, hint=f"Ask for at least {gpus}.")
    if has and cpus > has and not ask.distributed:
        problem = f"are more than the {has} of one node, and one process uses one node only"
        raise InputError("cpus", cpus, problem, hint=f"Ask for at most {has}.")


# --- partition -----------------------------------------------------------------------------------------------


def _by_rule(ask: GenerateScript, gpus: int, seconds: int) -> str:
    if ask.partition is not None:
        return ask.partition
    if seconds > _LONG:
        return "special"
    return "gpu" if gpus else "cpu"


def _partition(
    ask: GenerateScript,
    partitions: Mapping[str, Partition] | None,
    gpus: int,
    seconds: int,
    need: int,
    reasons: list[str],
) -> Partition | None:
    """What the cluster offers for this job; None where it could not be asked."""
    name = _by_rule(ask, gpus, seconds)
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
    memory = _node_memory(partition)
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
