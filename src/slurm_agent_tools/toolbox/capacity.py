"""What the cluster offers now: GPUs, nodes, partitions, and whether to submit. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from slurm_agent_tools.model import Node, Partition
from slurm_agent_tools.replies import GpuSection, NodeShown, PartitionShown, QueueSection, SlurmSection
from slurm_agent_tools.units import UNLIMITED, format_duration, human_memory

_USABLE = ("idle", "mix", "alloc", "comp")
_DEEP = 20


def usable(node: Node) -> bool:
    """True for a node that runs jobs or could."""
    state = node.state.lower()
    return state.startswith(_USABLE) and not state.endswith("*") and "drain" not in state


def gpus(nodes: Sequence[Node]) -> GpuSection:
    """GPUs over the usable nodes; used and free are None where Slurm does not tell."""
    good = [node for node in nodes if usable(node) and node.gpus]
    total = sum(node.gpus for node in good)
    used = sum(node.gpus_used or 0 for node in good) if all(node.gpus_used is not None for node in good) else None
    by_type: Counter[str] = Counter()
    for node in good:
        by_type[",".join(node.gpu_types) or "gpu"] += node.gpus
    return GpuSection(
        total=total,
        used=used,
        free=None if used is None else total - used,
        by_type=dict(by_type),
        note="No usable node has GPUs." if total == 0 else None,
    )


def node(record: Node) -> NodeShown:
    """One node."""
    return NodeShown(
        name=record.name,
        state=record.state,
        partitions=list(record.partitions),
        cpus=record.cpus,
        cpus_used=record.cpus_used,
        memory=human_memory(record.memory_bytes),
        gpus=record.gpus,
        gpus_used=record.gpus_used,
        reason=record.reason,
    )


def partitions(found: Mapping[str, Partition], nodes: Sequence[Node]) -> list[PartitionShown]:
    """Each partition with what its nodes offer now."""
    return [_partition(item, [node for node in nodes if item.name in node.partitions]) for item in found.values()]


def _partition(item: Partition, nodes: Sequence[Node]) -> PartitionShown:
    free = [node.gpus - node.gpus_used for node in nodes if usable(node) and node.gpus_used is not None]
    return PartitionShown(
        name=item.name,
        state=item.state,
        default=item.default,
        nodes=item.nodes,
        max_time=_time(item.max_time_seconds) or "UNLIMITED",
        default_time=_time(item.default_time_seconds),
        cpus_per_node=item.cpus_per_node,
        memory_per_node=human_memory(item.memory_per_node),
        gpus_per_node=item.gpus_per_node,
        nodes_idle=sum(node.state.lower() == "idle" for node in nodes),
        gpus_free=sum(free) if item.total_gpus else None,
    )


def _time(seconds: int | None) -> str | None:
    return None if seconds is None or seconds == UNLIMITED else format_duration(seconds)


def queue(states: Mapping[str, int], nodes: Sequence[Node], mine: SlurmSection) -> QueueSection:
    """How busy it is, by the number of jobs in each state.

    A wait is only estimated where it is none: nothing else was measured.
    """
    depth = states.get("PENDING", 0)
    good = [node for node in nodes if usable(node)]
    share = {
        "cpu": _share([(node.cpus_used, node.cpus) for node in good]),
        "gpu": _share([(node.gpus_used, node.gpus) for node in good if node.gpus]),
    }
    recommendation, why = _advice(depth, mine, share, has_nodes=bool(good))
    idle = depth == 0 and any((value or 0) < 1 for value in share.values() if value is not None)
    return QueueSection(
        depth=depth,
        running=states.get("RUNNING", 0),
        utilization=share,
        estimated_wait="none: nobody is waiting" if idle else None,
        recommendation=recommendation,
        why=why,
    )


def _share(pairs: Sequence[tuple[int | None, int]]) -> float | None:
    total = sum(all_of for _, all_of in pairs)
    if total == 0 or any(used is None for used, _ in pairs):
        return None
    return round(sum(used or 0 for used, _ in pairs) / total, 3)


def _advice(depth: int, mine: SlurmSection, share: Mapping[str, float | None], *, has_nodes: bool) -> tuple[str, str]:
    if not has_nodes:
        return "WAIT", "no node is usable now"
    if mine.slots_left == 0:
        return "WAIT", f"all {mine.max_concurrent} of your slots are taken"
    if depth > _DEEP:
        return "ADJUST", f"{depth} jobs are waiting: a smaller or shorter request starts sooner"
    busy = [name for name, value in share.items() if value is not None and value >= 1]
    if busy:
        return "ADJUST", f"every {' and '.join(busy)} is in use: a smaller or shorter request starts sooner"
    return "SUBMIT_NOW", f"{depth} jobs are waiting and resources are free"
