"""submit_job: read, judge, and on a verdict of allow send it to Slurm; everything else is answered without sending."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio

from slurm_agent_tools.catalogue import SubmitJob
from slurm_agent_tools.errors import InputError, SlurmError, SlurmMissing, SlurmRefused, SlurmUnreachable, StorageError
from slurm_agent_tools.ledger.anchor import submission_lock
from slurm_agent_tools.model import JobRequest
from slurm_agent_tools.policy.engine import format_refusal
from slurm_agent_tools.replies import Blocker, SubmitReply
from slurm_agent_tools.toolbox import advice, approval, dispatch, live, offers, opinion, recover
from slurm_agent_tools.toolbox.approval import Consult, Grant
from slurm_agent_tools.toolbox.case import Case, blocked, hand_over, judge, open_case, reply
from slurm_agent_tools.toolbox.desk import Caller, Desk
from slurm_agent_tools.toolbox.drift import Look

_LOCK_SECONDS = 40.0


async def submit_job(desk: Desk, ask: SubmitJob, caller: Caller, consult: Consult | None = None) -> SubmitReply:
    """Submit one script, once. Raises InputError, SlurmRefused, SlurmGarbled and StorageError; refusals are replies.

    `consult` puts a question to the person at the client, where there is one and the client can.
    """
    case = await open_case(desk, ask, caller)
    answer = await _dry_run(desk, case) if ask.dry_run else await _locked(desk, case)
    if not isinstance(answer, SubmitReply):
        answer = await _with_a_person(desk, answer, consult)
    return answer if answer.status == "submitted" else await _with_alerts(desk, caller, answer)


async def _locked(desk: Desk, case: Case, given: Grant | None = None) -> SubmitReply | Case:
    """Under the lock and to its end: a caller that goes away must not leave a submission half done.

    Such a caller is noticed behind that: its answer does not count as delivered, so that it can ask again.
    """
    answers: list[SubmitReply | Case] = []
    async with _only_one(desk):
        with anyio.CancelScope(shield=True):
            answers.append(await _submit(desk, case, given))
        answer = answers[0]
        if isinstance(answer, SubmitReply) and answer.status == "submitted":
            with contextlib.suppress(StorageError):  # the record and the answer are on disk
                answer = await _with_alerts(desk, case.caller, answer)
                await desk.db(desk.store.deliver, answer.token or "")
    return answer


async def _with_alerts(desk: Desk, caller: Caller, answer: SubmitReply) -> SubmitReply:
    drifted = await Look(desk, caller, "submit_job").all_of_mine()
    return answer.model_copy(update={"alerts": [*answer.alerts, *drifted]})


async def _with_a_person(desk: Desk, case: Case, consult: Consult | None) -> SubmitReply:
    """Ask the person at the client; without a yes, leave the script and the question for later. No lock is held."""
    refusal = format_refusal(case.verdict)
    if await approval.declined(desk, case):
        return await hand_over(desk, case, "approval", f"{refusal}\nA person declined this very request.")
    item = await approval.question(desk, case)
    answer = await approval.consult(desk, case, item, consult)
    if isinstance(answer, Grant):
        again = await open_case(desk, case.ask, case.caller)
        sent = await _locked(desk, again, answer)
        if isinstance(sent, SubmitReply):
            return sent
        refusal = f"{format_refusal(sent.verdict)}\nWhat was approved is not what would run now: it changed meanwhile."
        return await hand_over(desk, sent, "approval", refusal)
    if answer == "no":
        return await hand_over(desk, case, "approval", f"{refusal}\nThe person who was asked declined.")
    return await hand_over(desk, case, "approval", refusal, approval_id=approval.later(desk, item))


async def _submit(desk: Desk, case: Case, given: Grant | None) -> SubmitReply | Case:
    """The answer, or the judged case where a person has to agree first."""
    earlier = await recover.earlier(desk, case)
    if earlier is not None and earlier.request_sha256 != case.request_sha256:
        raise InputError(
            "idempotency_key", case.key, "was used for another request", hint="Use a new key for a new request."
        )
    if earlier is not None:
        case = replace(case, key=earlier.idempotency_key)
        answer = await recover.answer(desk, case, earlier)
        if answer is not None:
            return answer
    try:
        _reached(case)
        await recover.settle(desk, keep=case.key)
        snapshot = await live.look(desk, fresh=True)
        known = await live.facts(desk, snapshot, case.request, _width(case.request))
        case = await judge(desk, case, known)
        grant = await approval.granted(desk, case, given) if case.verdict.verdict == "approve" else None
        if grant is not None:
            case = await judge(desk, case, known, grant=grant.shown)
        if case.verdict.verdict != "allow":
            return case if case.verdict.verdict == "approve" else blocked(desk, case, "policy", human=False)
        trial = await dispatch.trial(desk, case)
        answer = await opinion.differing(desk, case, trial)
    except (SlurmMissing, SlurmUnreachable) as error:
        return await _without_slurm(desk, case, error)
    if answer is not None:
        return answer
    if not trial.accepted:
        hint = offers.beside(case.resources, snapshot.partitions)
        raise SlurmRefused(f"Slurm refuses {case.name}: {trial.message}", hint=hint)
    return await _send(desk, await advice.give(desk, case, trial), grant)


async def _send(desk: Desk, case: Case, grant: Grant | None) -> SubmitReply | Case:
    """Send it. A yes is used up with that, and given back when surely nothing was sent."""
    try:
        return await dispatch.send(desk, case) or case
    except (SlurmUnreachable, SlurmRefused) as error:
        if grant is not None:
            await desk.db(desk.store.approvals.give_back, grant.approval.id)
        if isinstance(error, SlurmRefused):
            raise
        return await _without_slurm(desk, case, error)


async def _dry_run(desk: Desk, case: Case) -> SubmitReply:
    try:
        _reached(case)
        snapshot = await live.look(desk, fresh=False)
        known = await live.facts(desk, snapshot, case.request, _width(case.request))
        case = await judge(desk, case, known)
        if case.verdict.verdict != "allow":
            return blocked(desk, case, "approval" if case.verdict.verdict == "approve" else "policy", human=False)
        trial = await dispatch.trial(desk, case)
        answer = await opinion.differing(desk, case, trial)
    except (SlurmMissing, SlurmUnreachable) as error:
        case = await judge(desk, case, None)
        return blocked(desk, case, _blocker(error), human=False, reason=f"{error.message} {error.hint}".strip())
    if answer is not None:
        return answer
    summary = f"{case.name} would be submitted; nothing was."
    if not trial.accepted:
        hint = offers.beside(case.resources, snapshot.partitions)
        summary = f"Policy allows {case.name}, but Slurm would refuse it: {trial.message} {hint}"
    return reply(desk, await advice.give(desk, case, trial), "dry_run", summary)


def _reached(case: Case) -> None:
    """What was not read where it runs is not sent, even if the cluster is back by now. Raises SlurmUnreachable."""
    if case.away is not None:
        raise case.away


def _width(request: JobRequest) -> int:
    return request.array.concurrency if request.array is not None else 1


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
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        with submission_lock(desk.store.place, desk.store.folder) as mine:
            if mine:
                await desk.db(desk.store.adopt)
                yield
                return
        if time.monotonic() > deadline:
            raise StorageError("another submission by this user is still going on", hint="Call again in a minute.")
        await desk.clock.sleep(0.05)
