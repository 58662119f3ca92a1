"""A person's yes: what is asked, what counts as an answer, and that it counts once and for one exact plan.

The plan is everything that decides what would run: the script's hash and those of the files that it runs, options,
arguments, pins, numbers, the rules that need a person, the policy's hash, and whose it is. A yes to another plan,
an expired one, a used one or one through a channel that the policy does not list is no yes.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models.decision import Consent
from slurm_agent_tools.models.shapes import ResourcesShown
from slurm_agent_tools.services import present
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.services.submission_request import SubmissionRequest, log_decision
from slurm_agent_tools.store.submissions import Approval
from slurm_agent_tools.text.sanitize import visible

Answer = Literal["yes", "no", "timeout", "cannot"]

_WHOLE, _HEAD, _TAIL = 24_000, 120, 40


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked. `sha256` is the plan's; `text` shows all of it."""

    sha256: str
    text: str


Consult = Callable[[Question], Awaitable[Answer]]
"""A face that can put a question to a person. `cannot`: this client cannot, or answers nobody gave do not count."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A yes that was given to one plan. `approval` where it is in the ledger and has to be used up."""

    sha256: str
    shown: Consent
    approval: Approval


def plan_sha256(context: ClusterContext, request: SubmissionRequest) -> str:
    """The hash of the exact plan that a judged request would carry out."""
    plan = {
        "owner": [context.owner.user, context.owner.project, context.owner.cluster],
        "script": request.reading.sha256,
        "path": request.reading.path,
        "request": request.request_sha256,
        "files": dict(request.reading.files),
        "name": request.name,
        "pinned": [pin.option for pin in request.pinned],
        "numbers": present.resources(request.resources).model_dump(),
        "rules": [rule.id for rule in request.verdict.rules if rule.outcome == "approve"],
        "justification": request.arguments.justification or request.effective.justification,
        "policy": context.policy.sha256,
    }
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()


async def granted(context: ClusterContext, request: SubmissionRequest, given: Grant | None) -> Grant | None:
    """A yes to this very plan that still counts: just given, or in the ledger. Signatures are verified here and now."""
    wanted = plan_sha256(context, request)
    if given is not None:
        return given if given.sha256 == wanted else None
    for item in await context.db(context.store.approvals.open, context.owner, wanted):
        shown = await _counts(context, item) if _shows(context, request, item) else None
        if shown is not None:
            return Grant(wanted, shown, item)
    return None


def _shows(context: ClusterContext, request: SubmissionRequest, item: Approval) -> bool:
    """Whether the text that the person read was about this plan: what lies in the ledger is checked, not believed."""
    return item.plan.startswith(_head(item) + _facts(context, request)) and item.plan.endswith(_script(request))


async def _counts(context: ClusterContext, item: Approval) -> Consent | None:
    if item.granted is None or item.channel not in context.policy.policy.approval_channels:
        return None
    if item.channel == "terminal":
        return Consent(id=item.id, channel="terminal", by=item.granted_by or "unknown", at=item.granted)
    if item.channel != "signed":
        return None
    from slurm_agent_tools.transport import signature  # noqa: PLC0415 - its library takes 60 ms to load

    try:
        by = signature.verify(
            item.plan, item.signature or "", context.policy.policy.allowed_signers,
            now=context.clock.now(), who=item.granted_by,
        )  # fmt: skip
    except AgentToolsError:
        return None
    return Consent(id=item.id, channel="signed", by=by, at=item.granted)


async def question(context: ClusterContext, request: SubmissionRequest) -> Approval:
    """The question about this plan as it stands in the ledger; the same plan is asked about once at a time."""
    wanted = plan_sha256(context, request)
    asked = [
        item for item in await context.db(context.store.approvals.open, context.owner, wanted) if item.granted is None
    ]
    if asked:
        return asked[0]
    now = context.clock.now()
    item = Approval(
        id=secrets.token_hex(4),
        plan_sha256=wanted,
        plan="",
        job_name=request.name,
        created=now,
        updated=now,
        expires=(now + timedelta(seconds=context.policy.policy.approval_seconds)).replace(microsecond=0),
    )
    item = replace(item, plan=_head(item) + _body(context, request))
    await context.db(context.store.approvals.ask, context.owner, item)
    await log_decision(context, request, "asked", approval=item.id)
    return item


async def declined(context: ClusterContext, request: SubmissionRequest) -> bool:
    """Whether a person said no to this plan lately; who said no is not asked again and again."""
    since = context.clock.now() - timedelta(seconds=context.policy.policy.approval_seconds)
    return await context.db(context.store.approvals.declined, context.owner, plan_sha256(context, request), since)


def later(context: ClusterContext, item: Approval) -> str | None:
    """The question's id where a person can still answer it by `slurm-agent-tools approve`."""
    return item.id if {"terminal", "signed"} & set(context.policy.policy.approval_channels) else None


async def consult(
    context: ClusterContext, request: SubmissionRequest, item: Approval, ask: Consult | None
) -> Grant | Answer:
    """Put the question to the person at the client; a yes in time comes back as a grant."""
    if ask is None or "elicitation" not in context.policy.policy.approval_channels:
        return "cannot"
    answer = await ask(Question(item.plan_sha256, item.plan))
    if answer == "cannot":
        return answer
    now = context.clock.now()
    answer = "timeout" if now >= item.expires else answer
    event = {"yes": "approved", "no": "declined", "timeout": "unanswered"}[answer]
    await log_decision(context, request, event, approval=item.id, channel="elicitation")
    if answer == "no":
        await context.db(context.store.approvals.update, item, declined=now, channel="elicitation")
    if answer != "yes":
        return answer
    shown = Consent(id=item.id, channel="elicitation", by=f"the person at {request.caller.client}", at=now)
    return Grant(item.plan_sha256, shown, item)


def _head(item: Approval) -> str:
    """The first lines of what is shown and signed: they bind it to one question, one plan and one time."""
    expires = item.expires.isoformat(timespec="seconds")
    return f"slurm-agent-tools approval\nid: {item.id}\nplan: {item.plan_sha256}\nexpires: {expires}\n"


def _body(context: ClusterContext, request: SubmissionRequest) -> str:
    """What is asked: the facts of the plan, then why a person is asked and by whom, then the script."""
    told = [f"  {rule.id}: {rule.message}" for rule in request.verdict.rules if rule.outcome == "approve"]
    asked = f"asked by: {request.caller.client} {request.caller.version} ({request.caller.face})"
    return "".join([_facts(context, request), _lines(["needs a person because:", *told, asked]), _script(request)])


def _facts(context: ClusterContext, request: SubmissionRequest) -> str:
    """What would run, the same for the same plan whenever it is asked."""
    return _lines(
        [
            f"user: {context.owner.user}   project: {context.project}",
            f"script: {request.reading.path}   sha256: {request.reading.sha256}",
            f"job name: {request.name}",
            f"arguments: {json.dumps(list(request.arguments.args or ()))}",
            f"options: {' '.join([*request.options, *(pin.option for pin in request.pinned)]) or 'none'}",
            f"effective request: {_numbers(present.resources(request.resources))}",
            f"reason given: {request.arguments.justification or request.effective.justification or 'none'}",
            *(f"also runs: {path}   sha256: {sha}" for path, sha in sorted(request.reading.files.items())),
        ]
    )


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{visible(line.replace(chr(10), ' '))}\n" for line in lines)


def _numbers(shown: ResourcesShown) -> str:
    known = {
        "partition": shown.partition, "nodes": shown.nodes, "cpus": shown.cpus, "gpus": shown.gpus,
        "memory": shown.memory, "memory per GPU": shown.memory_per_gpu, "time": shown.time_limit,
        "array tasks": shown.array_tasks, "at once": shown.array_concurrency,
    }  # fmt: skip
    return ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)


def _script(request: SubmissionRequest) -> str:
    text = visible(request.data.decode("utf-8", "backslashreplace"))
    lines = text.splitlines()
    if len(text) > _WHOLE:
        left = len(lines) - _HEAD - _TAIL
        gap = f"... {left} lines are left out here: read {request.reading.path} itself ..."
        lines = [line[:400] for line in [*lines[:_HEAD], gap, *lines[-_TAIL:]]]
    return "\n".join(["--- the script ---", *lines, "--- end of the script ---", ""])
