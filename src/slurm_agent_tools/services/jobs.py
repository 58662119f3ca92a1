"""Job ids that callers name, and what the ledger keeps of the jobs that were looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

import anyio

from slurm_agent_tools.diagnosis.job_parts import bad
from slurm_agent_tools.errors import InputError, SlurmError, SlurmRefused
from slurm_agent_tools.services import job_outcome
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.merge import JobView
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.units import JobId, parse_job_id

if TYPE_CHECKING:
    from slurm_agent_tools.models.diagnosis_answer import Diagnosis

_LOOKS = 20

_PAUSE = 0.5

_SECONDS = 3.0

_AT_ONCE = 50

_MARGIN = timedelta(seconds=5)  # a job that was released just now may not have been in the queue yet

_ENDING = frozenset({"COMPLETING", "CANCELLED"})

_STARTED = frozenset(
    {
        "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING", "STAGE_OUT", "RESIZING",
        "POWER_UP_NODE",
    }
)  # fmt: skip

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


def failed(view: JobView) -> bool:
    """True for an end that a person should look at; a cancelled or preempted job is no failure of its script."""
    return any(bad(part) for part in (view.job, *view.tasks))


def ended(view: JobView) -> bool:
    """True when no part of it can run any more."""
    return not any(part.active or part.state == "UNKNOWN" for part in (view.job, *view.tasks))


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
    """End a job that Slurm showed. scancel tells nothing of success, so the queue is asked until it is on its way.

    Raises SlurmError, and SlurmRefused where the job goes on.
    """
    await context.slurm.cancel(job_id)
    state = ""
    for _ in range(_LOOKS):
        view = await context.slurm.glance(job_id, max_age=0)
        if view is None or all(part.state in _ENDING for part in (view.job, *view.tasks)):
            return
        state = view.job.state
        await context.clock.sleep(_PAUSE)
    raise SlurmRefused(f"Slurm took scancel for job {job_id} but the job is still {state}", hint="Look again.")


async def remember(context: ClusterContext, view: JobView) -> Submission | None:
    """Note that this caller read the job's state, and so knows of it, and how it ended.

    Returns its submission as it was before; None for a job that did not come from this project.
    """
    base = view.job.job_id.base
    await context.db(context.store.mark_read, context.owner, f"job:{base}", context.clock.now())
    run = await context.db(context.store.by_job, context.owner, base)
    if run is None:
        return None
    if run.delivered is None:
        await context.db(context.store.deliver, run.token)
    if view.job.job_id != JobId(base):
        return run
    if ended(view):
        await _complete(context, run, view)
    elif run.phase == "released" and run.seen != view.job.state:
        job = view.job
        await context.db(context.store.update, run, seen=job.state, partition=job.partition, started=job.started)
    return run


async def settle(context: ClusterContext, view: JobView, diagnosis: Diagnosis | None = None) -> None:
    """Complete the submission's record with its end, and with what analyze_log found."""
    run = await context.db(context.store.by_job, context.owner, view.job.job_id.base)
    if run is not None:
        await _complete(context, run, view, diagnosis)


async def _complete(
    context: ClusterContext, run: Submission, view: JobView, diagnosis: Diagnosis | None = None
) -> None:
    read: dict[str, object] = {}
    if diagnosis is not None:
        found = job_outcome.found_cause(view.job, diagnosis)
        read = {"analysed": context.clock.now(), "category": diagnosis.category, "diagnosis": found}
    await context.db(
        context.store.update,
        run,
        outcome=view.job.state,
        failed=failed(view),
        run_seconds=view.job.elapsed_seconds,
        **({"category": run.category or view.job.state} | _end(run, view) | read),
    )


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
        "tasks": len(view.tasks) or 1,
    }
    if run.usage is None or any(part.steps for part in (job, *view.tasks)):
        found["usage"] = usage(job, view.tasks)
    return {name: value for name, value in found.items() if value is not None}


async def settle_all(context: ClusterContext, runs: Sequence[Submission]) -> set[int]:
    """Ask Slurm once for all of these, and complete the records of those that ended; returns those that it knows.

    Raises SlurmError.
    """
    views = await context.slurm.jobs([JobId(run.job_id) for run in runs if run.job_id is not None])
    for view in views.values():
        if ended(view):
            await settle(context, view)
    return {job_id.base for job_id in views}


async def settle_ended(context: ClusterContext, active: Collection[int], read: datetime) -> None:
    """Complete the records of this caller's jobs that were not active any more when the queue was read.

    Takes a few seconds at most; what is not known by then is for the next time. Of a job that Slurm has forgotten
    nothing is asked again.
    """
    runs = await context.db(context.store.unended, context.owner, before=read - _MARGIN)
    gone = [run for run in runs if run.job_id not in active][:_AT_ONCE]
    if not gone:
        return
    with contextlib.suppress(SlurmError), anyio.move_on_after(_SECONDS):
        known = await settle_all(context, gone)
        for run in gone:
            if run.job_id not in known:
                await context.db(context.store.update, run, seen="UNKNOWN")
