"""An independent look at a schedule: does it hold what every schedule must. It shares no code with what makes one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from slurm_agent_tools.planning.workload import TracedJob

_CLOSE = 1e-6  # seconds: sums of floating-point times


def schedule_faults(placed: Sequence[tuple[TracedJob, float]], processors: int) -> list[str]:
    """What is wrong with a schedule of jobs and their starts in seconds; nothing where it can be carried out.

    More processors in use than there are, a job before its submission, or before the end of the one that it waits for,
    a start that is no time, and a job that is there twice.
    """
    return [*_each(placed), *_too_many(placed, processors)]


def _each(placed: Sequence[tuple[TracedJob, float]]) -> Iterator[str]:
    ends: dict[int, float] = {}
    for job, start in placed:
        if job.number in ends:
            yield f"job {job.number} is there twice"
        ends[job.number] = start + job.run
    for job, start in placed:
        if not math.isfinite(start):
            yield f"job {job.number} starts at {start}"
        if start < job.submit - _CLOSE:
            yield f"job {job.number} starts at {start:g} s, before its submission at {job.submit:g} s"
        if job.after is not None and start < ends.get(job.after, -math.inf) - _CLOSE:
            yield f"job {job.number} starts at {start:g} s, before the end of job {job.after} that it waits for"


def _too_many(placed: Sequence[tuple[TracedJob, float]], processors: int) -> Iterator[str]:
    """Count at every start and end; those that end at a moment free their processors before others start."""
    changes: list[tuple[float, int, int]] = []
    for job, start in placed:
        if job.processors > processors:
            yield f"job {job.number} takes {job.processors} processors of {processors}"
        if job.run > _CLOSE:
            changes += [(start, 1, job.processors), (start + job.run - _CLOSE, 0, -job.processors)]
    used = 0
    for at, starts, change in sorted(changes):
        used += change
        if starts and used > processors:
            yield f"{used} processors are in use at {at:g} s, of {processors}"
            return
