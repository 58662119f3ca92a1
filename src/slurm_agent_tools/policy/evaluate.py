"""The one evaluation: what a script asks for, with what the policy adds to it, under all rules. Pure.

Whoever wants to know what the policy says of a script comes here: submitting, checking, generating, comparing a held
job with what was allowed, and watching jobs for drift.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from slurm_agent_tools.models.decision import Consent, Decision, PolicyUsed, RuleDecision
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest, Pin, ScriptReading
from slurm_agent_tools.models.shapes import Outcome, Verdict
from slurm_agent_tools.policy.document import VIOLATIONS, Exemption, Level, Policy, harsher
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.policy.plan import LiveFacts, PlannedRequest, pins
from slurm_agent_tools.policy.rules import (
    budget,
    directives,
    earlier_jobs,
    files,
    gpus,
    queued_jobs,
    script_commands,
)
from slurm_agent_tools.policy.rules.rule import Rule, reason_for, without_reasons
from slurm_agent_tools.scripts.directive_lines import pins_to_directives
from slurm_agent_tools.scripts.effective_request import effective, resolve

if TYPE_CHECKING:
    from slurm_agent_tools.models.arguments import Stage
    from slurm_agent_tools.policy.site_rules import Expression


RULES: tuple[Rule, ...] = (
    gpus.MEMORY_PER_GPU,
    gpus.GPUS,
    budget.TIME_LIMIT,
    queued_jobs.CONCURRENT_JOBS,
    budget.BUDGET,
    script_commands.CUDA_VISIBLE_DEVICES,
    script_commands.DEVICE_INDEX,
    earlier_jobs.AUTO_RETRY,
    queued_jobs.DUPLICATE,
    script_commands.DIRECT_SUBMISSION,
    script_commands.INTERACTIVE,
    queued_jobs.SMOKE_FIRST,
    directives.PARTITION,
    earlier_jobs.DEPENDENCY,
    files.SCRIPT_EXISTS,
    queued_jobs.STATUS_FIRST,
    files.PATH,
    directives.DIRECTIVES,
    script_commands.OPAQUE_CODE,
)
"""In the order in which they are reported."""

_VERDICTS: dict[Outcome, Verdict] = {"justify": "justify", "approve": "approve", "deny": "deny"}

_SEVERITY: tuple[Verdict, ...] = ("allow", "justify", "approve", "deny")

_ACTION: dict[Outcome, str] = {"justify": "needs a written reason", "approve": "needs a person", "deny": "denied"}


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """Everything beside the script that a decision rests on.

    `live` None: no facts of the moment are known, and rules that need them do not count; with them, a rule that still
    lacks a fact denies. `partitions` where no more than that was asked. `numbers` and `pinned`: what Slurm made of the
    request, and what was added to it before; None: both follow from the script. `path` to `size` are of a file that the
    tool writes, `problem` says why the script could not be read, `hourly_price` what rented machines cost in dollars.
    `decision_id` None: the same for the same script.
    """

    policy: LoadedPolicy
    project: str
    tool: str = "submit_job"
    decision_id: str | None = None
    live: LiveFacts | None = None
    partitions: Mapping[str, Partition] | None = None
    user: str | None = None
    today: date | None = None
    grant: Consent | None = None
    justification: str | None = None
    priority: str | None = None
    request_sha256: str | None = None
    numbers: Resources | None = None
    pinned: tuple[Pin, ...] | None = None
    problem: str | None = None
    path: str | None = None
    path_exists: bool = False
    adds: bool = False
    size: int | None = None
    stage: Stage | None = None
    hourly_price: float | None = None


def evaluate(script: ScriptReading | None, context: EvaluationContext) -> Decision:
    """The decision on a script, or on a file that is written without one. Raises InputError for a priority.

    The same script and context have the same decision.
    """
    plan, pinned = prepare(script, context)
    decision = decide(plan, context.policy, complete=context.live is not None, grant=context.grant)
    about = script.sha256 if script is not None else str(context.problem)
    return replace(
        decision,
        id=context.decision_id or _same_id(context.policy, about),
        pinned=pinned,
        request=JobRequest() if plan.reading is None else plan.reading.request,
        resources=plan.resources,
    )


def prepare(script: ScriptReading | None, context: EvaluationContext) -> tuple[PlannedRequest, tuple[Pin, ...]]:
    """What is judged: the script with what is added to it, and that. Raises InputError for a priority."""
    offered = context.partitions if context.live is None else context.live.partitions
    pinned, numbers = context.pinned or (), context.numbers
    if script is not None:
        if context.pinned is None:
            pinned = pins(script.request, context.policy.policy, offered, context.priority)
        read = request = script.request
        if pinned:
            request = replace(
                effective([*read.directives, *pins_to_directives(pinned)]), problems=read.problems,
                components=read.components, interpreter=read.interpreter, justification=read.justification,
            )  # fmt: skip
        script = replace(script, request=request)
        numbers = resolve(request, offered) if numbers is None else numbers
    plan = PlannedRequest(
        tool=context.tool, project=context.project, reading=script, resources=numbers or Resources(),
        request_sha256=context.request_sha256, justification=context.justification, live=context.live,
        partitions=context.partitions, path=context.path, path_exists=context.path_exists, adds=context.adds,
        size=context.size, problem=context.problem, user=context.user, today=context.today,
        stage=context.stage,
        hourly_price=context.hourly_price,
    )  # fmt: skip
    return plan, pinned


def _same_id(policy: LoadedPolicy, about: str) -> str:
    """An id for a decision that nobody remembers."""
    return f"check-{hashlib.sha256(f'{policy.sha256} {about}'.encode()).hexdigest()[:12]}"


# --- All rules are asked, the most severe decides, and each says why --------------------------------------------------


def decide(
    plan: PlannedRequest,
    loaded: LoadedPolicy,
    *,
    decision_id: str = "",
    complete: bool = False,
    grant: Consent | None = None,
) -> Decision:
    """The verdict of the most severe rule and what every rule said.

    `complete`: the plan is about to be carried out, so a rule that lacks a fact denies. `grant`: a person's yes to
    this very plan, which turns `approve` into a pass and nothing else.
    """
    results = [_ask(rule, plan, loaded, complete=complete) for rule in RULES]
    results += [_site(rule, plan, loaded, complete=complete) for rule in loaded.expressions]
    if grant is not None:
        results = [_granted(result, grant) for result in results]
    verdicts: list[Verdict] = [_VERDICTS.get(result.outcome, "allow") for result in results]
    return Decision(
        id=decision_id,
        verdict=max(verdicts, key=_SEVERITY.index),
        policy=PolicyUsed(loaded.version, loaded.sha256, tuple(loaded.layers)),
        rules=tuple(results),
        approval=grant,
    )


def _ask(rule: Rule, plan: PlannedRequest, loaded: LoadedPolicy, *, complete: bool) -> RuleDecision:
    level, floor = loaded.policy.rules.get(rule.id), loaded.floors.get(rule.id)
    judged = _unexcused(plan) if {level, floor} & {"approve", "deny"} else plan
    result = rule.check(judged, loaded.policy)
    if result.outcome == "not_evaluated" and complete and rule.applies(plan) and level != "off":
        return _lacking(result)
    if result.outcome not in VIOLATIONS:
        return result
    return _excepted(_levelled(result, level, floor, plan, loaded.policy), plan, loaded.policy)


def _lacking(result: RuleDecision) -> RuleDecision:
    message = f"This rule could not be evaluated, so the request is denied. {result.message}"
    return replace(result, outcome="deny", message=message, remedy="Call get_status, then try again.")


def _unexcused(plan: PlannedRequest) -> PlannedRequest:
    """The plan without its written reasons, for a rule that a reason is not enough for under this policy."""
    reading = plan.reading
    if reading is not None:
        reading = replace(reading, request=replace(reading.request, justification=None))
    return replace(plan, reading=reading, justification=None)


def _levelled(
    result: RuleDecision, level: Level | None, floor: Level | None, plan: PlannedRequest, policy: Policy
) -> RuleDecision:
    """A violation at the level that the policy gives to it; a layer's level is a floor under the rule's own."""
    if level is None and floor is None:
        return result
    own: Level = level or _VERDICTS[result.outcome]  # type: ignore[assignment]  # a violation is never "allow"
    now = own if floor is None else harsher(own, floor)
    if now in {"approve", "deny"} and result.remedy:
        result = replace(result, remedy=without_reasons(result.remedy))
    if now == result.outcome:
        return result
    if now == "off":
        return replace(result, outcome="pass", message=f"Switched off by the policy. {result.message}")
    reason = reason_for(plan, policy) if now == "justify" else None
    if reason is not None:
        return replace(result, outcome="pass", message=f"{result.message} Justified by: {reason}")
    return replace(result, outcome=now)


def _site(expression: Expression, plan: PlannedRequest, loaded: LoadedPolicy, *, complete: bool) -> RuleDecision:
    """A site's own rule; an error in its expression is a violation."""
    from slurm_agent_tools.policy.site_rules import facts, worst_answer  # noqa: PLC0415 - few policies have rules of their site

    rule, known = expression.rule, facts(plan)
    missing = [name for name in expression.names if name not in known]
    if missing or plan.reading is None:
        lacking = RuleDecision(id=rule.id, outcome="not_evaluated", message=f"Not known: {', '.join(missing)}.")
        return _lacking(lacking) if complete and plan.tool == "submit_job" and plan.reading else lacking
    answer = worst_answer(expression, known, plan.resources.partition)
    if answer is False:
        return RuleDecision(id=rule.id, outcome="pass", message=f"Does not hold: {rule.when}")
    message = rule.message if answer is True else f"{rule.message} (The condition could not be evaluated: {answer})"
    observed = ", ".join(f"{name}={_brief(known[name])}" for name in expression.names)
    result = RuleDecision(
        id=rule.id, outcome=rule.level, message=message, observed=observed, limit=rule.when, remedy=rule.remedy
    )
    if rule.level == "justify":
        result = _levelled(replace(result, outcome="deny"), "justify", None, plan, loaded.policy)
    return _excepted(result, plan, loaded.policy)


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _excepted(result: RuleDecision, plan: PlannedRequest, policy: Policy) -> RuleDecision:
    if result.outcome not in VIOLATIONS:
        return result
    exemption = next((item for item in policy.exceptions if item.rule == result.id and _covers(item, plan)), None)
    if exemption is None:
        return result
    message = f"{result.message} Excepted until {exemption.until:%Y-%m-%d}: {exemption.reason}"
    return replace(result, outcome="warn", message=message)


def _covers(item: Exemption, plan: PlannedRequest) -> bool:
    """Whether an exception counts today and for this request. What is not known is not covered."""
    if plan.today is None or plan.today > item.until:
        return False
    reading = plan.reading
    stated = None if reading is None else reading.request.partition
    wanted = plan.resources.partition or stated or ""
    asked = (
        (item.users, plan.user),
        (item.projects, plan.project),
        (item.scripts, None if reading is None else reading.path),
    )
    named = all(
        not patterns or (value is not None and any(fnmatchcase(value, pattern) for pattern in patterns))
        for patterns, value in asked
    )
    return named and (not item.partitions or (bool(wanted) and set(wanted.split(",")) <= set(item.partitions)))


def harsher_verdict(first: Decision, second: Decision) -> bool:
    """Whether the first is more severe than the second."""
    return _SEVERITY.index(first.verdict) > _SEVERITY.index(second.verdict)


def harsher_of_each(decision: Decision, other: Decision) -> Decision:
    """The first decision, with the other's answer of each rule that is more severe there."""

    def severity(one: RuleDecision) -> int:
        return _SEVERITY.index(_VERDICTS.get(one.outcome, "allow"))

    answers = {one.id: one for one in other.rules}
    rules = tuple(max((one, answers.get(one.id, one)), key=severity) for one in decision.rules)
    return replace(decision, rules=rules, verdict=max(decision.verdict, other.verdict, key=_SEVERITY.index))


def for_person(result: RuleDecision) -> bool:
    """Whether a person who agrees to a plan agrees to this: what needs one, and that nothing of it was tried before.

    The second by itself asks no person: a written reason is enough there.
    """
    return result.outcome == "approve" or (result.outcome == "justify" and result.id == queued_jobs.SMOKE_FIRST.id)


def _granted(result: RuleDecision, grant: Consent) -> RuleDecision:
    if not for_person(result):
        return result
    message = f"{result.message} Approved by {grant.by} ({grant.channel}, {grant.id})."
    return replace(result, outcome="pass", message=message)


def format_refusal(decision: Decision) -> str:
    """What stands against a request, most severe first, each with its remedy; empty for a verdict of allow."""
    spoken = [result for result in decision.rules if result.outcome in _VERDICTS]
    spoken.sort(key=lambda result: -_SEVERITY.index(_VERDICTS[result.outcome]))
    return "\n".join(format_result(result) for result in spoken)


def format_result(result: RuleDecision) -> str:
    """One rule's answer with its remedy, as a person reads it."""
    action = _ACTION.get(result.outcome, result.outcome)
    text = f"{result.id} ({action}): {result.message}"
    return f"{text}\n{result.remedy}" if result.remedy else text
