"""Job ids that callers name, and what the ledger keeps of the jobs that were looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal

import anyio

from slurm_agent_tools.diagnosis.job_parts import bad
from slurm_agent_tools.errors import AccountingUnreachable, InputError, SlurmError, SlurmRefused, UnknownJob
from slurm_agent_tools.insights import job_outcome
from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.models.shapes import Alert
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.units import JobId, indices, parse_job_id

if TYPE_CHECKING:
    from slurm_agent_tools.models.diagnosis_answer import Diagnosis

_LOOKS = 20
_PAUSE = 0.5

_AT_ONCE = 50

_BELIEVED_AFTER = timedelta(days=1)
"""How long Slurm has to answer that it does not have a job that it took before that is believed: an accounting that was
away is told of former jobs later."""

_ASKED_AGAIN = timedelta(minutes=10)

_MARGIN = timedelta(seconds=5)  # a job that was released just now may not have been in the queue yet

_ENDING = frozenset({"COMPLETING", "CANCELLED"})

_STARTED = frozenset(
    {
        "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING", "STAGE_OUT", "RESIZING",
        "POWER_UP_NODE",
    }
)  # fmt: skip

_FORGOTTEN = "Slurm has forgotten the job."

_NOT_YET = "Neither the controller nor the accounting has the job; the accounting may still be told of it."

_AS_KEPT = "This is how the ledger of these tools last saw it; what it used is not known."

_WITHOUT = (
    "What the accounting alone knows is missing here: what it used, its steps, who cancelled it, and parts that the"
    " controller has forgotten."
)

Status = Literal["finished", "running", "pending", "unknown"]


def parse(text: str, field: str = "job_id") -> JobId:
    """A job id, or InputError naming the field."""
    try:
        job_id = parse_job_id(text)
    except ValueError:
        job_id = None
    if job_id is None or job_id.tasks is not None:
        raise InputError(field, text, "is not a job id", hint="Write 123, 123_4 for an array task or 123+1.")
    return job_id


async def look(context: ClusterContext, job_id: JobId, *, fresh: bool = False) -> JobView:
    """The truth about one job; what the ledger has of it where Slurm has forgotten it, or its accounting is silent.

    Raises UnknownJob, AccountingUnreachable where only a silent accounting may know it, and SlurmError.
    """
    try:
        view = await context.slurm.job(job_id, fresh=fresh)
    except (UnknownJob, AccountingUnreachable) as error:
        return await remembered(context, job_id, error)
    return await in_full(context, view)


async def remembered(context: ClusterContext, job_id: JobId, error: UnknownJob | AccountingUnreachable) -> JobView:
    """The job as the ledger has it. Raises the error that Slurm's answer was where the ledger does not know more.

    An accounting that does not know a job that Slurm took is believed after a day, unless its end was seen here.
    """
    run = await context.db(context.store.by_job, context.owner, job_id.base)
    settled = run is not None and (run.outcome is not None or run.phase == "cancelled")
    lost = isinstance(error, AccountingUnreachable) or context.slurm.accounting.absent
    if run is None or job_id != job_id.whole or not (settled or run.phase == "released"):
        raise error
    if not (settled or lost):
        if run.seen == "UNKNOWN" or context.clock.now() - await _unrecorded(context, run) >= _BELIEVED_AFTER:
            raise error
        return JobView(job_outcome.kept(context, run), missing=_NOT_YET)
    if isinstance(error, AccountingUnreachable):
        why = error.message
    else:
        absent = context.slurm.accounting.missing
        why = _FORGOTTEN if absent is None else f"{absent} {_FORGOTTEN}"
    return JobView(job_outcome.kept(context, run), missing=why)


async def _unrecorded(context: ClusterContext, run: Submission) -> datetime:
    """Since when Slurm has answered that it does not have the job: since now, where its record changed since then."""
    now, what = context.clock.now(), f"unrecorded:{run.job_id}"
    since = await context.db(context.store.last_read, context.owner, what)
    if since is not None and since >= run.updated:
        return since
    await context.db(context.store.mark_read, context.owner, what, now)
    return now


async def in_full(context: ClusterContext, view: JobView) -> JobView:
    """The job with the exit codes that were seen when it ended, where the accounting alone is left to tell them."""
    if all(part.other_code is None for part in (view.job, *view.tasks)):
        return view
    return job_outcome.in_full(await context.db(context.store.by_job, context.owner, view.job.job_id.base), view)


def missing(view: JobView) -> list[Alert]:
    """What a reader of this answer should know is not in it; nothing where all was told."""
    if view.missing is None:
        return []
    rest = _AS_KEPT if "ledger" in view.job.sources else _WITHOUT
    message = f"{view.missing} {rest}"
    return [Alert(severity="medium", code="accounting-missing", message=message, job_id=str(view.job.job_id))]


def failed(view: JobView) -> bool:
    """True for an end that a person should look at; a cancelled or preempted job is no failure of its script."""
    return any(bad(part) for part in (view.job, *view.tasks))


def status(view: JobView) -> Status:
    """How a job stands in one word. `running` from when it has nodes, also where it is held up there."""
    parts = (view.job, *view.tasks)
    if view.job.state == "UNKNOWN":
        return "unknown"
    if not any(part.active for part in parts):
        return "finished"
    return "running" if any(part.state in _STARTED for part in parts) else "pending"


async def managed(context: ClusterContext) -> frozenset[int]:
    """Ids of the jobs that came through the guard."""
    return await context.db(context.store.managed_ids, context.owner)


async def cancel(context: ClusterContext, job_id: JobId) -> None:
    """End a job, or tasks of an array, that Slurm showed.

    scancel tells nothing of success, so the queue is asked until it is on its way.

    Raises SlurmError, and SlurmRefused where the job goes on.
    """
    await context.slurm.cancel(job_id)
    tasks = None if job_id.tasks is None else indices(job_id.tasks)
    state = ""
    for _ in range(_LOOKS):
        view = await context.slurm.glance(job_id if tasks is None else job_id.whole, max_age=0)
        parts = () if view is None else (view.job, *view.tasks)
        left = [part for part in parts if tasks is None or part.job_id.any_of(tasks)]
        if all(part.state in _ENDING or (tasks is not None and not part.active) for part in left):
            return
        state = next(part.state for part in left if part.state not in _ENDING)
        await context.clock.sleep(_PAUSE)
    raise SlurmRefused(f"Slurm took scancel for job {job_id} but the job is still {state}", hint="Look again.")


async def mark_shown(context: ClusterContext, bases: Collection[int]) -> None:
    """Note that this caller was shown the state of these jobs of the guard."""
    for base in sorted(bases):
        await context.db(context.store.mark_read, context.owner, f"shown:{base}", context.clock.now())


async def seen_since(context: ClusterContext, run: Submission) -> bool:
    """Whether this caller was shown the job's state or log since it was submitted."""
    for what in ("job", "shown"):
        read = await context.db(context.store.last_read, context.owner, f"{what}:{run.job_id}")
        if read is not None and read >= run.created:
            return True
    return False


async def remember(context: ClusterContext, view: JobView) -> Submission | None:
    """As remember_all, of one."""
    return (await remember_all(context, [view]))[0]


async def remember_all(context: ClusterContext, views: Sequence[JobView]) -> list[Submission | None]:
    """Note in one step that this caller read the state of these jobs, and so knows of them, and how they ended.

    Returns their submissions as they were before; None for a job that did not come from this project.
    """
    store, now = context.store, context.clock.now()
    known = await context.db(store.by_jobs, context.owner, {view.job.job_id.base for view in views})
    runs = [known.get(view.job.job_id.base) for view in views]
    writes: list[Callable[[], object]] = []
    for view, run in zip(views, runs, strict=True):
        writes.append(partial(store.mark_read, context.owner, f"job:{view.job.job_id.base}", now))
        if run is not None:
            writes += [partial(store.deliver, run.token)] * (run.delivered is None)
            seen = _seen(context, run, view)
            writes += [partial(store.update, run, **seen)] * bool(seen)
    await context.db(store.together, writes)
    for view, run in zip(views, runs, strict=True):
        if run is not None and view.over and _whole(view):
            await _settle_stage(context, run, view)
    return runs


def _whole(view: JobView) -> bool:
    """Whether it is a job as a whole, as Slurm tells of it."""
    return view.job.job_id == JobId(view.job.job_id.base) and "ledger" not in view.job.sources


def _seen(context: ClusterContext, run: Submission, view: JobView) -> dict[str, object]:
    """What a look at a job adds to its record, as columns."""
    job = view.job
    if not _whole(view):
        return {}
    if view.over:
        return _completed(context, run, view)
    if run.phase == "released" and run.seen != job.state:
        return {"seen": job.state, "partition": job.partition, "started": job.started}
    return {}


async def settle(context: ClusterContext, view: JobView, diagnosis: Diagnosis | None = None) -> None:
    """Complete the submission's record with its end, and with what analyze_log found.

    A part of a job is not its end: of a task that failed only what analyze_log found of it is written.
    """
    run = await context.db(context.store.by_job, context.owner, view.job.job_id.base)
    if run is None:
        return
    if view.job.job_id == JobId(view.job.job_id.base):
        await _complete(context, run, view, diagnosis)
    elif diagnosis is not None and failed(view):
        await context.db(context.store.update, run, **_analysed(context, view, diagnosis))


async def _complete(
    context: ClusterContext, run: Submission, view: JobView, diagnosis: Diagnosis | None = None
) -> None:
    found = _completed(context, run, view, diagnosis)
    if found:
        await context.db(context.store.update, run, **found)
    if "ledger" not in view.job.sources:
        await _settle_stage(context, run, view)


def _completed(
    context: ClusterContext, run: Submission, view: JobView, diagnosis: Diagnosis | None = None
) -> dict[str, object]:
    """How a job ended, and what was found of it, as columns."""
    read = {} if diagnosis is None else _analysed(context, view, diagnosis)
    if "ledger" in view.job.sources:  # how it ended came from there
        return read
    return {
        "outcome": view.job.state,
        "failed": failed(view),
        "run_seconds": view.job.elapsed_seconds,
        "category": run.category or view.job.state,
        **_end(run, view),
        **read,
    }


async def _settle_stage(context: ClusterContext, run: Submission, view: JobView) -> None:
    if run.stage is not None and run.passed is None:
        from slurm_agent_tools.insights import stage_facts  # noqa: PLC0415 - few jobs are stages

        await stage_facts.settle(context, context.there.files, run, view)


def _analysed(context: ClusterContext, view: JobView, diagnosis: Diagnosis) -> dict[str, object]:
    """What analyze_log found, as columns."""
    found = job_outcome.found_cause(view.job, diagnosis)
    return {"analysed": context.clock.now(), "category": diagnosis.category, "diagnosis": found}


def _end(run: Submission, view: JobView) -> dict[str, object]:
    """Where and when it ran, and what it used; a figure that is gone from Slurm by now stays as it was."""
    from slurm_agent_tools.insights.usage import usage  # noqa: PLC0415 - for a job that ended only

    job = view.job
    found: dict[str, object] = {
        "seen": job.state,
        "partition": job.partition,
        "started": job.started,
        "ended": job.ended,
        "exit_code": None if run.exit_code is not None and run.exit_code == job.other_code else job.exit_code,
        "signal": job.signal,
        "codes": {**(run.codes or {}), **job_outcome.codes(view)} or None,
        "tasks": len(view.tasks) or 1,
    }
    whole = view.missing is None and run.usage is None
    if whole or any(part.steps for part in (job, *view.tasks)):
        found["usage"] = usage(job, view.tasks)
    return {name: value for name, value in found.items() if value is not None}


async def recent_failures(context: ClusterContext, since: datetime) -> tuple[list[Job], str | None]:
    """This caller's jobs that failed since a time, newest first, and why the accounting's part of them is missing.

    Then they are those that the controller and the ledger know. Raises SlurmError where neither controller nor
    accounting answers.
    """
    try:
        ended_jobs = await context.slurm.accounting.recent(since)
    except AccountingUnreachable:
        ended_jobs = ()
    why = context.slurm.accounting.missing
    found = {job.job_id: job for job in ended_jobs}
    if why is not None:
        queue = context.slurm.mine(await context.slurm.queue())
        runs = await context.db(context.store.accepted, context.owner)
        here = [job_outcome.kept(context, run) for run in runs if run.failed and (run.ended or run.created) >= since]
        found |= {job.job_id: job for job in here}
        found |= {job.job_id: job for job in queue.going(on=False)}
        why += " Jobs that the controller has forgotten and that did not come from here are missing."
    now, cut = context.clock.now(), [job for job in found.values() if job.other_code is not None]
    found |= {job.job_id: (await in_full(context, JobView(job))).job for job in cut[:_AT_ONCE]}
    return sorted(filter(bad, found.values()), key=lambda job: job.ended or now, reverse=True), why


async def settle_all(context: ClusterContext, runs: Sequence[Submission]) -> set[int]:
    """Ask Slurm once for all of these, and complete the records of those that ended.

    Returns those that it knows, or may know: all of them where the accounting is silent. Raises SlurmError.
    """
    ids = [JobId(run.job_id) for run in runs if run.job_id is not None]
    views = await context.slurm.jobs(ids, patient=False)
    for view in views.values():
        if view.over:
            await settle(context, view)
    return {one.base for one in (ids if views.silent is not None else views)}


async def settle_ended(context: ClusterContext, active: Collection[int], read: datetime) -> None:
    """Complete the records of this caller's jobs that were not active any more when the queue was read.

    Takes no longer than one command may; what is not known by then is for the next time. That is twice what a silent
    accounting gets, so that it is told as silent. A job that Slurm does not have is asked for again every ten minutes,
    and after a day no more.
    """
    runs = await context.db(context.store.unended, context.owner, before=read - _MARGIN)
    gone, now = list[Submission](), context.clock.now()
    for run in runs:
        if run.job_id not in active and len(gone) < _AT_ONCE:
            asked = await context.db(context.store.last_read, context.owner, f"missed:{run.job_id}")
            if asked is None or asked < run.updated or now - asked >= _ASKED_AGAIN:
                gone.append(run)
    if not gone:
        return
    with contextlib.suppress(SlurmError), anyio.move_on_after(context.settings.slurm.read_timeout):
        known = await settle_all(context, gone)
        for run in gone:
            if run.job_id in known:
                continue
            await context.db(context.store.mark_read, context.owner, f"missed:{run.job_id}", now)
            if now - await _unrecorded(context, run) >= _BELIEVED_AFTER:
                await context.db(context.store.update, run, seen="UNKNOWN")
