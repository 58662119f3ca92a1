"""Cancelling one job or array that this guard submitted, and whose state or log was read before."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from slurm_agent_tools.errors import AccountingUnreachable, UnknownJob
from slurm_agent_tools.insights import job_outcome
from slurm_agent_tools.models.arguments import CancelJob
from slurm_agent_tools.models.decision import RuleDecision, decision_shown
from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.models.job_resources import claims, count_slots
from slurm_agent_tools.models.submission_answer import CancelReply
from slurm_agent_tools.services import jobs, present, project_paths, recovery
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.services.drift import DriftWatch, parts
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.text.sanitize import line
from slurm_agent_tools.units import JobId, how_many, indices, ranges


async def cancel_job(context: ClusterContext, ask: CancelJob, caller: Caller) -> CancelReply:
    """Cancel and look whether it is so. Raises InputError, UnknownJob, SlurmRefused and SlurmUnreachable."""
    return await _cancel(context, jobs.parse(ask.job_id), ask.reason, caller)


async def cancel_tasks(
    context: ClusterContext, base: int, tasks: Collection[int], reason: str, caller: Caller
) -> CancelReply:
    """Cancel tasks of one array by one command, judged as cancel_job judges a job. Raises the same.

    The answer shows the whole array.
    """
    return await _cancel(context, JobId(base, tasks=ranges(sorted(tasks))), reason, caller)


async def _cancel(context: ClusterContext, job_id: JobId, why: str, caller: Caller) -> CancelReply:
    reason = project_paths.check_text("reason", why, limit=500)
    view = await jobs.look(context, job_id.whole if job_id.tasks is not None else job_id, fresh=True)
    run = await context.db(context.store.by_job, context.owner, job_id.base)
    if view.over or "ledger" in view.job.sources:
        return _over(context, view, run)
    await recovery.notice(context, parts(view))
    run = await context.db(context.store.by_job, context.owner, job_id.base)
    drifted = await DriftWatch(context, caller, "cancel_job").at(parts(view))
    refusal = await _refusal(context, view, run)
    if refusal is None and job_id == job_id.whole:
        refusal = await _crowded(context, job_id)
    decision = context.own_decision(refusal.outcome if refusal else "allow", [refusal] if refusal else [])  # type: ignore[arg-type]
    await context.log_decision(caller, decision, "cancel_job", "decided", job_id=str(job_id), reason=reason)
    if refusal is not None:
        return _blocked(context, view, refusal).model_copy(
            update={"decision": decision_shown(decision), "alerts": drifted}
        )
    await jobs.cancel(context, job_id)
    if run is not None:
        told = dict.fromkeys(_named(job_id), reason) | dict(run.cancellation or {})
        run = await context.db(context.store.update, run, cancellation=told)
    view = await _after(context, view)
    await context.log_decision(caller, decision, "cancel_job", "cancelled", job_id=str(job_id), state=view.job.state)
    return CancelReply(
        status="cancelled",
        summary=f"Job {job_id} ({line(view.job.name)}) was cancelled: {reason}",
        as_of=context.clock.now(),
        job=present.job(view.job, managed=True, why=job_outcome.cause(context, run, view.job)),
        decision=decision_shown(decision),
        alerts=[*jobs.missing(view), *drifted],
    )


def _named(job_id: JobId) -> list[str]:
    """The ids by which the ledger keeps what was cancelled."""
    if job_id.tasks is None:
        return [str(job_id)]
    return [str(JobId(job_id.base, task)) for task in sorted(indices(job_id.tasks))]


async def _after(context: ClusterContext, before: JobView) -> JobView:
    """The job as it is shown now; of a task that had not begun Slurm may keep nothing (measured)."""
    try:
        return await jobs.look(context, before.job.job_id)
    except (UnknownJob, AccountingUnreachable):
        return JobView(replace(before.job, state="CANCELLED", reason=None, expected_start=None))


def _over(context: ClusterContext, view: JobView, run: Submission | None) -> CancelReply:
    """Nothing is left to cancel: it ended, or the controller, which knows all that may run, does not know it."""
    end = "" if view.job.state == "UNKNOWN" else f": {view.job.state}"
    return CancelReply(
        status="already_finished",
        summary=f"Job {view.job.job_id} was over already{end}. Nothing was done.",
        as_of=context.clock.now(),
        job=present.job(view.job, why=job_outcome.cause(context, run, view.job)),
        alerts=jobs.missing(view),
    )


async def _refusal(context: ClusterContext, view: JobView, run: Submission | None) -> RuleDecision | None:
    job_id, person = view.job.job_id, "A person decides whether it may be cancelled."
    if run is not None and not recovery.same(run, (view.job, *view.tasks)):
        told = f"Slurm's job {job_id} does not have the token that submit_job gave to job {job_id}."
        remedy = f"It may be another job with the same number. {person}"
        return RuleDecision(id="direct-submission", outcome="approve", message=told, remedy=remedy)
    if run is None:
        told = f"Job {job_id} was not submitted by submit_job from this project{_whose(context, view.job)}."
        return RuleDecision(id="direct-submission", outcome="approve", message=told, remedy=person)
    if not await jobs.seen_since(context, run):
        told = f"No answer has shown how job {job_id} stands since it was submitted."
        remedy = f"Call wait_for_job, get_status or analyze_log and read of job {job_id}, then cancel_job again."
        return RuleDecision(id="status-first", outcome="deny", message=told, remedy=remedy)
    return None


async def _crowded(context: ClusterContext, job_id: JobId) -> RuleDecision | None:
    """Why this link of a chain has to stay: what waits for its end alone would run beside what it waits for itself."""
    most = context.policy.policy.limits.max_concurrent_jobs
    now = claims(job for job in context.slurm.mine(await context.slurm.queue()) if job.active)
    then = count_slots([claim for claim in now if claim.base != job_id.base])
    if then <= max(most, count_slots(now)):
        return None
    last = max(claim.base for claim in now if job_id.base in claim.after)
    told = f"Job {last} waits for its end and would then count by itself: {how_many(then, 'concurrent job')},"
    told += f" at most {most} are allowed."
    return RuleDecision(id="concurrent-jobs", outcome="deny", message=told, remedy=f"Cancel job {last} before it.")


def _whose(context: ClusterContext, job: Job) -> str:
    """Whom to ask: whose job it is, as far as Slurm tells, and of the same user's where it was begun."""
    if job.user is None:
        return ""
    if job.user != context.owner.user:
        return f": it is a job of {line(job.user)}"
    return f": it is a job of your user {line(job.user)}" + (f", begun in {line(job.work_dir)}" if job.work_dir else "")


def _blocked(context: ClusterContext, view: JobView, refusal: RuleDecision) -> CancelReply:
    human = refusal.outcome == "approve"
    return CancelReply(
        status="blocked",
        summary=f"Job {view.job.job_id} was not cancelled: {refusal.message} {refusal.remedy}",
        as_of=context.clock.now(),
        job=present.job(view.job, managed=not human),
        blocker="approval" if human else "policy",
        reason=refusal.message,
        human_action_required=human,
        manual_commands=[f"scancel {view.job.job_id}"] if human else [],
    )
