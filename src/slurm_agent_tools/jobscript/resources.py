"""A request in numbers, as Slurm would compute it, in the worst placement that it may choose.

Sources: sbatch(1) and slurm.conf(5) for the options and defaults; the arithmetic was checked on a running Slurm.
Allocated memory is --mem x nodes, --mem-per-cpu x allocated CPUs, or --mem-per-gpu x GPUs. Per GPU the worst case is
the node with the fewest GPUs: where nothing keeps GPUs together, that is one GPU with all of a node's --mem.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_agent_tools.model import JobRequest, Partition, Resources


@dataclass(frozen=True, slots=True)
class Shape:
    """Nodes, tasks, CPUs and GPUs of a request; `fewest` is the smallest number of GPUs that one node may get."""

    nodes: int
    most_nodes: int
    cpus: int
    gpus: int
    fewest: int


def resolve(request: JobRequest, partitions: Mapping[str, Partition] | None) -> Resources:
    """Totals and worst memory per GPU. What cannot be known without the cluster is None."""
    partition = chosen(request, partitions)
    shape = _shape(request)
    total, per_node, per_gpu = _memory(request, shape, partition)
    default = partition.default_time_seconds or partition.max_time_seconds if partition is not None else None
    return Resources(
        partition=request.partition or (partition.name if partition is not None else None),
        nodes=shape.nodes,
        cpus=shape.cpus,
        gpus=shape.gpus,
        memory_bytes=total,
        memory_per_gpu_bytes=per_gpu if shape.gpus else None,
        memory_per_node_bytes=per_node,
        time_limit_seconds=request.time_limit if request.time_limit is not None else default,
        array_tasks=request.array.count if request.array is not None else None,
        array_concurrency=request.array.concurrency if request.array is not None else None,
    )


def chosen(request: JobRequest, partitions: Mapping[str, Partition] | None) -> Partition | None:
    """The partition that the job goes to: the first named, else the default one; None when it is not known."""
    if partitions is None:
        return None
    if request.partition is not None:
        return partitions.get(request.partition.split(",")[0])
    return next((partition for partition in partitions.values() if partition.default), None)


def _shape(request: JobRequest) -> Shape:
    nodes = request.nodes or 1
    if request.nodes is None and request.gpus and request.gpus_per_node:
        nodes = -(-request.gpus // request.gpus_per_node)
    tasks = request.ntasks or _implied_tasks(request, nodes)
    gpus = _total_gpus(request, nodes, tasks)
    most = _most_nodes(request, nodes, tasks, gpus)
    cpus = tasks * (request.cpus_per_task or 1)
    if request.cpus_per_gpu:
        cpus = max(cpus, request.cpus_per_gpu * gpus)
    return Shape(nodes, most, cpus, gpus, _fewest(request, most, gpus))


def _implied_tasks(request: JobRequest, nodes: int) -> int:
    if request.ntasks_per_node:
        return request.ntasks_per_node * nodes
    if request.ntasks_per_gpu and request.gpus:
        return request.ntasks_per_gpu * request.gpus
    if request.gpus and request.gpus_per_task:
        return -(-request.gpus // request.gpus_per_task)
    return nodes


def _total_gpus(request: JobRequest, nodes: int, tasks: int) -> int:
    """--gpus if stated, else the largest of the ways that are."""
    if request.gpus is not None:
        return request.gpus
    ways = ((request.gpus_per_node, nodes), (request.gpus_per_task, tasks), (request.gpus_per_socket, nodes))
    return max((way * times for way, times in ways if way), default=0)


def _most_nodes(request: JobRequest, nodes: int, tasks: int, gpus: int) -> int:
    """The largest number of nodes that Slurm may choose."""
    if request.nodes_max is not None:
        return max(request.nodes_max, nodes)
    if request.gpus_per_node and not request.gpus:
        return nodes
    if request.ntasks is not None:
        return max(nodes, min(request.ntasks, max(gpus, 1) if gpus else request.ntasks))
    return max(nodes, gpus) if gpus > 1 else max(nodes, tasks)


def _fewest(request: JobRequest, most: int, gpus: int) -> int:
    if not gpus:
        return 0
    if request.gpus_per_node:
        return request.gpus_per_node
    if most == 1:
        return gpus
    if request.gpus_per_task and request.ntasks_per_node:
        return request.gpus_per_task * request.ntasks_per_node
    return 1  # Slurm may give all but one GPU to the other nodes


def _memory(
    request: JobRequest, shape: Shape, partition: Partition | None
) -> tuple[int | None, int | None, int | None]:
    """(total, per node, worst per GPU) in bytes."""
    if request.memory_per_gpu is not None:
        size = request.memory_per_gpu
        return size * shape.gpus, size * (request.gpus_per_node or shape.gpus), size
    if request.memory_per_cpu is not None:
        return _per_cpu(request.memory_per_cpu, request, shape)
    if request.memory_per_node is not None and request.memory_per_node > 0:
        return _per_node(request.memory_per_node, shape)
    if partition is None:
        return None, None, None
    if request.memory_per_node is None:
        return _defaults(request, shape, partition)
    return _per_node(partition.memory_per_node, shape)


def _per_node(size: int, shape: Shape) -> tuple[int, int, int | None]:
    return size * shape.nodes, size, -(-size // shape.fewest) if shape.fewest else None


def _per_cpu(size: int, request: JobRequest, shape: Shape) -> tuple[int, int, int | None]:
    total = size * shape.cpus
    per_node = total if shape.nodes == 1 else -(-total // shape.nodes)
    if not shape.gpus:
        return total, per_node, None
    if request.cpus_per_gpu and request.cpus_per_gpu * shape.gpus >= shape.cpus:
        return total, per_node, size * request.cpus_per_gpu
    # Every node that holds a GPU may hold all of a task's CPUs.
    worst = per_node if shape.most_nodes == shape.nodes else max(per_node, size * (request.cpus_per_task or 1))
    return total, per_node, -(-worst // shape.fewest)


def _defaults(request: JobRequest, shape: Shape, partition: Partition) -> tuple[int | None, int | None, int | None]:
    """Slurm's own defaults: DefMemPerGPU, DefMemPerCPU or DefMemPerNode of the partition, else the whole node."""
    if partition.def_mem_per_gpu and shape.gpus:
        size = partition.def_mem_per_gpu
        return size * shape.gpus, size * shape.gpus, size
    if partition.def_mem_per_cpu:
        return _per_cpu(partition.def_mem_per_cpu, request, shape)
    return _per_node(partition.def_mem_per_node or partition.memory_per_node, shape)
