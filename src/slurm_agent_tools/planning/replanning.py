"""A plan that is made again while its jobs run: what is left to plan, and what changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.job_progress import JobProgress, SentSlice, SliceProgress
from slurm_agent_tools.planning.planned_job import PlannedJob
from slurm_agent_tools.planning.schedule import named
from slurm_agent_tools.planning.slices import cuts
from slurm_agent_tools.text.sanitize import line
from slurm_agent_tools.units import format_duration, ranges

_LEAST = 0.1
"""Of a job that runs for longer than expected: the part of what was expected that it is given more."""

_TOLD, _DIFFERENT = 3, 0.1


def same_work(before: Iterable[str], now: Collection[str]) -> bool:
    """Whether a plan of these names is one of the same work: half of those that are asked for now, or more."""
    return 2 * len(set(before) & set(now)) >= len(set(now))


# --- what is left -----------------------------------------------------------------------------------------------------


def jobs_left(jobs: Sequence[PlannedJob], progress: Mapping[str, JobProgress]) -> list[PlannedJob]:
    """What is left to plan: those that run first, each for what is left of it, then all that is not done.

    What waited for one that is done waits no longer. Tasks of an array that failed are left to a person, and so is all
    that waits for them. Raises InputError where nothing but those is left, and for a name that is given twice.
    """
    named(jobs)
    out = left_out(jobs, progress)
    parts = {job.name: _parts_left(job, progress.get(job.name), dropped=job.name in out) for job in jobs}
    still = {name: [one.name for one in found] for name, found in parts.items()}
    planned = [replace(one, after=_waits(one, still)) for found in parts.values() for one in found]
    left_to_person = [(job, progress[job.name]) for job in jobs if job.name in progress]
    for job, state in left_to_person if not planned else ():
        if state.to_person(job):
            problem = "failed, and nothing else is left to plan"
            hint = f"{_look(state)}, then mend the script and plan again. Work of another name is new work."
            raise InputError(f"jobs {job.name!r}: tasks", ranges(state.to_person(job)), problem, hint=hint)
    return [*(one for one in planned if one.running), *(one for one in planned if not one.running)]


def _waits(job: PlannedJob, still: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """What it waits for, without what is done."""
    return tuple(one for name in job.after for one in still.get(name, [name]))


def left_out(jobs: Sequence[PlannedJob], progress: Mapping[str, JobProgress]) -> list[str]:
    """Kinds that wait, directly or not, for an array of which failed tasks are left to a person."""
    lost = {job.name for job in jobs if job.name in progress and progress[job.name].to_person(job)}
    found: dict[str, None] = {}
    for _ in jobs:
        more = [job.name for job in jobs if job.name not in found and any(one in lost for one in job.after)]
        if not more:
            break
        found |= dict.fromkeys(more)
        lost |= set(more)
    return list(found)


def _parts_left(job: PlannedJob, state: JobProgress | None, *, dropped: bool) -> list[PlannedJob]:
    """What is left of one kind: what runs, what waits in the queue, and, where it is not dropped, what was not sent."""
    if state is None:
        return [] if dropped else [job]
    found = _copies_left(job, state) if state.slices is None else _slices_left(job, state.slices)
    return [one for one in found if one.sent is not None or not dropped]


def _copies_left(job: PlannedJob, state: JobProgress) -> list[PlannedJob]:
    ids = ":".join(state.job_ids)
    found = []
    for number, elapsed in sorted(state.running.items()):
        seconds = max(job.seconds - elapsed, _LEAST * job.seconds)
        name = f"{job.name} (running {number})" if job.array else job.name
        found.append(replace(job, name=name, seconds=seconds, count=1, numbers=(), after=(), running=True, sent=ids))
    queued = tuple(one for one in job.tasks if one in state.waiting and one not in state.running)
    left_to_person = state.to_person(job)
    missing = tuple(one for one in job.tasks if one not in state.sent and one not in left_to_person)
    if queued:
        name = f"{job.name} (in the queue)" if missing else job.name
        found.append(replace(job, name=name, count=len(queued), numbers=queued if job.array else (), sent=ids))
    if missing:
        found.append(replace(job, count=len(missing), numbers=missing if job.array else ()))
    return found


def _slices_left(job: PlannedJob, state: SliceProgress) -> list[PlannedJob]:
    """The slices that run or wait, each behind the one before, then what no submission covers yet."""
    if state.over:
        return []
    left = job.seconds - sum(one.takes for one in cuts(job)[: state.done])
    found: list[PlannedJob] = []
    for one in state.active:
        takes = max(one.cut.seconds - (one.elapsed or 0.0), _LEAST * one.cut.seconds)
        name, begun = f"{job.name} slice {one.cut.number}", one.elapsed is not None
        before = () if begun else (found[-1].name,) if found else job.after
        found.append(replace(job, name=name, seconds=takes, after=before, running=begun, sent=one.job_id))
        left = 0.0 if one.cut.limit is None else left - one.cut.takes
    if left > 0:
        before = (found[-1].name,) if found else job.after
        found.append(replace(job, seconds=left, after=before, slices_done=state.done + len(state.active)))
    return found


# --- what changed -----------------------------------------------------------------------------------------------------


def told_progress(
    jobs: Sequence[PlannedJob], progress: Mapping[str, JobProgress], begun: datetime, delay: float
) -> tuple[str, ...]:
    """What changed since the plan of `begun`. `delay`: seconds by which all end later now, below 0 if earlier."""
    known = [(job, progress[job.name]) for job in jobs if job.name in progress]
    states = [state for _, state in known]
    counts = {
        "ended": sum(len(one.done) for one in states),
        "run": sum(len(one.running) + len(_begun(one)) for one in states),
        "wait in the queue": sum(len(one.waiting) + len(_queued(one)) for one in states),
        "failed and are planned again": sum(len(one.failed) - len(one.to_person(job)) for job, one in known),
    }
    listed = ", ".join(f"{many} {what}" for what, many in counts.items() if many)
    listed = f"{listed}." if listed else "none has ended."
    found = [f"Of what was planned since {begun:%Y-%m-%d %H:%M:%S} UTC {listed} Other names plan it anew."]
    found += [_told_slices(job, one.slices) for job, one in known if one.slices is not None][:_TOLD]
    found += _told_lost(jobs, progress)
    stuck = [number for one in states for number in one.stuck]
    if stuck:
        more = f" and {len(stuck) - _TOLD} more" if len(stuck) > _TOLD else ""
        found.append(f"Cancel {', '.join(stuck[:_TOLD])}{more}: what it waited for failed, so it never starts.")
    found += _told_times(known)
    way = "later" if delay > 0 else "earlier"
    end = f"{format_duration(round(abs(delay)))} {way} than planned before" if abs(delay) >= 1 else "as planned before"
    return (*found, f"All will have ended {end}.")


def _begun(state: JobProgress) -> list[SentSlice]:
    return [] if state.slices is None else [one for one in state.slices.active if one.elapsed is not None]


def _queued(state: JobProgress) -> list[SentSlice]:
    return [] if state.slices is None else [one for one in state.slices.active if one.elapsed is None]


def _told_slices(job: PlannedJob, state: SliceProgress) -> str:
    name = line(job.name)[:32]
    if state.over:
        return f"{name}: {state.done} slices ended, and none is left."
    return f"{name}: {state.done} of {state.of} slices ended."


def _told_lost(jobs: Sequence[PlannedJob], progress: Mapping[str, JobProgress]) -> list[str]:
    """Tasks that failed, those of which nobody knows how they ended, and what waits for failed ones."""
    found: list[str] = []
    for job in jobs:
        state = progress.get(job.name)
        if state is not None and state.to_person(job):
            failed = _few(ranges(state.to_person(job)))
            found.append(f"Failed, and left to a person: tasks {failed} of {line(job.name)[:32]}. {_look(state)}.")
        if state is not None and state.unseen:
            ended = _few(ranges(sorted(state.unseen)))
            found.append(f"Tasks {ended} of {line(job.name)[:32]} ended; nothing tells how, so they count as done.")
    more = [f"and {len(found) - _TOLD} more kinds like these."] if len(found) > _TOLD else []
    out = left_out(jobs, progress)
    names = ", ".join(line(name)[:32] for name in out[:_TOLD]) + (
        f" and {len(out) - _TOLD} more" if out[_TOLD:] else ""
    )
    return [*found[:_TOLD], *more, *([f"Not planned, as they wait for what failed: {names}."] if out else [])]


def _few(listed: str) -> str:
    """The first ranges of a long list."""
    spans = listed.split(",")
    return ",".join(spans[:6]) + (f" and {len(spans) - 6} more ranges" if len(spans) > 6 else "")


def _look(state: JobProgress) -> str:
    """The call that shows why they failed."""
    return f'Call analyze_log with job_id="{state.failed_ids[-1]}"' if state.failed_ids else "Look at their logs"


def _told_times(known: Sequence[tuple[PlannedJob, JobProgress]]) -> list[str]:
    """Which took longer or shorter than expected."""
    took = [(job, one.took) for job, one in known if one.took is not None]
    off = sorted(took, key=lambda pair: -abs(pair[1] - pair[0].seconds))
    off = [(job, seconds) for job, seconds in off if abs(seconds - job.seconds) > _DIFFERENT * job.seconds]
    if not off:
        return []
    said = ", ".join(
        f"{line(job.name)[:32]} {format_duration(round(seconds))} instead of {format_duration(round(job.seconds))}"
        for job, seconds in off[:_TOLD]
    )
    return [f"It took {said}{f' and {len(off) - _TOLD} more' if len(off) > _TOLD else ''}."]
