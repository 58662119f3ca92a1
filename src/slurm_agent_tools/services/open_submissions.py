"""Submissions of which something is left to find out, and the slots that they keep until then."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.models.job import Job, token_in
from slurm_agent_tools.policy import slots
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.store.submissions import LATE, Submission


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


def reserved_slots(unsettled: Sequence[Submission]) -> tuple[slots.Claim, ...]:
    """The slots of submissions that the queue does not show and whose fate is not known."""
    return tuple(slots.Claim(-1 - index, submission.slots) for index, submission in enumerate(unsettled))
