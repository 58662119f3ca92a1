"""How much memory, how many CPUs and how much time a job is asked for, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Callable

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.insights.run_sizes import Advice, Figure
from slurm_agent_tools.models.arguments import GenerateScript
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.policy.document import Limits
from slurm_agent_tools.units import UNLIMITED, format_duration, human_memory, parse_memory, parse_span, parse_time_limit

_TIME = 2 * 3600


def budget_seconds(text: str) -> int:
    """A time budget as seconds: 5m, 1h30m, 5400s, or as Slurm writes durations. Raises InputError."""
    return _parsed("time_budget", text, parse_span, "5m, 1h30m, 5400s, ")


def seconds_needed(ask: GenerateScript, runs: Advice, reasons: list[str]) -> int:
    """The limit that was asked for, else what its runs say; never more than the budget."""
    given = seconds_asked(ask)
    if "time_limit" not in given and runs.time.recommended is not None:
        given["history"] = runs.time.recommended
    if not given:
        reasons.append(f"Time: {format_duration(_TIME)}, the default.")
        return _TIME
    field = min(given, key=lambda name: given[name])
    why = {
        "time_limit": "as asked",
        "time_budget": "the time budget; a later result is of no use",
        "history": rests_on(runs.time, runs),
    }
    reasons.append(f"Time: {format_duration(given[field])}, {why[field]}.")
    if runs.enough and runs.time.used is not None and given[field] < runs.time.used:
        used = format_duration(round(runs.time.used))
        reasons.append(f"That may be too short: of {runs.time.runs} runs 5 % took {used} or longer.")
    return given[field]


def rests_on(figure: Figure, runs: Advice) -> str:
    """The reason of a number that comes from runs."""
    if runs.enough:
        return f"from {figure.runs} runs of this name: what 95 % of them used, and a margin"
    return "a run of this name failed with less"


def seconds_asked(ask: GenerateScript) -> dict[str, int]:
    """What is stated of the time, in seconds, by field; a budget in whole minutes, as Slurm counts."""
    limit = None if ask.time_limit is None else _parsed("time_limit", ask.time_limit)
    budget = None if ask.time_budget is None else -(-budget_seconds(ask.time_budget) // 60) * 60
    stated = {"time_limit": limit, "time_budget": budget}
    return {field: seconds for field, seconds in stated.items() if seconds is not None}


def _parsed(field: str, text: str, parse: Callable[[str], int] = parse_time_limit, also: str = "") -> int:
    hint = f"Write {also}MINUTES, HH:MM:SS or D-HH:MM:SS."
    try:
        seconds = parse(text)
    except ValueError as error:
        raise InputError(field, text, "is not a duration", hint=hint) from error
    if seconds == UNLIMITED:
        raise InputError(field, text, "means no limit", hint=hint)
    return seconds


def seconds_within(wanted: int, ask: GenerateScript, partition: Partition | None, reasons: list[str]) -> int:
    """A default is lowered to what the partition allows; a time that was asked for is not."""
    most = partition.max_time_seconds if partition is not None else None
    if most is None or wanted <= most or partition is None:
        return wanted
    if ask.time_limit is not None:
        problem = f"is more than partition {partition.name} allows, {format_duration(most)}"
        raise InputError("time_limit", ask.time_limit, problem, hint="Ask for less, or name another partition.")
    reasons.append(f"Time lowered to {format_duration(most)}: partition {partition.name} allows no more.")
    return most // 60 * 60


# --- How much memory and how many CPUs a job is asked for, each with its reason ---------------------------------------


_GIB = 2**30

_MEMORY = 16 * _GIB

_CPUS_MIN, _CPUS_MAX, _CPUS_ALONE = 4, 8, 4


def memory_needed(ask: GenerateScript, gpus: int, limits: Limits, runs: Advice, reasons: list[str]) -> int:
    """Bytes per GPU, or for the whole job without GPUs."""
    unit = "per GPU" if gpus else "on the node"
    if ask.memory is not None:
        share = -(-size_of("memory", ask.memory) // max(1, gpus) // 2**20) * 2**20
        reasons.append(f"Memory: {human_memory(share)} {unit}, as asked ({ask.memory} in all).")
        return share
    if ask.data_size is not None:
        total = -(-size_of("data_size", ask.data_size) * 18 // 5)  # x 3 for loading, work and output, and 20 %
        share = max(1, -(-total // max(1, gpus) // _GIB)) * _GIB
        reasons.append(f"Memory: {human_memory(share)} {unit}, 3 times {ask.data_size} of data plus 20 %.")
        return share
    if runs.memory.recommended is not None:
        share = -(-runs.memory.recommended // max(1, gpus) // 2**20) * 2**20
        reasons.append(f"Memory: {human_memory(share)} {unit}, {rests_on(runs.memory, runs)}.")
        return share
    bands = limits.memory_per_gpu if gpus else limits.memory_without_gpus
    share = min(_MEMORY, bands.free)
    reasons.append(f"Memory: {human_memory(share)} {unit}, the default.")
    return share


def size_of(field: str, text: str) -> int:
    """Bytes. Raises InputError."""
    try:
        number = parse_memory(text)
    except ValueError as error:
        raise InputError(field, text, "is not a size", hint="Write 512M, 16G or 1T.") from error
    if number == 0:
        raise InputError(field, text, "is nothing; to Slurm it means a whole node", hint="Write 512M, 16G or 1T.")
    return number


def memory_capped(need: int, gpus: int, on_node: int, partition: Partition | None, reasons: list[str]) -> int:
    """No more than a node has."""
    has = node_memory(partition)
    most = has // max(1, on_node) // 2**20 * 2**20 if gpus else has
    if not has or need <= most:
        return need
    unit = "GPU" if gpus else "node"
    reasons.append(f"Memory lowered to {human_memory(most)}: a {unit} of this partition has no more.")
    return most


def node_memory(partition: Partition | None) -> int:
    """What one node can give a job; 0 where it is not known."""
    if partition is None:
        return 0
    return min((known for known in (partition.memory_per_node, partition.max_mem_per_node) if known), default=0)


def cpus_needed(
    ask: GenerateScript, gpus: int, on_node: int, partition: Partition | None, runs: Advice, reasons: list[str]
) -> int:
    """CPUs of the whole job."""
    has = partition.cpus_per_node if partition is not None else 0
    if ask.cpus is not None:
        _enough(ask.cpus, ask, gpus, has)
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


def _enough(cpus: int, ask: GenerateScript, gpus: int, has: int) -> None:
    if ask.distributed and cpus < gpus:
        problem = f"are fewer than the {gpus} GPUs, and each has a process of its own"
        raise InputError("cpus", cpus, problem, hint=f"Ask for at least {gpus}.")
    if has and cpus > has and not ask.distributed:
        problem = f"are more than the {has} of one node, and one process uses one node only"
        raise InputError("cpus", cpus, problem, hint=f"Ask for at most {has}.")
