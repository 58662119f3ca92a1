"""wait_for_job: look once, then wait with everybody else; answer with what is known when the time is up."""

from __future__ import annotations

from slurm_agent_tools.catalogue import WaitForJob
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies import Alert, JobShown, WaitReply
from slurm_agent_tools.slurm.client import JobView
from slurm_agent_tools.toolbox import alerts, jobs, recover, reporting, show, vigil
from slurm_agent_tools.toolbox.alerts import Seen
from slurm_agent_tools.toolbox.desk import Caller, Desk, Progress
from slurm_agent_tools.toolbox.drift import Look

_STARTED = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING", "STAGE_OUT"})


async def wait_for_job(desk: Desk, ask: WaitForJob, caller: Caller, progress: Progress | None) -> WaitReply:
    """Wait at most the asked time (see vigil). Raises InputError, UnknownJob and SlurmUnreachable."""
    job_id = jobs.parse(ask.job_id)
    told = 0.0

    async def tell(view: JobView, seconds: float) -> None:
        nonlocal told
        if progress is not None and seconds > told:
            told = seconds
            await progress(seconds, ask.timeout_seconds, f"job {job_id} is {describe(view.job)}")

    view = await vigil.wait(desk, job_id, ask.timeout_seconds, tell if progress is not None else None)
    view = await reporting.settled(desk, view)
    await recover.notice(desk, [view.job, *view.tasks])
    await jobs.remember(desk, view)
    seen = await alerts.look(desk, view)
    return await _answer(desk, view, seen, await Look(desk, caller, "wait_for_job").all_of_mine(view))


async def _answer(desk: Desk, view: JobView, seen: Seen, drifted: list[Alert]) -> WaitReply:
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
        alerts=[*seen.alerts, *drifted],
        running=seen.running,
        estimated_start=seen.estimated_start,
        report=await reporting.report(desk, view) if status == "finished" else None,
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
