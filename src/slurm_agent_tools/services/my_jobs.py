"""The caller's jobs in get_status: all of them counted, the first ones shown."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace

from slurm_agent_tools.insights import job_outcome
from slurm_agent_tools.models.job import HELD_UP, Job
from slurm_agent_tools.models.job_resources import Claim, claims, count_slots, reserved
from slurm_agent_tools.models.shapes import Alert
from slurm_agent_tools.models.status_answer import EndedShown, SlurmSection
from slurm_agent_tools.services import present
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.commands.squeue import Queue
from slurm_agent_tools.units import how_many

_SHOWN, _SHOWN_OVER = 8, 4

_LISTED = 10


async def jobs_section(context: ClusterContext, active: Queue, over: Queue, managed: frozenset[int]) -> SlurmSection:
    """Counts over all jobs of this user; of many the guard's own (`managed`) and the newest are shown."""
    taken = _taken(active, reserved(item.slots for item in await context.unsettled(active)))
    limit = context.policy.policy.limits.max_concurrent_jobs
    shown = _chosen(active, managed, _SHOWN)
    ended = _chosen(over, managed, _SHOWN_OVER)
    states = active.states()
    pending = sum(states[state] for state in HELD_UP)
    return SlurmSection(
        running_jobs=len(active) - pending,
        pending_jobs=pending,
        active_jobs=taken,
        max_concurrent=limit,
        slots_left=max(0, limit - taken),
        jobs=[present.brief_job(job, managed=job.job_id.base in managed) for job in shown],
        finished_recently=await _ended(context, ended, managed),
        not_shown=len(active) + len(over) - len(shown) - len(ended),
    )


async def _ended(context: ClusterContext, jobs_over: list[Job], managed: frozenset[int]) -> list[EndedShown]:
    """Jobs that are over, with the exit code that the accounting told when the guard's record was completed."""
    ids = {job.job_id.base for job in jobs_over} & managed
    runs = {run.job_id: run for _, run in await context.db(context.store.released, context.owner, ids)} if ids else {}
    shown = []
    for job in jobs_over:
        run = runs.get(job.job_id.base)
        if run is not None and run.outcome == job.state and job.job_id == job.job_id.whole and job.exit_code is None:
            job = replace(job, exit_code=run.exit_code, signal=run.signal or None)  # noqa: PLW2901 - completed
        why = job_outcome.cause(context, run, job)
        shown.append(EndedShown(**dict(present.job(job, managed=job.job_id.base in managed, why=why))))
    return shown


def _taken(active: Queue, kept: Iterable[Claim]) -> int:
    """Slots that are taken. A single job that nothing waits for takes one, whatever the others are."""
    single, rest = active.singles
    claimed = claims(rest)
    awaited = single & {base for claim in claimed for base in claim.after}
    linked = [Claim(base, 1) for base in awaited]
    return len(single - awaited) + count_slots((*claimed, *linked, *kept))


def _chosen(rows: Queue, managed: frozenset[int], most: int) -> list[Job]:
    """All in the queue's order where they are few, else the guard's own and then the newest."""
    if len(rows) <= most:
        return list(rows)
    own = sorted(rows.bases & managed, reverse=True)[:most]
    newest = heapq.nlargest(most - len(own), rows.bases - managed)
    return list(rows.jobs([*own, *newest]))[:most]


def unmanaged(context: ClusterContext, active: Queue, managed: frozenset[int]) -> list[Alert]:
    """Jobs of this user that did not come through the guard."""
    others = active.bases - managed
    if not others:
        return []
    listed = ", ".join(map(str, heapq.nsmallest(_LISTED, others))) + (", ..." if len(others) > _LISTED else "")
    limit = context.policy.policy.limits.max_concurrent_jobs
    message = f"Not submitted by submit_job, but they count for the limit of {how_many(limit, 'job')}: {listed}."
    return [Alert(severity="medium", code="unmanaged-jobs", message=message)]
