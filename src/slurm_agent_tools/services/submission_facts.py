"""What is known before a script is sent: the facts that the policy asks for, and what its caller may expect of it.

The second refuses no job and keeps none waiting: where the accounting is slow, its part is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal

from slurm_agent_tools.errors import AccountingUnreachable, UnknownJob
from slurm_agent_tools.models.job import Job, JobRecord
from slurm_agent_tools.models.job_resources import Claim, claims, count_slots, named_jobs, named_tasks, waits_for
from slurm_agent_tools.models.job_resources import reserved as slots_of_tickets
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest, ScriptReading
from slurm_agent_tools.models.submission_answer import Advised, ExpectedWait
from slurm_agent_tools.policy.plan import LiveFacts, PastRun
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all
from slurm_agent_tools.slurm.client import JobViews, awaited_jobs
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.units import HUNDRED_YEARS, UNLIMITED, JobId, format_duration

if TYPE_CHECKING:
    from slurm_agent_tools.services.submission_request import SubmissionRequest
    from slurm_agent_tools.slurm.commands.sbatch import TestOnly
    from slurm_agent_tools.slurm.commands.squeue import Queue

# --- The facts of the moment ------------------------------------------------------------------------------------------

_CANDIDATE = 10**11  # above every id that Slurm can give

PARTITIONS_AGE = 60.0
"""Seconds: what a partition allows seldom changes, and the held job is compared all the same."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look at the cluster: partitions, this user's active jobs, and intents that are not in the queue (yet)."""

    partitions: dict[str, Partition]
    active: tuple[Job, ...]
    unsettled: tuple[Submission, ...]
    queue: Queue | None = None  # everybody's jobs


async def take_snapshot(context: ClusterContext, request: JobRequest, *, fresh: bool) -> Snapshot:
    """Ask Slurm for queue and partitions at once. Raises SlurmError.

    Whole nodes are counted by what they have, which Slurm does not show of a job that waits: nothing kept counts there.
    """
    whole = bool(request.find("exclusive"))
    partitions = ConcurrentQuestion(partial(context.slurm.partitions, fresh=whole, max_age=PARTITIONS_AGE))
    queue = ConcurrentQuestion(partial(context.slurm.queue, max_age=0 if fresh else None))
    await ask_all(partitions, queue)
    mine = tuple(job for job in context.slurm.mine(queue.value()) if job.active)
    return Snapshot(dict(partitions.value()), mine, await context.unsettled(mine), queue.value())


async def free_slots(context: ClusterContext) -> int:
    """How many more jobs, or tasks of an array at once, the limit of concurrent jobs lets in now. Raises SlurmError."""
    mine = tuple(job for job in context.slurm.mine(await context.slurm.queue(max_age=0)) if job.active)
    kept = slots_of_tickets(item.slots for item in await context.unsettled(mine))
    return max(0, context.policy.policy.limits.max_concurrent_jobs - count_slots((*claims(mine), *kept)))


async def reasons_crowded(context: ClusterContext, job_id: JobId) -> list[str]:
    """Why a held job may not go on after all: jobs from other machines, which the lock here does not hold up.

    Of several that race, those with the lower ids go on: each counts the jobs that were accepted before it.
    """
    before = [job for job in context.slurm.mine(await context.slurm.queue(max_age=0)) if job.active]
    taken = count_slots(claims(job for job in before if job.job_id.base <= job_id.base))
    limit = context.policy.policy.limits.max_concurrent_jobs
    if taken <= limit:
        return []
    return [f"it would be one of {taken} concurrent jobs, at most {limit} are allowed: others came first elsewhere"]


async def live_facts(
    context: ClusterContext, snapshot: Snapshot, reading: ScriptReading, *, work: str | None = None
) -> LiveFacts:
    """Everything that the policy wants to know, with this script's request counted in. `work`: see Submission."""
    request = reading.request
    width = request.array.concurrency if request.array is not None else 1
    kept = slots_of_tickets(item.slots for item in snapshot.unsettled) if snapshot.unsettled else ()
    now_claimed = (*claims(snapshot.active), *kept)
    after = waits_for(request.dependency, {claim.base for claim in now_claimed if claim.parts == "tasks"})
    candidate = Claim(_CANDIDATE, width, after)
    active_now, active_then = count_slots(now_claimed), count_slots((*now_claimed, candidate))
    waiting = claims(job for job in snapshot.active if job.state == "PENDING")
    known, ended = await _named(context, request.dependency) if request.dependency else (frozenset(), {})
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
        pending_after=count_slots((*waiting, *kept, candidate)),
        submissions_today=len(today),
        gpu_hours_today=round(sum(_hours(item, "gpus") for item in today), 2),
        cpu_hours_today=round(sum(_hours(item, "cpus") for item in today), 2),
        gpu_hours_of_work=sum(_hours(item, "gpus") for item in today if item.work == work and item.stage != "smoke"),
        cpu_hours_of_work=sum(_hours(item, "cpus") for item in today if item.work == work and item.stage != "smoke"),
    )


def _hours(item: Submission, count: Literal["gpus", "cpus"]) -> float:
    """Hours that a submission may still use, or that it used when it is over; tasks of an array as they were asked."""
    asked = item.requested
    seconds = HUNDRED_YEARS if asked.time_limit_seconds in {None, UNLIMITED} else asked.time_limit_seconds
    if item.run_seconds is not None and asked.array_tasks is None:
        seconds = item.run_seconds
    return seconds / 3600 * ((asked.gpus if count == "gpus" else asked.cpus) or 0) * (asked.array_tasks or 1)


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


async def _named(context: ClusterContext, dependency: str) -> tuple[frozenset[str], dict[str, str]]:
    """Those that the controller still holds, and how those ended that are over and have no parts.

    The controller takes a dependency on a job or a task that it does not hold as satisfied (22.05). All are asked about
    together; where they are more than the policy allows, none is.
    """
    from slurm_agent_tools.policy.rules.earlier_jobs import MOST_NAMED  # noqa: PLC0415 - few wait for another job
    from slurm_agent_tools.services import jobs  # noqa: PLC0415 - as above

    known: set[str] = set()
    ended: dict[str, str] = {}
    wanted, tasks = named_jobs(dependency), named_tasks(dependency)
    ids = [JobId(base) for base in sorted(wanted) if base < _CANDIDATE] if len(wanted) <= MOST_NAMED else []
    views = await context.slurm.jobs(ids) if ids else JobViews()
    for job_id in ids:
        try:
            if job_id in views:
                view = await jobs.in_full(context, views[job_id])
            else:
                why = views.silent or UnknownJob("job_id", str(job_id), "Slurm knows no such job")
                view = await jobs.remembered(context, job_id, why)
        except (UnknownJob, AccountingUnreachable):  # the controller does not hold it
            continue
        if {"squeue", "scontrol"} & set(view.job.sources):
            known.add(str(job_id))
            known |= {f"{job_id}_{task}" for base, task in tasks if base == job_id.base and view.holds_task(task)}
        if view.over and not view.tasks:
            ended[str(job_id)] = view.job.state
    return frozenset(known), ended


# --- When it will start, whether it asks for too much, and whether it ends in time ------------------------------------

_RUNS = 200

_ASKS = "a dry run asks it"

_FAR, _MINUTE = 10, 60
"""So many times what jobs really waited Slurm's estimate says little: it takes every job to the end of its limit."""

_AT_ONCE = 10  # seconds: until then the scheduler has looked


async def with_advice(
    context: ClusterContext, request: SubmissionRequest, trial: TestOnly, snapshot: Snapshot, *, ask: bool = True
) -> SubmissionRequest:
    """The request with all that is known of its wait, its size and its time.

    `ask` False: the accounting is not asked, and what is known without it has to do.
    """
    known = await records(context, request.name, request.reading.sha256, ask=ask)
    awaits = await awaited_jobs(context.slurm, request.effective.dependency) if request.effective.dependency else None
    start = trial.start if awaits is None else None  # the trial knows of no dependency
    begins = None if start is None else max(0, round((start - context.clock.now()).total_seconds()))
    if known or ask or context.slurm.waits_kept:
        # Loaded where there is something to tell.
        from slurm_agent_tools.insights import accounting_history, queue_history  # noqa: PLC0415 - as said
        from slurm_agent_tools.planning import foretold  # noqa: PLC0415 - as above

        past = await queue_history.recent_waits(context, ask=ask, otherwise=_ASKS)
        job = queue_history.EstimatedJob(request.resources, request.pinned, request.arguments.time_budget)
        advised = queue_history.estimate(job, past, known, begins, awaits)
        at, smoke = context.clock.now().timestamp(), request.arguments.stage == "smoke"
        submitted = foretold.SubmittedJob(
            request.name, request.reading.path, request.resources, context.environment.user, at, snapshot.active,
            begins, runs=not smoke, waits=awaits is None,
        )  # fmt: skip
        before = await accounting_history.known_before(context, known, past.waits)
        given, words = foretold.of_submission(submitted, before)
        request = replace(request, foretold=given)
        advised = advised.model_copy(update={"foretold": words})
    else:
        note = f"The accounting was not asked: {_ASKS}."
        advised = Advised(expected_wait=ExpectedWait(from_slurm_seconds=begins, jobs=0, note=note), awaits=awaits)
    alone = begins is not None and begins >= _AT_ONCE and snapshot.queue is not None and snapshot.queue.nobody_waits
    return replace(request, advised=advised.model_copy(update={"estimated_start": start}), alone=alone)


async def records(
    context: ClusterContext, name: str, sha256: str | None = None, *, ask: bool = True
) -> list[JobRecord]:
    """What is known of this caller's jobs of this name, and remembered of this script under other names."""
    named = await context.db(context.store.history, context.owner, name=name, limit=_RUNS)
    same = (
        []
        if sha256 is None
        else await context.db(context.store.history, context.owner, script_sha256=sha256, limit=_RUNS)
    )
    remembered = {record.job_id: record for record in [*named, *same]}
    if not ask:
        return sorted(remembered.values(), key=lambda record: (record.submitted, record.job_id), reverse=True)
    from slurm_agent_tools.insights.accounting_history import is_answered  # noqa: PLC0415 - few calls ask for it
    from slurm_agent_tools.insights.job_search import merged  # noqa: PLC0415 - as above

    return merged(remembered.values(), await is_answered(context, name))


def starts(wait: ExpectedWait | None, *, alone: bool = False) -> str:
    """When Slurm expects the start, as a sentence; empty where it does not tell. `alone`: no other job waits.

    A scheduler that has not looked since it began, or since the last job left, names minutes that nobody waits.
    """
    seconds = None if wait is None else wait.from_slurm_seconds
    if seconds is None:
        return ""
    if seconds < _AT_ONCE:
        return " Slurm expects it to start at once."
    lately = None if wait is None else wait.from_history_seconds
    if lately is not None and seconds > _FAR * max(lately.p95, _MINUTE):
        median, p95 = format_duration(round(lately.median)), format_duration(round(lately.p95))
        measured = f"Jobs like it waited {median} here lately, 95 % of them at most {p95}"
        return f" {measured}; by the time limits of the jobs that run now it starts within {format_duration(seconds)}."
    if alone:
        return f" Slurm's estimate of its start is {format_duration(seconds)} from now; no other job waits."
    return f" Slurm expects it to start in {format_duration(seconds)}."
