"""How a job stands in a few words, and of many parts how many stand where and which of them to show. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from slurm_agent_tools.diagnosis.phrases import listed, outcome, percent, span
from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.models.shapes import RunningShown
from slurm_agent_tools.units import indices

SHOWN = 20
"""Of the parts of one job; agents pay for what they read."""

_COUNTS = frozenset({"RUNNING", "CONFIGURING"})

_NO_FAILURE = frozenset({"COMPLETED", "CANCELLED", "PREEMPTED", "UNKNOWN"})


def bad(part: Job) -> bool:
    """True for an end that a person should look at."""
    return not part.active and part.state not in _NO_FAILURE


def shown(parts: Sequence[Job], most: int = SHOWN) -> list[Job]:
    """All where they are few; else those that failed, that run, that wait, then others, each kind in its order."""
    if len(parts) <= most:
        return list(parts)
    return sorted(parts, key=_rank)[:most]


def _rank(part: Job) -> int:
    return 0 if bad(part) else 3 if not part.active else 2 if part.state == "PENDING" else 1


def by_state(parts: Iterable[Job]) -> dict[str, int]:
    """How many stand where; a range of tasks that still wait counts as so many."""
    found: dict[str, int] = {}
    for part in parts:
        found[part.state] = found.get(part.state, 0) + width(part)
    return found


def width(part: Job) -> int:
    """Tasks that one record stands for; 1 where Slurm has cut its range short."""
    if part.job_id.tasks is None:
        return 1
    try:
        return len(indices(part.job_id.tasks.split("%", maxsplit=1)[0]))
    except ValueError:
        return 1


def failures(parts: Iterable[Job]) -> str:
    """`48_2, exit code 1; 48_7, signal 9`: those that failed, the first ones."""
    return listed((_failure(part) for part in parts if bad(part)), "; ")


def _failure(part: Job) -> str:
    how = outcome(replace(part, cancelled_by=None)).removeprefix(part.state).strip(" ()")
    return f"{part.job_id}, {how}" if how else str(part.job_id)


def counted(parts: Sequence[Job]) -> str:
    """`1 of 60 tasks FAILED (48_2, exit code 1), 59 COMPLETED`: what failed first, what is over last."""
    states = by_state(sorted(parts, key=_rank))
    order = list(states)
    what = "components" if any(part.job_id.component is not None for part in parts) else "tasks"
    told = []
    for state in order:
        which = failures(part for part in parts if part.state == state)
        told.append(f"{state} ({which})" if which else state)
    first = f"{states[order[0]]} of {sum(states.values())} {what} {told[0]}"
    return ", ".join([first, *(f"{states[state]} {text}" for state, text in zip(order[1:], told[1:], strict=True))])


def standing(view: JobView, running: RunningShown | None = None) -> str:
    """` is` and its state with what goes with it; of many parts how many stand where."""
    return f": {counted(view.tasks)}" if view.tasks else f" is {describe(view.job, running)}"


def describe(job: Job, running: RunningShown | None = None) -> str:
    """State and what goes with it, in a few words."""
    if job.state == "PENDING":
        return f"PENDING ({job.reason})" if job.reason else "PENDING"
    if job.active:
        since = "for" if job.state in _COUNTS else "after running"  # Slurm counts the time that it ran
        so_far = "" if job.elapsed_seconds is None else f" {since} {span(job.elapsed_seconds)}"
        return ", ".join([f"{job.state}{so_far}", *([] if running is None else _use(running))])
    return outcome(replace(job, cancelled_by=None))


def _use(running: RunningShown) -> list[str]:
    """Memory and time that are left, where they are known."""
    share, told = running.memory_share, []
    if share is not None and running.memory_bytes and running.memory_limit_bytes:
        whole = running.memory_bytes / running.memory_limit_bytes
        most = "" if share <= whole + 0.01 else " of that of one node"
        told = [f"memory {running.memory} of {running.memory_limit} ({percent(share)}{most})"]
    elif share is not None:
        told = [f"memory at {percent(share)}"]
    return told if running.time_left_seconds is None else [*told, f"{span(running.time_left_seconds)} left"]
