"""wait_for_job: look once, then wait with everybody else; answer with what is known when the time is up."""

from __future__ import annotations

from dataclasses import replace

from slurm_agent_tools.catalogue import WaitForJob
from slurm_agent_tools.diagnosis import parts, words
from slurm_agent_tools.diagnosis.alerts import hopeless
from slurm_agent_tools.diagnosis.kinds import span
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies import Alert, JobShown, RunningShown, WaitReply
from slurm_agent_tools.slurm.client import JobView
from slurm_agent_tools.toolbox import alerts, endings, jobs, recover, reporting, show, vigil
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
            await progress(seconds, ask.timeout_seconds, f"job {job_id}{standing(view)}")

    view = await vigil.wait(desk, job_id, ask.timeout_seconds, tell if progress is not None else None)
    view = await reporting.settled(desk, view)
    await recover.notice(desk, [view.job, *view.tasks])
    await jobs.remember(desk, view)
    seen = await alerts.look(desk, view)
    return await _answer(desk, view, seen, await Look(desk, caller, "wait_for_job").all_of_mine(view))


async def _answer(desk: Desk, view: JobView, seen: Seen, drifted: list[Alert]) -> WaitReply:
    now = desk.clock.now()
    managed = await jobs.managed(desk)
    run = await desk.db(desk.store.by_job, desk.owner, view.job.job_id.base)
    status = _status(view)
    cause = endings.cause(desk, run, view.job)
    shown = show.job(view.job, managed=view.job.job_id.base in managed, why=cause)
    tasks = parts.shown(view.tasks)
    return WaitReply(
        status=status,
        summary=_ended(shown, view, analysed=endings.remembered(run, view.job) is not None)
        if status == "finished"
        else _going(shown, view, seen.running),
        as_of=now,
        job=shown,
        tasks=[show.job(task, managed=shown.managed, why=endings.cause(desk, run, task)) for task in tasks],
        tasks_by_state=parts.by_state(view.tasks),
        tasks_not_shown=len(view.tasks) - len(tasks),
        next_poll_seconds=None if status == "finished" or _stuck(view) else desk.watcher.pause(view),
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


def _stuck(view: JobView) -> str | None:
    """Why nothing of it will ever start; None where something may go on."""
    active = [part for part in (view.tasks or (view.job,)) if part.active]
    told = [hopeless(part) for part in active]
    return told[0] if told and all(told) else None


def _going(job: JobShown, view: JobView, running: RunningShown | None) -> str:
    """How a job stands that goes on, and what to do next."""
    never = _stuck(view)
    if never is not None:
        return f"{never} cancel_job frees its slot." if job.managed else never
    told = f"Job {job.job_id} ({job.name}){standing(view, running)}."
    return f"{told}{f' {job.cause}' if job.cause else ''} Call wait_for_job again to go on waiting."


def _ended(job: JobShown, view: JobView, *, analysed: bool) -> str:
    """How a job ended, once, and of one that failed the next step."""
    if view.tasks:
        cause = f" {job.cause}" if job.cause and not job.exit_code else ""
        text = f"Job {job.job_id} ({job.name}): {parts.counted(view.tasks)}.{cause}"
    elif view.job.state == "COMPLETED":
        text = f"Job {job.job_id} ({job.name}){standing(view)}." + (f" {job.cause}" if job.cause else "")
    else:
        ended = f": {job.cause[0].lower()}{job.cause[1:]}" if job.cause else "."
        text = f"Job {job.job_id} ({job.name}) ended in {job.state}{ended}"
    if jobs.failed(view) and not analysed:
        text += f' analyze_log with job_id="{job.job_id}" says why.'
    return text


def standing(view: JobView, running: RunningShown | None = None) -> str:
    """` is` and its state with what goes with it; of many parts how many stand where."""
    return f": {parts.counted(view.tasks)}" if view.tasks else f" is {describe(view.job, running)}"


def describe(job: Job, running: RunningShown | None = None) -> str:
    """State and what goes with it, in a few words."""
    if job.state == "PENDING":
        return f"PENDING ({job.reason})" if job.reason else "PENDING"
    if job.active:
        so_far = "" if job.elapsed_seconds is None else f" for {span(job.elapsed_seconds)}"
        return ", ".join([f"{job.state}{so_far}", *([] if running is None else _use(running))])
    return words.outcome(replace(job, cancelled_by=None))


def _use(running: RunningShown) -> list[str]:
    """Memory and time that are left, where they are known."""
    share, told = running.memory_share, []
    if share is not None and running.memory_bytes and running.memory_limit_bytes:
        whole = running.memory_bytes / running.memory_limit_bytes
        most = "" if share <= whole + 0.01 else " of that of one node"
        told = [f"memory {running.memory} of {running.memory_limit} ({words.percent(share)}{most})"]
    elif share is not None:
        told = [f"memory at {words.percent(share)}"]
    return told if running.time_left_seconds is None else [*told, f"{span(running.time_left_seconds)} left"]
