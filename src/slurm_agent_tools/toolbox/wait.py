"""wait_for_job: look once, then wait with everybody else; answer with what is known when the time is up."""

from __future__ import annotations

from datetime import datetime

from slurm_agent_tools.catalogue import WaitForJob
from slurm_agent_tools.diagnosis.report import report
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies import Alert, JobShown, ResourcesShown, WaitReply
from slurm_agent_tools.slurm.client import JobView
from slurm_agent_tools.toolbox import jobs, recover, show
from slurm_agent_tools.toolbox.desk import Caller, Desk, Progress
from slurm_agent_tools.toolbox.drift import Look

_STARTED = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING", "STAGE_OUT"})
_FEW_MINUTES = 300


async def wait_for_job(desk: Desk, ask: WaitForJob, caller: Caller, progress: Progress | None) -> WaitReply:
    """Wait at most the asked time. Raises InputError, UnknownJob and SlurmUnreachable."""
    job_id = jobs.parse(ask.job_id)
    seen = 0.0

    async def tell(view: JobView, seconds: float) -> None:
        nonlocal seen
        if progress is not None and seconds > seen:
            seen = seconds
            await progress(seconds, ask.timeout_seconds, f"job {job_id} is {describe(view.job)}")

    view = await desk.watcher.wait(job_id, ask.timeout_seconds, tell if progress is not None else None)
    await recover.notice(desk, [view.job, *view.tasks])
    await jobs.remember(desk, view)
    return await _answer(desk, view, await Look(desk, caller, "wait_for_job").all_of_mine(view))


async def _answer(desk: Desk, view: JobView, drifted: list[Alert]) -> WaitReply:
    now = desk.clock.now()
    managed = await jobs.managed(desk)
    status = _status(view)
    shown = show.job(view.job, managed=view.job.job_id.base in managed)
    return WaitReply(
        status=status,
        summary=_summary(shown, view, status),
        as_of=now,
        job=shown,
        tasks=[show.job(task, managed=shown.managed) for task in view.tasks],
        next_poll_seconds=None if status == "finished" else desk.watcher.pause(view),
        alerts=[*alerts(view, now), *drifted],
        report=report(view.job, view.tasks, await _requested(desk, view.job)) if status == "finished" else None,
    )


def _status(view: JobView) -> str:
    states = {part.state for part in (view.job, *view.tasks)}
    if view.job.state == "UNKNOWN":
        return "unknown"
    if not any(part.active for part in (view.job, *view.tasks)):
        return "finished"
    return "running" if states & _STARTED else "pending"


def _summary(job: JobShown, view: JobView, status: str) -> str:
    text = f"Job {job.job_id} ({job.name}) is {describe(view.job)}."
    if job.cause:
        text += f" {job.cause}"
    if status != "finished":
        text += " Call wait_for_job again to go on waiting."
    return text


def describe(job: Job) -> str:
    """State and what goes with it, in a few words."""
    if job.state == "PENDING":
        return f"PENDING ({job.reason})" if job.reason else "PENDING"
    if job.active:
        return f"{job.state}, {job.elapsed_seconds} s so far" if job.elapsed_seconds is not None else job.state
    if job.signal and job.state != "OUT_OF_MEMORY":  # Slurm's 0:125 there is no signal
        return f"{job.state} (signal {job.signal})"
    return f"{job.state} (exit code {job.exit_code})" if job.exit_code is not None else job.state


def alerts(view: JobView, now: datetime) -> list[Alert]:
    """What a person should see about one job."""
    job, found = view.job, []
    if jobs.ended(view) and jobs.failed(view):
        found.append(Alert(severity="critical", code="job-failed", message=f"Job {job.job_id} ended in {job.state}."))
    left = time_left(job, now)
    if left is not None and left < _FEW_MINUTES:
        found.append(Alert(severity="high", code="time-left", message=f"Job {job.job_id} has {left} s left."))
    return found


def time_left(job: Job, now: datetime) -> int | None:
    """Seconds until the time limit ends a running job; None where there is no limit or it does not run."""
    limit = job.resources.time_limit_seconds
    if job.state != "RUNNING" or limit is None or limit < 0 or job.started is None:
        return None
    return max(0, round(limit - (now - job.started).total_seconds()))


async def _requested(desk: Desk, job: Job) -> ResourcesShown:
    submission = await desk.db(desk.store.by_job, desk.owner, job.job_id.base)
    if submission is not None:
        return ResourcesShown.model_validate_json(submission.request_json)
    return show.resources(job.resources)
