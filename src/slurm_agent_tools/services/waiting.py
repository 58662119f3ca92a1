"""wait_for_job: look once, then wait with everybody else; answer with what is known when the time is up."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import anyio

from slurm_agent_tools.diagnosis import job_parts
from slurm_agent_tools.diagnosis.cannot_start import cannot_start
from slurm_agent_tools.diagnosis.phrases import named, within
from slurm_agent_tools.errors import AccountingUnreachable, AgentToolsError, InputError, UnknownJob
from slurm_agent_tools.insights import job_outcome, measured_waits
from slurm_agent_tools.models.arguments import WaitForJob
from slurm_agent_tools.models.job import JobView
from slurm_agent_tools.models.report import WaitReply
from slurm_agent_tools.models.shapes import JobShown, RunningShown
from slurm_agent_tools.services import alert_wait, completion_report, job_alerts, jobs, present, recovery
from slurm_agent_tools.services.context import Caller, ClusterContext, Progress
from slurm_agent_tools.services.drift import DriftWatch
from slurm_agent_tools.services.job_alerts import ObservedJob
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.units import JobId

_LOG = "Its log may tell: see analyze_log."


async def wait_for_job(
    context: ClusterContext, ask: WaitForJob, caller: Caller, progress: Progress | None
) -> WaitReply:
    """Wait at most the asked time, for one job or for any or all of several.

    Raises InputError, UnknownJob and SlurmUnreachable.
    """
    ids = _asked(ask)
    views = await _ended_or_late(context, ids, ask, progress)
    seen = await _look_at_all(context, [views[job_id] for job_id in ids])
    decides = _decides(seen, ask.until)
    view = decides.view
    managed = await jobs.managed(context)
    drifted = await DriftWatch(context, caller, "wait_for_job").all_of_mine(view, managed)
    reply = _answer(context, decides, managed=view.job.job_id.base in managed)
    ended = jobs.status(view) == "finished"
    report = await completion_report.report(context, view, decides.run) if ended else None
    alerts = [alert for one in seen for alert in (*jobs.missing(one.view), *one.facts.alerts)]
    wait = await _suggested(context, seen, ask.until)
    more = {"alerts": [*alerts, *drifted], "report": report, "suggested_timeout_seconds": wait}
    reply = reply.model_copy(update=more)
    return reply if len(seen) == 1 else _together(reply, seen, managed)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One job as it stood when the wait was over, its submission, and what there is to say of it."""

    view: JobView
    run: Submission | None
    facts: ObservedJob


def _asked(ask: WaitForJob) -> list[JobId]:
    """Whom to wait for. Raises InputError."""
    if (ask.job_id is None) == (ask.job_ids is None):
        problem = "is required" if ask.job_id is None else "stands beside job_ids"
        raise InputError("job_id", ask.job_id, problem, hint="Give job_id, or job_ids and until.")
    field = "job_id" if ask.job_ids is None else "job_ids"
    return list(dict.fromkeys(jobs.parse(text, field) for text in ask.wanted))


async def _ended_or_late(
    context: ClusterContext, ids: Sequence[JobId], ask: WaitForJob, progress: Progress | None
) -> dict[JobId, JobView]:
    """Every job when the wait for them is over: by its time, by an end, or by an alert that is not to wait."""
    views: dict[JobId, JobView] = {}
    failed: list[AgentToolsError] = []
    unheard: dict[JobId, UnknownJob | AccountingUnreachable] = {}
    told = 0.0
    begun = context.clock.now()

    async def tell(job_id: JobId, view: JobView, seconds: float) -> None:
        nonlocal told
        if progress is not None and seconds > told:
            told = seconds
            await progress(seconds, ask.timeout_seconds, f"job {job_id}{job_parts.standing(view)}")

    async def wait(job_id: JobId, stop: Callable[[], object]) -> None:
        heard = partial(tell, job_id) if progress is not None else None
        try:
            view = await alert_wait.wait_with_alerts(context, job_id, ask.timeout_seconds, heard)
        except (UnknownJob, AccountingUnreachable) as error:
            unheard[job_id] = error
            if ask.until == "any":
                stop()
            return
        except AgentToolsError as error:  # outside of the group it is itself again
            failed.append(error)
            stop()
            return
        views[job_id] = view
        late = (context.clock.now() - begun).total_seconds() >= ask.timeout_seconds
        if not late and (ask.until == "any" or not view.over):
            stop()

    await _for_each(ids, wait)
    if failed:
        raise failed[0]
    views |= {job_id: await jobs.remembered(context, job_id, error) for job_id, error in unheard.items()}
    return {job_id: views.get(job_id) or await context.watcher.wait(job_id, 0) for job_id in ids}


async def _for_each(
    ids: Sequence[JobId], wait: Callable[[JobId, Callable[[], object]], Coroutine[Any, Any, None]]
) -> None:
    """Wait for all at once; a task of its own for each only where there are several, as hundreds wait for hours."""
    if len(ids) == 1:
        await wait(ids[0], bool)  # there is nobody to stop
        return
    async with anyio.create_task_group() as group:
        for job_id in ids:
            group.start_soon(wait, job_id, group.cancel_scope.cancel)


async def _look_at_all(context: ClusterContext, views: Sequence[JobView]) -> list[_Seen]:
    """What there is to see of each, a few at once."""
    room = anyio.Semaphore(8)

    async def look(view: JobView) -> _Seen:
        async with room:
            return await _look(context, view)

    questions = [ConcurrentQuestion(partial(look, view)) for view in views]
    await ask_all(*questions)
    return [question.value() for question in questions]


async def _look(context: ClusterContext, view: JobView) -> _Seen:
    """What there is to see of a job; the ledger remembers it."""
    view = await jobs.in_full(context, await completion_report.settled(context, view))
    await recovery.notice(context, [view.job, *view.tasks])
    run = await jobs.remember(context, view)
    return _Seen(view, run, await job_alerts.look(context, view, run))


def _decides(seen: Sequence[_Seen], until: Literal["any", "all"]) -> _Seen:
    """The job that the answer is about: of any the first that ended, of all the first that goes on, else the first."""
    ended = [one for one in seen if jobs.status(one.view) == "finished"]
    first = sorted(ended, key=lambda one: (one.view.job.ended is None, str(one.view.job.ended)))
    goes_on = [one for one in seen if one not in ended]
    failed = [one for one in ended if jobs.failed(one.view)]
    return ([*first, *seen] if until == "any" else [*goes_on, *failed, *seen])[0]


def _together(reply: WaitReply, seen: Sequence[_Seen], managed: frozenset[int]) -> WaitReply:
    """The answer about several jobs: how each stands, and whom to wait for next."""
    ended = [one.view for one in seen if jobs.status(one.view) == "finished"]
    left = [str(one.view.job.job_id) for one in seen if jobs.status(one.view) != "finished"]
    text = f"{len(ended)} of {len(seen)} jobs ended. {reply.summary.removesuffix(_AGAIN)}"
    text += f" The report is of job {reply.report.job_id}." if reply.report is not None else ""
    text += f" Go on with job_ids={json.dumps(left)}." if left else ""
    listed = [present.brief_job(one.view.job, managed=one.view.job.job_id.base in managed) for one in seen]
    return reply.model_copy(update={"summary": text, "jobs": listed})


_AGAIN = " Call wait_for_job again to go on waiting."


async def _suggested(context: ClusterContext, seen: Sequence[_Seen], until: Literal["any", "all"]) -> int | None:
    """The timeout of the next call; None where nothing goes on that it could wait for."""
    known = await context.db(context.store.accepted, context.owner) if any(one.run for one in seen) else []
    left = []
    for one in seen:
        goes_on = jobs.status(one.view) != "finished" and not _stuck(one.view, one.run)
        of_it = [past for past in known if one.run is not None and past.script_path == one.run.script_path]
        usual = measured_waits.usual_seconds([past.run_seconds for past in of_it if past.outcome == "COMPLETED"])
        now, running, start = context.clock.now(), one.facts.running, one.facts.estimated_start
        left.append(measured_waits.seconds_left(now, one.view.job, running, start, usual) if goes_on else None)
    return measured_waits.suggested_wait(left, until)


def _answer(context: ClusterContext, decides: _Seen, *, managed: bool) -> WaitReply:
    """All but the report and what drifted."""
    view, run, seen = decides.view, decides.run, decides.facts
    status = jobs.status(view)
    shown = present.job(view.job, managed=managed, why=job_outcome.cause(context, run, view.job))
    tasks, never = job_parts.shown(view.tasks), _stuck(view, run)
    return WaitReply(
        status=status,
        summary=_ended(shown, view, analysed=job_outcome.remembered(run, view.job) is not None) + _unrecorded(view, run)
        if status == "finished"
        else _going(shown, view, never, seen.running),
        as_of=context.clock.now(),
        job=shown,
        tasks=[present.part(task, shown, why=job_outcome.cause(context, run, task)) for task in tasks],
        tasks_by_state=job_parts.by_state(view.tasks),
        tasks_not_shown=len(view.tasks) - len(tasks),
        next_poll_seconds=None if status in {"finished", "unknown"} or never else context.watcher.pause(view),
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
    if view.missing is not None and not any(part.active for part in (view.job, *view.tasks)):
        return f"How job {job.job_id} ({job.name}) ended is not known: {view.missing} {_LOG}"
    if never is not None:
        return f"{never} cancel_job frees its slot." if job.managed else never
    told = f"Job {job.job_id} ({job.name}){job_parts.standing(view, running)}."
    return f"{told}{f' {job.cause}' if job.cause else ''}{_AGAIN}"


def _ended(job: JobShown, view: JobView, *, analysed: bool) -> str:
    """How a job ended, once, and of one that failed the next step."""
    if view.tasks:
        cause = f" {job.cause}" if job.cause and not job.exit_code else ""
        text = f"Job {job.job_id} ({job.name}): {job_parts.counted(view.tasks)}.{cause}"
    elif view.job.state == "COMPLETED":
        text = f"Job {job.job_id} ({job.name}){job_parts.standing(view)}." + (f" {job.cause}" if job.cause else "")
    else:
        ended = f": {within(job.cause)}" if job.cause else "."
        text = f"Job {job.job_id} ({job.name}) ended in {job.state}{ended}"
    if jobs.failed(view) and not analysed:
        text += f' analyze_log with job_id="{job.job_id}" says why.'
    return text


def _unrecorded(view: JobView, run: Submission | None) -> str:
    """Tasks of an array that were cancelled one by one while they waited: Slurm keeps nothing of them."""
    asked = None if run is None else run.requested.array_tasks
    left = (asked or 0) - sum(map(job_parts.width, view.tasks))
    if not view.tasks or left <= 0 or not view.over or view.missing is not None:
        return ""
    return f" {left} of its {asked} tasks left no record in Slurm: they were cancelled while they waited."
