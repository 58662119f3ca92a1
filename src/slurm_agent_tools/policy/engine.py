"""The decision: all rules are asked, the most severe decides, and each says why."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.model import Pin, Plan
from slurm_agent_tools.policy.document import LoadedPolicy, Policy
from slurm_agent_tools.policy.rules import RULES
from slurm_agent_tools.policy.rules.base import Rule
from slurm_agent_tools.replies import DecisionShown, Outcome, PinShown, PolicyRef, RuleResult, Verdict

_VERDICTS: dict[Outcome, Verdict] = {"justify": "justify", "approve": "approve", "deny": "deny"}
_SEVERITY: tuple[Verdict, ...] = ("allow", "justify", "approve", "deny")
_ACTION: dict[Outcome, str] = {"justify": "needs a written reason", "approve": "needs a person", "deny": "denied"}


def decide(
    plan: Plan, loaded: LoadedPolicy, *, decision_id: str, pinned: Sequence[Pin] = (), complete: bool = False
) -> DecisionShown:
    """The verdict of the most severe rule and what every rule said.

    `complete`: the plan is about to be carried out, so a rule that lacks a fact denies.
    """
    results = [_ask(rule, plan, loaded.policy, complete=complete) for rule in RULES]
    verdicts: list[Verdict] = [_VERDICTS.get(result.outcome, "allow") for result in results]
    return DecisionShown(
        id=decision_id,
        verdict=max(verdicts, key=_SEVERITY.index),
        policy=PolicyRef(version=loaded.version, sha256=loaded.sha256),
        rules=results,
        pinned=[PinShown(option=pin.option, why=pin.why) for pin in pinned],
    )


def _ask(rule: Rule, plan: Plan, policy: Policy, *, complete: bool) -> RuleResult:
    result = rule.check(plan, policy)
    if result.outcome != "not_evaluated" or not complete or not rule.applies(plan):
        return result
    message = f"This rule could not be evaluated, so the request is denied. {result.message}"
    return result.model_copy(
        update={"outcome": "deny", "message": message, "remedy": "Call get_status, then try again."}
    )


def format_refusal(decision: DecisionShown) -> str:
    """What stands against a request, most severe first, each with its remedy; empty for a verdict of allow."""
    spoken = [result for result in decision.rules if result.outcome in _VERDICTS]
    spoken.sort(key=lambda result: -_SEVERITY.index(_VERDICTS[result.outcome]))
    return "\n".join(format_result(result) for result in spoken)


def format_result(result: RuleResult) -> str:
    """One rule's answer with its remedy, as a person reads it."""
    action = _ACTION.get(result.outcome, result.outcome)
    text = f"{result.id} ({action}): {result.message}"
    return f"{text}\n{result.remedy}" if result.remedy else text
