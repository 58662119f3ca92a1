"""Right-sizing: what a job should ask for, from what its runs used. Pure.

Only runs that completed say what a job needs. One that was killed for memory or time needed more than it had: nothing
less than that is recommended again. Other ends (failed, cancelled, a lost node) say nothing of the need.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from slurm_agent_tools.insights.sizing import (
    CPUS,
    ENOUGH,
    LEAST_PER_GPU,
    TIME,
    MemoryOfRuns,
    memory_of_runs,
    per_share,
    percentile,
    size,
    size_memory,
)
from slurm_agent_tools.models.job import JobRecord
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.job_sizing import JobSizing, SizingFigure
from slurm_agent_tools.units import format_duration, how_many, human_memory

_FULL = 0.95  # from this share of its memory on, an unfinished run counts as killed for it

_WIDE = 2.0

_FAR = 100.0

_TENTH = 0.1

_MEMORY_KILLS = frozenset({"host-out-of-memory"})

_UNITS: dict[str, tuple[str, Callable[[float], str]]] = {
    "memory": ("memory", lambda size: human_memory(math.ceil(size))),
    "time": ("time limit", lambda seconds: format_duration(math.ceil(seconds))),
    "cpus": ("CPUs", lambda number: f"{number:.1f}".removesuffix(".0") if number >= _TENTH else f"{number:.1g}"),
}


def size_from_runs(records: Iterable[JobRecord], requested: Resources, pinned: Collection[str] = ()) -> JobSizing:
    """From the runs of one job or script. An array counts as so many runs as it has tasks, each as its largest.

    `pinned`: memory, time, cpus that the guard filled in; that they are much is not told as a mistake of the request.
    """
    measured = [record for record in records if record.usage is not None]
    completed = [record for record in measured if record.state == "COMPLETED" and not _short_of_memory(record)]
    basis = sum(record.tasks for record in completed)
    enough = basis >= ENOUGH
    short = max((_had(record) or 0 for record in measured if _short_of_memory(record)), default=0)
    need = memory_of_runs(_peaks(completed) if enough else (), short)
    figures = _figures(measured, completed, requested, need, short)
    wide = frozenset(pinned) if enough else frozenset(figures)  # one run is no measure of what is too much
    return JobSizing(
        basis=basis,
        enough=enough,
        **figures,
        summary=_summary(basis, figures),
        warnings=(
            *(text for name in figures if name not in wide for text in _too_much(name, figures[name], requested)),
            *(text for name, figure in figures.items() for text in _too_little(name, figure)),
            *([f"memory: {need.told}."] if need.told else []),
            *_in_a_row(measured, requested),
        ),
        recommended=_request(requested, **{name: figure.recommended for name, figure in figures.items()}),
    )


def _figures(
    measured: Sequence[JobRecord],
    completed: Sequence[JobRecord],
    requested: Resources,
    need: MemoryOfRuns,
    short: int,
) -> dict[str, SizingFigure]:
    """What is known of each quantity, and what the sizer makes of it. `short`: the most memory that was too little."""
    enough = sum(record.tasks for record in completed) >= ENOUGH

    def known(amount: Callable[[JobRecord], float | None], asked: int | None) -> SizingFigure:
        values = [(value, record.tasks) for record in completed if (value := amount(record)) is not None]
        return SizingFigure(
            runs=sum(weight for _, weight in values),
            requested=asked,
            used=percentile(values),
            most=max((value for record in measured if (value := amount(record)) is not None), default=None),
        )

    limit = requested.time_limit_seconds if (requested.time_limit_seconds or -1) > 0 else None
    memory, time, cpus = known(_peak, requested.memory_bytes), known(_elapsed, limit), known(_busy, requested.cpus)
    least = min((requested.gpus or 0) * LEAST_PER_GPU, requested.memory_bytes or 0) if memory.used else 0
    over = [max(0, _limit(record) or 0) for record in measured if record.state == "TIMEOUT"]
    return {
        "memory": size_memory(replace(memory, failed=short), need, least=least),
        "time": size(TIME, replace(time, failed=max(over, default=None)), enough=enough),
        "cpus": size(CPUS, cpus, enough=enough, least=max(1, requested.nodes or 1), limit=requested.cpus),
    }


# --- what it would have saved ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SizeSavings:
    """What runs of one name that completed held beyond what the sizer says of them now, which knows how they ended.

    `gb_hours`, `cpu_hours`: less than 0 where they had less than is recommended; None: not measured. `short`: runs that
    used more memory than is recommended: each would have failed, and nothing is counted as saved of it.
    """

    name: str
    asked: Resources
    sizing: JobSizing
    gb_hours: float | None
    cpu_hours: float | None
    short: int


def savings(records: Iterable[JobRecord]) -> list[SizeSavings]:
    """By name, what would have saved most memory first; only names with enough runs. `records`: the newest first."""
    groups: defaultdict[str, list[JobRecord]] = defaultdict(list)
    for record in records:
        groups[record.name].append(record)
    found = [_saved(name, runs) for name, runs in groups.items()]
    return sorted((one for one in found if one is not None), key=lambda one: -(one.gb_hours or 0.0))


def _saved(name: str, runs: Sequence[JobRecord]) -> SizeSavings | None:
    asked = runs[0].requested
    sizing = size_from_runs(runs, asked)
    if not sizing.enough or sizing.recommended is None:
        return None
    done = [run for run in runs if run.usage is not None and run.state == "COMPLETED" and not _short_of_memory(run)]
    memory, cpus = sizing.memory.recommended, sizing.cpus.recommended
    short = [run for run in done if memory is not None and (_peak(run) or 0) > memory]
    kept = [run for run in done if run not in short]
    bytes_hours = [(had - memory) * _held(run) for run in kept if memory is not None and (had := _had(run)) is not None]
    cores_hours = [(had - cpus) * _held(run) for run in kept if cpus is not None and (had := run.requested.cpus)]
    return SizeSavings(
        name=name,
        asked=asked,
        sizing=sizing,
        gb_hours=sum(bytes_hours) / 2**30 if bytes_hours else None,
        cpu_hours=sum(cores_hours) if cores_hours else None,
        short=sum(run.tasks for run in short),
    )


def _held(record: JobRecord) -> float:
    """Hours that all its tasks together ran."""
    usage, cpus = record.usage, record.requested.cpus
    if usage is None:
        return 0.0
    if usage.cpu_allocated_seconds is not None and cpus:
        return usage.cpu_allocated_seconds / cpus / 3600
    return (usage.elapsed_seconds or 0) * record.tasks / 3600


# --- what a run used and had -----------------------------------------------------------------------------------------


def _peaks(records: Iterable[JobRecord]) -> list[tuple[float, int]]:
    """What each used at most in bytes, and as how many runs it counts."""
    return [(peak, record.tasks) for record in records if (peak := _peak(record)) is not None]


def _peak(record: JobRecord) -> float | None:
    """On all nodes together, each counted like the one that needed most: Slurm gives the same to each."""
    usage = record.usage
    if usage is None or usage.memory_peak_bytes is None:
        return None
    return max(usage.memory_peak_bytes, (usage.memory_node_bytes or 0) * (record.requested.nodes or 1))


def _elapsed(record: JobRecord) -> float | None:
    return record.usage.elapsed_seconds if record.usage is not None else None


def _busy(record: JobRecord) -> float | None:
    """CPUs that were busy on average, of those that it had."""
    usage = record.usage
    if usage is None or usage.cpu_seconds is None or not usage.cpu_allocated_seconds or not record.requested.cpus:
        return None
    return usage.cpu_seconds / usage.cpu_allocated_seconds * record.requested.cpus


def _had(record: JobRecord) -> int | None:
    allocated = record.usage.memory_allocated_bytes if record.usage is not None else None
    return allocated or record.requested.memory_bytes


def _limit(record: JobRecord) -> int | None:
    limit = record.usage.time_limit_seconds if record.usage is not None else None
    return limit or record.requested.time_limit_seconds


def _short_of_memory(record: JobRecord) -> bool:
    if record.state == "OUT_OF_MEMORY" or record.category in _MEMORY_KILLS:
        return True
    peak, had = _peak(record), _had(record)
    return record.state == "FAILED" and peak is not None and had is not None and peak >= _FULL * had


# --- words -----------------------------------------------------------------------------------------------------------


def _request(requested: Resources, *, memory: int | None, time: int | None, cpus: int | None) -> Resources | None:
    """The request with the numbers that are known better; None where none is."""
    if memory is time is cpus is None:
        return None
    better = replace(requested, time_limit_seconds=time or requested.time_limit_seconds, cpus=cpus or requested.cpus)
    if memory is None:
        return better
    return replace(
        better,
        memory_bytes=memory,
        memory_per_gpu_bytes=per_share(memory, requested.gpus) if requested.gpus else None,
        memory_per_node_bytes=per_share(memory, requested.nodes) if requested.nodes else None,
    )


def _summary(basis: int, figures: dict[str, SizingFigure]) -> str:
    sizes = [
        f"{_UNITS[name][0]} {_UNITS[name][1](figure.recommended)}"
        for name, figure in figures.items()
        if figure.recommended is not None
    ]
    rests = how_many(basis, "completed run")
    if basis < ENOUGH:
        text = f"Too few runs: {rests}, {ENOUGH} are needed to say what to ask for."
        return f"{text} What failed needs more: {', '.join(sizes)}." if sizes else text
    return f"From {rests}: {', '.join(sizes)}." if sizes else f"{rests[:1].upper()}{rests[1:]}, but nothing measured."


def _in_a_row(runs: Sequence[JobRecord], asked: Resources) -> list[str]:
    """More than one size that was too little, while less than twice the largest is asked for."""
    sizes = sorted({had for record in runs if _short_of_memory(record) and (had := _had(record))})
    if len(sizes) < 2 or (asked.memory_bytes or 0) >= 2 * sizes[-1]:
        return []
    listed = ", ".join(map(human_memory, sizes))
    return [f"memory: {listed} were each too little. Twice the last, {human_memory(2 * sizes[-1])}, tells more."]


def _too_much(name: str, figure: SizingFigure, asked: Resources) -> list[str]:
    """More than twice what any run ever used. One CPU a node is the least that there is."""
    what, shown = _UNITS[name]
    has, most = figure.requested, figure.most
    if not has or not most or not figure.runs or figure.failed or has <= _WIDE * most:
        return []
    if name == "cpus" and has <= max(1, asked.nodes or 1):
        return []
    return [f"{what}: {shown(has)} is {_times(has / most)} the most that was ever used, {shown(most)}."]


def _times(ratio: float) -> str:
    if ratio > _FAR:
        return "far more than"
    return f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.1f} times"


def _too_little(name: str, figure: SizingFigure) -> list[str]:
    what, shown = _UNITS[name]
    texts = []
    if figure.failed and figure.requested and figure.requested <= figure.failed:
        texts.append(f"{what}: {shown(figure.requested)} is asked for, and {shown(figure.failed)} was too little.")
    if name != "cpus" and figure.most and figure.recommended and figure.most > figure.recommended:
        texts.append(f"{what}: a run used {shown(figure.most)}, more than is recommended.")
    return texts
