"""What is true of a job, from squeue, scontrol and sacct together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from slurm_agent_tools.models.job import NOT_SET_UP, Job, JobView, Step
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.units import JobId, indices, ranges

_WORST = (
    "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "FAILED", "TIMEOUT", "DEADLINE", "PREEMPTED", "REVOKED", "CANCELLED",
    "COMPLETED",
)  # fmt: skip

_MEMORY = "OUT_OF_MEMORY"

_NEARLY = 0.9  # of the memory: between two looks a sample is a little late

_NO_END = "the controller does not know it, and the accounting has not been told its end"

_ENDED_BY = {
    "TIMEOUT": "It reached its time limit.",
    "NODE_FAIL": "A node that it ran on failed.",
    "BOOT_FAIL": "A node that it was to run on did not start.",
    "PREEMPTED": "It was ended to make room for a job that goes before it.",
    "DEADLINE": "It could not end before its deadline.",
    "REVOKED": "Another cluster took it over.",
}


def confirmed(details: Iterable[Job], live: Iterable[Job], past: Iterable[Job]) -> tuple[Job, ...]:
    """What counts of the controller's details, in which a text of a user's may look like a record.

    The queue, whose cells nobody can forge, shows that job of that user, submitted then. What it does not show may be
    newer than its answer and go on; it never counts as over, and not at all where the accounting knows its end.
    """
    rows = {job.raw_id: job for job in live}
    others = {job.job_id for job in rows.values()} | {job.job_id for job in past if not job.active}
    found = []
    for job in details:
        row = rows.get(job.raw_id)
        if row is None and job.job_id not in others:
            found.append(job if job.active else replace(job, **_UNSEEN))
        elif row is not None and _of(row) == _of(job):
            found.append(job)
    return tuple(found)


def _of(job: Job) -> tuple[object, ...]:
    return job.job_id.base, job.user, job.submitted


_UNSEEN: dict[str, Any] = {"state": "UNKNOWN", "reason": "the queue does not show it"} | dict.fromkeys(
    ("started", "ended", "elapsed_seconds", "exit_code", "signal", "short_code", "derived_exit_code", "derived_signal")
)


def join(live: Job | None, detail: Job | None, past: Job | None) -> Job | None:
    """One record of one job: the controller's word counts while it has one, the accounting fills in the rest."""
    now = _filled(live, detail)
    if now is None:
        return _lagging(past)
    if past is None or _older(past, now):
        return now
    joined = _filled(now, past) or now
    if not now.active:
        joined = replace(joined, **_end(now, past))
    return replace(joined, steps=_in_full(joined, past.steps))


def _lagging(past: Job | None) -> Job | None:
    """Only the accounting knows it: while it still calls the job active, its end is not known yet."""
    if past is None:
        return None
    if past.active:
        return replace(past, state="UNKNOWN", reason=_NO_END)
    code, signal = _worst_step(past).values()
    return replace(past, derived_exit_code=code, derived_signal=signal)


def _older(past: Job, now: Job) -> bool:
    """True when the accounting speaks of an earlier run or an earlier moment of a job that was requeued."""
    if now.active and not past.active:
        return True
    return past.started is not None and now.started is not None and past.started < now.started


def _end(now: Job, past: Job) -> dict[str, Any]:
    """Exit facts: the controller has the wait status, the accounting the worst code of the steps."""
    found: dict[str, Any] = {}
    if now.state == past.state:
        found |= _worst_step(now, past)
        # Code and signal are one word: half of each would be an end that never was.
        other = (past.exit_code or past.signal) and not _fits(_status(now), _status(past))
        told = past if other or now.exit_code is None else now
        found |= {"exit_code": told.exit_code, "signal": told.signal, "short_code": told.short_code}
    return found


def _status(ended: Job | Step) -> tuple[int | None, int]:
    return ended.exit_code, ended.signal or 0


def _fits(whole: tuple[int | None, int], short: tuple[int | None, int]) -> bool:
    """Whether the accounting's word may stand for this end: it keeps 7 bits of an exit code (sacct, measured)."""
    return whole[0] is not None and (whole[0] & 127, whole[1]) == short


def coded(job: Job, code: int | None) -> Job:
    """The accounting's record with the exit code that the controller told earlier, where both may be the same end."""
    if job.other_code is None or code is None or not _fits((code, 0), _status(job)):
        return job
    whole = replace(job, exit_code=code, short_code=False)
    return replace(whole, steps=_in_full(whole, job.steps))


def _in_full(job: Job, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Steps with the codes that the controller tells of the script and of its worst step, where it is plain whose."""
    script, worst = _status(job), (job.derived_exit_code, job.derived_signal or 0)
    like = [step for step in steps if step.step_id.isdecimal() and _fits(worst, _status(step))]
    own = [step for step in steps if step.step_id == "batch" and _fits(script, _status(step))]
    codes = {step.step_id: job.exit_code for step in own}
    codes |= {step.step_id: job.derived_exit_code for step in like if len(like) == 1}
    return tuple(replace(step, exit_code=codes.get(step.step_id, step.exit_code)) for step in steps)


def _worst_step(*told: Job) -> dict[str, int | None]:
    """The worst of what both tell: a step that ends in the moment of its job is counted late (measured on 22.05)."""
    steps = [step for job in told for step in job.steps if step.step_id.isdecimal()]
    ends = [(job.derived_exit_code, job.derived_signal) for job in told]
    ends += [(step.exit_code, step.signal) for step in steps]
    known = [end for end in ends if end[0] is not None]
    code, signal = max(known, key=lambda end: (end[0] or 0, end[1] or 0), default=(None, None))
    return {"derived_exit_code": code, "derived_signal": signal}


def _filled(first: Job | None, second: Job | None) -> Job | None:
    """The first record, with the second's values where it has none."""
    if first is None or second is None:
        return first or second
    changes = {
        item.name: getattr(second, item.name)
        for item in fields(Job)
        if item.name not in {"resources", "sources", "steps", "reason"} and getattr(first, item.name) is None
    }
    mixed = {
        item.name: getattr(second.resources, item.name)
        for item in fields(Resources)
        if getattr(first.resources, item.name) is None
    }
    return replace(
        first,
        **changes,
        resources=replace(first.resources, **mixed),
        sources=tuple(dict.fromkeys((*first.sources, *second.sources))),
        steps=first.steps or second.steps,
    )


def newer(seen: JobView, before: JobView) -> JobView:
    """A fresh look at an active job, with what an earlier and fuller look told beside it."""
    known = {part.job_id: part for part in before.tasks}
    tasks = tuple(_filled(task, known.pop(task.job_id, None)) or task for task in seen.tasks)
    gone = tuple(task for task in known.values() if not task.active and task.state != "UNKNOWN")
    tasks = tuple(sorted((*gone, *tasks), key=lambda task: _key(task.job_id))) if gone else tasks
    same_run = seen.job.started == before.job.started or before.job.started is None
    return JobView((_filled(seen.job, before.job) if same_run else None) or seen.job, tasks)


def view(wanted: JobId, live: Iterable[Job], details: Iterable[Job], past: Iterable[Job]) -> JobView | None:
    """Everything about one id from three lists; None when none of them has it."""
    parts = _parts(wanted, live, details, past)
    if not parts:
        return None
    if len(parts) == 1 and parts[0].job_id in {wanted, wanted.whole}:
        return JobView(parts[0])
    if len(parts) == 1 and wanted.task is not None:  # one of a range that waits as a whole
        return JobView(replace(parts[0], job_id=wanted))
    return JobView(_whole(wanted, parts), tuple(parts))


def _parts(wanted: JobId, *lists: Iterable[Job]) -> list[Job]:
    tables = [{_key(job.job_id): job for job in jobs if job.job_id.belongs_to(wanted)} for jobs in lists]
    keys = sorted({key for table in tables for key in table})
    joined = [join(*(table.get(key) for table in tables)) for key in keys]
    parts = [job for job in joined if job is not None]
    if wanted.task is not None:  # a range of an earlier moment may hold a task that has a record of its own by now
        parts = [job for job in parts if job.job_id == wanted] or parts
    if any(job.job_id.task is not None or job.job_id.component is not None for job in parts):
        # The accounting keeps a line for the array's rest that the controller has dropped, the controller a record for
        # the rest that was cancelled.
        rest = {job.job_id for job in parts if job.job_id.tasks is not None or job.job_id == job.job_id.whole}
        never = _never_ran([job for job in parts if job.job_id in rest], parts)
        parts = [*(job for job in parts if job.job_id not in rest or job.active), *never] or parts
    return parts


def _never_ran(rest: Iterable[Job], parts: Iterable[Job]) -> list[Job]:
    """The tasks of an array that were cancelled while they waited: of the accounting's range those with no record.

    The range is that of an earlier moment (measured), and the controller does not tell it at all.
    """
    own = {job.job_id.task for job in parts}
    for job in rest:
        listed = (job.job_id.tasks or "...").split("%", maxsplit=1)[0]
        if job.state == "CANCELLED" and "..." not in listed:
            left = sorted(indices(listed) - own)
            return [replace(job, job_id=replace(job.job_id, tasks=ranges(left)))] if left else []
    return []


def _key(job_id: JobId) -> tuple[int, int, str]:
    rest = job_id.task if job_id.task is not None else job_id.component
    return (job_id.base, -1 if rest is None else rest, "range" if job_id.tasks is not None else "")


def _whole(wanted: JobId, parts: Sequence[Job]) -> Job:
    """A summary of all parts: active while one is, else the worst end."""
    active = [job for job in parts if job.active]
    chosen = next((job for job in active if job.state != "PENDING"), active[0] if active else min(parts, key=_rank))
    started = [job.started for job in parts if job.started is not None]
    ended = [job.ended for job in parts if job.ended is not None]
    return replace(
        chosen,
        job_id=wanted,
        started=min(started, default=None),
        ended=None if active else max(ended, default=None),
        elapsed_seconds=_ran(parts),
        steps=tuple(step for job in parts for step in job.steps),
    )


def _ran(parts: Sequence[Job]) -> int | None:
    """Seconds from the first start to the last end, or to this look at a part that runs; None where none began."""
    begun = [(job.started, job.elapsed_seconds or 0) for job in parts if job.started is not None]
    if not begun:
        return None
    first = min(start for start, _ in begun)
    return max(round((start - first).total_seconds()) + seconds for start, seconds in begun)


def _rank(job: Job) -> int:
    return _WORST.index(job.state) if job.state in _WORST else -1


def cause(job: Job) -> str | None:
    """One sentence on why it ended as it did; None while it goes on and for a plain success."""
    if job.active or job.state == "UNKNOWN":
        return None
    return _memory(job) or _ended_by(job) or _exit(job)


def out_of_memory(job: Job) -> bool:
    """True where it or a step of it was killed for using more memory than it asked for."""
    return _memory(job) is not None


def _memory(job: Job) -> str | None:
    killed = [step for step in job.steps if step.state == _MEMORY or (step.exit_code, step.signal) == (0, 125)]
    if job.state == _MEMORY or killed:
        where = f" in step {killed[0].step_id}" if killed else ""
        return f"It was killed{where} for using more memory than it asked for."
    if job.state == "FAILED" and job.signal == 9 and _polled(job):
        return "It was killed (signal 9), as Slurm does by polling when a job uses more memory than it asked for."
    return None


def _polled(job: Job) -> bool:
    """Whether a step was cancelled once it was seen to use all the memory: whoever cancels a step looks the same.

    A step that killed itself is CANCELLED as well, but by nobody (measured).
    """
    limit = job.resources.memory_per_node_bytes or job.resources.memory_bytes
    stopped = [step for step in job.steps if step.cancelled_by is not None]
    used = [max(step.max_rss_bytes or 0, step.tres_usage_in_tot.get("mem", 0)) for step in job.steps]
    return bool(limit and stopped) and max(used) >= _NEARLY * (limit or 0)


def _ended_by(job: Job) -> str | None:
    if job.state == "CANCELLED":
        return f"It was cancelled by {job.cancelled_by}." if job.cancelled_by else "It was cancelled."
    return _ENDED_BY.get(job.state)


def _exit(job: Job) -> str | None:
    told = job.sources != ("ledger",)  # which keeps no nodes
    if (
        told and job.state == "FAILED" and job.nodes is None and job.elapsed_seconds == 0
    ):  # sbatch was told so (measured)
        return "It never ran: Slurm could not meet its request."
    if (job.exit_code, job.signal) == NOT_SET_UP:
        return "Slurm could not set it up: its working folder or an output file could not be opened."
    if job.signal:
        return f"It ended by signal {job.signal}."
    if job.exit_code or job.other_code:
        return f"Its script ended with exit code {job.code_text}."
    if job.derived_exit_code or job.derived_signal or _bad_step(job.steps):
        return "A step of it failed although its script ended with exit code 0."
    return None


def _bad_step(steps: Sequence[Step]) -> bool:
    return any(step.state == "FAILED" for step in steps)
