"""submit_job: read, judge, and on a verdict of allow send it to Slurm; everything else is answered without sending."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from slurm_agent_tools.catalogue import SubmitJob
from slurm_agent_tools.errors import InputError, SlurmError, SlurmMissing, SlurmRefused, SlurmUnreachable, StorageError
from slurm_agent_tools.ledger.store import submission_lock
from slurm_agent_tools.model import JobRequest
from slurm_agent_tools.policy.engine import format_refusal
from slurm_agent_tools.replies import Blocker, SubmitReply
from slurm_agent_tools.toolbox import dispatch, live, recover
from slurm_agent_tools.toolbox.case import Case, blocked, hand_over, judge, open_case, reply
from slurm_agent_tools.toolbox.desk import Caller, Desk

_LOCK_SECONDS = 40.0


async def submit_job(desk: Desk, ask: SubmitJob, caller: Caller) -> SubmitReply:
    """Submit one script, once. Raises InputError, SlurmRefused, SlurmGarbled and StorageError; refusals are replies."""
    case = await open_case(desk, ask, caller)
    if ask.dry_run:
        return await _dry_run(desk, case)
    async with _only_one(desk):
        return await _to_the_end(desk, case)


async def _to_the_end(desk: Desk, case: Case) -> SubmitReply:
    """A caller that goes away must not leave a submission half done."""
    answers: list[SubmitReply] = []
    with anyio.CancelScope(shield=True):
        answers.append(await _submit(desk, case))
    return answers[0]


async def _submit(desk: Desk, case: Case) -> SubmitReply:
    earlier = await desk.db(desk.store.by_key, desk.owner, case.key) if case.key_given else None
    if earlier is not None and earlier.request_sha256 != case.request_sha256:
        raise InputError(
            "idempotency_key", case.key, "was used for another request", hint="Use a new key for a new request."
        )
    if earlier is not None:
        answer = await recover.answer(desk, case, earlier)
        if answer is not None:
            return answer
    try:
        await recover.settle(desk, keep=case.key)
        snapshot = await live.look(desk, fresh=True)
        known = await live.facts(desk, snapshot, case.request, _width(case.request))
        case = await judge(desk, case, known)
        if case.verdict.verdict != "allow":
            return await _refused(desk, case)
        trial = await dispatch.trial(desk, case)
    except (SlurmMissing, SlurmUnreachable) as error:
        return await _without_slurm(desk, case, error)
    if not trial.accepted:
        raise SlurmRefused(f"Slurm refuses {case.name}: {trial.message}", hint="Correct the request; nothing was sent.")
    try:
        return await dispatch.send(desk, case)
    except SlurmUnreachable as error:  # nothing was sent: said by sbatch itself
        return await _without_slurm(desk, case, error)


async def _dry_run(desk: Desk, case: Case) -> SubmitReply:
    try:
        snapshot = await live.look(desk, fresh=False)
        known = await live.facts(desk, snapshot, case.request, _width(case.request))
        case = await judge(desk, case, known)
        if case.verdict.verdict != "allow":
            return blocked(desk, case, "approval" if case.verdict.verdict == "approve" else "policy", human=False)
        trial = await dispatch.trial(desk, case)
    except (SlurmMissing, SlurmUnreachable) as error:
        case = await judge(desk, case, None)
        return blocked(desk, case, _blocker(error), human=False, reason=f"{error.message} {error.hint}".strip())
    summary = f"{case.name} would be submitted; nothing was."
    if not trial.accepted:
        summary = f"Policy allows {case.name}, but Slurm would refuse it: {trial.message}"
    return reply(desk, case, "dry_run", summary).model_copy(update={"estimated_start": trial.start})


def _width(request: JobRequest) -> int:
    return request.array.concurrency if request.array is not None else 1


async def _refused(desk: Desk, case: Case) -> SubmitReply:
    if case.verdict.verdict != "approve":
        return blocked(desk, case, "policy", human=False)
    return await hand_over(desk, case, "approval", format_refusal(case.verdict))


async def _without_slurm(desk: Desk, case: Case, error: SlurmError) -> SubmitReply:
    """Slurm is not there: what policy refuses anyway is refused; the rest becomes a script for a person."""
    case = await judge(desk, case, None)
    if case.verdict.verdict in {"deny", "justify"}:
        return blocked(desk, case, "policy", human=False)
    return await hand_over(desk, case, _blocker(error), f"{error.message} Nothing was sent. {error.hint}".strip())


def _blocker(error: SlurmError) -> Blocker:
    return "tool_unavailable" if isinstance(error, SlurmMissing) else "cluster_unreachable"


@asynccontextmanager
async def _only_one(desk: Desk) -> AsyncIterator[None]:
    """One submission of this user at a time on this machine, so that counting and submitting are one act."""
    deadline = desk.clock.now().timestamp() + _LOCK_SECONDS
    while True:
        with submission_lock(desk.settings.state_dir) as mine:
            if mine:
                yield
                return
        if desk.clock.now().timestamp() > deadline:
            raise StorageError("another submission by this user is still going on", hint="Call again in a minute.")
        await desk.clock.sleep(0.05)
