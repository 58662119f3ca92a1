"""Right-sizing: what a job should ask for, from what its runs used.

Only runs that completed say what a job needs. One that was killed for memory or time needed more than it had: nothing
less than that is recommended again. Other ends (failed, cancelled, a lost node) say nothing of the need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from slurm_agent_tools.models.remembered_job import JobRecord
from slurm_agent_tools.models.request import Resources
from slurm_agent_tools.units import format_duration, human_memory, whole_memory

ENOUGH = 5
"""Below this many runs that completed there is no recommendation."""

PERCENTILE = 0.95

_MARGIN = 1.2  # above what was used at the percentile, and above a memory limit that was too small

_LONGER = 1.5  # above a time limit that was too short

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


@dataclass(frozen=True, slots=True)
class Figure:
    """One quantity: bytes, seconds or CPUs. None: not measured, not asked for, or too few runs.

    `used` is the 95th percentile of the runs that completed, `most` what any run ever used, `failed` the largest limit
    that killed a run. `over_percent` is how much more than `used` is asked for, `needed` what is recommended before it
    is rounded.
    """

    runs: int
    requested: int | None = None
    used: float | None = None
    most: float | None = None
    failed: int | None = None
    over_percent: int | None = None
    needed: float | None = None
    recommended: int | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What to ask for. `recommended` is the request with what is known better; None where too few runs completed."""

    basis: int
    enough: bool
    memory: Figure
    time: Figure
    cpus: Figure
    summary: str
    warnings: tuple[str, ...] = ()
    recommended: Resources | None = None


def advise(records: Iterable[JobRecord], requested: Resources, pinned: Collection[str] = ()) -> Advice:
    """From the runs of one job or script. An array counts as so many runs as it has tasks, each as its largest.

    `pinned`: memory, time, cpus that the guard filled in; that they are much is not told as a mistake of the request.
    """
    runs = [record for record in records if record.usage is not None]
    completed = [record for record in runs if record.state == "COMPLETED" and not _short_of_memory(record)]
    basis = sum(record.tasks for record in completed)
    enough = basis >= ENOUGH
    memory = _memory(runs, completed, requested, enough=enough)
    time = _time(runs, completed, requested, enough=enough)
    cpus = _cpus(runs, completed, requested, enough=enough)
    figures = {"memory": memory, "time": time, "cpus": cpus}
    wide = frozenset(pinned) if enough else frozenset(figures)  # one run is no measure of what is too much
    return Advice(
        basis=basis,
        enough=enough,
        **figures,
        summary=_summary(basis, figures),
        warnings=(
            *(text for name in figures if name not in wide for text in _too_much(name, figures[name], requested)),
            *(text for name, figure in figures.items() for text in _too_little(name, figure)),
            *_in_a_row(runs, requested),
        ),
        recommended=_request(requested, memory.recommended, time.recommended, cpus.recommended),
    )


def percentile(values: Sequence[tuple[float, int]], share: float = PERCENTILE) -> float | None:
    """The nearest rank: the smallest value that at least `share` of the runs do not exceed. `values`: value, runs."""
    wanted = math.ceil(share * sum(weight for _, weight in values))
    for value, weight in sorted(values):
        wanted -= weight
        if wanted <= 0:
            return value
    return None


# --- the three quantities ------------------------------------------------------------------------------------------


def _memory(runs: Sequence[JobRecord], completed: Sequence[JobRecord], asked: Resources, *, enough: bool) -> Figure:
    figure = _figure(runs, completed, _peak, asked.memory_bytes)
    failed = max((_had(record) or 0 for record in runs if _short_of_memory(record)), default=0) or None
    needed = _needed(figure, failed, _MARGIN, enough=enough)
    return replace(figure, failed=failed, needed=needed, recommended=None if needed is None else whole_memory(needed))


def _time(runs: Sequence[JobRecord], completed: Sequence[JobRecord], asked: Resources, *, enough: bool) -> Figure:
    limit = asked.time_limit_seconds if (asked.time_limit_seconds or -1) > 0 else None
    figure = _figure(runs, completed, _elapsed, limit)
    failed = max((_limit(record) or 0 for record in runs if record.state == "TIMEOUT"), default=0) or None
    needed = _needed(figure, failed, _LONGER, enough=enough)
    whole = None if needed is None else max(1, math.ceil(needed / 60)) * 60  # Slurm counts limits in minutes
    return replace(figure, failed=failed, needed=needed, recommended=whole)


def _cpus(runs: Sequence[JobRecord], completed: Sequence[JobRecord], asked: Resources, *, enough: bool) -> Figure:
    """CPUs that were busy on average. No margin: a job with too few is slower and does not fail."""
    figure = _figure(runs, completed, _busy, asked.cpus)
    if figure.used is None or not enough:
        return figure
    least = max(1, asked.nodes or 1, math.ceil(round(figure.used, 1)))
    return replace(figure, needed=figure.used, recommended=least if asked.cpus is None else min(least, asked.cpus))


def _figure(
    runs: Sequence[JobRecord],
    completed: Sequence[JobRecord],
    measure: Callable[[JobRecord], float | None],
    asked: int | None,
) -> Figure:
    values = [(value, record.tasks) for record in completed if (value := measure(record)) is not None]
    used = percentile(values)
    most = max((value for record in runs if (value := measure(record)) is not None), default=None)
    over = round((asked / used - 1) * 100) if asked and used else None
    return Figure(
        runs=sum(weight for _, weight in values),
        requested=asked or None,
        used=used,
        most=most,
        over_percent=None if over is None else max(0, over),
    )


def _needed(figure: Figure, failed: int | None, more: float, *, enough: bool) -> float | None:
    """What was used and a margin; never less than what was not enough, and a margin.

    Of too few runs only what failed counts, and only where more than it is not asked for already.
    """
    raised = failed * more if failed else 0.0
    if not enough:
        return raised if raised > (figure.requested or 0) else None
    return max((figure.used or 0) * _MARGIN, raised) or None


# --- what a run used and had -----------------------------------------------------------------------------------------


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
    given = record.usage.memory_allocated_bytes if record.usage is not None else None
    return given or record.requested.memory_bytes


def _limit(record: JobRecord) -> int | None:
    limit = record.usage.time_limit_seconds if record.usage is not None else None
    return limit or record.requested.time_limit_seconds


def _short_of_memory(record: JobRecord) -> bool:
    if record.state == "OUT_OF_MEMORY" or record.category in _MEMORY_KILLS:
        return True
    peak, had = _peak(record), _had(record)
    return record.state == "FAILED" and peak is not None and had is not None and peak >= _FULL * had


# --- words -----------------------------------------------------------------------------------------------------------


def _request(requested: Resources, memory: int | None, seconds: int | None, cpus: int | None) -> Resources | None:
    """The request with the numbers that are known better; None where none is."""
    if memory is seconds is cpus is None:
        return None
    better = replace(requested, time_limit_seconds=seconds or requested.time_limit_seconds, cpus=cpus or requested.cpus)
    if memory is None:
        return better
    return replace(
        better,
        memory_bytes=memory,
        memory_per_gpu_bytes=-(-memory // requested.gpus) if requested.gpus else None,
        memory_per_node_bytes=-(-memory // requested.nodes) if requested.nodes else None,
    )


def _summary(basis: int, figures: dict[str, Figure]) -> str:
    found = [
        f"{_UNITS[name][0]} {_UNITS[name][1](figure.recommended)}"
        for name, figure in figures.items()
        if figure.recommended is not None
    ]
    rests = f"{basis} completed run{'' if basis == 1 else 's'}"
    if basis < ENOUGH:
        text = f"Too few runs: {rests}, {ENOUGH} are needed."
        return f"{text} What failed needs more: {', '.join(found)}." if found else text
    return f"From {rests}: {', '.join(found)}." if found else f"{rests[:1].upper()}{rests[1:]}, but nothing measured."


def _in_a_row(runs: Sequence[JobRecord], asked: Resources) -> list[str]:
    """More than one size that was too little, while less than twice the largest is asked for."""
    sizes = sorted({had for record in runs if _short_of_memory(record) and (had := _had(record))})
    if len(sizes) < 2 or (asked.memory_bytes or 0) >= 2 * sizes[-1]:
        return []
    told = ", ".join(human_memory(size) for size in sizes)
    return [f"memory: {told} were each too little. Twice the last, {human_memory(2 * sizes[-1])}, tells more."]


def _too_much(name: str, figure: Figure, asked: Resources) -> list[str]:
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


def _too_little(name: str, figure: Figure) -> list[str]:
    what, shown = _UNITS[name]
    found = []
    if figure.failed and figure.requested and figure.requested <= figure.failed:
        found.append(f"{what}: {shown(figure.requested)} is asked for, and {shown(figure.failed)} was too little.")
    if name != "cpus" and figure.most and figure.recommended and figure.most > figure.recommended:
        found.append(f"{what}: a run used {shown(figure.most)}, more than is recommended.")
    return found
