"""The placements that a request allows: how many nodes, and what one node may hold at worst.

Sources: sbatch(1) for the options; the placements were observed on a running Slurm with scattered GPUs, where a job
without `--nodes` may get one GPU on each of several nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from slurm_agent_tools.models import sbatch_options
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest

UNBOUNDED = 10**9
LAYOUT = ("sockets-per-node", "cores-per-socket", "threads-per-core")


@dataclass(frozen=True, slots=True)
class Geometry:
    """Nodes, tasks, CPUs and GPUs as Slurm first counts them, and the bounds of what it may do with them.

    `fewest_gpus` is the smallest number of GPUs on a node of the job; `tasks_on_node` the most tasks on one node.
    """

    nodes: int
    most_nodes: int
    tasks: int
    tasks_on_node: int
    unlisted_nodes: int  # without those that only --nodelist names: later versions take as many of them as -N says
    cpus: int
    most_cpus: int
    gpus: int
    fewest_gpus: int
    most_gpus: int
    whole: bool  # every node is taken whole (--exclusive, or a partition that shares no node)


def geometry(request: JobRequest, partition: Partition | None) -> Geometry:
    """The placements of one request on one partition (None: not known)."""
    request = with_cpus_of_gpus(request, partition)
    nodes, unlisted = _nodes(request), _nodes(request, named=request.nodes is None)
    tasks = _tasks(request, nodes)
    gpus = _gpus(request, nodes, tasks)
    if gpus:
        tasks = _tasks_by_gpus(request, tasks, gpus)
    most = _most_nodes(request, nodes, tasks, gpus, partition)
    fewest, most_gpus = _gpu_bounds(request, most, tasks, gpus, partition) if gpus else (0, 0)
    if request.gpus and gpus and most > 1 and not request.gpus_per_node:
        most_gpus = max(most_gpus, _gpus_of_later_versions(request, tasks, most))
    if request.cpus_per_gpu and gpus and most > 1 and not request.gpus_per_node and not request.gpus_per_socket:
        # Of tasks with more CPUs than come with the GPUs 24.11 gives more nodes, each with a GPU (measured).
        most_gpus = max(most_gpus, -(-tasks * (request.cpus_per_task or 1) // request.cpus_per_gpu))
    of_task, tasks_by_node = request.gpus_per_task or 0, request.ntasks_per_node or 0
    if of_task * tasks_by_node and (is_ranged(request) or has_idle_tasks(request, nodes)):
        # Tasks that a node only may have get GPUs as well (measured).
        fewest, most_gpus = of_task, max(most_gpus, of_task * tasks_by_node * most)
    elif of_task and request.gpus and request.ntasks is None and tasks < nodes:
        # --nodes=2-4 --gpus=2 --gpus-per-task=2: one task, and yet two GPUs on each of two nodes (22.05, measured).
        fewest, most_gpus = of_task, max(most_gpus, of_task * most)
    exclusive = request.find("exclusive")
    alone = bool(exclusive) and exclusive[-1].value in {None, "", "topo"}
    return Geometry(
        nodes=nodes,
        most_nodes=most,
        tasks=tasks,
        tasks_on_node=_tasks_on_node(request, most, tasks, unlisted),
        unlisted_nodes=unlisted,
        cpus=_cpus(request, nodes, tasks, gpus),
        most_cpus=_cpus(request, most, tasks, most_gpus),
        gpus=gpus,
        fewest_gpus=fewest,
        most_gpus=most_gpus,
        whole=alone or (partition is not None and partition.exclusive),
    )


def with_cpus_of_gpus(request: JobRequest, partition: Partition | None) -> JobRequest:
    """The request with the CPUs that sbatch and Slurm add for its GPUs (measured).

    sbatch makes --cpus-per-gpu and --gpus-per-task the CPUs of a task. Where neither a task nor a GPU is given any,
    DefCpuPerGPU of the partition counts.
    """
    if request.cpus_per_gpu is not None:
        stated = request.cpus_per_gpu if request.find("cpus-per-gpu") else 0
        of_task = stated * (request.gpus_per_task or 0)
        return replace(request, cpus_per_task=of_task) if of_task else request
    if request.cpus_per_task is not None or partition is None:
        return request
    of_task = (partition.def_cpu_per_gpu or 0) * (request.gpus_per_task or 0)
    return replace(request, cpus_per_gpu=partition.def_cpu_per_gpu, cpus_per_task=of_task or None)


OF_GPUS = ("gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "tres-per-task")


def types_of_gpus(request: JobRequest) -> dict[str, str]:
    """The types of GPUs that each option names, where two name others: Slurm gives those of both (measured)."""
    named = {}
    for option in OF_GPUS:
        found = request.find(option)
        items = re.split(r"[,\s]+", (found[-1].value or "").lower().replace("=", ":")) if found else []
        if not option.startswith("gpus"):
            items = [re.sub(r"^gres[:/]", "", item) for item in items if re.match(r"(gres[:/])?gpu(:|$)", item)]
        kinds = sorted(re.sub(r"(?:^|:)\d+[kmgt]?$", "", re.sub(r"^gpu(:|$)", "", item)) for item in items if item)
        if kinds:
            named[option] = ",".join(kinds)
    return named if len(set(named.values())) > 1 else {}


TOGETHER = (
    "ntasks-per-socket", "ntasks-per-core", "ntasks-per-gpu", "cpus-per-gpu", "gpus", "gpus-per-task", "tres-per-task",
    "contiguous", "deadline",
)  # fmt: skip
"""Options of which more_together tells something, where they stand beside others."""


def more_together(
    request: JobRequest, partition: Partition | None = None
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Options that do more together than each alone (measured): which, what they do, and what to ask for instead."""
    asked = with_cpus_of_gpus(request, partition)
    named = {directive.option: directive.value or "" for directive in request.directives}
    parts = tuple(name for name in ("ntasks-per-socket", "ntasks-per-core") if name in named)
    gpus = request.gpus or request.gpus_per_node or request.gpus_per_task or request.gpus_per_socket
    if parts and (gpus or request.ntasks_per_gpu) and (asked.cpus_per_gpu or request.memory_per_cpu is not None):
        # On 24.11 and 26.05 a node gets the CPUs of all tasks that it may have.
        beside = next((name for name in ("cpus-per-gpu", "mem-per-cpu") if name in named), "gpus")
        yield (*parts, beside), "take more together than they show", "ask with --ntasks-per-node"
    if request.gpus_per_task and asked.cpus_per_gpu:
        yield from _cpus_of_gpus_of_tasks(request, geometry(request, partition), named)
    if request.gpus and request.gpus_per_node and _says_tasks(request):  # 24.11
        tasks = request.ntasks or (request.ntasks_per_node or 0) * (request.nodes or 1)
        if 0 < tasks < -(-request.gpus // request.gpus_per_node):
            instead = "ask with --nodes and --gpus-per-node"
            yield ("gpus", "gpus-per-node"), "take more nodes than there are tasks for", instead
    alone = gpus_of_job_alone(request)
    bare = (request.ntasks_per_gpu and _nodes(request) > 1) or (request.gpus or 0) < _nodes(request, named=False)
    if alone and bare and request.memory_per_gpu:  # 22.05: a node without a GPU has no limit of memory
        yield ("mem-per-gpu", "gpus"), "bound nothing on a node without a GPU", "ask with --gpus-per-node"
    places = (request.ntasks_per_node or 0) * (request.nodes_max or 0)
    if alone and asked.cpus_per_gpu and 0 < places < (request.ntasks or 0):  # 26.05, with --distribution=plane
        yield ("ntasks", "ntasks-per-node"), "are more tasks than have a place, and CPUs go with GPUs", "leave one out"
    yield from _tasks_with_gpus(request) if gpus else _of_no_gpus(request)
    if "contiguous" in named and "nodelist" in named:  # 22.05
        yield ("contiguous", "nodelist"), "take all nodes between those that are named", "leave one out"
    if "deadline" in named and request.dependency:  # 26.05
        yield ("deadline", "dependency"), "end the job while another one runs whose place it keeps", "leave one out"


def gpus_of_job_alone(request: JobRequest) -> bool:
    """Whether nothing but --gpus says how many GPUs there are, which then lie on the nodes as Slurm likes."""
    return bool(request.gpus) and not (request.gpus_per_node or request.gpus_per_task or request.gpus_per_socket)


def _cpus_of_gpus_of_tasks(
    request: JobRequest, shape: Geometry, named: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """GPUs of each task, with which CPUs go."""
    options = tuple(name for name in ("gpus-per-task", "cpus-per-gpu") if name in named) or ("tres-per-task",)
    if re.search(r":|[a-z]", named.get("gpus-per-task", "").lower()):  # 22.05: GPUs for each CPU
        yield options, "take more GPUs than they show", "ask with --gpus-per-node"
    even = (shape.most_nodes, shape.nodes * (request.ntasks_per_node or 1)) == (shape.nodes, shape.tasks)
    if shape.tasks > 1 and shape.most_nodes > 1 and not even:  # 26.05: one node got the CPUs of others' tasks
        yield options, "take more CPUs than they show", "say --ntasks-per-node too, or --nodes=1"


def _of_no_gpus(request: JobRequest) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """What goes with GPUs where none are named (measured)."""
    if request.ntasks_per_gpu:  # 22.05 rounds down, 24.11 counts them anew when the job is released
        yield ("ntasks-per-gpu",), "names no GPUs, and how many there are may change", "say --gpus as well"
    elif request.cpus_per_gpu:  # 22.05, with --distribution=plane
        instead = "say --gpus as well, or leave it out"
        yield ("cpus-per-gpu",), "names no GPUs, and may bring CPUs for all that a node has", instead


def _tasks_with_gpus(request: JobRequest) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Tasks with which GPUs go and which Slurm may count otherwise later (measured)."""
    held = (request.ntasks_per_gpu or 0) * (request.gpus_per_node or 0) * (request.nodes or 1)
    if held and not (request.gpus or request.ntasks or request.nodes):  # 24.11, 26.05: twice the GPUs
        yield ("ntasks-per-gpu", "gpus-per-node"), "may take more nodes than one", "say --nodes"
    if 0 < held < (request.ntasks or 0) and not request.gpus:  # 24.11, 26.05
        yield ("ntasks-per-gpu", "ntasks"), "take more nodes than they show", "say --nodes for all of them"
    if not (request.ntasks and request.ntasks_per_node and (request.gpus_per_task or request.ntasks_per_gpu)):
        return
    fixed = request.nodes is not None and request.nodes == request.nodes_max
    nodes = request.nodes if fixed else max(_nodes(request), -(-request.ntasks // request.ntasks_per_node))
    if request.ntasks != (nodes or 1) * request.ntasks_per_node:  # 24.11 and 26.05 take either, and GPUs with it
        yield ("ntasks", "ntasks-per-node"), "are not as many tasks, and GPUs go with them", "leave one out"


def number(request: JobRequest, *options: str) -> int | None:
    """The value of an option that counts and has no field of its own; None when it is not given or cannot be read."""
    directives = request.find(*options)
    if not directives:
        return None
    try:
        return sbatch_options.count(directives[-1].value or "")
    except ValueError:
        return None


def layout(request: JobRequest) -> tuple[int | None, ...]:
    """(sockets of a node, cores of a socket, threads of a core). -B sets or clears all that single options set."""
    numbers: list[int | None] = [None, None, None]
    for directive in request.find("extra-node-info", *LAYOUT):
        try:
            if directive.option in LAYOUT:
                numbers[LAYOUT.index(directive.option)] = sbatch_options.count(directive.value or "")
            else:
                numbers = [*sbatch_options.sockets_cores_threads(directive.value or "")]
        except ValueError:  # already a problem of the request
            continue
    return tuple(numbers)


def cores_asked(request: JobRequest) -> int:
    """CPUs on each node that -B, --sockets-per-node and their like make it take; 1 where none is given."""
    sockets, cores, threads = layout(request)
    return prod(
        part or 1 for part in ((sockets, cores, threads) if request.find("extra-node-info") else (sockets, cores))
    )


def _nodes(request: JobRequest, *, named: bool = True) -> int:
    """GPUs / GPUs per node where both are given, within -N; never fewer than -N or, if `named`, than --nodelist names.

    Without -N also tasks / tasks per node: 22.05 shows these nodes only once the job has them, later versions at once.
    """
    listed = request.find("nodelist") if named else ()
    fewest = max(request.nodes or 1, sbatch_options.listed_nodes(listed[-1].value or "") if listed else 1)
    if request.nodes is None and request.ntasks and request.ntasks_per_node:
        fewest = max(fewest, -(-request.ntasks // request.ntasks_per_node))
    if request.gpus and request.gpus_per_node:
        derived = -(-request.gpus // request.gpus_per_node)
        return max(fewest, min(derived, request.nodes_max or derived))
    return fewest


def has_idle_tasks(request: JobRequest, nodes: int) -> bool:
    """Whether so many nodes have place for more tasks than -n says: Slurm allocates for these too (measured)."""
    return request.ntasks is not None and request.ntasks < (request.ntasks_per_node or 0) * nodes


def _tasks(request: JobRequest, nodes: int) -> int:
    """-n; else tasks per node x nodes; else what -B and its like name on each node; else one per node."""
    if request.ntasks is not None:
        return request.ntasks
    if request.ntasks_per_node:
        return request.ntasks_per_node * nodes
    return cores_asked(request) * nodes


def _tasks_by_gpus(request: JobRequest, tasks: int, gpus: int) -> int:
    """Tasks per GPU x GPUs, also where -n is less; without -n and tasks per node GPUs / GPUs per task."""
    if request.ntasks_per_gpu and (request.gpus or request.gpus_per_node):
        return max(request.ntasks or 0, request.ntasks_per_gpu * gpus)
    if request.ntasks is not None or request.ntasks_per_node:
        return tasks
    if request.ntasks_per_gpu:
        return request.ntasks_per_gpu * gpus
    if request.gpus and request.gpus_per_task:
        return -(-request.gpus // request.gpus_per_task)
    return tasks


def _gpus(request: JobRequest, nodes: int, tasks: int) -> int:
    """--gpus if stated, else the largest of the ways that are; tasks / tasks per GPU as a last."""
    if request.gpus is not None:
        return request.gpus
    sockets = number(request, "sockets-per-node") or 1
    ways = (
        (request.gpus_per_node, nodes), (request.gpus_per_task, tasks), (request.gpus_per_socket, nodes * sockets)
    )  # fmt: skip
    gpus = max((way * times for way, times in ways if way), default=0)
    if not gpus and request.ntasks_per_gpu:
        if request.ntasks is None:  # sbatch asks for so many tasks on each node that is named, which have one GPU
            return nodes if request.nodes is not None and request.nodes == request.nodes_max else 0
        return -(-request.ntasks // request.ntasks_per_gpu)
    return gpus


def _most_nodes(request: JobRequest, nodes: int, tasks: int, gpus: int, partition: Partition | None) -> int:
    """The largest number of nodes that Slurm may choose: bounded by -N, by -n, by GPUs per node, by the partition."""
    bounds, spread = [UNBOUNDED], request.find("extra-node-info", "spread-job")  # -B also stands for -n
    if request.nodes_max is not None:
        bounds.append(request.nodes_max)
    if request.ntasks is not None and not (request.gpus and request.nodes is None and _is_by_sockets(request)):
        bounds.append(max(request.ntasks, tasks))
    elif request.ntasks_per_node and not is_ranged(request):  # sbatch says -n, from both
        bounds.append(max(request.ntasks_per_node * nodes, tasks))
    elif request.gpus and request.gpus_per_task:
        bounds.append(tasks)
    if request.ntasks_per_node and _is_filled(request) and not spread:
        bounds.append(nodes)
    if request.gpus_per_node and request.gpus:
        bounds.append(-(-request.gpus // request.gpus_per_node))
    elif request.gpus_per_node and request.nodes is None and request.ntasks is None and not spread:
        bounds.append(nodes)
    else:  # every node holds a task, though not always a GPU (measured)
        bounds.append(max(gpus, tasks, request.nodes_max or 0 if request.ntasks is None else 0))
    if partition is not None:
        bounds += [bound for bound in (partition.nodes, partition.max_nodes) if bound]
    return max(nodes, min(bounds))


def _gpu_bounds(request: JobRequest, most: int, tasks: int, gpus: int, partition: Partition | None) -> tuple[int, int]:
    """(fewest GPUs on one node, most GPUs in all). A task's GPUs stay on one node; all others may be scattered."""
    if request.gpus_per_node:
        return request.gpus_per_node, gpus if request.gpus is not None else max(gpus, request.gpus_per_node * most)
    if request.gpus_per_socket and request.gpus is None:  # a node may give fewer than its sockets ask for (measured)
        sockets = number(request, "sockets-per-node") or 1
        return request.gpus_per_socket, max(gpus, request.gpus_per_socket * sockets * most)
    if request.gpus and request.gpus_per_task:
        of_tasks = request.gpus_per_task * tasks if _says_tasks(request) else gpus
        fewer = (request.cpus_per_task or 1) > 1 and request.cpus_per_gpu is None
        if fewer or of_tasks != gpus:  # 22.05 may give the GPUs of fewer tasks, 24.11 and 26.05 the more (measured)
            return min(request.gpus_per_task, gpus), max(gpus, of_tasks)
    together = _gpus_together(request)
    if request.gpus_per_task and _has_cpus_counted_as_tasks(request):
        return request.gpus_per_task, max(gpus, request.gpus_per_task * (number(request, "mincpus") or 0) * most)
    elsewhere = (most - 1) * partition.gpus_per_node if partition is not None and partition.gpus_per_node else UNBOUNDED
    fewest = gpus if most == 1 else max(together, gpus - elsewhere)
    return min(fewest, gpus), gpus


def _gpus_of_later_versions(request: JobRequest, tasks: int, most: int) -> int:
    """What 24.11 and 26.05 make of few --gpus for many tasks (measured): one for so many, or on each of their nodes."""
    if request.find("ntasks-per-socket", "ntasks-per-core"):  # which nodes they take depends on how these are made
        return most
    return max(-(-tasks // each) if each else 0 for each in (request.ntasks_per_gpu, request.ntasks_per_node))


def _has_cpus_counted_as_tasks(request: JobRequest) -> bool:
    """Whether --mincpus is beyond the tasks of a node: Slurm may then count its CPUs as tasks (measured on 22.05)."""
    return (number(request, "mincpus") or 0) > (request.cpus_per_task or 1) * (request.ntasks_per_node or 1)


def _gpus_together(request: JobRequest) -> int:
    """GPUs that are on one node, whatever happens: those of a task, and of all tasks that each node has."""
    if request.gpus_per_task and request.ntasks_per_node and (request.ntasks is None or not is_ranged(request)):
        return request.gpus_per_task * request.ntasks_per_node
    return request.gpus_per_task or 1


def _tasks_on_node(request: JobRequest, most: int, tasks: int, nodes: int) -> int:
    """The most tasks that one node may get, while every other of the fewest nodes gets at least one.

    Of more nodes in --nodelist than -N says, later versions take so many (measured); without -N all count.
    """
    if most == 1:
        return tasks
    if request.ntasks_per_node:
        return min(request.ntasks_per_node, tasks)
    counted = request.ntasks_per_gpu or request.gpus_per_task or request.find("extra-node-info")
    if request.ntasks is None and not counted:
        return -(-tasks // nodes)
    return max(1, tasks - (nodes - 1))


def _says_tasks(request: JobRequest) -> bool:
    """Whether sbatch tells the controller how many tasks there are before GPUs are looked at."""
    return request.ntasks is not None or (bool(request.ntasks_per_node) and not is_ranged(request))


def is_ranged(request: JobRequest) -> bool:
    """Whether -N leaves Slurm a choice."""
    return request.nodes_max is not None and request.nodes_max != request.nodes


def _is_by_sockets(request: JobRequest) -> bool:
    """Whether --distribution names a way for sockets: of --gpus 24.11 then takes any number of nodes (measured)."""
    return any(":" in (directive.value or "") for directive in request.find("distribution"))


def _is_filled(request: JobRequest) -> bool:
    """Whether tasks by node are all on each node, so that there are no more nodes than first counted (measured).

    With --gpus there may be: fewer of them on each are then taken from more.
    """
    return request.gpus is None and not is_ranged(request)


def _cpus(request: JobRequest, nodes: int, tasks: int, gpus: int) -> int:
    """The largest of what tasks, GPUs, --mincpus and -B take on so many nodes.

    Slurm gives each node the CPUs of all tasks that may be on it, however few -n says (measured: MinCPUsNode).
    """
    ways = (
        max(tasks, (request.ntasks_per_node or 1) * nodes) * (request.cpus_per_task or 1),
        (request.cpus_per_gpu or 0) * gpus,
        (number(request, "mincpus") or 0) * nodes,
        cores_asked(request) * _nodes(request),  # -B says so many tasks; on more nodes there are no more (measured)
    )
    return max(ways)
