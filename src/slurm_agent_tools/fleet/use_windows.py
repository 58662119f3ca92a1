"""When something that is held was not used: windows in a series of measured use, never the mean of the whole. Pure.

A mean hides the hour after a crash behind the day before it. So a window is an unbroken run of samples at or below
`QUIET` that lasts long enough; a sample above it ends the window, and so does a pause in the measuring, because nobody
knows what was in it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Literal

QUIET = 0.01
"""At most this share of a GPU in use is none: drivers and monitors alone touch it so much."""

_PAUSE = 3.0
"""Times the usual distance of two samples that may lie between them, before the measuring counts as interrupted."""

IdleKind = Literal["held-empty", "idle-after-activity", "idle"]
"""Never used since it is held; used before; or not known, as the measuring began later."""


@dataclass(frozen=True, slots=True)
class UseSample:
    """What was in use at a moment, 0..1; None: not measured then."""

    at: datetime
    use: float | None


@dataclass(frozen=True, slots=True)
class IdleWindow:
    """From the first to the last sample without use."""

    start: datetime
    end: datetime
    kind: IdleKind

    @property
    def seconds(self) -> float:
        """How long."""
        return (self.end - self.start).total_seconds()


def idle_windows(
    series: Sequence[UseSample], least: float, *, held_since: datetime | None = None, quiet: float = QUIET
) -> list[IdleWindow]:
    """Every window of at least `least` seconds, in order. Samples may come in any order.

    `held_since`: when the job got it; samples from before are another job's and do not count. Where the first sample
    lies more than a pause behind it, what was before is not known.
    """
    known = sorted((one for one in series if held_since is None or one.at >= held_since), key=lambda one: one.at)
    pause = _PAUSE * _step(known)
    found: list[IdleWindow] = []
    run: list[UseSample] = []
    used = False
    from_start = bool(known) and held_since is not None and (known[0].at - held_since).total_seconds() <= pause

    def close() -> None:
        if run and (run[-1].at - run[0].at).total_seconds() >= least:
            kind: IdleKind = "idle-after-activity" if used else "held-empty" if from_start else "idle"
            found.append(IdleWindow(run[0].at, run[-1].at, kind))
        run.clear()

    for one in known:
        interrupted = run and (one.at - run[-1].at).total_seconds() > pause
        if interrupted or one.use is None:
            close()
            from_start = False
        if one.use is None:
            continue
        if one.use <= quiet:
            run.append(one)
        else:
            close()
            used = True
    close()
    return found


def _step(known: Sequence[UseSample]) -> float:
    """The usual distance of two samples, in seconds."""
    return median([(after.at - one.at).total_seconds() for one, after in pairwise(known)]) if len(known) > 1 else 0.0


def idle_now(
    series: Sequence[UseSample], least: float, now: datetime, *, held_since: datetime | None = None
) -> IdleWindow | None:
    """The window that lasts until now; None where it was used lately, or the measuring ended."""
    windows = idle_windows(series, least, held_since=held_since)
    if not windows or not series:
        return None
    last = max(one.at for one in series)
    fresh = (now - last).total_seconds() <= max(_PAUSE * _step(sorted(series, key=lambda one: one.at)), 60.0)
    return windows[-1] if fresh and windows[-1].end == last else None


# --- Looks at a counter of CPU time, kept by the process that looks ---------------------------------------------------

_JOBS, _LOOKS = 500, 200


@dataclass(slots=True)
class KeptLooks:
    """CPU seconds of the steps of jobs at the moments when somebody looked; the last looks of the last jobs."""

    _looks: OrderedDict[int, deque[tuple[datetime, float]]] = field(default_factory=OrderedDict)

    def keep(self, job: int, at: datetime, cpu_seconds: float) -> None:
        """One look at a job, by Slurm's own number."""
        kept = self._looks.pop(job, None) or deque(maxlen=_LOOKS)
        if kept and cpu_seconds < kept[-1][1]:
            kept.clear()  # a step ended and took its time along, or the job began anew
        kept.append((at, cpu_seconds))
        self._looks[job] = kept
        while len(self._looks) > _JOBS:
            self._looks.popitem(last=False)

    def quiet_since(self, job: int, most: float) -> datetime | None:
        """Since when its steps took less than `most` CPU seconds a second, by the looks; None where they took more."""
        kept = self._looks.get(job, deque())
        if not kept:
            return None
        last_at, last = kept[-1]
        found = None
        for at, seconds in reversed(kept):
            passed = (last_at - at).total_seconds()
            if passed and last - seconds > most * passed:
                break
            found = at
        return found if found != last_at else None


# --- Looks at the GPUs of a job, kept by the process that looks -------------------------------------------------------


@dataclass(slots=True)
class KeptGpuLooks:
    """The use of each GPU of a job, 0..1, at the moments when somebody looked; the last looks of the last jobs."""

    _looks: OrderedDict[int, dict[str, deque[tuple[datetime, float]]]] = field(default_factory=OrderedDict)

    def keep(self, job: int, at: datetime, shares: Mapping[str, float | None]) -> None:
        """One look at a job, by Slurm's own number; what was not measured makes a pause in its series."""
        kept = self._looks.pop(job, None) or {}
        for gpu, share in shares.items():
            points = kept.setdefault(gpu, deque(maxlen=_LOOKS))
            if share is not None and (not points or at > points[-1][0]):
                points.append((at, share))
        self._looks[job] = kept
        while len(self._looks) > _JOBS:
            self._looks.popitem(last=False)

    def series(self, job: int) -> tuple[tuple[tuple[datetime, float], ...], ...]:
        """A series for each GPU of a job that was ever measured."""
        return tuple(tuple(points) for points in self._looks.get(job, {}).values() if points)
