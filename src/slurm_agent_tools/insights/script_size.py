"""The numbers of a generated script: GPUs, nodes, CPUs, memory, time and partition, each with its reason. Pure.

What is asked for counts first, then what runs of this name used (by the one sizer), then a default; a default is
lowered to what the partition has, what was asked for never is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.insights.run_sizes import size_from_runs
from slurm_agent_tools.insights.sizing import GIBIBYTE, MEBIBYTE, MEMORY, SizingFacts, per_share, size
from slurm_agent_tools.models.arguments import GenerateScript
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.remembered_job import JobRecord
from slurm_agent_tools.models.request import JobRequest, Resources
from slurm_agent_tools.models.sizing import JobSizing, SizingFigure
from slurm_agent_tools.policy.document import Limits
from slurm_agent_tools.units import (
    UNLIMITED,
    format_duration,
    format_memory,
    human_memory,
    parse_memory,
    parse_span,
    parse_time_limit,
)

_TIME = 2 * 3600

_LONG = 24 * 3600

_MEMORY = 16 * GIBIBYTE

_DATA_TIMES = 3  # for loading, work and output

_CPUS_MIN, _CPUS_MAX, _CPUS_ALONE = 4, 8, 4


def size_script(
    ask: GenerateScript,
    partitions: Mapping[str, Partition] | None,
    limits: Limits,
    records: Sequence[JobRecord] = (),
) -> tuple[JobRequest, Sequence[str]]:
    """Every number of the script, and the reasons; what is not asked for comes from `records` of its runs.

    Memory is per GPU, or per node without GPUs. Raises InputError naming what the cluster cannot give, or cannot be
    read.
    """
    reasons: list[str] = []
    gpus = _gpus(ask, partitions, reasons)
    runs = size_from_runs((one for one in records if (one.requested.gpus or 0) == gpus), Resources(gpus=gpus))
    wanted = _seconds(ask, runs, reasons)
    need = _memory(ask, gpus, limits, runs, reasons)
    choice = _Choice(ask, partitions, gpus, wanted, need)
    partition = choice.partition(reasons)
    seconds = _seconds_within(wanted, ask, partition, reasons)
    nodes = _nodes(ask, gpus, partition, reasons)
    tasks = gpus if ask.distributed else 1
    on_node = per_share(gpus, nodes)
    cpus = _cpus(ask, gpus, on_node, partition, runs, reasons)
    memory = _memory_within(need, gpus, on_node, partition, reasons)
    request = JobRequest(
        partition=choice.name_by_rule if partition is None else partition.name,
        time_limit=seconds,
        memory_per_gpu=memory if gpus else None,
        memory_per_node=None if gpus else memory,
        gpus=gpus,
        nodes=nodes,
        ntasks=tasks,
        cpus_per_task=per_share(cpus, tasks),
    )
    return request, reasons


def readable(ask: GenerateScript) -> None:
    """Raises InputError for a duration or a size that cannot be read; needs no cluster."""
    _seconds_asked(ask)
    for name in ("memory", "data_size"):
        if getattr(ask, name) is not None:
            _bytes(name, getattr(ask, name))


def budget_seconds(text: str) -> int:
    """A time budget as seconds: 5m, 1h30m, 5400s, or as Slurm writes durations. Raises InputError."""
    return _parsed("time_budget", text, parse_span, "5m, 1h30m, 5400s, ")


# --- GPUs, nodes and the partition -----------------------------------------------------------------------------------


def _gpus(ask: GenerateScript, partitions: Mapping[str, Partition] | None, reasons: list[str]) -> int:
    """GPUs of the whole job: as asked, else one where there are any."""
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
    """One, unless each GPU has a process of its own and one node has too few."""
    if partition is None or not partition.gpus_per_node or gpus <= partition.gpus_per_node:
        reasons.append("Nodes: 1, everything fits on one.")
        return 1
    if not ask.distributed:
        problem = f"are more than the {partition.gpus_per_node} of one node, and one process uses one node only"
        raise InputError("gpus", gpus, problem, hint="Set distributed, or ask for fewer.")
    nodes = per_share(gpus, partition.gpus_per_node)
    reasons.append(f"Nodes: {nodes}, a node of partition {partition.name} has {partition.gpus_per_node} GPUs.")
    return nodes


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which partition takes a job of so many GPUs, seconds and bytes per GPU or node."""

    ask: GenerateScript
    partitions: Mapping[str, Partition] | None
    gpus: int
    seconds: int
    memory: int

    @property
    def name_by_rule(self) -> str:
        """The partition's name where the cluster cannot be asked, and the first choice where it can."""
        return self.ask.partition or ("special" if self.seconds > _LONG else "gpu" if self.gpus else "cpu")

    def partition(self, reasons: list[str]) -> Partition | None:
        """None where the cluster could not be asked. Raises InputError where none takes the job."""
        if self.partitions is None or self.ask.partition is not None:
            known = "as asked" if self.ask.partition else "by rule; the cluster could not be asked"
            reasons.append(f"Partition: {self.name_by_rule}, {known}.")
            return None if self.partitions is None else _offered(self.ask, self.partitions)[0]
        best = min(self._fitting(_offered(self.ask, self.partitions)), key=self._order)
        kind = "GPU work" if self.gpus else "work without GPUs"
        more = f" of up to {format_duration(self.seconds)}" if self.seconds > _LONG else ""
        reasons.append(f"Partition: {best.name}, for {kind}{more}.")
        return best

    def _fitting(self, offered: Sequence[Partition]) -> Sequence[Partition]:
        """Those with enough GPUs and a long enough limit; a time that nobody asked for may be lowered later."""
        fit = [partition for partition in offered if self.gpus <= self._most_gpus(partition)]
        long = [one for one in fit if one.max_time_seconds is None or self.seconds <= one.max_time_seconds]
        if not fit:
            raise InputError("gpus", self.gpus, "are more than any partition offers", hint=_offers(offered))
        if not long and (self.ask.time_limit or self.ask.time_budget):
            name = "time_limit" if self.ask.time_limit else "time_budget"
            problem = "is longer than any fitting partition allows"
            raise InputError(name, format_duration(self.seconds), problem, hint=_offers(fit))
        return long or fit

    def _most_gpus(self, partition: Partition) -> int:
        return partition.total_gpus if self.ask.distributed else partition.gpus_per_node

    def _order(self, partition: Partition) -> tuple[bool, bool, bool, bool, float, str]:
        """The rule's own name first; then enough memory, no idle GPUs, the default one, and the shortest limit."""
        memory = _node_memory(partition)
        return (
            partition.name != self.name_by_rule,
            bool(memory) and memory < self.memory * max(1, min(self.gpus, partition.gpus_per_node)),
            not self.gpus and partition.gpus_per_node > 0,
            not partition.default,
            float("inf") if partition.max_time_seconds is None else partition.max_time_seconds,
            partition.name,
        )


def _offers(partitions: Sequence[Partition]) -> str:
    listed = [
        f"{p.name} ({p.gpus_per_node} GPUs and {format_memory(p.memory_per_node)} a node,"
        f" {'no time limit' if p.max_time_seconds is None else format_duration(p.max_time_seconds)})"
        for p in partitions
    ]
    return f"There is: {', '.join(listed) or 'no partition that takes jobs'}."


# --- time ------------------------------------------------------------------------------------------------------------


def _seconds(ask: GenerateScript, runs: JobSizing, reasons: list[str]) -> int:
    """The limit that was asked for, else what its runs say; never more than the budget."""
    limits = _seconds_asked(ask)
    if "time_limit" not in limits and runs.time.recommended is not None:
        limits["history"] = runs.time.recommended
    if not limits:
        reasons.append(f"Time: {format_duration(_TIME)}, the default.")
        return _TIME
    shortest = min(limits, key=lambda name: limits[name])
    why = {
        "time_limit": "as asked",
        "time_budget": "the time budget; a later result is of no use",
        "history": _rests_on(runs.time, runs),
    }
    seconds = limits[shortest]
    reasons.append(f"Time: {format_duration(seconds)}, {why[shortest]}.")
    if runs.enough and runs.time.used is not None and seconds < runs.time.used:
        used = format_duration(round(runs.time.used))
        reasons.append(f"That may be too short: of {runs.time.runs} runs 5 % took {used} or longer.")
    return seconds


def _rests_on(figure: SizingFigure, runs: JobSizing) -> str:
    """The reason of a number that comes from runs."""
    if runs.enough:
        return f"from {figure.runs} runs of this name: what 95 % of them used, and a margin"
    return "a run of this name failed with less"


def _seconds_asked(ask: GenerateScript) -> dict[str, int]:
    """What is stated of the time, in seconds, by field; a budget in whole minutes, as Slurm counts."""
    stated = {}
    if ask.time_limit is not None:
        stated["time_limit"] = _parsed("time_limit", ask.time_limit)
    if ask.time_budget is not None:
        stated["time_budget"] = per_share(budget_seconds(ask.time_budget), 1, 60)
    return stated


def _parsed(name: str, text: str, parse: Callable[[str], int] = parse_time_limit, also: str = "") -> int:
    hint = f"Write {also}MINUTES, HH:MM:SS or D-HH:MM:SS."
    try:
        seconds = parse(text)
    except ValueError as error:
        raise InputError(name, text, "is not a duration", hint=hint) from error
    if seconds == UNLIMITED:
        raise InputError(name, text, "means no limit", hint=hint)
    return seconds


def _seconds_within(wanted: int, ask: GenerateScript, partition: Partition | None, reasons: list[str]) -> int:
    """A default is lowered to what the partition allows; a time that was asked for is not."""
    most = partition.max_time_seconds if partition is not None else None
    if most is None or wanted <= most or partition is None:
        return wanted
    if ask.time_limit is not None:
        problem = f"is more than partition {partition.name} allows, {format_duration(most)}"
        raise InputError("time_limit", ask.time_limit, problem, hint="Ask for less, or name another partition.")
    reasons.append(f"Time lowered to {format_duration(most)}: partition {partition.name} allows no more.")
    return most // 60 * 60


# --- memory ----------------------------------------------------------------------------------------------------------


def _memory(ask: GenerateScript, gpus: int, limits: Limits, runs: JobSizing, reasons: list[str]) -> int:
    """Bytes per GPU, or for the whole job without GPUs."""
    if ask.memory is not None:
        share = per_share(_bytes("memory", ask.memory), gpus, MEBIBYTE)
        why = f"as asked ({ask.memory} in all)"
    elif ask.data_size is not None:
        need = size(MEMORY, SizingFacts(used=_DATA_TIMES * _bytes("data_size", ask.data_size))).recommended or 1
        share = per_share(need, gpus, GIBIBYTE)
        why = f"{_DATA_TIMES} times {ask.data_size} of data plus 20 %"
    elif runs.memory.recommended is not None:
        share = per_share(runs.memory.recommended, gpus, MEBIBYTE)
        why = _rests_on(runs.memory, runs)
    else:
        share = min(_MEMORY, (limits.memory_per_gpu if gpus else limits.memory_without_gpus).free)
        why = "the default"
    reasons.append(f"Memory: {human_memory(share)} {'per GPU' if gpus else 'on the node'}, {why}.")
    return share


def _bytes(name: str, text: str) -> int:
    """Raises InputError."""
    try:
        number = parse_memory(text)
    except ValueError as error:
        raise InputError(name, text, "is not a size", hint="Write 512M, 16G or 1T.") from error
    if number == 0:
        raise InputError(name, text, "is nothing; to Slurm it means a whole node", hint="Write 512M, 16G or 1T.")
    return number


def _memory_within(need: int, gpus: int, on_node: int, partition: Partition | None, reasons: list[str]) -> int:
    """No more than a node has."""
    has = _node_memory(partition)
    most = has // max(1, on_node) // MEBIBYTE * MEBIBYTE if gpus else has
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


# --- CPUs ------------------------------------------------------------------------------------------------------------


def _cpus(
    ask: GenerateScript, gpus: int, on_node: int, partition: Partition | None, runs: JobSizing, reasons: list[str]
) -> int:
    """CPUs of the whole job."""
    has = partition.cpus_per_node if partition is not None else 0
    if ask.cpus is not None:
        _check_cpus(ask.cpus, ask, gpus, has)
        reasons.append(f"CPUs: {ask.cpus}, as asked.")
        return ask.cpus
    if runs.cpus.recommended is not None:
        number = max(runs.cpus.recommended, gpus if ask.distributed else 1)
        reasons.append(f"CPUs: {number}, from {runs.cpus.runs} runs of this name: as many as 95 % of them kept busy.")
        return min(number, has) if has and not ask.distributed else number
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


def _check_cpus(cpus: int, ask: GenerateScript, gpus: int, has: int) -> None:
    if ask.distributed and cpus < gpus:
        problem = f"are fewer than the {gpus} GPUs, and each has a process of its own"
        raise InputError("cpus", cpus, problem, hint=f"Ask for at least {gpus}.")
    if has and cpus > has and not ask.distributed:
        problem = f"are more than the {has} of one node, and one process uses one node only"
        raise InputError("cpus", cpus, problem, hint=f"Ask for at most {has}.")
