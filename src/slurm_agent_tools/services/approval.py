"""A person's yes: what is asked, what counts as an answer, and that it counts once and for one exact plan.

The plan is everything that decides what would run: the script's hash and those of the files that it runs, options,
arguments, pins, numbers, the rules that need a person, the policy's hash, and whose it is. A yes to another plan,
an expired one, a used one or one through a channel that the policy does not list is no yes.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from pydantic import ValidationError

from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.decision import Consent
from slurm_agent_tools.models.shapes import Channel, ResourcesShown
from slurm_agent_tools.policy.evaluate import for_person
from slurm_agent_tools.scripts.reader import in_turn
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.services.submission_request import SubmissionRequest, log_decision, open_request
from slurm_agent_tools.store.submissions import Approval
from slurm_agent_tools.text import plan_text

Answer = Literal["yes", "no", "timeout", "cannot", "too long"]

_DIALOG, _MOST_FACTS = 24_000, 2**20
"""Characters of the longest question at a client, as others are read at a terminal; and of one without its script."""


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
        "numbers": ResourcesShown.of(request.resources).model_dump(),
        "rules": [rule.id for rule in request.verdict.rules if for_person(rule)],
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
        shows = await in_turn(len(item.plan), _shows, context, request, item)
        shown = await counts(context, item) if shows else None
        if shown is not None:
            return Grant(wanted, shown, item)
    return None


def _shows(context: ClusterContext, request: SubmissionRequest, item: Approval) -> bool:
    """Whether the text that the person read was about this plan: what lies in the ledger is checked, not believed."""
    first, last = (
        plan_text.head(item.id, item.plan_sha256, item.expires) + _facts(context, request),
        plan_text.script(request.data),
    )
    soon = item.expires <= context.clock.now() + timedelta(seconds=context.policy.policy.approval_seconds)
    ours = item.plan.startswith(first) and item.plan.endswith(last) and len(item.plan) >= len(first) + len(last)
    rules = [rule.id for rule in request.verdict.rules if for_person(rule)]
    return soon and ours and plan_text.reasons_fit(item.plan[len(first) : -len(last)], rules)


async def counts(context: ClusterContext, item: Approval) -> Consent | None:
    """Whose yes it is, where it was given by a way that the policy counts; a signature is verified here and now."""
    kept: dict[str | None, Channel] = {"terminal": "terminal", "signed": "signed", "passkey": "passkey"}
    channel = kept.get(item.channel)
    if item.granted is None or channel is None or channel not in context.policy.policy.approval_channels:
        return None
    by = item.granted_by
    try:
        if channel == "signed":
            from slurm_agent_tools.transport import signature  # noqa: PLC0415 - its library takes 60 ms to load

            listed = context.policy.policy.allowed_signers
            by = signature.verify(item.plan, item.signature or "", listed, now=context.clock.now(), who=by)
        if channel == "passkey":
            from slurm_agent_tools.transport import passkeys  # noqa: PLC0415 - as above, 170 ms

            answer = passkeys.PasskeyAnswer.read(item.signature or "")
            by = passkeys.verify(item.plan, answer, await context.db(passkeys_of, context)).by
    except AgentToolsError:
        return None
    told = context.policy.worth(channel)
    return Consent(id=item.id, channel=channel, by=by or "unknown", at=item.granted, worth=told)


def passkeys_of(context: ClusterContext) -> tuple[str, ...]:
    """The passkeys that count: the policy's; where no site decides, the enrolled ones too. Raises StorageError."""
    from slurm_agent_tools.store import enrolled_passkeys  # noqa: PLC0415 - few use any

    listed = context.policy.policy.allowed_passkeys
    return listed if context.policy.by_site else (*listed, *enrolled_passkeys.enrolled())


async def question(context: ClusterContext, request: SubmissionRequest) -> Approval:
    """The question about this plan as it stands in the ledger; the same plan is asked about once at a time."""
    wanted = plan_sha256(context, request)
    for item in await context.db(context.store.approvals.open, context.owner, wanted):
        if item.granted is None and await in_turn(len(item.plan), _shows, context, request, item):
            return item
    size = len(request.data) + sum(map(len, request.reading.files))
    body, now = await in_turn(size, _body, context, request), context.clock.now()
    if len(body) - len(plan_text.script(request.data)) > _MOST_FACTS:
        problem = f"asks for more than a person can read: over {_MOST_FACTS} characters of arguments, files and reasons"
        raise InputError("script", request.reading.path, problem, hint="Run fewer files, with fewer arguments.")
    item = Approval(
        id=secrets.token_hex(4), plan_sha256=wanted, plan="", job_name=request.name, created=now, updated=now,
        expires=(now + timedelta(seconds=context.policy.policy.approval_seconds)).replace(microsecond=0),
        request=request.arguments.model_dump_json(),
    )  # fmt: skip
    item = replace(item, plan=plan_text.head(item.id, item.plan_sha256, item.expires) + body)
    await context.db(context.store.approvals.ask, context.owner, item)
    await log_decision(context, request, "asked", approval=item.id)
    return item


async def log_answer(
    context: ClusterContext, item: Approval, event: str, *, channel: Channel, by: str, face: str, **facts: str
) -> None:
    """One line in the decision log: who said what about which plan, and what such a yes is worth."""
    entry: dict[str, object] = {
        "at": context.clock.now().isoformat(),
        "event": event,
        "decision": None,
        "tool": "approve",
        "verdict": "approve",
        "approval": item.id,
        "plan": item.plan_sha256,
        "channel": channel,
        "by": by,
        "worth": context.policy.worth(channel),
        "job_name": item.job_name,
        "policy": {"version": context.policy.version, "sha256": context.policy.sha256},
        "user": context.owner.user,
        "project": context.project,
        "cluster": context.owner.cluster,
        "face": face,
    }
    await context.db(context.store.log_decision, {**entry, **facts})


async def declined(context: ClusterContext, request: SubmissionRequest) -> bool:
    """Whether a person said no to this plan lately; who said no is not asked again and again."""
    since = context.clock.now() - timedelta(seconds=context.policy.policy.approval_seconds)
    return await context.db(context.store.approvals.declined, context.owner, plan_sha256(context, request), since)


def later(context: ClusterContext, item: Approval) -> str | None:
    """The question's id where a person can still answer it by `slurm-agent-tools approve` or on a page."""
    return item.id if {"terminal", "signed", "passkey"} & set(context.policy.policy.approval_channels) else None


async def consult(
    context: ClusterContext, request: SubmissionRequest, item: Approval, ask: Consult | None
) -> Grant | Answer:
    """Put the question to the person at the client; a yes in time comes back as a grant."""
    if ask is None or "elicitation" not in context.policy.policy.approval_channels:
        return "cannot"
    if len(item.plan) > _DIALOG:
        return "too long"
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
    by = f"the person at {request.caller.client}"
    shown = Consent(id=item.id, channel="elicitation", by=by, at=now, worth=context.policy.worth("elicitation"))
    return Grant(item.plan_sha256, shown, item)


def _body(context: ClusterContext, request: SubmissionRequest) -> str:
    """What is asked: the facts of the plan, then why a person is asked and by whom, then the script."""
    told = [f"{rule.id}: {rule.message}" for rule in request.verdict.rules if for_person(rule)]
    caller = f"{request.caller.client} {request.caller.version} ({request.caller.face})"
    return _facts(context, request) + plan_text.reasons(told, caller) + plan_text.script(request.data)


def _facts(context: ClusterContext, request: SubmissionRequest) -> str:
    """What would run, the same for the same plan whenever it is asked."""
    policy = context.policy
    decided = [
        ("added options", " ".join(pin.option for pin in request.pinned) or "none"),
        ("effective request", ResourcesShown.of(request.resources).in_words),
        ("policy", f"{policy.name} {policy.version} (sha256 {policy.sha256})"),
    ]
    return plan_text.facts([*_asked(context, request), *decided])


def _asked(context: ClusterContext, request: SubmissionRequest) -> list[tuple[str, str]]:
    """What is asked for, before anything is decided on it."""
    return [
        ("user", context.owner.user),
        ("project", context.project),
        ("cluster", context.owner.cluster),
        ("script", request.reading.path),
        ("sha256", request.reading.sha256),
        ("job name", request.name),
        ("arguments", json.dumps(list(request.arguments.args or ()))),
        ("options", " ".join(request.options) or "none"),
        ("reason given", request.arguments.justification or request.effective.justification or "none"),
        *(("also runs", f"{path} (sha256 {sha})") for path, sha in sorted(request.reading.files.items())),
    ]


# --- A question or a yes that does not fit what would run now ---------------------------------------------------------


async def outdated(context: ClusterContext, item: Approval) -> list[str]:
    """What a question does not show as it is now: script, arguments, files. To be asked whenever a person answers.

    What the policy adds is compared when the yes is used: the process that submits may have another policy.
    """
    limit = context.clock.now() + timedelta(seconds=context.policy.policy.approval_seconds)
    if not item.plan.startswith(plan_text.head(item.id, item.plan_sha256, item.expires)) or item.expires > limit:
        return ["its text is not about this question"]
    try:
        arguments = SubmitJob.model_validate_json(item.request or "")
        request = await open_request(context, arguments, Caller())
    except ValidationError:
        return ["what was asked is not known any more"]
    except InputError as error:
        return [error.message]
    return await in_turn(len(item.plan), _differs, context, request, item)


def _differs(context: ClusterContext, request: SubmissionRequest, item: Approval) -> list[str]:
    asked, head = _asked(context, request), plan_text.head(item.id, item.plan_sha256, item.expires)
    now = head + plan_text.facts(asked) + plan_text.script(request.data)
    return plan_text.differences(item.plan, now, list(dict.fromkeys([*dict(asked), "also runs"])))


async def void(context: ClusterContext, request: SubmissionRequest) -> str | None:
    """Why a yes that a person gave for this script does not count for this request; None without such a yes."""
    for item in await context.db(context.store.approvals.open, context.owner):
        if item.granted is None or plan_text.value(item.plan, "script") != plan_text.spelled(request.reading.path):
            continue
        found = await in_turn(len(item.plan), against, context, request, item)
        counts = item.channel in context.policy.policy.approval_channels
        why = "; ".join(found) or ("it cannot be verified" if counts else "the policy does not count that way")
        await log_decision(context, request, "void", approval=item.id, channel=item.channel, differences=found)
        return f"The yes {item.id} ({item.channel}) does not count for this: {why}."
    return None


def against(context: ClusterContext, request: SubmissionRequest, item: Approval) -> list[str]:
    """What would run now and is not what a question shows, a sentence each."""
    return plan_text.differences(
        item.plan, plan_text.head(item.id, item.plan_sha256, item.expires) + _body(context, request)
    )
