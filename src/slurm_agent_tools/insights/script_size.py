"""The numbers of a generated script: GPUs, nodes, CPUs, memory, time and partition, each with its reason. Pure.

What is asked for counts first, then what runs of this name used (by the one sizer), then a default; a default is
lowered to what the partition has, what was asked for never is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.insights.launch_lines import ONE_TASK_PER_NODE, launcher_of
from slurm_agent_tools.insights.run_sizes import size_from_runs
from slurm_agent_tools.insights.sizing import GIBIBYTE, MEBIBYTE, MEMORY, per_share, size
from slurm_agent_tools.models.job import JobRecord
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.job_sizing import JobSizing, SizingFigure
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest
from slurm_agent_tools.models.script_arguments import GenerateScript, Launcher
from slurm_agent_tools.policy.document import Limits
from slurm_agent_tools.units import (
    UNLIMITED,
    format_duration,
    format_memory,
    human_memory,
    parse_memory,
    parse_span,
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

    Memory is per GPU, or per node without GPUs. `partitions` None: the cluster could not be asked. Raises InputError
    naming what the cluster cannot give, or cannot be read.
    """
    reasons: list[str] = []
    launcher = launcher_asked(ask)
    gpus = _gpus(ask, partitions, reasons)
    runs = size_from_runs((one for one in records if (one.requested.gpus or 0) == gpus), Resources(gpus=gpus))
    script = _Script(ask, gpus, runs, reasons, launcher)
    wanted, need = script.seconds(), script.memory(limits)
    partition = script.partition(partitions, wanted, need)
    seconds, nodes = script.seconds_within(wanted, partition), script.nodes(partition)
    on_node = per_share(gpus, nodes)
    cpus, memory = script.cpus(on_node, nodes, partition), script.memory_within(need, on_node, partition)
    request = JobRequest(
        partition=partition.name or None,
        time_limit=seconds,
        memory_per_gpu=memory if gpus else None,
        memory_per_node=None if gpus else memory,
        nodes=nodes,
    )
    if launcher is None:
        return replace(request, gpus=gpus, ntasks=1, cpus_per_task=cpus), reasons
    processes = script.processes(on_node, cpus, nodes)
    tasks = 1 if launcher in ONE_TASK_PER_NODE else processes
    request = replace(request, gpus_per_node=on_node or None, ntasks_per_node=tasks)
    reasons.append(f"Processes: {processes} on each node, {'one per GPU' if gpus else 'as there are no GPUs'}.")
    return replace(request, cpus_per_task=per_share(cpus, nodes * tasks)), reasons


def launcher_asked(ask: GenerateScript) -> Launcher | None:
    """What starts the processes of a distributed job: the one that is asked for, or named by the command, or srun."""
    return ask.launcher or ((launcher_of(ask.command) or "srun") if ask.distributed else None)


def readable(ask: GenerateScript) -> None:
    """Raises InputError for a duration or a size that cannot be read; needs no cluster."""
    _seconds_asked(ask)
    signal_seconds(ask)
    for name in ("memory", "data_size"):
        if getattr(ask, name) is not None:
            _bytes(name, getattr(ask, name))


def budget_seconds(text: str) -> int:
    """A time budget as seconds: 5m, 1h30m, 5400s, or as Slurm writes durations. Raises InputError."""
    return _parsed("time_budget", text)


def signal_seconds(ask: GenerateScript) -> int | None:
    """How long before the time limit the program is told, in seconds; None: not at all. Raises InputError."""
    asked = ask.checkpoint.signal_before if ask.checkpoint is not None else None
    return None if asked is None else _parsed("checkpoint.signal_before", asked)


def _parsed(name: str, text: str) -> int:
    hint = "Write 5m, 2h, 1h30m, 5400s, MINUTES, HH:MM:SS or D-HH:MM:SS."
    try:
        seconds = parse_span(text)
    except ValueError as error:
        raise InputError(name, text, "is not a duration", hint=hint) from error
    if seconds == UNLIMITED:
        raise InputError(name, text, "means no limit", hint=hint)
    return seconds


def _seconds_asked(ask: GenerateScript) -> dict[str, int]:
    """What is stated of the time, in seconds, by field; a budget in whole minutes, as Slurm counts."""
    stated = {}
    if ask.time_limit is not None:
        stated["time_limit"] = per_share(_parsed("time_limit", ask.time_limit), 1, 60)
    if ask.time_budget is not None:
        stated["time_budget"] = per_share(budget_seconds(ask.time_budget), 1, 60)
    return stated


def _bytes(name: str, text: str) -> int:
    """Raises InputError."""
    try:
        number = parse_memory(text)
    except ValueError as error:
        raise InputError(name, text, "is not a size", hint="Write 512M, 16G or 1T.") from error
    if number == 0:
        raise InputError(name, text, "is nothing; to Slurm it means a whole node", hint="Write 512M, 16G or 1T.")
    return number


# --- what a partition offers -----------------------------------------------------------------------------------------


def _gpus(ask: GenerateScript, partitions: Mapping[str, Partition] | None, reasons: list[str]) -> int:
    """GPUs of the whole job: as asked, else one where there are any."""
    if ask.gpus is not None:
        number, why = ask.gpus, "as asked"
    elif partitions is not None and not any(p.gpus_per_node for p in _offered(ask, partitions)):
        number, why = 0, f"{'partition ' + ask.partition if ask.partition else 'the cluster'} has none"
    else:
        number, why = 1, "the default; for work on CPUs alone give gpus=0"
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


def _offers(partitions: Sequence[Partition]) -> str:
    listed = [
        f"{p.name} ({p.gpus_per_node} GPUs and {format_memory(p.memory_per_node)} a node,"
        f" {'no time limit' if p.max_time_seconds is None else format_duration(p.max_time_seconds)})"
        for p in partitions
    ]
    return f"There is: {', '.join(listed) or 'no partition that takes jobs'}."


def _not_known(name: str) -> Partition:
    """A partition of a cluster that could not be asked: no limit of it is known."""
    return Partition(name, "UNKNOWN", default=False, nodes=0, max_time_seconds=None, default_time_seconds=None)


def _node_memory(partition: Partition) -> int:
    """What one node can give a job; 0 where it is not known."""
    return min((known for known in (partition.memory_per_node, partition.max_mem_per_node) if known), default=0)


# --- each number, with its reason ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Script:
    """What is asked for, the job's GPUs and what its runs used; each number leaves its reason in `reasons`."""

    ask: GenerateScript
    gpus: int
    runs: JobSizing
    reasons: list[str]
    launcher: Launcher | None

    def seconds(self) -> int:
        """The limit that was asked for, else what its runs say; never more than the budget."""
        limits, used = _seconds_asked(self.ask), self.runs.time.used
        if "time_limit" not in limits and self.runs.time.recommended is not None:
            limits["history"] = self.runs.time.recommended
        if not limits:
            self.reasons.append(f"Time: {format_duration(_TIME)}, the default.")
            return _TIME
        shortest = min(limits, key=lambda name: limits[name])
        why = {
            "time_limit": "as asked",
            "time_budget": "the time budget; a later result is of no use",
            "history": self._rests_on(self.runs.time),
        }
        self.reasons.append(f"Time: {format_duration(limits[shortest])}, {why[shortest]}.")
        if self.runs.enough and used is not None and limits[shortest] < used:
            longer = f"of {self.runs.time.runs} runs 5 % took {format_duration(round(used))} or longer"
            self.reasons.append(f"That may be too short: {longer}.")
        return limits[shortest]

    def _rests_on(self, figure: SizingFigure, whose: str = "95 %") -> str:
        if self.runs.enough:
            return f"from {figure.runs} runs of this name: what {whose} of them used, and a margin"
        return "a run of this name failed with less"

    def seconds_within(self, wanted: int, partition: Partition) -> int:
        """A default is lowered to what the partition allows; a time that was asked for is not."""
        most = partition.max_time_seconds
        if most is None or wanted <= most:
            return wanted
        if self.ask.time_limit is not None:
            problem = f"is more than partition {partition.name} allows, {format_duration(most)}"
            hint = "Ask for less, or name another partition."
            raise InputError("time_limit", self.ask.time_limit, problem, hint=hint)
        self.reasons.append(f"Time lowered to {format_duration(most)}: partition {partition.name} allows no more.")
        return most // 60 * 60

    def memory(self, limits: Limits) -> int:
        """Bytes per GPU, or per node without GPUs."""
        ask, recommended, shares = self.ask, self.runs.memory.recommended, self.gpus or self.ask.nodes or 1
        if ask.memory is not None:
            share, why = per_share(_bytes("memory", ask.memory), shares, MEBIBYTE), f"as asked ({ask.memory} in all)"
        elif ask.data_size is not None:
            need = SizingFigure(used=_DATA_TIMES * _bytes("data_size", ask.data_size))
            share = per_share(size(MEMORY, need, least=1).recommended or 1, shares, GIBIBYTE)
            why = f"{_DATA_TIMES} times {ask.data_size} of data plus 20 %"
        elif recommended is not None:
            share, why = per_share(recommended, self.gpus, MEBIBYTE), self._rests_on(self.runs.memory, "the largest")
        else:
            bands = limits.memory_per_gpu if self.gpus else limits.memory_without_gpus
            share, why = min(_MEMORY, bands.free), "the default"
        where = "per GPU" if self.gpus else "on each node" if shares > 1 else "on the node"
        self.reasons.append(f"Memory: {human_memory(share)} {where}, {why}.")
        return share

    def memory_within(self, need: int, on_node: int, partition: Partition) -> int:
        """No more than a node has."""
        has = _node_memory(partition)
        most = has // max(1, on_node) // MEBIBYTE * MEBIBYTE if self.gpus else has
        if not has or need <= most:
            return need
        unit = "GPU" if self.gpus else "node"
        self.reasons.append(f"Memory lowered to {human_memory(most)}: a {unit} of this partition has no more.")
        return most

    def cpus(self, on_node: int, nodes: int, partition: Partition) -> int:
        """CPUs of the whole job."""
        has, used = partition.cpus_per_node * nodes, self.runs.cpus
        if self.ask.cpus is not None:
            self._check_cpus(self.ask.cpus, has, nodes)
            number, why = self.ask.cpus, "as asked"
        elif used.recommended is not None:
            number, why = used.recommended, f"from {used.runs} runs of this name: as many as 95 % of them kept busy"
            number = max(number, self._least_cpus(nodes))
        elif not self.gpus:
            number = nodes * min(_CPUS_ALONE, partition.cpus_per_node or _CPUS_ALONE)
            why = "the default without GPUs"
        else:
            return self.gpus * self._cpus_per_gpu(on_node, partition)
        self.reasons.append(f"CPUs: {number}, {why}.")
        return min(number, has) if has else number

    def _least_cpus(self, nodes: int) -> int:
        """One for each process that is certain."""
        return 1 if self.launcher is None else max(self.gpus, nodes)

    def _cpus_per_gpu(self, on_node: int, partition: Partition) -> int:
        has, each, why = partition.cpus_per_node, _CPUS_MIN, "the default"
        if has:
            each = min(_CPUS_MAX, max(_CPUS_MIN, has // max(1, partition.gpus_per_node)))
            each = min(each, max(1, has // max(1, on_node)))
            why = f"of the {has} that a node has for its {partition.gpus_per_node} GPUs"
        self.reasons.append(f"CPUs: {each} per GPU, {why}.")
        return each

    def _check_cpus(self, cpus: int, has: int, nodes: int) -> None:
        least = self._least_cpus(nodes)
        if cpus < least:
            problem = f"are fewer than the {least} processes of {nodes} node{'s' if nodes > 1 else ''}"
            raise InputError("cpus", cpus, problem, hint=f"Ask for at least {least}.")
        if has and cpus > has:
            where = "one node, and one process uses one node only" if self.launcher is None else f"{nodes} nodes"
            raise InputError("cpus", cpus, f"are more than the {has} of {where}", hint=f"Ask for at most {has}.")

    def processes(self, on_node: int, cpus: int, nodes: int) -> int:
        """On each node: one per GPU; without GPUs one, and with MPI one per CPU."""
        return on_node or (per_share(cpus, nodes) if self.launcher == "mpi" else 1)

    def nodes(self, partition: Partition) -> int:
        """As asked, else one, unless each GPU has a process of its own and one node has too few."""
        per_node, asked = partition.gpus_per_node, self.ask.nodes
        if asked is not None and asked > 1 and self.launcher is None:
            hint = f"Set launcher to {' or '.join(get_args(Launcher))}, or leave nodes out."
            raise InputError("nodes", asked, "are more than one process can use", hint=hint)
        if asked is None and (not per_node or self.gpus <= per_node):
            self.reasons.append("Nodes: 1, everything fits on one.")
            return 1
        if self.launcher is None and per_node and self.gpus > per_node:
            problem = f"are more than the {per_node} of one node, and one process uses one node only"
            raise InputError("gpus", self.gpus, problem, hint="Set launcher, or ask for fewer.")
        nodes, why = asked, "as asked"
        if nodes is None:
            nodes, why = per_share(self.gpus, per_node), f"a node of partition {partition.name} has {per_node} GPUs"
        self._check_nodes(nodes, per_node)
        self.reasons.append(f"Nodes: {nodes}, {why}.")
        return nodes

    def _check_nodes(self, nodes: int, per_node: int) -> None:
        """Each node has the same number of processes."""
        if per_node and self.gpus > nodes * per_node:
            problem = f"are too few for {self.gpus} GPUs: a node has {per_node}"
            raise InputError("nodes", nodes, problem, hint="Leave nodes out, or ask for more.")
        if self.gpus % nodes:
            fitting = ", ".join(
                str(self.gpus // nodes * nodes + more) for more in (0, nodes) if self.gpus + more > nodes
            )
            problem = f"cannot be shared evenly by {nodes} nodes"
            raise InputError("gpus", self.gpus, problem, hint=f"Ask for one of: {fitting}; or for other nodes.")

    def partition(self, partitions: Mapping[str, Partition] | None, seconds: int, memory: int) -> Partition:
        """The one that was named, else the one by rule where it fits, else the best that does. Raises InputError."""
        rule = "special" if seconds > _LONG else "gpu" if self.gpus else "cpu"
        name = self.ask.partition or rule
        if self.ask.format != "slurm":  # a queue of another scheduler, which cannot be asked
            self.reasons.extend([f"Queue: {name}, as asked."] if self.ask.partition else [])
            return _not_known(self.ask.partition or "")
        if partitions is None or self.ask.partition is not None:
            why = "as asked" if self.ask.partition else "by rule; the cluster could not be asked"
            self.reasons.append(f"Partition: {name}, {why}.")
            return _not_known(name) if partitions is None else _offered(self.ask, partitions)[0]

        def order(partition: Partition) -> tuple[bool, bool, bool, bool, float, str]:
            """The rule's own name first; then enough memory, no idle GPUs, the default one, the shortest limit."""
            has = _node_memory(partition)
            return (
                partition.name != name,
                bool(has) and has < memory * max(1, min(self.gpus, partition.gpus_per_node)),
                not self.gpus and partition.gpus_per_node > 0,
                not partition.default,
                float("inf") if partition.max_time_seconds is None else partition.max_time_seconds,
                partition.name,
            )

        best = min(self._fitting(_offered(self.ask, partitions), seconds), key=order)
        kind = "GPU work" if self.gpus else "work without GPUs"
        more = f" of up to {format_duration(seconds)}" if seconds > _LONG else ""
        self.reasons.append(f"Partition: {best.name}, for {kind}{more}.")
        return best

    def _fitting(self, offered: Sequence[Partition], seconds: int) -> Sequence[Partition]:
        """Those with enough GPUs and a long enough limit; a time that nobody asked for may be lowered later."""
        several = self.launcher is not None
        fit = [one for one in offered if self.gpus <= (one.total_gpus if several else one.gpus_per_node)]
        long = [one for one in fit if one.max_time_seconds is None or seconds <= one.max_time_seconds]
        if not fit:
            raise InputError("gpus", self.gpus, "are more than any partition offers", hint=_offers(offered))
        if not long and (self.ask.time_limit or self.ask.time_budget):
            name = "time_limit" if self.ask.time_limit else "time_budget"
            problem = "is longer than any fitting partition allows"
            raise InputError(name, format_duration(seconds), problem, hint=_offers(fit))
        return long or fit
