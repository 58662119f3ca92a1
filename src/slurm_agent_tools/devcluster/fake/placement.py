"""What a request amounts to, and on which nodes it fits. First fit in the order of the nodes; nothing is moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.devcluster.fake.fake_job import FakeJob, Share
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition
from slurm_agent_tools.devcluster.fake.job_request import FakeRequest


@dataclass(frozen=True, slots=True)
class PlacedSize:
    """A request in numbers. Memory in MB over all nodes; `shown_nodes` is what a waiting job's record tells."""

    nodes: int
    tasks: int
    cpus: int
    gpus: int
    memory: int


def size_of(request: FakeRequest, partition: FakePartition, nodes: Mapping[str, FakeNode], modern: bool) -> PlacedSize:
    """What Slurm writes down of a request before it has a place. `modern`: 24.11 and later count CPUs per GPU."""
    count = request.nodes_min or len(request.nodelist) or 1
    tasks = request.tasks or (count * (request.tasks_per_node or 1))
    if request.nodes_min is None and request.tasks and request.tasks_per_node and modern:
        count = max(count, -(-request.tasks // request.tasks_per_node))
    gpus = gpus_of(request, count, tasks)
    cpus = max(tasks * request.cpus_per_task, count)
    if modern and request.cpus_per_gpu:
        cpus = max(cpus, gpus * request.cpus_per_gpu)
    return PlacedSize(count, tasks, cpus, gpus, _memory(request, partition, nodes, (count, cpus, gpus)))


def gpus_of(request: FakeRequest, nodes: int, tasks: int) -> int:
    """All GPUs of a request."""
    if request.gpus is not None:
        return request.gpus
    return max((request.gpus_per_node or 0) * nodes, (request.gpus_per_task or 0) * tasks)


def _memory(
    request: FakeRequest, partition: FakePartition, nodes: Mapping[str, FakeNode], counts: tuple[int, int, int]
) -> int:
    count, cpus, gpus = counts
    if request.memory_per_node is not None:
        whole = nodes[partition.nodes[0]].memory
        return (request.memory_per_node or whole) * count
    if request.memory_per_gpu is not None:
        return request.memory_per_gpu * gpus
    if request.memory_per_cpu is None and partition.def_mem_per_gpu and gpus:
        return partition.def_mem_per_gpu * gpus
    per_cpu = request.memory_per_cpu or partition.def_mem_per_cpu
    if per_cpu is None:
        return nodes[partition.nodes[0]].memory * count
    return per_cpu * cpus


def place(job: FakeJob, partition: FakePartition, nodes: Mapping[str, FakeNode], *, modern: bool) -> list[Share] | None:
    """Where it can start now; None where it cannot."""
    usable = [nodes[name] for name in partition.nodes if nodes[name].usable]
    return fit(job.request, partition, nodes, usable, modern=modern)


def possible(request: FakeRequest, partition: FakePartition, nodes: Mapping[str, FakeNode], *, modern: bool) -> bool:
    """Whether it would fit on the partition's nodes if all were there and free."""
    empty = [_empty(nodes[name]) for name in partition.nodes]
    return fit(request, partition, nodes, empty, modern=modern) is not None


def _empty(node: FakeNode) -> FakeNode:
    return FakeNode(node.name, node.cpus, node.memory, node.gpus, node.gpu_type, node.features)


def fit(
    request: FakeRequest,
    partition: FakePartition,
    nodes: Mapping[str, FakeNode],
    usable: Sequence[FakeNode],
    *,
    modern: bool,
) -> list[Share] | None:
    """A share of each node that it takes: as few nodes as will do, from `usable` in their order."""
    size = size_of(request, partition, nodes, modern)
    wanted = set(request.nodelist)
    if wanted - {node.name for node in usable}:
        return None
    pool = [node for node in usable if not wanted or node.name in wanted]
    exclusive = request.exclusive or partition.exclusive
    pool = [node for node in pool if not node.exclusive and not (exclusive and node.cpus_used)]
    most = request.nodes_max or (max(size.nodes, len(wanted)) if request.nodelist else len(pool))
    for count in range(max(size.nodes, 1), max(most, size.nodes) + 1):
        found = _spread(request, pool, size, count, exclusive=exclusive)
        if found is not None:
            return found
    return None


def _spread(
    request: FakeRequest, pool: Sequence[FakeNode], size: PlacedSize, count: int, *, exclusive: bool
) -> list[Share] | None:
    shares: list[Share] = []
    cpus_left, gpus_left = size.cpus, size.gpus
    for node in pool:
        if len(shares) == count:
            break
        last = count - len(shares) == 1
        free = node.free_gpus()
        gpus = min(gpus_left, request.gpus_per_node or (gpus_left if last else -(-gpus_left // (count - len(shares)))))
        cpus = cpus_left if last else -(-cpus_left // (count - len(shares)))
        memory = _memory_here(request, size, node, (cpus, gpus))
        kind = not request.gpu_type or not gpus or node.gpu_type == request.gpu_type
        if cpus < request.cpus_per_task or cpus > node.cpus - node.cpus_used or gpus > len(free) or not kind:
            continue
        if memory > node.memory - node.memory_used:
            continue
        taken = tuple(range(node.gpus)) if exclusive else tuple(free[:gpus])
        whole = node.cpus if exclusive else cpus
        if exclusive and request.memory_per_node is None and request.memory_per_gpu is None and size.cpus:
            memory = size.memory // size.cpus * whole
        shares.append(Share(node.name, whole, memory, taken, node.gpu_type if taken else ""))
        cpus_left, gpus_left = cpus_left - cpus, gpus_left - gpus
    return shares if len(shares) == count and cpus_left <= 0 and gpus_left <= 0 else None


def _memory_here(request: FakeRequest, size: PlacedSize, node: FakeNode, counts: tuple[int, int]) -> int:
    cpus, gpus = counts
    if request.memory_per_node is not None:
        return request.memory_per_node or node.memory
    if request.memory_per_gpu is not None:
        return request.memory_per_gpu * gpus
    return size.memory * cpus // size.cpus if size.cpus else 0
