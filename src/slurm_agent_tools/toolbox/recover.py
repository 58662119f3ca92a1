"""After a crash, a time limit or a lost answer: what happened to a submission is found out by its token."""

from __future__ import annotations

from datetime import timedelta

from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.ledger.records import Submission
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies import SubmitReply
from slurm_agent_tools.toolbox import dispatch
from slurm_agent_tools.toolbox.case import Case, judge
from slurm_agent_tools.toolbox.desk import Desk
from slurm_agent_tools.units import JobId

GRACE = timedelta(seconds=60)
"""How long a request may still be on its way to the controller after sbatch gave up (three message timeouts)."""
EXPIRY = timedelta(minutes=10)
"""A job left held by a crash is cancelled after this long when nobody went on with it."""
LATE = timedelta(hours=1)
"""For this long a request that was given up is still looked for: should it turn up, it is held, and cancelled."""


async def answer(desk: Desk, case: Case, earlier: Submission) -> SubmitReply | None:
    """The answer to a repeated key: the first one, or the next step of what was begun. None: send it (again)."""
    if earlier.phase == "released" and earlier.reply_json is not None:
        return SubmitReply.model_validate_json(earlier.reply_json)
    if earlier.phase in {"refused", "lost", "cancelled"}:
        return None
    try:
        case = await judge(desk, case, None, partitions=await desk.slurm.partitions())
        found = await find(desk, earlier)
    except SlurmError as error:
        case = case if case.decision is not None else await judge(desk, case, None)
        return await dispatch.unconfirmed(desk, case, earlier, error.message)
    if found is None:
        if desk.clock.now() - earlier.updated < GRACE:
            return await dispatch.unconfirmed(desk, case, earlier, "Slurm does not show the job yet.")
        await desk.db(desk.store.update, earlier, phase="lost")
        return None
    return await _go_on(desk, case, earlier, found)


async def _go_on(desk: Desk, case: Case, earlier: Submission, found: Job) -> SubmitReply | None:
    known = await desk.db(desk.store.update, earlier, phase="held", job_id=found.job_id.base)
    if not found.active:
        await desk.db(desk.store.update, known, phase="cancelled" if found.state == "CANCELLED" else "released")
        return None if found.state == "CANCELLED" else await dispatch.report(desk, case, known)
    if _is_held(found):
        return await dispatch.proceed(desk, case, known)
    return await dispatch.report(desk, case, known)


async def settle(desk: Desk, *, keep: str | None = None) -> None:
    """Bring every open submission of this user up to date; a held job that nobody wants any more is cancelled.

    Never releases anything. `keep` is the key of the call that is going on with its own submission.
    """
    items = await desk.db(desk.store.open_submissions, desk.owner, lost_since=desk.clock.now() - LATE)
    items = [item for item in items if item.idempotency_key != keep]
    if not items:
        return
    queued = {job.comment: job for job in desk.slurm.mine(await desk.slurm.queue(fresh=True)) if job.comment}
    for item in items:
        found = queued.get(item.token)
        if found is None and item.phase != "lost":
            found = await find(desk, item)
        await _settle(desk, item, found)


async def _settle(desk: Desk, item: Submission, found: Job | None) -> None:
    old = desk.clock.now() - item.created > EXPIRY
    if found is None:
        if old and item.phase != "lost":
            await desk.db(desk.store.update, item, phase="lost")
    elif not _is_held(found):
        phase = "cancelled" if found.state == "CANCELLED" and found.started is None else "released"
        await desk.db(desk.store.update, item, phase=phase, job_id=found.job_id.base)
    elif old or item.phase == "lost":
        await desk.slurm.cancel(JobId(found.job_id.base))
        await desk.db(desk.store.update, item, phase="cancelled", job_id=found.job_id.base)


async def find(desk: Desk, item: Submission) -> Job | None:
    """The job with this submission's token, from queue or accounting. Raises SlurmError."""
    return await desk.slurm.find_token(item.token, since=item.created - timedelta(minutes=10))


def _is_held(job: Job) -> bool:
    return job.state == "PENDING" and (job.reason or "").startswith("JobHeld")
