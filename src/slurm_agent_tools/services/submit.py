"""submit_job: read, judge, and on a verdict of allow send it to Slurm; everything else is answered without sending."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import anyio

from slurm_agent_tools.errors import InputError, SlurmError, SlurmMissing, SlurmRefused, SlurmUnreachable, StorageError
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.shapes import Alert, Blocker
from slurm_agent_tools.models.submission_answer import SubmitReply
from slurm_agent_tools.policy import sbatch_crosscheck
from slurm_agent_tools.policy.evaluate import for_person, format_refusal
from slurm_agent_tools.scripts.directive_lines import words_to_directives
from slurm_agent_tools.scripts.effective_request import effective
from slurm_agent_tools.services import dispatch, submission_facts
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.services.submission_facts import Snapshot, live_facts, take_snapshot
from slurm_agent_tools.services.submission_request import (
    SubmissionRequest,
    blocked,
    hand_over,
    judge,
    log_decision,
    open_request,
    reply,
)
from slurm_agent_tools.slurm.commands.sbatch import TestOnly
from slurm_agent_tools.store.ledger_location import submission_lock
from slurm_agent_tools.store.submissions import EXPIRY, Submission

if TYPE_CHECKING:
    from slurm_agent_tools.services.approval import Consult, Grant


async def differing(context: ClusterContext, request: SubmissionRequest, trial: TestOnly) -> SubmitReply | None:
    """The refusal of a request that sbatch reads otherwise, in the decision log first; None where both agree.

    Compared is our reading of exactly what sbatch was asked: the script's options and the whole command line.
    """
    if not trial.accepted and trial.shown == ():
        return None  # sbatch refused an option before it could show any
    script = [directive for directive in request.reading.request.directives if directive.source == "script"]
    as_asked = effective([*script, *words_to_directives(dispatch.options(request), "argument")])
    as_asked = replace(as_asked, components=request.effective.components)
    differences = sbatch_crosscheck.differences(as_asked, trial.shown)
    if "\n" in context.there.root:
        differences.append("the project folder's name holds a line break")
    if not differences:
        return None
    request = replace(request, decision=sbatch_crosscheck.denied(request.verdict, differences))
    await log_decision(context, request, "disagreed", differences=differences)
    return blocked(context, request, "policy", human=False)


_LOCK_SECONDS = 40.0

_AGAIN = timedelta(seconds=60)
"""For this long the same request without a key counts as a repetition, if its caller never got the answer."""


async def submit_job(
    context: ClusterContext, arguments: SubmitJob, caller: Caller, consult: Consult | None = None
) -> SubmitReply:
    """Submit one script, once. Raises InputError, SlurmRefused, SlurmGarbled and StorageError; refusals are replies.

    `consult` puts a question to the person at the client, where there is one and the client can.
    """
    request = await open_request(context, arguments, caller)
    answer = await _dry_run(context, request) if arguments.dry_run else await _locked(context, request)
    if not isinstance(answer, SubmitReply):
        answer = await _with_a_person(context, answer, consult)
    return answer if answer.status == "submitted" else await _with_alerts(context, caller, answer)


async def _locked(
    context: ClusterContext, request: SubmissionRequest, consent: Grant | None = None
) -> SubmitReply | SubmissionRequest:
    """Under the lock and to its end: a caller that goes away must not leave a submission half done.

    Such a caller is noticed behind that: its answer does not count as delivered, so that it can ask again.
    """
    ends: list[_End] = []
    async with _only_one(context):
        with anyio.CancelScope(shield=True):
            ends.append(await _submit(context, request, consent))
        answer = ends[0].answer
        if isinstance(answer, SubmitReply) and answer.status == "submitted":
            with contextlib.suppress(StorageError):  # the record and the answer are on disk
                answer = await _with_alerts(context, request.caller, answer, ends[0].seen)
                await context.db(context.store.deliver, answer.token or "")
    return answer


@dataclass(frozen=True, slots=True)
class _End:
    """The answer, or the judged request where a person has to agree first; `seen`: the jobs that a new one came to."""

    answer: SubmitReply | SubmissionRequest
    seen: tuple[Job, ...] | None = None


async def _with_alerts(
    context: ClusterContext, caller: Caller, answer: SubmitReply, seen: tuple[Job, ...] | None = None
) -> SubmitReply:
    """The answer with what the cluster does not hold, and what drifted.

    Of jobs that were `seen` what is known of it, else by a look at all of them.
    """
    held = [Alert(severity="medium", code="not-held", message=note) for note in context.notes()]
    answer = answer.model_copy(update={"alerts": [*answer.alerts, *held]}) if held else answer
    if seen == ():
        return answer
    from slurm_agent_tools.services.drift import DriftWatch  # noqa: PLC0415 - only other jobs can have drifted

    look = DriftWatch(context, caller, "submit_job")
    drifted = await (look.all_of_mine() if seen is None else look.remembered(seen))
    return answer.model_copy(update={"alerts": [*answer.alerts, *drifted]})


async def _with_a_person(context: ClusterContext, request: SubmissionRequest, consult: Consult | None) -> SubmitReply:
    """Ask the person at the client; without a yes, leave the script and the question for later. No lock is held."""
    from slurm_agent_tools.services import approval  # noqa: PLC0415 - few requests need a person

    refusal = format_refusal(request.verdict)
    if request.ticket is not None:
        refusal = f"{refusal}\n{request.ticket.note}".rstrip()
        return await hand_over(context, request, "approval", refusal, approval_id=request.ticket.question)
    if await approval.declined(context, request):
        return await hand_over(context, request, "approval", f"{refusal}\nA person declined this very request.")
    given = await approval.void(context, request)
    refusal = refusal if given is None else f"{refusal}\n{given}"
    item = await approval.question(context, request)
    answer = await approval.consult(context, request, item, consult)
    if isinstance(answer, approval.Grant):
        again = await open_request(context, request.arguments, request.caller)
        sent = await _locked(context, again, answer)
        if isinstance(sent, SubmitReply):
            return sent
        changed = "; ".join(approval.against(context, sent, item)) or "somebody else used the yes"
        refusal = f"{format_refusal(sent.verdict)}\nWhat was approved is not what would run now: {changed}."
        return await hand_over(context, sent, "approval", refusal)
    if answer == "no":
        return await hand_over(context, request, "approval", f"{refusal}\nThe person who was asked declined.")
    if answer == "too long":
        refusal += "\nThe script is too long to be shown whole in a question at the client; at a terminal it is shown."
    return await hand_over(context, request, "approval", refusal, approval_id=approval.later(context, item))


async def _submit(context: ClusterContext, request: SubmissionRequest, consent: Grant | None) -> _End:
    """What this call repeats is answered as it was, or gone on with; everything else is judged and sent."""
    earlier = await _earlier(context, request)
    if earlier is not None and earlier.request_sha256 != request.request_sha256:
        raise InputError(
            "idempotency_key", request.key, "was used for another request", hint="Use a new key for a new request."
        )
    if earlier is not None:
        from slurm_agent_tools.services import recovery  # noqa: PLC0415 - most calls repeat no other

        request = replace(request, key=earlier.idempotency_key)
        answer = await recovery.answer(context, request, earlier)
        if answer is not None:
            return _End(answer)
    try:
        return await _judged(context, request, consent)
    except (SlurmMissing, SlurmUnreachable) as error:
        return _End(await _without_slurm(context, request, error))


async def _earlier(context: ClusterContext, request: SubmissionRequest) -> Submission | None:
    """What this call repeats: by its key, or without one the same request whose caller never got its answer."""
    if request.key_given:
        return await context.db(context.store.by_key, context.owner, request.key)
    now = context.clock.now()
    return await context.db(
        context.store.undelivered, context.owner, request.request_sha256, since=now - _AGAIN, begun=now - EXPIRY
    )


async def _judged(context: ClusterContext, request: SubmissionRequest, consent: Grant | None) -> _End:
    """Sent, where the policy and Slurm's own reading allow it. Raises SlurmMissing and SlurmUnreachable."""
    if request.away is not None:
        raise request.away  # what was not read where it runs is not sent, even if the cluster is back by now
    if await context.begun(keep=request.key):
        from slurm_agent_tools.services import recovery  # noqa: PLC0415 - mostly nothing broke off

        await recovery.settle(context, keep=request.key)
    if context.site is not None:
        from slurm_agent_tools.services import site_judge  # noqa: PLC0415 - where a site's service judges

        snapshot = await take_snapshot(context, request.reading.request, fresh=False)
        async with site_judge.judged(context, context.site, request) as judged:
            return await _allowed(context, judged, snapshot, None)
    snapshot = await take_snapshot(context, request.reading.request, fresh=True)
    known = await live_facts(context, snapshot, request.reading, work=request.work)
    request = await judge(context, request, known)
    differs = [] if context.elsewhere is None else await _compared(context, request)
    if differs:
        request = await _differs(context, request, differs)
    grant: Grant | None = None
    if request.verdict.verdict == "approve":
        from slurm_agent_tools.services import approval  # noqa: PLC0415 - few requests need a person

        grant = await approval.granted(context, request, consent)
    if grant is not None:
        request = await judge(context, request, known, grant=grant.shown)
        if differs:
            request = await _differs(context, request, differs)
    return await _allowed(context, request, snapshot, grant)


async def _allowed(
    context: ClusterContext, request: SubmissionRequest, snapshot: Snapshot, grant: Grant | None
) -> _End:
    """Sent, where the verdict and Slurm's own reading allow it."""
    if request.verdict.verdict != "allow":
        return _End(request if request.verdict.verdict == "approve" else await _denied(context, request))
    trial = await dispatch.trial(context, request)
    answer = await differing(context, request, trial)
    if answer is not None:
        return _End(answer)
    if not trial.accepted and not _spares_ticket(request, trial):
        hint = _beside(request, snapshot, trial.message)
        raise SlurmRefused(f"Slurm refuses {request.name}: {trial.message}", hint=hint)
    budget = request.arguments.time_budget is not None
    request = await submission_facts.with_advice(context, request, trial, snapshot, ask=budget)
    try:
        return _End(await dispatch.send(context, request) or request, snapshot.active)
    except (SlurmUnreachable, SlurmRefused):  # surely nothing was sent: a yes is not used up with that
        if grant is not None:
            await context.db(context.store.approvals.give_back, grant.approval.id)
        raise


async def _denied(context: ClusterContext, request: SubmissionRequest) -> SubmitReply:
    """A refusal; a person's yes to this very plan is named, for it stays good."""
    reason = format_refusal(request.verdict)
    if any(map(for_person, request.verdict.rules)):
        from slurm_agent_tools.services import approval  # noqa: PLC0415 - few requests need a person

        grant = await approval.granted(context, request, None)
        if grant is not None:
            until = f"{grant.approval.expires:%H:%M UTC}"
            reason += f"\nThe yes {grant.approval.id} to this is not used up: once nothing else refuses, call again"
            reason += f" with the same arguments, until {until}."
    return blocked(context, request, "policy", human=False, reason=reason)


def _spares_ticket(request: SubmissionRequest, trial: TestOnly) -> bool:
    """Whether the controller misses the ticket, which a trial would spend: whatever else it says comes with the job."""
    return request.ticket is not None and "slurm-agent-tools connect" in trial.message


async def _compared(context: ClusterContext, request: SubmissionRequest) -> list[str]:
    """Files that are not the same here and where the job runs: what was checked here is what has to run there."""
    from slurm_agent_tools.services import sync_check  # noqa: PLC0415 - of a cluster over SSH alone

    return await sync_check.differing_files(context, request)


async def _differs(context: ClusterContext, request: SubmissionRequest, differs: list[str]) -> SubmissionRequest:
    from slurm_agent_tools.services import sync_check  # noqa: PLC0415

    return await sync_check.with_difference(context, request, differs)


async def _dry_run(context: ClusterContext, request: SubmissionRequest) -> SubmitReply:
    try:
        if request.away is not None:
            raise request.away
        snapshot = await take_snapshot(context, request.reading.request, fresh=False)
        request = await _previewed(context, request, snapshot)
        if context.elsewhere is not None and (differs := await _compared(context, request)):
            request = await _differs(context, request, differs)
        if request.verdict.verdict == "approve":
            return blocked(context, request, "approval", human=False)
        if request.verdict.verdict != "allow":
            return await _denied(context, request)
        trial = await dispatch.trial(context, request)
        answer = await differing(context, request, trial)
    except (SlurmMissing, SlurmUnreachable) as error:
        request = await _previewed(context, request)
        return blocked(context, request, _blocker(error), human=False, reason=_unsent(request, error, by_person=False))
    if answer is not None:
        return answer
    summary = f"{request.name} would be submitted; nothing was."
    if not trial.accepted and not _spares_ticket(request, trial):
        hint = _beside(request, snapshot, trial.message)
        summary = f"Policy allows {request.name}, but Slurm would refuse it: {trial.message} {hint}"
        return reply(context, request, "dry_run", summary)  # how long it would wait and how large it is matters no more
    request = await submission_facts.with_advice(context, request, trial, snapshot)
    return reply(context, request, "dry_run", summary)


async def _previewed(
    context: ClusterContext, request: SubmissionRequest, snapshot: Snapshot | None = None
) -> SubmissionRequest:
    """Judged without being sent; without a snapshot as far as can be told while Slurm says nothing."""
    if context.site is not None:
        from slurm_agent_tools.services import site_judge  # noqa: PLC0415 - as above

        return await site_judge.ask(context, context.site, request, dry=True, facts=snapshot is not None)
    facts = None if snapshot is None else await live_facts(context, snapshot, request.reading, work=request.work)
    return await judge(context, request, facts)


def _beside(request: SubmissionRequest, snapshot: Snapshot, message: str) -> str:
    """What the cluster offers instead."""
    from slurm_agent_tools.insights import capacity  # noqa: PLC0415 - for a refusal only

    return capacity.beside(request.resources, snapshot.partitions, message)


async def _without_slurm(context: ClusterContext, request: SubmissionRequest, error: SlurmError) -> SubmitReply:
    """Slurm is not there: what policy refuses anyway is refused; the rest becomes a script for a person."""
    request = await _previewed(context, request)
    if request.verdict.verdict in {"deny", "justify"}:
        return blocked(context, request, "policy", human=False)
    return await hand_over(context, request, _blocker(error), _unsent(request, error, by_person=True))


_WITHOUT_SLURM: Mapping[str, str] = {
    "allow": "The policy allows this request as far as it can tell without Slurm{calm}: call again once Slurm answers",
    "approve": "By the policy a person has to agree to this request as well: call again once Slurm answers",
}


def _unsent(request: SubmissionRequest, error: SlurmError, *, by_person: bool) -> str:
    """Why nothing was sent, what the policy says all the same, and what comes next."""
    hint = error.hint.removesuffix("Nothing was changed.")
    message = f"{error.message.rstrip('.')}. Nothing was sent. {hint}".rstrip(". ") + "."
    judged = _WITHOUT_SLURM.get(request.verdict.verdict)
    if judged is None:
        return f"{message} What the policy says against this request stands in `decision`."
    judged = judged.format(calm="" if error.lasting else ", so nothing has to be corrected")
    return f"{message} {judged}{', or a person runs the lines of `manual_commands`' if by_person else ''}."


def _blocker(error: SlurmError) -> Blocker:
    return "tool_unavailable" if isinstance(error, SlurmMissing) else "cluster_unreachable"


@asynccontextmanager
async def _only_one(context: ClusterContext) -> AsyncIterator[None]:
    """One submission of this user at a time on this machine, so that counting and submitting are one act."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        with submission_lock(context.store.place, context.store.folder) as mine:
            if mine:
                await context.db(context.store.adopt)
                yield
                return
        if time.monotonic() > deadline:
            raise StorageError("another submission by this user is still going on", hint="Call again in a minute.")
        await context.clock.sleep(0.05)
