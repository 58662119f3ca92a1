"""A plan that is made again while its jobs run: what has ended, runs or waits by now, and what is left to plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from slurm_agent_tools.models.job import ACTIVE_STATES, Job, JobRecord
from slurm_agent_tools.planning.schedule import PlannedJob
from slurm_agent_tools.text.sanitize import line
from slurm_agent_tools.units import format_duration, parse_array

_LEAST = 0.1
"""Of a job that runs for longer than expected: the part of what was expected that it is given more."""

RUNNING = " (running "
"""Behind the name of a kind that runs in part, before the number of a copy that does."""

_TOLD, _DIFFERENT = 3, 0.1

_NEVER = "DependencyNeverSatisfied"
"""Slurm's reason for a job that waits for the success of one that failed: it is in the queue until it is cancelled."""


@dataclass(frozen=True, slots=True)
class JobProgress:
    """What became of one kind since its plan was made: copies by how they are now.

    `running`: seconds that each has run for. `took`: seconds that those took that have ended, where it is known.
    `job_ids`: of those that run or wait. `stuck`: of those that wait for what can no longer come; they count as failed.
    """

    done: int = 0
    running: tuple[float, ...] = ()
    waiting: int = 0
    failed: int = 0
    took: float | None = None
    job_ids: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()

    @property
    def sent(self) -> int:
        """Copies that need no submission any more."""
        return self.done + len(self.running) + self.waiting


def same_work(before: Iterable[str], now: Collection[str]) -> bool:
    """Whether a plan of these names is one of the same work: half of those that are asked for now, or more."""
    return 2 * len(set(before) & set(now)) >= len(set(now))


def job_progress(
    kinds: Mapping[str, tuple[str | None, int]], records: Sequence[JobRecord], queue: Iterable[Job], now: datetime
) -> dict[str, JobProgress]:
    """How far every kind is. `kinds`: name -> its script and its copies; `records`: submissions since the first plan.

    A job belongs to the kind that it has the name or the run id of, else to the only one of its script.
    """
    scripts: dict[str | None, list[str]] = {}
    for name, (script, _) in kinds.items():
        scripts.setdefault(script, []).append(name)
    rows: dict[str, list[Job]] = {}
    for job in queue:
        if job.active:
            rows.setdefault(str(job.job_id.base), []).append(job)
    found: dict[str, JobProgress] = {}
    for record in records:
        alone = scripts.get(record.script_path, ())
        named = [one for one in (record.name, record.run_id, *alone[: len(alone) == 1]) if one in kinds]
        if named and named[0] is not None:
            before, count = found.get(named[0], JobProgress()), kinds[named[0]][1]
            found[named[0]] = _with(before, record, rows.get(record.job_id, ()), count, now)
    return found


def _with(before: JobProgress, record: JobRecord, rows: Sequence[Job], count: int, now: datetime) -> JobProgress:
    """One submission more. `rows`: what of it is in the queue."""
    tasks = min(count, record.requested.array_tasks or 1)
    if rows and all(row.state == "PENDING" and row.reason == _NEVER for row in rows):
        return replace(before, failed=before.failed + tasks, stuck=(*before.stuck, record.job_id))
    if rows:
        running = tuple(
            max(0.0, (now - row.started).total_seconds()) for row in rows if row.started and row.state != "PENDING"
        )
        waiting = sum(
            1 if row.job_id.tasks is None else parse_array(row.job_id.tasks).count
            for row in rows
            if row.state == "PENDING" or row.started is None
        )
        return replace(
            before,
            done=before.done + max(0, tasks - len(running) - waiting),
            running=(*before.running, *running),
            waiting=before.waiting + waiting,
            job_ids=(*before.job_ids, record.job_id),
        )
    if record.state in ACTIVE_STATES or record.state == "UNKNOWN":  # its end is not known yet
        return replace(before, waiting=before.waiting + tasks, job_ids=(*before.job_ids, record.job_id))
    if record.state != "COMPLETED":
        return replace(before, failed=before.failed + tasks)
    took = record.usage.elapsed_seconds if record.usage is not None and tasks == 1 else None
    return replace(before, done=before.done + tasks, took=took if took is not None else before.took)


def jobs_left(jobs: Sequence[PlannedJob], progress: Mapping[str, JobProgress]) -> list[PlannedJob]:
    """What is left to plan: those that run first, each for what is left of it, then all that is not done.

    What waited for one that is done waits no longer.
    """
    running: list[PlannedJob] = []
    rest: list[PlannedJob] = []
    still: dict[str, list[str]] = {}
    for job in jobs:
        state = progress.get(job.name)
        if state is None:
            rest.append(job)
            continue
        left = job.count - state.done - len(state.running)
        names = []
        for number, elapsed in enumerate(state.running[: job.count]):
            seconds = max(job.seconds - elapsed, _LEAST * job.seconds)
            name = job.name if job.count == 1 else f"{job.name}{RUNNING}{number + 1})"
            running.append(replace(job, name=name, seconds=seconds, count=1, after=(), running=True))
            names.append(name)
        if left > 0:
            rest.append(replace(job, count=left))
            names.append(job.name)
        still[job.name] = names
    waits = [replace(job, after=tuple(one for name in job.after for one in still.get(name, [name]))) for job in rest]
    return [*running, *waits]


def told_progress(
    progress: Mapping[str, JobProgress], expected: Mapping[str, float], begun: datetime, delay: float
) -> tuple[str, ...]:
    """What changed since the plan of `begun`. `delay`: seconds by which all end later now, below 0 if earlier."""
    states = list(progress.values())
    counts = {
        "ended": sum(one.done for one in states),
        "run": sum(len(one.running) for one in states),
        "wait in the queue": sum(one.waiting for one in states),
        "failed and are planned again": sum(one.failed for one in states if not one.sent),
    }
    listed = ", ".join(f"{many} {what}" for what, many in counts.items() if many)
    found = [f"Of what was planned since {begun:%Y-%m-%d %H:%M:%S} UTC {listed}. Other names plan it anew."]
    stuck = [number for one in states for number in one.stuck]
    if stuck:
        more = f" and {len(stuck) - _TOLD} more" if len(stuck) > _TOLD else ""
        found.append(f"Cancel {', '.join(stuck[:_TOLD])}{more}: what it waited for failed, so it never starts.")
    took = {name: one.took for name, one in progress.items() if one.took is not None and name in expected}
    off = sorted(took, key=lambda name: -abs(took[name] - expected[name]))
    off = [name for name in off if abs(took[name] - expected[name]) > _DIFFERENT * expected[name]]
    if off:
        times = {name: (format_duration(round(took[name])), format_duration(round(expected[name]))) for name in off}
        said = ", ".join(f"{line(name)[:32]} {times[name][0]} instead of {times[name][1]}" for name in off[:_TOLD])
        found.append(f"It took {said}{f' and {len(off) - _TOLD} more' if len(off) > _TOLD else ''}.")
    way = "later" if delay > 0 else "earlier"
    end = f"{format_duration(round(abs(delay)))} {way} than planned before" if abs(delay) >= 1 else "as planned before"
    return (*found, f"All will have ended {end}.")
