"""wait_for_job: look once, then wait with everybody else; answer with what is known when the time is up."""

from __future__ import annotations

from dataclasses import replace

from slurm_agent_tools.diagnosis import job_parts, phrases
from slurm_agent_tools.diagnosis.alert_types import named, span
from slurm_agent_tools.diagnosis.cannot_start import cannot_start
from slurm_agent_tools.models.arguments import WaitForJob
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.report import WaitReply
from slurm_agent_tools.models.shapes import JobShown, RunningShown
from slurm_agent_tools.services import alert_wait, completion_report, job_alerts, job_outcome, jobs, present, recovery
from slurm_agent_tools.services.context import Caller, ClusterContext, Progress
from slurm_agent_tools.services.drift import DriftWatch
from slurm_agent_tools.services.job_alerts import ObservedJob
from slurm_agent_tools.slurm.merge import JobView
from slurm_agent_tools.store.submissions import Submission

_COUNTS = frozenset({"RUNNING", "CONFIGURING"})


async def wait_for_job(
    context: ClusterContext, ask: WaitForJob, caller: Caller, progress: Progress | None
) -> WaitReply:
    """Wait at most the asked time (see vigil). Raises InputError, UnknownJob and SlurmUnreachable."""
    job_id = jobs.parse(ask.job_id)
    told = 0.0

    async def tell(view: JobView, seconds: float) -> None:
        nonlocal told
        if progress is not None and seconds > told:
            told = seconds
            await progress(seconds, ask.timeout_seconds, f"job {job_id}{standing(view)}")

    view = await alert_wait.wait_with_alerts(
        context, job_id, ask.timeout_seconds, tell if progress is not None else None
    )
    view = await completion_report.settled(context, view)
    await recovery.notice(context, [view.job, *view.tasks])
    run = await jobs.remember(context, view)
    managed = await jobs.managed(context)
    seen = await job_alerts.look(context, view, run)
    drifted = await DriftWatch(context, caller, "wait_for_job").all_of_mine(view, managed)
    reply = _answer(context, view, run, seen, managed=view.job.job_id.base in managed)
    report = await completion_report.report(context, view, run) if reply.status == "finished" else None
    return reply.model_copy(update={"alerts": [*seen.alerts, *drifted], "report": report})


def _answer(
    context: ClusterContext, view: JobView, run: Submission | None, seen: ObservedJob, *, managed: bool
) -> WaitReply:
    """All but the report and what drifted."""
    status = jobs.status(view)
    shown = present.job(view.job, managed=managed, why=job_outcome.cause(context, run, view.job))
    tasks, never = job_parts.shown(view.tasks), _stuck(view, run)
    return WaitReply(
        status=status,
        summary=_ended(shown, view, analysed=job_outcome.remembered(run, view.job) is not None)
        if status == "finished"
        else _going(shown, view, never, seen.running),
        as_of=context.clock.now(),
        job=shown,
        tasks=[present.part(task, shown, why=job_outcome.cause(context, run, task)) for task in tasks],
        tasks_by_state=job_parts.by_state(view.tasks),
        tasks_not_shown=len(view.tasks) - len(tasks),
        next_poll_seconds=None if status == "finished" or never else context.watcher.pause(view),
        running=seen.running,
        estimated_start=seen.estimated_start,
    )


def _stuck(view: JobView, run: Submission | None) -> str | None:
    """Why nothing of it starts by itself, and what has to change; None where something may go on."""
    known = view.tasks or (view.job,)
    left = [part for part in known if part.active]
    if not left:
        return None
    told = cannot_start(left[0] if len(left) < len(known) else replace(left[0], job_id=view.job.job_id))
    if told is None or not all(map(cannot_start, left)):
        return None
    if run is not None and run.phase == "held":  # by the guard itself: nobody is told to release that
        return (
            f"{named(view.job)} is held until its submission is done. If that broke off, submit_job with"
            f" idempotency_key {run.idempotency_key} goes on with it."
        )
    return told.told


def _going(job: JobShown, view: JobView, never: str | None, running: RunningShown | None) -> str:
    """How a job stands that goes on, and what to do next; `never`: why it does not by itself."""
    if never is not None:
        return f"{never} cancel_job frees its slot." if job.managed else never
    told = f"Job {job.job_id} ({job.name}){standing(view, running)}."
    return f"{told}{f' {job.cause}' if job.cause else ''} Call wait_for_job again to go on waiting."


def _ended(job: JobShown, view: JobView, *, analysed: bool) -> str:
    """How a job ended, once, and of one that failed the next step."""
    if view.tasks:
        cause = f" {job.cause}" if job.cause and not job.exit_code else ""
        text = f"Job {job.job_id} ({job.name}): {job_parts.counted(view.tasks)}.{cause}"
    elif view.job.state == "COMPLETED":
        text = f"Job {job.job_id} ({job.name}){standing(view)}." + (f" {job.cause}" if job.cause else "")
    else:
        ended = f": {_inside(job.cause)}" if job.cause else "."
        text = f"Job {job.job_id} ({job.name}) ended in {job.state}{ended}"
    if jobs.failed(view) and not analysed:
        text += f' analyze_log with job_id="{job.job_id}" says why.'
    return text


def _inside(sentence: str) -> str:
    """A sentence behind a colon."""
    return sentence if sentence.startswith("Slurm") else f"{sentence[0].lower()}{sentence[1:]}"


def standing(view: JobView, running: RunningShown | None = None) -> str:
    """` is` and its state with what goes with it; of many parts how many stand where."""
    return f": {job_parts.counted(view.tasks)}" if view.tasks else f" is {describe(view.job, running)}"


def describe(job: Job, running: RunningShown | None = None) -> str:
    """State and what goes with it, in a few words."""
    if job.state == "PENDING":
        return f"PENDING ({job.reason})" if job.reason else "PENDING"
    if job.active:
        since = "for" if job.state in _COUNTS else "after running"  # Slurm counts the time that it ran
        so_far = "" if job.elapsed_seconds is None else f" {since} {span(job.elapsed_seconds)}"
        return ", ".join([f"{job.state}{so_far}", *([] if running is None else _use(running))])
    return phrases.outcome(replace(job, cancelled_by=None))


def _use(running: RunningShown) -> list[str]:
    """Memory and time that are left, where they are known."""
    share, told = running.memory_share, []
    if share is not None and running.memory_bytes and running.memory_limit_bytes:
        whole = running.memory_bytes / running.memory_limit_bytes
        most = "" if share <= whole + 0.01 else " of that of one node"
        told = [f"memory {running.memory} of {running.memory_limit} ({phrases.percent(share)}{most})"]
    elif share is not None:
        told = [f"memory at {phrases.percent(share)}"]
    return told if running.time_left_seconds is None else [*told, f"{span(running.time_left_seconds)} left"]
