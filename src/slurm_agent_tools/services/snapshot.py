"""The facts of the moment that a decision rests on: the queue, the partitions, what the ledger remembers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Literal

from slurm_agent_tools.errors import AccountingUnreachable, UnknownJob
from slurm_agent_tools.models.job import Job, token_in
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest, ScriptReading
from slurm_agent_tools.policy import plan
from slurm_agent_tools.policy.plan import LiveFacts, PastRun
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all
from slurm_agent_tools.store.submissions import LATE, Submission
from slurm_agent_tools.units import JobId

_CANDIDATE = 10**11  # above every id that Slurm can give

PARTITIONS_AGE = 60.0
"""Seconds: what a partition allows seldom changes, and the held job is compared all the same."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look at the cluster: partitions, this user's active jobs, and intents that are not in the queue (yet)."""

    partitions: dict[str, Partition]
    active: tuple[Job, ...]
    unsettled: tuple[Submission, ...]


def reserved_slots(unsettled: Sequence[Submission]) -> tuple[plan.Claim, ...]:
    """The slots of submissions that the queue does not show and whose fate is not known."""
    return tuple(plan.Claim(-1 - index, submission.slots) for index, submission in enumerate(unsettled))


async def take_snapshot(context: ClusterContext, request: JobRequest, *, fresh: bool) -> Snapshot:
    """Ask Slurm for queue and partitions at once. Raises SlurmError.

    Whole nodes are counted by what they have, which Slurm does not show of a job that waits: nothing kept counts there.
    """
    whole = bool(request.find("exclusive"))
    partitions = ConcurrentQuestion(partial(context.slurm.partitions, fresh=whole, max_age=PARTITIONS_AGE))
    queue = ConcurrentQuestion(partial(context.slurm.queue, fresh=fresh))
    await ask_all(partitions, queue)
    mine = tuple(job for job in context.slurm.mine(queue.value()) if job.active)
    return Snapshot(dict(partitions.value()), mine, await unsettled(context, mine))


async def reasons_crowded(context: ClusterContext, job_id: JobId) -> list[str]:
    """Why a held job may not go on after all: jobs from other machines, which the lock here does not hold up.

    Of several that race, those with the lower ids go on: each counts the jobs that were accepted before it.
    """
    before = [job for job in context.slurm.mine(await context.slurm.queue(fresh=True)) if job.active]
    taken = plan.count_slots(plan.claims(job for job in before if job.job_id.base <= job_id.base))
    limit = context.policy.policy.limits.max_concurrent_jobs
    if taken <= limit:
        return []
    return [f"it would be one of {taken} concurrent jobs, at most {limit} are allowed: others came first elsewhere"]


async def begun(context: ClusterContext, *, keep: str | None = None) -> list[Submission]:
    """Submissions of which something is left to find out, but for that of the key `keep`."""
    since = context.clock.now() - LATE
    items = await context.db(context.store.open_submissions, context.owner, lost_since=since)
    return [item for item in items if item.idempotency_key != keep]


async def unsettled(context: ClusterContext, mine: Sequence[Job]) -> tuple[Submission, ...]:
    """Open submissions that the queue does not show: they may still become jobs, so they keep their slots."""
    pending = await context.db(context.store.open_submissions, context.owner)
    if not pending:
        return ()
    shown = {job.job_id.base for job in mine}
    tokens = {token_in(job.comment) for job in mine}
    return tuple(item for item in pending if item.job_id not in shown and item.token not in tokens)


async def live_facts(context: ClusterContext, snapshot: Snapshot, reading: ScriptReading) -> LiveFacts:
    """Everything that the policy wants to know, with this script's request counted in."""
    request = reading.request
    width = request.array.concurrency if request.array is not None else 1
    reserved = reserved_slots(snapshot.unsettled)
    now_claimed = (*plan.claims(snapshot.active), *reserved)
    after = plan.waits_for(request.dependency)
    candidate = plan.Claim(_CANDIDATE, width, after)
    active_now, active_then = plan.count_slots(now_claimed), plan.count_slots((*now_claimed, candidate))
    waiting = plan.claims(job for job in snapshot.active if job.state == "PENDING")
    known, ended = await _named(context, plan.named(request.dependency)) if request.dependency else (frozenset(), {})
    before = await history(context, snapshot.active, reading)
    today = await context.db(context.store.sent_since, context.owner, context.clock.now() - timedelta(days=1))
    return LiveFacts(
        now=context.clock.now(),
        partitions=snapshot.partitions,
        active_jobs=active_now,
        active=snapshot.active,
        status_read=await context.db(context.store.last_read, context.owner, "status"),
        known_jobs=known,
        ended_jobs=ended,
        takes_over=str(min(after)) if after and active_then < active_now + width else None,
        slots_after=active_then,
        history=before,
        pending_after=plan.count_slots((*waiting, *reserved, candidate)),
        submissions_today=len(today),
        gpu_hours_today=round(sum(_hours(item, "gpus") for item in today), 2),
        cpu_hours_today=round(sum(_hours(item, "cpus") for item in today), 2),
    )


def _hours(item: Submission, count: Literal["gpus", "cpus"]) -> float:
    """Hours that a submission may still use, or that it used when it is over; tasks of an array as they were asked."""
    asked = item.requested
    seconds = asked.time_limit_seconds or 0
    if item.run_seconds is not None and asked.array_tasks is None:
        seconds = item.run_seconds
    return max(0, seconds) / 3600 * ((asked.gpus if count == "gpus" else asked.cpus) or 0) * (asked.array_tasks or 1)


async def history(context: ClusterContext, active: Sequence[Job], reading: ScriptReading) -> tuple[PastRun, ...]:
    """This caller's earlier submissions, newest first; those that bear on this script with their end as Slurm tells it.

    Of the others the end is asked for only where the policy counts the hours of a day.
    """
    running, silent = {job.job_id.base for job in active}, None
    runs = await context.db(context.store.accepted, context.owner)
    wanted = [run for run in runs if run.outcome is None and run.job_id not in running and run.phase == "released"]
    limits = context.policy.policy.limits
    if limits.gpu_hours_per_day is None and limits.cpu_hours_per_day is None:
        wanted = [run for run in wanted if _related(run, reading)]
    asked = {run.job_id for run in wanted}
    if wanted:
        from slurm_agent_tools.services import jobs  # noqa: PLC0415 - nothing ran that bears on it

        await jobs.settle_all(context, wanted)
        runs = await context.db(context.store.accepted, context.owner)
        silent = context.slurm.accounting.missing
    return tuple(
        PastRun(
            job_id=str(run.job_id),
            script_path=run.script_path,
            script_sha256=run.script_sha256,
            job_name=run.job_name,
            request_sha256=run.request_sha256,
            submitted=run.created,
            outcome=run.outcome,
            failed=run.failed,
            category=run.category,
            analysed=run.analysed is not None,
            active=run.job_id in running,
            unseen=silent if silent is not None and run.outcome is None and run.job_id in asked else None,
        )
        for run in runs
    )


def _related(run: Submission, reading: ScriptReading) -> bool:
    """Whether a rule looks at how this run ended: it ran this script, or has the name that this job will have."""
    name = reading.request.name or reading.path.rsplit("/", 1)[-1]
    return run.script_path == reading.path or run.script_sha256 == reading.sha256 or run.job_name == name


async def _named(context: ClusterContext, wanted: frozenset[int]) -> tuple[frozenset[str], dict[str, str]]:
    """Those that the controller still holds, and how those ended that are over and have no parts.

    The controller takes a dependency on a job that it forgot as satisfied (22.05).
    """
    from slurm_agent_tools.services import jobs  # noqa: PLC0415 - few scripts wait for another job

    known: set[str] = set()
    ended: dict[str, str] = {}
    for base in sorted(wanted):
        try:
            view = await jobs.look(context, JobId(base))
        except (UnknownJob, AccountingUnreachable):  # the controller does not hold it
            continue
        if {"squeue", "scontrol"} & set(view.job.sources):
            known.add(str(base))
        if view.over and not view.tasks:
            ended[str(base)] = view.job.state
    return frozenset(known), ended
