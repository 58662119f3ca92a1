"""Defaults put on the command line where a script is silent, and the one geometry that makes a request safe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest, Pin
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.scripts.effective_request import named
from slurm_agent_tools.units import format_duration, format_memory, human_memory

_MIB = 2**20

_BARE_NICE = "100"  # --nice without a value (sbatch(1))

_DIGITS = 10  # of any niceness that Slurm takes


def pins(
    request: JobRequest, policy: Policy, partitions: Mapping[str, Partition] | None, priority: str | None = None
) -> tuple[Pin, ...]:
    """Options to add, in a fixed order. `partitions` None: no cluster is known, only what holds anywhere is added.

    Raises InputError for a priority that the policy does not offer.
    """
    chosen = named(request, partitions)
    gpus = _gpus(request, policy, chosen)
    added = [_gpu_pin(gpus, chosen)] if gpus and not _states_gpus(request) else []
    added += [_memory_pin(request, policy, chosen, gpus), _time_pin(request, policy, chosen)]
    if gpus:
        added.append(_nodes_pin(request, gpus, chosen, known=partitions is not None))
    if priority is not None:
        added.append(_priority_pin(request, policy, priority))
    return tuple(pin for pin in added if pin is not None)


def _states_gpus(request: JobRequest) -> bool:
    ways = (request.gpus, request.gpus_per_node, request.gpus_per_task, request.gpus_per_socket)
    return any(way is not None for way in ways)


def _gpus(request: JobRequest, policy: Policy, chosen: Sequence[Partition]) -> int:
    """GPUs of the job as far as they can be told; at least 1 where it asks for any."""
    if not _states_gpus(request):
        return policy.defaults.gpus if chosen and all(partition.gpus_per_node for partition in chosen) else 0
    if request.gpus is not None:
        return request.gpus
    nodes, tasks = request.nodes or 1, request.ntasks or request.nodes or 1
    per = ((request.gpus_per_node, nodes), (request.gpus_per_task, tasks), (request.gpus_per_socket, nodes))
    return max(way * times for way, times in per if way is not None)


def _gpu_pin(gpus: int, chosen: Sequence[Partition]) -> Pin | None:
    names = ", ".join(partition.name for partition in chosen)
    return Pin(f"--gpus={gpus}", f"no GPUs stated on partition {names}, whose nodes have GPUs")


def _memory_pin(request: JobRequest, policy: Policy, chosen: Sequence[Partition], gpus: int) -> Pin | None:
    if any(size is not None for size in (request.memory_per_node, request.memory_per_cpu, request.memory_per_gpu)):
        return None
    bands = policy.limits.memory_per_gpu if gpus else policy.limits.memory_without_gpus
    wanted = min(policy.defaults.memory, bands.free)
    has = min((_share(request, partition, gpus) for partition in chosen if _node_memory(partition)), default=wanted)
    size = min(wanted, has)
    option = "--mem-per-gpu" if gpus else "--mem"
    less = f", and {'each GPU of a node' if gpus else 'a node'} has {human_memory(size)}" if size < wanted else ""
    return Pin(f"{option}={format_memory(size)}", f"no memory stated{less}")


def _node_memory(partition: Partition) -> int:
    """What one node of the partition can give a job; 0 where it is not known."""
    sizes = [size for size in (partition.memory_per_node, partition.max_mem_per_node) if size]
    return min(sizes, default=0)


def _share(request: JobRequest, partition: Partition, gpus: int) -> int:
    """What is there for one GPU (or one job without GPUs) on one node of the partition, in whole MB."""
    on_node = request.gpus_per_node or min(gpus, partition.gpus_per_node or gpus) or 1
    return max(_MIB, _node_memory(partition) // on_node // _MIB * _MIB)


def _time_pin(request: JobRequest, policy: Policy, chosen: Sequence[Partition]) -> Pin | None:
    if request.time_limit is not None:
        return None
    wanted = min(policy.defaults.time_limit, policy.limits.time_limit.free)
    limit = min([wanted, *(p.max_time_seconds for p in chosen if p.max_time_seconds is not None)])
    less = ", and the partition allows no more" if limit < wanted else ""
    return Pin(f"--time={format_duration(limit)}", f"no time limit stated{less}")


def _nodes_pin(request: JobRequest, gpus: int, chosen: Sequence[Partition], *, known: bool) -> Pin | None:
    """--nodes=1, where Slurm could otherwise give the memory, or the GPUs, once on each of several nodes."""
    tasks = _tasks(request, gpus)
    if (gpus == 1 and tasks == 1) or _placed(request):
        return None
    by_node = tasks > 1 and (request.gpus_per_node or request.gpus_per_socket)
    sized = (request.memory_per_node or request.memory_per_cpu) and not (request.gpus_per_node and tasks == 1)
    if not (sized or by_node or any(partition.exclusive for partition in chosen)):
        return None
    if known and not (chosen and all(_holds(partition, request, gpus) for partition in chosen)):
        return None
    what = "the GPU and all tasks" if gpus == 1 else f"the {gpus} GPUs"
    more = "each node would hold the stated memory" if sized else "each node would bring GPUs of its own"
    return Pin("--nodes=1", f"keeps {what} on one node; spread, {more}")


def _priority_pin(request: JobRequest, policy: Policy, priority: str | None) -> Pin | None:
    """low never lifts a job that its script puts lower still; high is what the policy lists, or an error."""
    if priority == "low":
        stated = [directive.value or _BARE_NICE for directive in request.find("nice")][-1:]
        sizes = [int(value) for value in stated if value.isdecimal() and len(value) <= _DIGITS]
        nice = max(policy.priority.low.nice, *sizes, 0)
        return Pin(f"--nice={nice}", "priority low under this policy")
    if priority == "high":
        offered(priority, policy)
        if request.qos in policy.priority.high.qos:
            return None  # the script says the same
        return Pin(f"--qos={policy.priority.high.qos[0]}", "priority high under this policy")
    return None


def offered(priority: str | None, policy: Policy) -> None:
    """Raises InputError for a priority that the policy does not offer: it is not lowered in silence."""
    if priority == "high" and not policy.priority.high.qos:
        hint = "Leave it out, or an administrator lists a QOS under priority.high.qos in the site's policy."
        raise InputError("priority", priority, "is not offered by this policy", hint=hint)


def _placed(request: JobRequest) -> bool:
    """Whether the options themselves say how many nodes there are."""
    several = request.ntasks is not None and request.ntasks > (request.ntasks_per_node or request.ntasks)
    ratio = request.gpus is not None and request.gpus_per_node is not None
    return bool(request.nodes or request.nodes_max or request.find("nodelist") or several or ratio)


def _tasks(request: JobRequest, gpus: int) -> int:
    return request.ntasks or (request.ntasks_per_gpu or 0) * gpus or 1


def _holds(partition: Partition, request: JobRequest, gpus: int) -> bool:
    """Whether one node of the partition can hold the whole job."""
    cpus = max(_tasks(request, gpus) * (request.cpus_per_task or 1), (request.cpus_per_gpu or 0) * gpus)
    memory = request.memory_per_node or (request.memory_per_cpu or 0) * cpus
    return (
        partition.gpus_per_node >= gpus
        and (not partition.cpus_per_node or partition.cpus_per_node >= cpus)
        and (not _node_memory(partition) or _node_memory(partition) >= memory)
    )
