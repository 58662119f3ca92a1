"""What a request asks for beside what its partition has, for a request that Slurm refuses. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from slurm_agent_tools.model import Partition, Resources
from slurm_agent_tools.units import human_memory

_CORRECT = "Correct the request; nothing was sent."


def beside(asked: Resources, partitions: Mapping[str, Partition]) -> str:
    """The hint of a refusal: for each partition that is asked for, what of the request is more than it has."""
    names = [name.strip() for name in (asked.partition or "").split(",") if name.strip()]
    names = names or [name for name, partition in partitions.items() if partition.default]
    told = [text for name in names if name in partitions and (text := _compared(asked, partitions[name]))]
    return " ".join([*told, _CORRECT])


def _compared(asked: Resources, partition: Partition) -> str:
    more = list(_more(asked, partition))
    if not more:
        return ""
    gpus = f", {partition.gpus_per_node} GPUs" if partition.gpus_per_node else ""
    node = f"{partition.cpus_per_node} CPUs{gpus} and {human_memory(_memory(partition))}"
    has = f"Partition {partition.name} has {_count(partition.nodes, 'node')} of up to {node}"
    return f"{has}; asked for: {', '.join(more)}."


def _more(asked: Resources, partition: Partition) -> Iterator[str]:
    """What is asked for and cannot be had there."""
    nodes = asked.nodes or partition.nodes
    reach = min(nodes, partition.nodes)
    if nodes > partition.nodes:
        yield _count(nodes, "node")
    elif partition.max_nodes is not None and nodes > partition.max_nodes:
        yield f"{_count(nodes, 'node')}, where one job may have {partition.max_nodes}"
    if asked.cpus is not None and asked.cpus > partition.cpus_per_node * reach:
        yield f"{_count(asked.cpus, 'CPU')} on {_count(nodes, 'node')}"
    if asked.gpus is not None and asked.gpus > partition.gpus_per_node * reach:
        yield f"{_count(asked.gpus, 'GPU')} on {_count(nodes, 'node')}"
    if asked.memory_per_node_bytes is not None and asked.memory_per_node_bytes > _memory(partition):
        yield f"{human_memory(asked.memory_per_node_bytes)} of memory on a node"


def _memory(partition: Partition) -> int:
    return max(partition.memory_per_node, partition.memory_per_node_max)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
