"""One request judged for one user, and the ticket of an allowed one: ledger first, then the ticket, then the answer.

Killed at any moment it leaves either no ticket, or one whose submission is in the ledger and counts as a job until it
is known to be spent, taken back or over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

from pydantic import ValidationError

from slurm_agent_tools.errors import InputError, SiteUnreachable, SlurmError, StorageError
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.job import SUBMISSION_PREFIX, Job, token_in
from slurm_agent_tools.models.request import JobRequest
from slurm_agent_tools.models.submission_ticket import Ceilings, SubmissionTicket, stated
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.policy.plan import LiveFacts
from slurm_agent_tools.policy.site_rules import held_exactly
from slurm_agent_tools.server.site.site_config import SiteConfig
from slurm_agent_tools.server.site.ticket_issuer import TicketFate, TicketIssuer
from slurm_agent_tools.server.site.user_records import UserRecords
from slurm_agent_tools.services import approval, recovery
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.services.submission_facts import live_facts, take_snapshot
from slurm_agent_tools.services.submission_request import SubmissionRequest, judge, log_decision, open_request
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all
from slurm_agent_tools.store.submissions import Decided, Submission, to_text
from slurm_agent_tools.transport.site_socket import BrokenFrame
from slurm_agent_tools.units import JobId, parse_array

_CLOCKS = timedelta(minutes=10)
"""Between our clock and the accounting's."""

_RECENT = timedelta(hours=1)
"""For this long a ticket that is not there certainly never was: spent ones are kept longer."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What the user's own programs say of themselves: that the status was read, and which logs were analysed.

    They are reminders to an agent, which a lie takes from nobody but its teller.
    """

    caller: Caller
    status_read: datetime | None
    analysed: Mapping[str, str | None]


class SiteJudgement:
    """Judges for one user; to be used once, on one connection."""

    def __init__(self, context: ClusterContext, records: UserRecords, issuer: TicketIssuer, config: SiteConfig) -> None:
        self._context, self._records, self._issuer, self._config = context, records, issuer, config
        self._given_last: tuple[SubmissionRequest, Submission, SubmissionTicket] | None = None
        self._slurm = ""  # the version of the cluster's Slurm, once it was asked

    async def answer(self, words: Mapping[str, Any]) -> dict[str, Any]:
        """The verdict on what the frame asks for. Raises AgentToolsError."""
        arguments, claims = _arguments(words.get("arguments")), _claims(words)
        self._records.check_room(self._config.state_mebibytes)
        if words.get("facts") is False:
            async with self._records.reading:
                return _told(await judge(self._context, await self._opened(arguments, claims), None))
        async with self._records.lock:
            items = await self._context.db(self._context.store.open_submissions, self._context.owner)
            # What is released counts by the queue alone, so the look at it comes behind: its job is in there.
            await self._settle(list(zip(items, await self._fates(items), strict=True)))
            opened = ConcurrentQuestion(partial(self._opened, arguments, claims))
            queue = ConcurrentQuestion(partial(self._context.slurm.queue, max_age=0))
            await ask_all(opened, queue)
            return await self._judged(opened.value(), claims, dry=words.get("dry") is True)

    async def _opened(self, arguments: SubmitJob, claims: Claims) -> SubmissionRequest:
        """Read over the caller's connection. Who is slow keeps no other user waiting."""
        try:
            request = await open_request(self._context, arguments, claims.caller)
        except BrokenFrame as error:
            raise SiteUnreachable(f"the caller's files cannot be read: {error}") from error
        self._issuer.check(request.data)
        return request

    async def _judged(self, request: SubmissionRequest, claims: Claims, *, dry: bool) -> dict[str, Any]:
        """By the look at the queue that was taken under the lock, behind the look at the tickets."""
        context = self._context
        self._slurm = (await context.slurm.info()).version
        snapshot = await take_snapshot(context, request.reading.request, fresh=False)
        kept = await context.db(context.store.open_submissions, context.owner)  # whatever the queue's comments say
        snapshot = replace(snapshot, unsettled=tuple(kept), active=await self._as_let_in(snapshot.active))
        known = _with_claims(await live_facts(context, snapshot, request.reading, work=request.work), claims)
        decide = partial(tickets.evaluate_for_ticket, self._ceilings)
        request = await judge(context, request, known, decide=decide)
        if request.verdict.verdict != "deny":
            await self._check_possible(request)
        if request.verdict.verdict == "approve" and not dry:
            grant = await approval.granted(context, request, None)
            if grant is None:
                return await self._question(request)
            request = await judge(context, request, known, grant=grant.shown, decide=decide)
        if request.verdict.verdict != "allow" or dry:
            return _told(request)
        return await self._given(request)

    async def _check_possible(self, request: SubmissionRequest) -> None:
        """What no ticket is for is told before a person is asked. Raises InputError, which the decision log has too."""
        try:
            self._ticket(request)
        except InputError as error:
            await log_decision(self._context, request, "refused", reason=error.message)
            raise

    async def _as_let_in(self, active: Sequence[Job]) -> tuple[Job, ...]:
        """The queue, arrays of any project with the throttle of their ticket, which their owner can change."""
        arrays = {job.job_id.base for job in active if job.job_id.tasks is not None}
        given = await self._context.db(self._context.store.released, self._context.owner, arrays) if arrays else []
        slots = {item.job_id: item.slots for _, item in given}
        return tuple(replace(job, job_id=_throttled(job.job_id, slots.get(job.job_id.base, 0))) for job in active)

    async def _question(self, request: SubmissionRequest) -> dict[str, Any]:
        """What a person is asked, who did not say no to it lately."""
        context = self._context
        if await approval.declined(context, request):
            return {**_told(request), "note": "A person declined this very request."}
        if not await self._may_ask(request):
            told = f"{self._config.open_questions} questions of yours wait for an answer, which is open_questions"
            return {**_told(request), "note": f"{told} of this site: let a person answer or decline one."}
        note = await approval.void(context, request)
        item = await approval.question(context, request)
        return {**_told(request), "note": note or "", "question": approval.later(context, item)}

    async def _may_ask(self, request: SubmissionRequest) -> bool:
        """The same question is asked once, so it does not count."""
        approvals, owner = self._context.store.approvals, self._context.owner
        asked = await self._context.db(approvals.open, owner, approval.plan_sha256(self._context, request))
        return bool(asked) or await self._context.db(approvals.waiting, owner.user) < self._config.open_questions

    # --- Tickets ----------------------------------------------------------------------------------------------------

    async def _given(self, request: SubmissionRequest) -> dict[str, Any]:
        """In the ledger, then where the controller finds it."""
        context, now = self._context, self._context.clock.now()
        ticket = self._ticket(request)
        item = Submission(
            token=f"{SUBMISSION_PREFIX}{ticket.nonce[:16]}", idempotency_key=ticket.nonce, phase="intent", created=now,
            updated=now, script_path=request.reading.path, script_sha256=request.reading.sha256,
            request_sha256=request.request_sha256, job_name=request.name,
            slots=request.resources.array_concurrency or 1, decision_id=request.verdict.id,
            run_id=request.arguments.run_id, requested=request.resources, files=request.reading.files,
            approval_id=None if request.verdict.approval is None else request.verdict.approval.id, work=request.work,
            stage=None if request.ladder is None else request.arguments.stage or "production",
            configuration=None if request.ladder is None else request.ladder.configuration,
            parts=None if request.ladder is None else request.ladder.parts,
        )  # fmt: skip
        if not await context.db(context.store.add, context.owner, item, Decided(request.verdict)):
            raise StorageError("somebody else used the person's yes", hint="Call again.")
        try:
            word = await context.db(self._issuer.publish, ticket, request.data)
        except StorageError:
            await self._settle([(item, fate) for fate in await self._fates([item])])
            raise
        self._given_last = request, item, ticket
        return {**_told(request), "token": item.token, "word": word}

    async def log_given(self) -> None:
        """One line in the decision log for the ticket that was given: by then its caller and the ledger have it."""
        if self._given_last is not None:
            request, item, ticket = self._given_last
            facts = {"token": item.token, "ticket": ticket.nonce, "ceilings": ticket.ceilings.text}
            await log_decision(self._context, request, "ticket", **facts)

    def _ticket(self, request: SubmissionRequest) -> SubmissionTicket:
        """A new one for what was judged. Raises InputError where none can be for it."""
        ticket = tickets.new_ticket(self._ceilings(request.effective).covering(request.resources), request.data)
        self._issuer.check_signable(ticket)
        return ticket

    def _ceilings(self, request: JobRequest) -> Ceilings:
        return tickets.ceilings(
            request,
            uid=self._records.user.uid,
            expires=int(self._context.clock.now().timestamp()) + self._config.ticket_seconds,
            account=stated(request, "account"),
            threads_per_core=self._config.threads_per_core,
            most_gpus_per_node=self._config.most_gpus_per_node,
            default_cpus_per_gpu=self._config.default_cpus_per_gpu,
            slurm=self._slurm,
            exact=held_exactly(self._context.policy.expressions),
        )

    async def settle(self, token: str) -> None:
        """What became of one ticket, as far as it is known now; one that was not spent is taken back."""
        async with self._records.lock:
            items = await self._context.db(self._context.store.open_submissions, self._context.owner)
            for item in (item for item in items if item.token == token):
                if not await self._taken_back(item):
                    await self._settle([(item, fate) for fate in await self._fates([item])])

    async def _taken_back(self, item: Submission) -> bool:
        if not await self._context.db(self._issuer.take_back, item.idempotency_key):
            return False
        await self._lost(item)
        return True

    async def _fates(self, items: Sequence[Submission]) -> list[TicketFate]:
        """What is spent before the queue is looked at has its job in there.

        Of a ticket that is signed, or whose file is not there, the controller's own note on a job tells it, which
        nobody else writes.
        """
        context, now = self._context, self._context.clock.now()
        fates = [await context.db(self._issuer.fate, item.idempotency_key, item.created, now) for item in items]
        spent = await context.slurm.tickets() if {"told", "missing"} & set(fates) else {}
        otherwise: dict[TicketFate, TicketFate] = {"missing": "gone"}
        return [
            "spent" if fate in {"told", "missing"} and item.idempotency_key in spent else otherwise.get(fate, fate)
            for item, fate in zip(items, fates, strict=True)
        ]

    async def _settle(self, fates: Sequence[tuple[Submission, TicketFate]]) -> None:
        """Of which job a ticket is tells what the controller wrote: what is in a comment, its owner can write."""
        over = [(item, fate) for item, fate in fates if fate not in {"open", "told"}]
        jobs = await self._context.slurm.tickets() if any(fate != "gone" for _, fate in over) else {}
        for item, fate in over:
            if fate == "gone":
                await self._lost(item)
            else:
                await self._settled(item, fate, jobs.get(item.idempotency_key))

    async def _settled(self, item: Submission, fate: TicketFate, job: int | None) -> None:
        """`job` is the one in the queue; one that has left it is looked for in the accounting."""
        context, now = self._context, self._context.clock.now()
        known = job is not None
        if not known and fate in {"spent", "over"}:
            if now - self._records.spent.setdefault(item.token, now) < recovery.GRACE:
                return
            try:
                rows = _of(item, await context.slurm.recent_all(item.created - _CLOCKS))
            except SlurmError:
                return
            absent = context.slurm.accounting.absent  # then nobody knows, and its hours count
            if not rows and not absent:  # Slurm refused it behind the plugin
                await context.db(context.store.update, item, phase="refused")
            bases = {row.job_id.base for row in rows}  # of several, with which comments are forged, none is believed
            known, job = bool(rows) or absent, bases.pop() if len(bases) == 1 else None
        if known:
            await context.db(context.store.update, item, phase="released", job_id=job, released=item.created)
        self._records.spent.pop(item.token, None)

    async def _lost(self, item: Submission) -> None:
        """No job can come of it any more: the slot is free, and a person's yes can be used after all."""
        context = self._context
        await context.db(context.store.update, item, phase="lost")
        if item.approval_id is not None and context.clock.now() - item.created < _RECENT:
            await context.db(context.store.approvals.give_back, item.approval_id)


def _throttled(job: JobId, slots: int) -> JobId:
    """The tasks of an array with at least so many at once, where there is a throttle."""
    if job.tasks is None:
        return job
    limit = parse_array(job.tasks).limit
    return job if limit is None or limit >= slots else replace(job, tasks=f"{job.tasks.partition('%')[0]}%{slots}")


def _of(item: Submission, jobs: Sequence[Job]) -> list[Job]:
    """By what the controller wrote, which the accounting tells of jobs that are over; else by their comment."""
    known = f"{item.idempotency_key}:"
    written = [job for job in jobs if (job.admin_comment or "").startswith(known)]
    return written or [job for job in jobs if token_in(job.comment) == item.token]


def _told(request: SubmissionRequest) -> dict[str, Any]:
    return {"decision": to_text(request.verdict), "script_sha256": request.reading.sha256}


# --- What a frame says ------------------------------------------------------------------------------------------------


def _arguments(words: Any) -> SubmitJob:
    try:
        return SubmitJob.model_validate(words)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(".".join(map(str, first["loc"])) or "arguments", None, first["msg"]) from error


def _claims(words: Mapping[str, Any]) -> Claims:
    try:
        client, version, face = (str(word)[:200] for word in words["caller"])
        seen = words.get("status_read")
        told = {str(int(job)): None if category is None else str(category)[:200] for job, category in words["analysed"]}
        read = None if seen is None else datetime.fromisoformat(seen).astimezone(UTC)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError("request", None, "cannot be read", hint="Is the program as new as the service?") from error
    name: Literal["mcp", "cli"] = "mcp" if face == "mcp" else "cli"
    return Claims(Caller(client, version, name), read, told)


def _with_claims(known: LiveFacts, claims: Claims) -> LiveFacts:
    runs = tuple(
        replace(run, analysed=True, category=claims.analysed[run.job_id]) if run.job_id in claims.analysed else run
        for run in known.history
    )
    return replace(known, status_read=claims.status_read, history=runs)
