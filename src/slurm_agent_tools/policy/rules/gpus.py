"""memory-per-gpu, gpus: how many GPUs one job may take, and how much memory for each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from math import inf

from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import Directive, JobRequest
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    Example,
    Judgement,
    Measure,
    Rule,
    judge_measure,
    note,
    or_reason,
    passed,
    proof,
    reading_of,
    replace,
    request_of,
    uncountable,
    ways,
    with_reason,
)
from slurm_agent_tools.scripts.effective_request import named
from slurm_agent_tools.units import format_memory, how_many, human_memory

# --- memory-per-gpu: memory in the worst placement that Slurm may choose ----------------------------------------------

MEMORY_OPTIONS = ("mem", "mem-per-cpu", "mem-per-gpu")

_WHY_SHARED = "Memory that one GPU's job holds is memory that the node's other GPUs cannot use."

_WHY_WITHOUT = "Memory that one job holds is memory that the node's other jobs cannot use."

_MIB = 2**20


def uses_gpus(request: JobRequest, resources: Resources) -> bool:
    """True where the request asks for GPUs in any of its ways."""
    stated = (request.gpus, request.gpus_per_node, request.gpus_per_task, request.gpus_per_socket)
    return bool(resources.gpus) or (resources.gpus is None and any(stated))


def _judge_memory(plan: PlannedRequest, policy: Policy) -> Judgement:
    request = request_of(plan)
    gpus = uses_gpus(request, plan.resources)
    option = "mem-per-gpu" if gpus else "mem"
    limits = policy.limits.memory_per_gpu if gpus else policy.limits.memory_without_gpus
    directives = request.find(*MEMORY_OPTIONS)
    thing = "Memory per GPU" if gpus else "Memory per node"
    value = plan.resources.memory_per_gpu_bytes if gpus else plan.resources.memory_per_node_bytes
    if 0 in (request.memory_per_node, request.memory_per_cpu, request.memory_per_gpu):
        return _whole_node(plan, policy, option, value)
    if value is None:
        return uncountable(thing, human_memory(limits.free), directives, _line(option, limits.free))
    measure = Measure(
        thing, value, limits, directives, lambda size: _line(option, size), human_memory,
        _WHY_SHARED if gpus else _WHY_WITHOUT, offer=lambda: _memory_there(plan, gpus=gpus),
    )  # fmt: skip
    return judge_measure(measure, plan, policy)


def _line(option: str, size: int) -> str:
    return f"#SBATCH --{option}={format_memory(size)}"


def _places(plan: PlannedRequest) -> list[Partition]:
    """The partitions that the job may run in, where it is known what all of them have; else none."""
    request, known = request_of(plan), plan.partitions if plan.live is None else plan.live.partitions
    found = named(request, known) if request.partition or not request.find("reservation") else []
    return found if all(one.cpus_per_node and one.memory_per_node for one in found) else []


def _memory_there(plan: PlannedRequest, *, gpus: bool) -> tuple[int, str] | None:
    """The most memory that a node can give this job, of one with GPUs for each, and a sentence that says so."""
    request, places, total = request_of(plan), _places(plan), plan.resources.gpus or 1
    if not places:
        return None
    on_node = (request.gpus_per_node or -(-total // (request.nodes or total))) if gpus else 1
    most = max(min(one.largest_memory, one.max_mem_per_node or inf) for one in places)
    shared = f", which {on_node} GPUs share" if on_node > 1 else ""
    names = ", ".join(one.name for one in places)
    told = f"No node of partition {names} gives more than {human_memory(int(most))}{shared}."
    return int(most) // on_node // _MIB * _MIB, told


def _whole_node(plan: PlannedRequest, policy: Policy, option: str, value: int | None) -> Judgement:
    gpus = option != "mem"
    limits = policy.limits.memory_per_gpu if gpus else policy.limits.memory_without_gpus
    directives = request_of(plan).find(*MEMORY_OPTIONS)
    most = human_memory(limits.justify)
    there = _memory_there(plan, gpus=gpus)
    free, size = (min(limit, there[0] if there else limit) for limit in (limits.free, limits.justify))
    lower = replace(directives, _line(option, free))
    reason = ("give your reason on the line", with_reason(directives, _line(option, size)))
    return Judgement(
        "approve",
        f"A memory size of 0 takes the whole node's memory, and beyond {most} a person decides."
        f" {_WHY_SHARED if gpus else _WHY_WITHOUT}",
        "whole node" if value is None else f"whole node, {human_memory(value)}",
        most,
        ways(lower, reason) if size > limits.free else lower,
        proof(directives),
    )


MEMORY_PER_GPU = Rule(
    id="memory-per-gpu",
    what=(
        "Memory per GPU (per node for a job without GPUs) is free up to a size, needs a written reason above it, "
        "and a person beyond a second one. The worst placement that Slurm may choose counts."
    ),
    why=_WHY_SHARED,
    levels=("justify", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge_memory,
    passing=(
        Example("16G for one GPU", ("#SBATCH --gpus=1", "#SBATCH --mem=16G"), "pass"),
        Example(
            "24G with a reason on the line", ("#SBATCH --gpus=1", "#SBATCH --mem=24G  # JUSTIFIED: 7B model"), "pass"
        ),
        Example("16G on one node without GPUs", ("#SBATCH --gpus=0", "#SBATCH --mem=16G"), "pass"),
    ),
    failing=(
        Example("24G for one GPU without a reason", ("#SBATCH --gpus=1", "#SBATCH --mem=24G"), "justify"),
        Example(
            "a reason that says nothing", ("#SBATCH --gpus=1", "#SBATCH --mem=20G  # JUSTIFIED: needed"), "justify"
        ),
        Example(
            "64G for one GPU, reason or not",
            ("#SBATCH --gpus=1", "#SBATCH --mem=64G  # JUSTIFIED: 30B model in one piece"),
            "approve",
        ),
        Example(
            "four GPUs over two nodes with 64G on each: one node may get a single GPU",
            ("#SBATCH --nodes=2", "#SBATCH --gpus=4", "#SBATCH --mem=64G"),
            "approve",
        ),
        Example("all memory of the node", ("#SBATCH --gpus=1", "#SBATCH --mem=0"), "approve"),
        Example("128G on one node without GPUs", ("#SBATCH --gpus=0", "#SBATCH --mem=128G"), "approve"),
        Example("memory that was not counted", ("#SBATCH --gpus=1", "#SBATCH --mem-per-cpu=4G"), "deny", counted=False),
    ),
)


# --- gpus: how many GPUs one job may take -----------------------------------------------------------------------------

GPU_OPTIONS = ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "gres", "tres-per-task", "ntasks-per-gpu")

_WHY = "Every GPU that one job holds is one that nobody else can use."

# Parts of GPUs: how many of them are a whole one only the cluster's gres.conf tells.
_SHARES = re.compile(r"(?:^|[,:/])(?:shard|mps)(?=[:=,/]|$)", re.IGNORECASE)


def _judge_number(plan: PlannedRequest, policy: Policy) -> Judgement:
    request = request_of(plan)
    shares = tuple(d for d in request.find("gres", "tres-per-task") if _SHARES.search(d.value or ""))
    if shares:
        return _parts(shares)
    if not uses_gpus(request, plan.resources):
        return passed("The job uses no GPU.", 0, policy.limits.gpus.free)
    total = plan.resources.gpus
    stated = request.find(*GPU_OPTIONS)
    if total is None:
        return uncountable("GPUs", str(policy.limits.gpus.free), stated, "#SBATCH --gpus=1")
    cut = partial(_cut, plan, total)
    measure = Measure(
        "GPUs", total, policy.limits.gpus, stated, lambda size: cut(size).lines(), str, _WHY,
        stated=lambda size: cut(size).directives(), note=lambda size: cut(size).told(reading_of(plan).text),
        offer=lambda: _gpus_there(plan),
    )  # fmt: skip
    # Few are looked for in partitions that are named: which one a configuration leaves out, it may say later.
    if (total > policy.limits.gpus.free or request.partition) and _is_nowhere(plan, total):
        return _nowhere(measure, plan)
    return judge_measure(measure, plan, policy)


def _is_nowhere(plan: PlannedRequest, total: int) -> bool:
    """Whether these GPUs are more than there are where it runs, whatever Slurm chooses: not for a person to decide."""
    request, there = request_of(plan), _gpus_there(plan)
    if there is None or total <= there[0]:
        return False
    stated = {d.option for d in request.find(*GPU_OPTIONS)}
    plain = len(stated) == 1 and _plainly(request, next(iter(stated)), total)
    return plain and request.nodes_max in {None, request.nodes}


def _nowhere(measure: Measure, plan: PlannedRequest) -> Judgement:
    """The judgement of a request that Slurm would refuse, with or without a reason or a yes."""
    has, _ = measure.there()
    message = f"GPUs: {measure.value} cannot be had as they are asked for. {_told(plan, measure.value)}"
    remedy = (None if has else _elsewhere(plan)) or or_reason(measure, min(measure.bands.justify, has), has)
    return Judgement("deny", message, measure.value, has, remedy, proof(measure.options(measure.bands.free)))


def _elsewhere(plan: PlannedRequest) -> str | None:
    """A partition that has GPUs, where those that the job names have none: it keeps its own."""
    known, stated = plan.partitions if plan.live is None else plan.live.partitions, request_of(plan).find("partition")
    names = sorted(one.name for one in (known or {}).values() if one.total_gpus and one.state == "UP")
    if not names:
        return None
    told = note(f"partitions with GPUs are {', '.join(names)}.")
    return f"{replace(stated, f'#SBATCH --partition={names[0]}')}\n{told}"


def _told(plan: PlannedRequest, total: int) -> str:
    """What each partition has, and on how many nodes of it there are so many."""
    there = []
    for one in _places(plan):
        nodes = -(-total // one.gpus_per_node) if one.gpus_per_node and total <= one.total_gpus else 0
        more = f"; {total} are on {nodes} of its nodes (--nodes={nodes})" if nodes > 1 else ""
        there.append(f"Partition {one.name} has {_has(one)}{more}.")
    return " ".join(there)


def _gpus_there(plan: PlannedRequest) -> tuple[int, str] | None:
    """The most GPUs that this job can have on as many nodes as it asks for, and what the partitions have."""
    request, places = request_of(plan), _places(plan)
    if not places:
        return None
    nodes = request.nodes or (1 if request.gpus_per_node else None)
    most = max(min(one.total_gpus, (nodes or one.max_nodes or one.nodes) * one.gpus_per_node) for one in places)
    return most, " ".join(f"Partition {one.name} has {_has(one)}." for one in places)


def _has(partition: Partition) -> str:
    if not partition.gpus_per_node:
        return "no GPU"
    return f"{how_many(partition.total_gpus, 'GPU')}, {partition.gpus_per_node} on a node"


def _cut(plan: PlannedRequest, total: int, size: int) -> _Cut:
    """The job with at most `size` GPUs, no more of them on a node than one of the partitions has, where that is known.

    Where it names no number of nodes, Slurm may spread them.
    """
    request = request_of(plan)
    most = max((one.gpus_per_node for one in _places(plan)), default=0)
    by_node = most if request.nodes or request.gpus_per_node else 0
    return _Cut.of(request, total, size, by_node or size)


def _parts(shares: tuple[Directive, ...]) -> Judgement:
    """`--gres=shard:4`: Slurm shows no GPU for it, so that no limit would count it."""
    what = ", ".join(f"--{one.option}={one.value}" for one in shares)
    message = f"GPUs: {what} takes parts of GPUs, which count as 0 GPUs in every limit, so a person decides. {_WHY}"
    return Judgement("approve", message, what, 0, replace(shares, "#SBATCH --gpus=1"), proof(shares))


_PROCESSES = re.compile(r"(--(?:nproc[-_]per[-_]node|nnodes|num[-_]gpus|num[-_]processes))([=\s]+)(\d+)\b")


@dataclass(frozen=True, slots=True)
class _Cut:
    """The same job with fewer GPUs, in the layout that it is written for: fewer nodes, then fewer GPUs on one.

    `option`: the one option that asks for GPUs; None where there are several or the number follows from others, and
    then only the total is stated. `per`, `each`: GPUs of one node (of one task for --gpus-per-task), before and after.
    """

    request: JobRequest
    option: str | None
    size: int
    nodes: int
    fewer: int
    per: int
    each: int
    tasks: int = 0

    @classmethod
    def of(cls, request: JobRequest, total: int, size: int, by_node: int) -> _Cut:
        """The cut from `total` GPUs to at most `size`, at most `by_node` of them on one node; 0: to none."""
        options = {d.option for d in request.find(*GPU_OPTIONS) if d.source != "pinned"}
        option, nodes = next(iter(options)) if len(options) == 1 else None, request.nodes or 1
        if size == 0 or option is None or not _plainly(request, option, total):
            return cls(request, None, size, nodes, min(nodes, size or nodes), 0, 0)
        per = total // nodes
        each = min(per, size, by_node)
        fewer = min(nodes, max(1, size // each))
        if option != "gpus-per-task" or not request.gpus_per_task:
            return cls(request, option, fewer * each, nodes, fewer, per, each)
        by_task = min(request.gpus_per_task, size, by_node)
        tasks = max(1, each // by_task) * fewer
        return cls(request, option, by_task * tasks, nodes, fewer, request.gpus_per_task, by_task, tasks)

    def layout(self) -> dict[str, int]:
        """The options of the layout that change, with their new numbers; only such as the job states."""
        request, new = self.request, dict[str, int]()
        if request.nodes is not None and self.fewer != self.nodes:
            new["nodes"] = self.fewer
        if self.option is None:
            return new
        before = request.ntasks if request.ntasks is not None else 0
        if self.tasks:
            tasks, by_node = self.tasks, self.tasks // self.fewer
        else:
            share = self.fewer * self.each / (self.nodes * self.per)
            tasks = max(1, int(before * share))
            by_node = self.each if request.ntasks_per_node == self.per else request.ntasks_per_node or 0
        if before and tasks < before:
            new["ntasks"] = tasks
        if request.ntasks_per_node and by_node < request.ntasks_per_node:
            new["ntasks-per-node"] = by_node
        return {name: number for name, number in new.items() if request.find(name)}

    def directives(self) -> tuple[Directive, ...]:
        """The options that the lines stand for."""
        return (*self.request.find(*self.layout()), *self.request.find(*GPU_OPTIONS))

    def lines_of_gpus(self) -> list[str]:
        """The line that asks for the GPUs, where any are left."""
        if self.size == 0:
            return []
        if self.option in {None, "gpus"}:
            return [f"#SBATCH --gpus={self.size}"]
        if self.option == "gres":
            value = self.request.find("gres")[-1].value or ""
            return [f"#SBATCH --gres={_OF_GRES.sub(lambda found: f'{found[1]}:{self.each}', value, count=1)}"]
        return [f"#SBATCH --{self.option}={self._typed()}{self.each}"]

    def _typed(self) -> str:
        """The kind of GPU in front of a number, where one is asked for."""
        value = self.request.find(self.option or "")[-1].value or ""
        return f"{value.rpartition(':')[0]}:" if ":" in value else ""

    def lines(self) -> str:
        """The directives, those of the layout first."""
        layout = [f"#SBATCH --{name}={number}" for name, number in self.layout().items()]
        return "\n".join([*layout, *self.lines_of_gpus()])

    def told(self, text: str) -> str:
        """What the launcher is told in the script that no longer fits."""
        if self.option is None:
            return ""
        found = [one for one in dict.fromkeys(_PROCESSES.findall(text)) if self._fits(*one) != int(one[2])]
        shown = ", ".join(f"`{name}{sign}{value}` to {self._fits(name, sign, value)}" for name, sign, value in found)
        shape = f"{how_many(self.fewer, 'node')} with {how_many(self.size // self.fewer, 'GPU')} each"
        return f"the job has {shape} then; change {shown}." if found else ""

    def _fits(self, name: str, _: str, value: str) -> int:
        """The number that belongs behind an option of a launcher."""
        before, after = (self.nodes, self.fewer) if "nnodes" in name else (self.per, self.each)
        if "processes" in name:
            before, after = self.nodes * self.per, self.fewer * self.each
        return after if int(value) == before else int(value)


def _plainly(request: JobRequest, option: str, total: int) -> bool:
    """Whether the total is what this one option says, for each node, task or job, and nothing else."""
    nodes, value = request.nodes or 1, request.find(option)[-1].value or ""
    tasks = request.ntasks or nodes * (request.ntasks_per_node or 1)
    said = {
        "gpus": request.gpus,
        "gpus-per-node": nodes * (request.gpus_per_node or 0),
        "gres": nodes * (request.gpus_per_node or 0) if _GRES.fullmatch(value) else None,
        "gpus-per-task": tasks * (request.gpus_per_task or 0),
    }
    return said.get(option) == total and total % nodes == 0


_OF_GRES = re.compile(r"(\bgpu(?::[A-Za-z][\w.-]*)?)(?::\d+)?")

_GRES = re.compile(r"(?:gres[:/])?gpu(?::[A-Za-z][\w.-]*)?(?::\d+)?(?:\(S:[\d,-]+\))?")

GPUS = Rule(
    id="gpus",
    what="GPUs of one job are free up to a number, need a written reason above it, and a person beyond a second one.",
    why=_WHY,
    levels=("justify", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge_number,
    passing=(
        Example("four GPUs", ("#SBATCH --gpus=4",), "pass"),
        Example(
            "six GPUs with a reason", ("#SBATCH --gpus=6  # JUSTIFIED: data parallel run of the 13B model",), "pass"
        ),
    ),
    failing=(
        Example("six GPUs", ("#SBATCH --gpus=6",), "justify"),
        Example("four GPUs on each of four nodes", ("#SBATCH --nodes=4", "#SBATCH --gres=gpu:4"), "approve"),
        Example("eight GPUs on one node, where each has four", ("#SBATCH --gres=gpu:8",), "deny", facts={}),
        Example("parts of GPUs", ("#SBATCH --gres=shard:4", "python train.py"), "approve"),
        Example("GPUs that were not counted", ("#SBATCH --gpus-per-socket=1",), "deny", counted=False),
    ),
)
