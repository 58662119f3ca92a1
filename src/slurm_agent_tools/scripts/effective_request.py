"""The effective request: script, then arguments, then pins; per option the last one wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slurm_agent_tools.models import sbatch_options
from slurm_agent_tools.models.geometry import (
    Geometry,
    geometry,
    has_idle_tasks,
    layout,
    number,
    with_cpus_of_gpus,
)
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import Directive, Evidence, JobRequest
from slurm_agent_tools.units import UNLIMITED, parse_array

_ORDER = {"script": 0, "argument": 1, "pinned": 2}

_EXCLUSIVE = (
    ("mem", "mem-per-cpu", "mem-per-gpu"),
    ("gpus-per-task", "ntasks-per-gpu"),
    ("gpus-per-socket", "ntasks-per-gpu"),
    ("ntasks-per-node", "ntasks-per-gpu"),
    ("core-spec", "thread-spec"),
)

# Option -> (field of the request, reader of its value).
_READ: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "job-name": ("name", str),
    "partition": ("partition", str),
    "time": ("time_limit", sbatch_options.time_limit),
    "time-min": ("time_min", sbatch_options.time_limit),
    "mem": ("memory_per_node", sbatch_options.memory),
    "mem-per-cpu": ("memory_per_cpu", sbatch_options.memory),
    "mem-per-gpu": ("memory_per_gpu", sbatch_options.memory),
    "gpus": ("gpus", sbatch_options.gpus),
    "gpus-per-node": ("gpus_per_node", sbatch_options.gpus),
    "gpus-per-task": ("gpus_per_task", sbatch_options.gpus),
    "gpus-per-socket": ("gpus_per_socket", sbatch_options.gpus),
    "ntasks": ("ntasks", sbatch_options.count),
    "ntasks-per-node": ("ntasks_per_node", sbatch_options.count),
    "ntasks-per-gpu": ("ntasks_per_gpu", sbatch_options.count),
    "cpus-per-task": ("cpus_per_task", sbatch_options.count),
    "cpus-per-gpu": ("cpus_per_gpu", sbatch_options.count),
    "array": ("array", parse_array),
    "dependency": ("dependency", str),
    "qos": ("qos", sbatch_options.names),
    "chdir": ("chdir", str),
    "output": ("output", str),
    "error": ("error", str),
    "export": ("export", str),
}

# Letters of a value and names of nodes, beyond which Slurm or the plugin of tickets refuses it, once it has read it.
_WORDS = """
account cluster-constraint comment constraint gpus gpus-per-node gpus-per-socket gpus-per-task gres licenses nodes
ntasks-per-tres partition prefer qos reservation tres-bind tres-per-task
"""

_LONGEST = {**dict.fromkeys(_WORDS.split(), 1024), "array": 4096, "dependency": 4096}

_MOST_LETTERS, _MOST_NODES, _TOLD = 65536, 5000, 400

_NAMES = frozenset({"partition", "qos", "dependency"})
"""What is known to be asked for, and goes into tickets, also where it is too long."""

# Options without a field of their own whose value must still be readable, because the size of the job, or who pays for
# it, depends on it.
_CHECKED: Mapping[str, Callable[[str], Any]] = {
    "account": sbatch_options.names,
    "nodelist": sbatch_options.node_list,
    "exclude": sbatch_options.node_list,
    "mincpus": sbatch_options.count,
    "sockets-per-node": sbatch_options.count,
    "cores-per-socket": sbatch_options.count,
    "threads-per-core": sbatch_options.count,
    "ntasks-per-socket": sbatch_options.count,
    "ntasks-per-core": sbatch_options.count,
    "extra-node-info": sbatch_options.sockets_cores_threads,
    "thread-spec": sbatch_options.count,
    "tmp": sbatch_options.memory,
}


def effective(directives: Sequence[Directive]) -> JobRequest:
    """The request that these options make together. A value that cannot be read becomes a problem."""
    ordered = sorted(directives, key=lambda directive: _ORDER[directive.source])
    last = {directive.option: directive for directive in ordered}
    of_gres = "gpus-per-node" in last and _gres_has_gpus(last)
    stated: dict[str, Any] = {}
    problems: list[Evidence] = []
    for directive in ordered:  # sbatch also refuses a bad value that a later one would replace
        text, most = directive.value or "", _LONGEST.get(directive.option, _MOST_LETTERS)
        if len(text) > most:
            told = f"longer than {most} letters: {text[:40]!r}... (name fewer, each once)"
            problems.append(_problem(directive, f"--{directive.option}: {told}"))
            if directive.option not in _NAMES:
                continue
        try:
            stated |= _values(directive, last, of_gres=of_gres)
        except ValueError as error:
            problems.append(_problem(directive, f"--{directive.option}: {error}"))
    problems += _conflicts(ordered, last)
    requeue = [directive for directive in ordered if directive.option in {"requeue", "no-requeue"}]
    if requeue:
        stated["requeue"] = requeue[-1].option == "requeue"
    request = JobRequest(directives=tuple(ordered), problems=tuple(problems), **stated)
    if request.ntasks is None or request.nodes is None or request.nodes_max is None:
        return request
    most = request.ntasks  # sbatch takes away nodes for which there is no task (`-N4 -n2` asks for two)
    return replace(request, nodes=min(request.nodes, most), nodes_max=min(request.nodes_max, most))


def _problem(directive: Directive, text: str) -> Evidence:
    text = text if len(text) <= _TOLD else f"{text[:200]} ... {text[-100:]}"
    return Evidence(directive.evidence.file, directive.evidence.line, text)


def _conflicts(ordered: Sequence[Directive], last: Mapping[str, Directive]) -> list[Evidence]:
    """Options that exclude each other wherever they come from: sbatch refuses them together."""
    conflicts = []
    for group in _EXCLUSIVE:
        names = [name for name in group if name in last]
        if len(names) > 1:
            newest = next(directive for directive in reversed(ordered) if directive.option in names)
            conflicts.append(_problem(newest, f"--{' and --'.join(names)} exclude each other; keep one"))
    return conflicts


def _values(directive: Directive, last: Mapping[str, Directive], *, of_gres: bool) -> dict[str, Any]:
    """Fields of the request that one option sets. `of_gres`: --gres has GPUs, which beats --gpus-per-node."""
    option, text = directive.option, directive.value or ""
    if option == "nodes":
        low, high = sbatch_options.nodes(text)
        return {"nodes": low, "nodes_max": high}
    if option == "gres":
        gpus = sbatch_options.gres(text)
        return {} if gpus is None else {"gpus_per_node": gpus}
    if option == "gpus-per-node" and of_gres:
        return {}
    if option == "tres-per-task":
        return _per_task(text, last)
    if option in _CHECKED:
        _CHECKED[option](text)
    if option in {"nodelist", "exclude"} and sbatch_options.listed_nodes(text) > _MOST_NODES:
        raise ValueError(f"names more than {_MOST_NODES} nodes: {text[:40]!r}... (name fewer, each once)")
    if option not in _READ:
        return {}
    name, read = _READ[option]
    return {name: read(text)}


def _gres_has_gpus(last: Mapping[str, Directive]) -> bool:
    """Whether --gres names GPUs; what cannot be read is told once, by --gres itself."""
    try:
        return "gres" in last and sbatch_options.gres(last["gres"].value or "") is not None
    except ValueError:
        return False


def _per_task(text: str, last: Mapping[str, Directive]) -> dict[str, Any]:
    cpus, gpus = sbatch_options.per_task(text)
    for name, count in (("cpus-per-task", cpus), ("gpus-per-task", gpus)):
        if name in last and count is not None:
            raise ValueError(f"says the same as --{name}; keep one")
    return {field: count for field, count in (("cpus_per_task", cpus), ("gpus_per_task", gpus)) if count is not None}


# --- The request in numbers, as Slurm would compute it, in the worst placement that it may choose ---------------------


_MIB = 2**20


@dataclass(frozen=True, slots=True)
class _Memory:
    """Bytes, or None: `total` as the request is counted, `node` and `gpu` in the worst placement."""

    total: int | None = None
    node: int | None = None
    gpu: int | None = None


def resolve(request: JobRequest, partitions: Mapping[str, Partition] | None) -> Resources:
    """Totals and the worst memory per GPU. What cannot be known without the cluster is None.

    A job that names several partitions may run in any: the largest of each number counts.
    """
    candidates = named(request, partitions)
    placements = [_on(request, partition) for partition in candidates] or [_on(request, None)]
    return Resources(
        partition=request.partition or next((one.name for one in candidates), None),
        nodes=_largest([one.nodes for one in placements]),
        cpus=_largest([one.cpus for one in placements]),
        gpus=_largest([one.gpus for one in placements]),
        memory_bytes=_largest([one.memory_bytes for one in placements]),
        memory_per_gpu_bytes=_largest([one.memory_per_gpu_bytes for one in placements]),
        memory_per_node_bytes=_largest([one.memory_per_node_bytes for one in placements]),
        time_limit_seconds=_time(request, candidates),
        array_tasks=request.array.count if request.array is not None else None,
        array_concurrency=request.array.concurrency if request.array is not None else None,
        array=request.array.text if request.array is not None else None,
    )


def chosen(request: JobRequest, partitions: Mapping[str, Partition] | None) -> Partition | None:
    """The partition that the job goes to: the first named, else the default one; None when it is not known."""
    return next(iter(named(request, partitions)), None)


def named(request: JobRequest, partitions: Mapping[str, Partition] | None) -> list[Partition]:
    """Every known partition that the job may run in: those that it names, else the default one.

    Once Slurm has looked at one that gives whole nodes, the job gets whole nodes of every other one too.
    """
    if partitions is None:
        return []
    names = dict.fromkeys(name.strip() for name in (request.partition or "").split(",") if name.strip())
    if not names:
        return [partition for partition in partitions.values() if partition.default]
    found = [partitions[name] for name in names if name in partitions]
    return [replace(one, exclusive=True) for one in found] if any(one.exclusive for one in found) else found


def _largest(numbers: list[int | None]) -> int | None:
    """None where one of them is not known: the largest is then not known either."""
    known = [one for one in numbers if one is not None]
    return max(known) if len(known) == len(numbers) else None


def _time(request: JobRequest, candidates: list[Partition]) -> int | None:
    """The stated limit, or a larger --time-min, which Slurm may give; else the longest default. No limit is -1."""
    if request.time_limit is not None:
        limits = [request.time_limit]
    else:
        limits = [one.default_time_seconds or one.max_time_seconds or UNLIMITED for one in candidates]
    if limits and request.time_min is not None:
        limits.append(request.time_min)
    return None if not limits else UNLIMITED if UNLIMITED in limits else max(limits)


def _on(request: JobRequest, partition: Partition | None) -> Resources:
    request = with_cpus_of_gpus(request, partition)
    shape = geometry(request, partition)
    gpus, cpus = shape.most_gpus, shape.most_cpus
    if shape.whole and partition is not None:
        gpus = max(gpus, partition.gpus_per_node * shape.most_nodes)
        cpus = max(cpus, partition.cpus_per_node * shape.most_nodes)
    if partition is not None and partition.max_mem_per_cpu:
        tasks = request.ntasks_per_node or 1  # which all have as many of them (measured)
        of_memory = -(-partition.cpus_for(request.memory_per_node or 0) // tasks) * tasks * shape.most_nodes
        gpus = max(gpus, (request.gpus_per_task or 0) * of_memory)  # 22.05 makes tasks of them
        of_node = partition.cpus_per_node * shape.most_nodes if request.memory_per_gpu else 0  # 22.05, measured
        cpus = max(cpus, of_memory, of_node, cpus * partition.cpus_for(request.memory_per_cpu or 0))
    memory = _memory(request, shape, partition)
    return Resources(
        nodes=shape.nodes,
        cpus=cpus,
        gpus=gpus,
        memory_bytes=memory.total,
        memory_per_gpu_bytes=memory.gpu if gpus else None,
        memory_per_node_bytes=memory.node,
    )


def _memory(request: JobRequest, shape: Geometry, partition: Partition | None) -> _Memory:
    if 0 in (request.memory_per_node, request.memory_per_cpu, request.memory_per_gpu):
        return _whole_nodes(request, shape, partition)
    if request.memory_per_gpu is not None:
        return _per_gpu(request.memory_per_gpu, shape, partition)
    if request.memory_per_cpu is not None:
        return _per_cpu(request.memory_per_cpu, request, shape, partition)
    if request.memory_per_node is not None:
        return _per_node(request.memory_per_node, request, shape, partition)
    return _defaults(request, shape, partition)


def _share(size: int, gpus: int) -> int | None:
    return -(-size // gpus) if gpus else None


def _per_gpu(size: int, shape: Geometry, partition: Partition | None) -> _Memory:
    """The same for every GPU, however they are placed, and for all of a node that is taken whole.

    Without a GPU Slurm refuses the job.
    """
    total = size * shape.gpus
    if shape.whole and partition is not None:
        node = size * max(shape.gpus, partition.gpus_per_node)
        return _Memory(max(total, size * partition.gpus_per_node * shape.nodes), node, size)
    more = shape.most_gpus > shape.gpus
    others = (shape.most_nodes if more else shape.nodes) - 1  # each of them holds the fewest, at least
    return _Memory(total, max(size * (shape.most_gpus - shape.fewest_gpus * others), 0), size)


def _per_node(size: int, request: JobRequest, shape: Geometry, partition: Partition | None) -> _Memory:
    """Each node holds all of it. Nodes beyond the number of GPUs hold it for nothing."""
    fewest = shape.fewest_gpus
    if shape.whole and partition is not None:  # it holds all GPUs of the node
        fewest = max(fewest, partition.gpus_per_node_min or partition.gpus_per_node)
    share = _share(size, fewest)
    everywhere = request.gpus_per_node or request.gpus_per_task or request.gpus_per_socket  # else some may have none
    idle = _share(size * shape.most_nodes, shape.gpus) if shape.most_nodes > shape.gpus and not everywhere else None
    return _Memory(size * shape.nodes, size, max(share or 0, idle or 0) or None)


def _per_cpu(size: int, request: JobRequest, shape: Geometry, partition: Partition | None) -> _Memory:
    """By allocated CPUs: those of the tasks on a node, of its GPUs, of --mincpus and -B, or all of a whole node.

    Each node also gets those of --ntasks-per-node, however few tasks there are (MinCPUsNode; 22.05 to 26.05, measured).
    """
    if shape.whole:
        if partition is None or not partition.cpus_per_node:
            return _Memory()
        return _per_node(size * partition.cpus_per_node, request, shape, partition)
    size = _split(size, partition)
    task = _on_cores(request.cpus_per_task or 1, request, partition)
    least = max(
        _on_cores(number(request, "mincpus") or 0, request, partition),
        (request.ntasks_per_node or 0) * task,
        _on_cores(-(-shape.cpus // shape.nodes), request, partition) if shape.most_nodes == shape.nodes == 1 else 0,
    )
    total, node = size * max(shape.cpus, shape.tasks * task), size * max(shape.tasks_on_node * task, least)
    by_gpu = size * max(_on_cores(request.cpus_per_gpu or 0, request, partition), (request.ntasks_per_gpu or 0) * task)
    of_gpu = max(by_gpu, _uneven(size * _on_cores(request.cpus_per_gpu or 0, request, partition), request, shape))
    if request.gpus_per_task and shape.most_nodes > 1:
        # Tasks bring their GPUs along, so the share is that of one task.
        spare = _share(size * least, shape.fewest_gpus) if has_idle_tasks(request, shape.nodes) else 0
        return _Memory(total, node, max(of_gpu, _share(size * task, request.gpus_per_task) or 0, spare or 0))
    spread = shape.fewest_gpus < shape.gpus and shape.tasks_on_node == shape.tasks > 1 and not any(layout(request))
    spread = spread and not request.find("nodelist")  # on later versions a node of the list may have no task
    # Where GPUs are spread, another node has a task; with a layout its CPUs come on top (22.05.8, measured).
    beside = size * max((shape.tasks_on_node - 1) * task, least) if spread else node
    share = max(of_gpu, _share(beside, shape.fewest_gpus) or 0, _share(node, shape.gpus) or 0)
    others = shape.fewest_gpus * (shape.unlisted_nodes - 1)  # GPUs that are on other nodes, whatever happens
    return _Memory(total, max(node, by_gpu * (shape.most_gpus - others)), share or None)


def _uneven(size: int, request: JobRequest, shape: Geometry) -> int:
    """Memory of one GPU where each brings so much, and nodes have more of them and fewer.

    24.11 and 26.05 give each node the CPUs of the one with the most GPUs; with GPUs for each socket a node may have
    those of one socket and the CPUs for all (measured).
    """
    if shape.gpus and request.gpus_per_socket:
        return _share(size * -(-shape.gpus // shape.nodes), shape.fewest_gpus) or 0
    if shape.most_nodes == 1 or not shape.gpus or request.gpus_per_node:
        return 0
    largest = max(1, shape.gpus - shape.fewest_gpus * max(1, shape.unlisted_nodes - 1))
    return _share(size * largest, shape.fewest_gpus) or 0


def _on_cores(cpus: int, request: JobRequest, partition: Partition | None) -> int:
    """CPUs as they are allocated: whole cores, each with all its threads, one CPU of each where no more are wanted."""
    threads = partition.threads_per_core if partition is not None else 1
    hints = request.find("hint")
    alone = number(request, "threads-per-core") == 1 or (bool(hints) and hints[-1].value == "nomultithread")
    return cpus * threads if alone else -(-cpus // threads) * threads


def _split(size: int, partition: Partition | None) -> int:
    """Above MaxMemPerCPU a CPU's memory is spread over more CPUs, each rounded up to a whole MB."""
    most = partition.max_mem_per_cpu if partition is not None else None
    if not most or size <= most:
        return size
    parts = -(-size // most)
    return -(-size // (parts * _MIB)) * _MIB * parts


def _whole_nodes(request: JobRequest, shape: Geometry, partition: Partition | None) -> _Memory:
    """`--mem=0`: all memory of every node."""
    if partition is None or not partition.memory_per_node:
        return _Memory()
    return _per_node(_most_memory(partition), request, shape, partition)


def _most_memory(partition: Partition) -> int:
    """What a job without a stated size gets of one node: all of it, or the partition's maximum."""
    largest = partition.largest_memory
    return min(largest, partition.max_mem_per_node) if partition.max_mem_per_node else largest


def _defaults(request: JobRequest, shape: Geometry, partition: Partition | None) -> _Memory:
    """Slurm's own defaults: DefMemPerGPU, DefMemPerCPU or DefMemPerNode of the partition, else the whole node."""
    if partition is None:
        return _Memory()
    if partition.def_mem_per_gpu and shape.gpus:
        return _per_gpu(partition.def_mem_per_gpu, shape, partition)
    if partition.def_mem_per_cpu:
        return _per_cpu(partition.def_mem_per_cpu, request, shape, partition)
    if partition.def_mem_per_node:
        return _per_node(partition.def_mem_per_node, request, shape, partition)
    return _whole_nodes(request, shape, partition)
