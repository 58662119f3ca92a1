"""The one sizer: what to ask for of memory, time and CPUs, from what was used and what a limit ended. Pure.

Whoever sizes a job (advice from its runs, a generated script, the next request after one run) brings the facts and
presents the figure; the percentile, the headroom, the rounding and the limits are here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from slurm_agent_tools.models.job_sizing import SizingFigure
from slurm_agent_tools.units import human_memory, whole_memory

ENOUGH = 5
"""Below this many runs that completed there is no recommendation."""

PERCENTILE = 0.95

MEBIBYTE, GIBIBYTE = 2**20, 2**30

LEAST_PER_GPU = 2 * GIBIBYTE
"""Host memory that a program needs to load its libraries and open one GPU: a short run may end before that."""

_HOUR, _DAY = 3600, 24 * 3600

_Steps = Sequence[tuple[float, int]]  # up to so many seconds, rounded up to so many

_MINUTES: _Steps = ((math.inf, 60),)  # Slurm counts limits in minutes

_FORETOLD: _Steps = ((2 * _HOUR, 60), (_DAY, 300), (math.inf, 1800))

_COARSE: _Steps = ((_HOUR, 300), (12 * _HOUR, 900), (math.inf, 3600))  # as a person would write it


def whole_time(seconds: float, steps: _Steps = _MINUTES) -> int:
    """Seconds rounded up to a whole step, and one step at least."""
    step = next(size for most, size in steps if seconds <= most)
    return max(1, math.ceil(seconds / step)) * step


def whole_cpus(busy: float) -> int:
    """CPUs for so many that were busy on average: up, but for a few per cent."""
    return max(1, math.ceil(round(busy, 1)))


@dataclass(frozen=True, slots=True)
class Headroom:
    """How much more is asked for than was used, and than a limit that was too small; and how that is rounded up."""

    above_use: float
    above_failure: float
    whole: Callable[[float], int]


MEMORY = Headroom(1.2, 1.2, whole_memory)  # after a single figure; of several runs `memory_of_runs`

TIME = Headroom(1.2, 1.5, whole_time)

TIME_AFTER_ONE_RUN = Headroom(1.5, 1.5, partial(whole_time, steps=_COARSE))  # one run tells little of the next

TIME_FORETOLD = Headroom(1.15, 1.5, partial(whole_time, steps=_FORETOLD))  # by the program's own progress

CPUS = Headroom(1.0, 1.0, whole_cpus)  # a job with too few is slower and does not fail


def size(
    headroom: Headroom, known: SizingFigure, *, enough: bool = True, least: int = 0, limit: int | None = None
) -> SizingFigure:
    """What is known with what to ask for: what was used, or what was not enough, and its headroom.

    `enough` False: too few runs to rest on; then only what failed counts, and only above what is requested. `least`,
    `limit`: bounds of what is recommended. Nothing is recommended where nothing is known.
    """
    over = round((known.requested / known.used - 1) * 100) if known.requested and known.used else None
    figure = replace(
        known,
        requested=known.requested or None,
        failed=known.failed or None,
        over_percent=None if over is None else max(0, over),
    )
    needed = _needed(headroom, figure, enough=enough)
    if needed is None or not (needed or least):
        return figure
    recommended = max(least, headroom.whole(needed))
    return replace(figure, needed=needed, recommended=recommended if limit is None else min(recommended, limit))


def size_memory(known: SizingFigure, need: MemoryOfRuns, *, least: int = 0) -> SizingFigure:
    """The same for memory, by all peaks of several runs. With fewer than ENOUGH only what failed counts."""
    figure = size(MEMORY, known, enough=False, least=least)
    failed = (known.failed or 0) * MEMORY.above_failure
    if need.needed is None:
        return figure
    needed = max(need.needed, failed)
    return replace(figure, needed=needed, recommended=max(least, MEMORY.whole(needed)))


def _needed(headroom: Headroom, figure: SizingFigure, *, enough: bool) -> float | None:
    raised = figure.failed * headroom.above_failure if figure.failed else None
    if not enough:
        return raised if raised is not None and raised > (figure.requested or 0) else None
    used = None if figure.used is None else figure.used * headroom.above_use
    return max((amount for amount in (used, raised) if amount is not None), default=None)


def percentile(values: Sequence[tuple[float, int]], share: float = PERCENTILE) -> float | None:
    """The nearest rank: the smallest value that at least `share` of the runs do not exceed. `values`: value, runs."""
    wanted = math.ceil(share * sum(weight for _, weight in values))
    for value, weight in sorted(values):
        wanted -= weight
        if wanted <= 0:
            return value
    return None


def per_share(total: int, shares: int, unit: int = 1) -> int:
    """Of a total, each of so many shares (none counts as one), up to whole units."""
    return -(-total // (max(1, shares) * unit)) * unit


# --- memory, by the peaks of several runs -----------------------------------------------------------------------------

# A factor alone asks too much of large jobs and too little of small ones, whose use differs by what has nothing to do
# with their size. On 14,249 tasks of six workflows, scored on the one that it was not chosen by, a tenth above the
# largest with the spread and a floor left 64 % less unused than the users' requests and 0.6 % failed; the largest
# times 1.2 left 65 % less, and 1.7 % failed.

ABOVE_LARGEST = 1.1

FLOOR = 256 * MEBIBYTE
"""Bytes that are added to every request."""

FAR = 2.0
"""One run that used more than so many times the next is by itself."""

RARE = 20
"""Of so many runs, or more, one may be left out: it is one of them, so at most one in twenty would fail."""


@dataclass(frozen=True, slots=True)
class MemoryOfRuns:
    """Bytes that the next run needs, by what others used at most; None where too few are known.

    `basis`: runs it rests on. `outlier`: what one run used that is far above all others; `left_out`: whether a run like
    it would fail; `told`: both in words, empty where there is none.
    """

    needed: float | None
    basis: int
    outlier: float | None = None
    left_out: bool = False
    told: str = ""


def memory_of_runs(peaks: Sequence[tuple[float, int]], failed: float = 0.0) -> MemoryOfRuns:
    """A tenth above the largest, the distance from the middle to the largest, and a floor. `peaks`: bytes, runs.

    A single run far above all others would double every request: its distance from the middle is not counted. So it
    counts as the largest and not for the spread; and of RARE runs or more it is left out, because what all others
    would leave unused is more than what one failure loses, unless `failed` (bytes that ended a run) is no less.
    """
    known = sorted((size, runs) for size, runs in peaks if size > 0)
    basis = sum(runs for _, runs in known)
    if basis < ENOUGH:
        return MemoryOfRuns(None, basis)
    outlier = known[-1][0] if len(known) > 1 and known[-1][1] == 1 and known[-1][0] > FAR * known[-2][0] else None
    others = known if outlier is None else known[:-1]
    left_out = outlier is not None and basis >= RARE and failed < outlier
    most = others[-1][0]
    largest = most if left_out else known[-1][0]
    needed = ABOVE_LARGEST * largest + most - (percentile(others, 0.5) or most) + FLOOR
    return MemoryOfRuns(needed, basis, outlier, left_out, _told(outlier, most, left_out=left_out))


def _told(outlier: float | None, following: float, *, left_out: bool) -> str:
    if outlier is None:
        return ""
    distance = f"one run used {human_memory(round(outlier))}, {outlier / following:.1f} times the next"
    if left_out:
        return f"{distance}: it is left out, and one like it would fail"
    return f"{distance}: it counts as the largest, and not for the spread"
