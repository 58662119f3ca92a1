"""After a crash, a time limit or a lost answer: what happened to a submission is found out by its token."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from slurm_agent_tools.errors import SlurmError, StorageError
from slurm_agent_tools.models.job import Job, is_our_comment, token_in
from slurm_agent_tools.models.shapes import Alert
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.commands.squeue import Queue
from slurm_agent_tools.store.submissions import EXPIRY, GIVEN_UP, Phase, Submission
from slurm_agent_tools.units import JobId

if TYPE_CHECKING:
    from slurm_agent_tools.models.submission_answer import SubmitReply
    from slurm_agent_tools.services.submission_request import SubmissionRequest


GRACE = timedelta(seconds=60)
"""How long a request may still be on its way to the controller after sbatch gave up (three message timeouts)."""

_MARGIN = timedelta(minutes=10)  # between our clock and the accounting's

_BUSY = timedelta(seconds=30)  # a step of a submission that goes on takes no longer


async def answer(context: ClusterContext, request: SubmissionRequest, before: Submission) -> SubmitReply | None:
    """The answer to a repeated call: the first one, or the next step of what was begun. None: send it (again)."""
    from slurm_agent_tools.services import dispatch  # noqa: PLC0415 - get_status reads this file without it

    if before.phase in {*GIVEN_UP, "cancelled"}:
        return None
    decided = await context.db(context.store.decided, before.token)
    if decided is None:  # it is written with the intent
        raise StorageError("the ledger does not hold what was decided on this request", hint="Use a new key.")
    if before.phase == "released" and before.released is not None:
        same = "idempotency_key" if request.key_given else "request, whose answer was lost,"
        return dispatch.answer(before, decided, again=same)
    request = request.as_decided(decided.decision, decided.advised)
    try:
        jobs = await find(context, before)
    except SlurmError as error:
        return await dispatch.unconfirmed(context, request, before, error.message)
    found = await (_go_on(context, request, before, jobs) if jobs else _missing(context, request, before))
    if found is None or found.status != "submitted":
        return found
    told = f"{found.summary} An earlier call had sent it; this one went on with that and sent nothing new."
    return found.model_copy(update={"summary": told})


async def _missing(context: ClusterContext, request: SubmissionRequest, before: Submission) -> SubmitReply | None:
    from slurm_agent_tools.services import dispatch  # noqa: PLC0415 - get_status reads this file without it

    if before.job_id is not None:  # Slurm took it and has forgotten it: it is over, and not sent again
        return await dispatch.report(context, request, before)
    if context.clock.now() - before.updated < GRACE:
        return await dispatch.unconfirmed(context, request, before, "Slurm does not show the job yet.")
    if await context.db(context.store.advance, before, phase="lost") is None:
        return await dispatch.unconfirmed(context, request, before, "Another process goes on with it just now.")
    if before.approval_id is not None:
        await context.db(context.store.approvals.give_back, before.approval_id)
    return None


async def _go_on(
    context: ClusterContext, request: SubmissionRequest, before: Submission, jobs: Sequence[Job]
) -> SubmitReply | None:
    from slurm_agent_tools.services import dispatch  # noqa: PLC0415 - get_status reads this file without it

    phase = "released" if before.phase == "released" else _phase(jobs)  # what was released once is not sent again
    number = jobs[0].job_id.base
    with dispatch.taken(request, f"Slurm has {request.name} as job {number}"):
        known = await context.db(context.store.update, before, phase=phase, job_id=number)
        if phase == "cancelled":
            return None
        return await (dispatch.proceed if phase == "held" else dispatch.report)(context, request, known)


async def notice(context: ClusterContext, seen: Sequence[Job]) -> None:
    """Complete the records of submissions whose jobs are among these. Changes no job."""
    mine = context.slurm.mine(seen)
    for item in await context.db(context.store.open_submissions, context.owner):
        jobs = _match(item, mine)
        if _sure(jobs):
            await _record(context, item, jobs)


async def complete(context: ClusterContext, queue: Sequence[Job]) -> list[Alert]:
    """Complete the records of all submissions that broke off, whoever made them; an alert for each still held job.

    Changes no job. `queue` may be some seconds old: what somebody else settled meanwhile stands.
    """
    now = context.clock.now()
    items = await context.db(context.store.open_submissions, context.owner)
    mine = context.slurm.mine(queue)
    rows = [(item, _match(item, mine)) for item in items]
    asked = [item for item, seen in rows if not _sure(seen) and (seen or now - item.updated > GRACE)]
    past = await _accounted(context, asked)
    alerts = []
    for item, seen in rows:
        known_jobs = _known(item, seen, past)
        told = known_jobs or (past is not None and item in asked)  # one that goes on just now is in no list yet
        settled = await _record(context, item, known_jobs) if told else item
        if settled is not None and settled.phase == "held" and known_jobs and now - item.updated > _BUSY:
            alerts.append(_alert(settled))
    return alerts


async def ended(context: ClusterContext, queue: Queue) -> None:
    """Complete the records of jobs that this queue, which may be some seconds old, does not show as active."""
    from slurm_agent_tools.services import jobs  # noqa: PLC0415 - a submission asks for no end

    read = context.clock.now() - timedelta(seconds=context.slurm.ages["queue"] or 0.0)
    await jobs.settle_ended(context, context.slurm.mine(queue).going().bases, read)


async def settle(context: ClusterContext, *, keep: str | None = None) -> None:
    """Complete the records, and cancel held jobs that nobody wants any more. Never releases anything.

    `keep` is the key of the call that is going on with its own submission. Raises SlurmError when the queue is silent.
    """
    items = await context.begun(keep=keep)
    if not items:
        return
    mine = context.slurm.mine(await context.slurm.queue(max_age=0))
    rows = [(item, _match(item, mine)) for item in items]
    past = await _accounted(context, [item for item, seen in rows if item.phase not in GIVEN_UP and not _sure(seen)])
    for item, seen in rows:
        known_jobs = _known(item, seen, past)
        unwanted = _old(context, item) or item.phase in GIVEN_UP
        if known_jobs and _phase(known_jobs) == "held" and unwanted and same(item, known_jobs):
            await _give_up(context, item, known_jobs[0].job_id.base)
        elif known_jobs or past is not None:
            await _record(context, item, known_jobs)


async def _give_up(context: ClusterContext, item: Submission, number: int) -> None:
    """Cancel a held job; one that cannot be cancelled now is for the next time."""
    from slurm_agent_tools.services import jobs  # noqa: PLC0415 - as above

    with contextlib.suppress(SlurmError):
        await jobs.cancel(context, JobId(number))
        now = _match(item, context.slurm.mine(await context.slurm.queue()))
        await context.db(context.store.update, item, phase=_phase(now), job_id=number)


async def _record(context: ClusterContext, item: Submission, jobs: Sequence[Job]) -> Submission | None:
    """Write down what is known now; None where somebody else did meanwhile."""
    if jobs:
        phase, job_id = _phase(jobs), jobs[0].job_id.base
        if (phase, job_id) == (item.phase, item.job_id):
            return item
        return await context.db(context.store.advance, item, phase=phase, job_id=job_id)
    if item.phase in GIVEN_UP or not _old(context, item):
        return item
    return await context.db(context.store.advance, item, phase="lost" if item.job_id is None else "released")


async def _accounted(context: ClusterContext, items: Sequence[Submission]) -> tuple[Job, ...] | None:
    """The accounting's word on these; None while it is silent, which settles nothing."""
    try:
        return await _past(context, items)
    except SlurmError:
        return None


async def _past(context: ClusterContext, items: Sequence[Submission]) -> tuple[Job, ...]:
    """The accounting's jobs since the oldest of these, and those that are asked for by number. Raises SlurmError.

    A job that was cancelled while it was held was never eligible, and sacct shows it by its number only (measured).
    """
    if not items:
        return ()
    seen = await context.slurm.recent_all(min(item.created for item in items) - _MARGIN)
    numbers = [JobId(item.job_id) for item in items if item.job_id is not None and not _match(item, seen)]
    views = await context.slurm.jobs(numbers) if numbers else {}
    parts = [part for view in views.values() for part in (view.tasks or (view.job,)) if part.state != "UNKNOWN"]
    return (*seen, *context.slurm.mine(parts))


async def find(context: ClusterContext, item: Submission) -> tuple[Job, ...]:
    """The job of this submission with its parts, from queue or accounting. Raises SlurmError."""
    queued = _match(item, context.slurm.mine(await context.slurm.queue(max_age=0)))
    return queued if _sure(queued) else _known(item, queued, await _past(context, [item]))


def _known(item: Submission, queued: tuple[Job, ...], past: Iterable[Job] | None) -> tuple[Job, ...]:
    """All that is known of its job, with its rows in the queue; nothing where the accounting is needed and silent."""
    if _sure(queued):
        return queued
    return () if past is None else (*queued, *_match(item, past))


def _match(item: Submission, among: Iterable[Job]) -> tuple[Job, ...]:
    """By its token; by id and name where there is none: not every accounting keeps comments."""
    rows = list(among)
    by_token = tuple(job for job in rows if token_in(job.comment) == item.token)
    return by_token or tuple(
        job for job in rows
        if job.job_id.base == item.job_id and job.name == item.job_name and not is_our_comment(job.comment)
    )  # fmt: skip


def same(item: Submission, among: Iterable[Job]) -> bool:
    """Whether Slurm shows its token in one of these: a number and a name alone may be those of another job."""
    return any(token_in(job.comment) == item.token for job in among)


def _sure(jobs: Sequence[Job]) -> bool:
    """Whether these rows are all that counts: of an array that lost its waiting tasks, others may have run."""
    return bool(jobs) and (_phase(jobs) != "cancelled" or all(row.job_id == row.job_id.whole for row in jobs))


def _old(context: ClusterContext, item: Submission) -> bool:
    return context.clock.now() - item.created > EXPIRY


def _phase(parts: Sequence[Job]) -> Phase:
    """What a job that Slurm shows means for its submission; one that is gone was cancelled."""
    left = [part for part in parts if not _never_ran(part)]
    if not left:
        return "cancelled"
    return "held" if all(part.held for part in left) else "released"


def _never_ran(job: Job) -> bool:
    """Whether it was cancelled before it started; squeue tells the time of the cancelling as its start (measured)."""
    return job.state == "CANCELLED" and job.nodes is None and (job.started is None or job.elapsed_seconds == 0)


def _alert(item: Submission) -> Alert:
    ends = (item.created + EXPIRY).strftime("%H:%M:%S UTC")
    message = (
        f"Job {item.job_id} ({item.job_name}) is held: its submission broke off. submit_job with idempotency_key"
        f" {item.idempotency_key} goes on with it; else the first submit_job after {ends} cancels it."
    )
    return Alert(severity="high", code="submission-broke-off", message=message, job_id=str(item.job_id))
