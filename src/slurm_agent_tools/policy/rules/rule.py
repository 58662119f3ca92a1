"""What a rule is: an object that carries its reason and its examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from slurm_agent_tools.models.decision import Outcome, RuleDecision
from slurm_agent_tools.models.request import Directive, Evidence, JobRequest, ScriptReading
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import LiveFacts, PlannedRequest
from slurm_agent_tools.policy.rules.remedies import PLACEHOLDERS

Level = Literal["warn", "justify", "approve", "deny"]

SUBMIT = frozenset({"submit_job"})

SCRIPTS = frozenset({"submit_job", "generate_script", "validate_config"})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a rule's judgement says; Rule.check adds the id. `message`: one sentence what, one why."""

    outcome: Outcome
    message: str
    observed: str | int | float | None = None
    limit: str | int | float | None = None
    remedy: str | None = None
    evidence: Sequence[Evidence] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A plan and what the rule says about it; `limits`, `fields`: what differs from the shipped policy's.

    `counted` False: numbers that are always known once a script was read are missing, and the rule refuses to guess.
    """

    name: str
    plan: PlannedRequest
    outcome: Outcome
    limits: Mapping[str, object] = field(default_factory=dict)
    fields: Mapping[str, object] = field(default_factory=dict)
    counted: bool = True

    def under(self, policy: Policy) -> Policy:
        """The policy with this example's limits."""
        limits = policy.limits.model_copy(update=dict(self.limits))
        return policy.model_copy(update={**self.fields, "limits": limits})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `tools`: whose plans it judges; `live`: it can say nothing without facts of the moment."""

    id: str
    what: str
    why: str
    levels: tuple[Level, ...]
    tools: frozenset[str]
    judge: Callable[[PlannedRequest, Policy], Judgement]
    passing: tuple[Example, ...]
    failing: tuple[Example, ...]
    live: bool = False
    script: bool = True

    def __post_init__(self) -> None:
        if not self.passing or not self.failing:
            raise ValueError(f"rule {self.id} needs examples that pass and that fail")

    def applies(self, plan: PlannedRequest) -> bool:
        """True where this rule has something to judge; an absent script is script-exists' business."""
        return plan.tool in self.tools and (plan.reading is not None or not self.script)

    def check(self, plan: PlannedRequest, policy: Policy) -> RuleDecision:
        """What this rule says about the plan."""
        if plan.tool not in self.tools:
            return self._silent(f"Does not concern {plan.tool}.")
        if self.script and plan.reading is None:
            return self._silent("There is no script to look at.")
        if self.live and plan.live is None:
            return self._silent("Needs the cluster's facts of the moment, which were not asked for.")
        verdict = self.judge(plan, policy)
        return RuleDecision(
            id=self.id,
            outcome=verdict.outcome,
            message=verdict.message,
            observed=verdict.observed,
            limit=verdict.limit,
            remedy=verdict.remedy,
            evidence=tuple(verdict.evidence),
        )

    def _silent(self, message: str) -> RuleDecision:
        return RuleDecision(id=self.id, outcome="not_evaluated", message=message)


def passed(message: str, observed: str | float | None = None, limit: str | float | None = None) -> Judgement:
    """The judgement of a rule that has nothing against it."""
    return Judgement("pass", message, observed, limit)


def not_evaluated(message: str) -> Judgement:
    """The judgement of a rule that lacks a fact."""
    return Judgement("not_evaluated", message)


def proof(directives: Sequence[Directive]) -> tuple[Evidence, ...]:
    """The lines of these options."""
    return tuple(d.evidence for d in directives)


def reading_of(plan: PlannedRequest) -> ScriptReading:
    """The script that a rule about scripts judges; Rule.check asks no such rule without one."""
    if plan.reading is None:
        raise ValueError("there is no script in this plan")
    return plan.reading


def request_of(plan: PlannedRequest) -> JobRequest:
    """What that script asks for."""
    return reading_of(plan).request


def facts_of(plan: PlannedRequest) -> LiveFacts:
    """The facts of the moment; Rule.check asks no rule that needs them without them."""
    if plan.live is None:
        raise ValueError("there are no live facts in this plan")
    return plan.live


_EMPTY_WORDS = frozenset({"justified", "justification", "because", "needed", "required", "necessary", "important"})


def reason_for(plan: PlannedRequest, policy: Policy, *, directive: bool = True) -> str | None:
    """The written justification, if it says something; `directive` False: only the call's argument counts."""
    texts = [plan.justification]
    if directive and plan.reading is not None:
        texts.append(plan.reading.request.justification)
    return next((text.strip() for text in texts if text and _says_something(text, policy)), None)


def _says_something(text: str, policy: Policy) -> bool:
    said = _without_placeholders(text)
    words = [word.strip(".,:;!?").lower() for word in said.split()]
    return len(said) >= policy.justification_min_characters and not set(words) <= _EMPTY_WORDS


def _without_placeholders(text: str) -> str:
    """The reason without the words that a remedy puts where the reason belongs, brackets or not."""
    for words in PLACEHOLDERS:
        text = re.sub(re.escape(words.strip("<>")), "", text, flags=re.IGNORECASE)
    return re.sub(r"<[^<>]*>", "", text).strip()
