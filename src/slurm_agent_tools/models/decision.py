"""What the policy decided, as it is shown and logged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.request import Evidence, JobRequest, Pin
from slurm_agent_tools.models.shapes import Blocker, Channel, Outcome, Shape, Verdict, no_items, unknown


@dataclass(frozen=True, slots=True)
class RuleDecision:
    """What one rule said. `message`: one sentence what, one why; `remedy` holds exact lines."""

    id: str
    outcome: Outcome
    message: str
    observed: str | int | float | None = None
    limit: str | int | float | None = None
    remedy: str | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyUsed:
    """Which policy decided: its hash over all its files, and the files, lowest first."""

    version: str
    sha256: str
    layers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Consent:
    """A yes to one exact plan: the approval's id, through which channel, who, when, and what such a yes is worth."""

    id: str
    channel: Channel
    by: str
    at: datetime
    worth: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict of the most severe rule, with the request and the numbers that it counts for."""

    id: str
    verdict: Verdict
    policy: PolicyUsed
    rules: tuple[RuleDecision, ...] = ()
    pinned: tuple[Pin, ...] = ()
    approval: Consent | None = None
    request: JobRequest = JobRequest()
    resources: Resources = Resources()


# --- A decision as answers show it ------------------------------------------------------------------------------------


class DecisionShown(Shape):
    """The verdict of the most severe rule, and what every rule said."""

    id: str
    verdict: Verdict
    policy: PolicyUsed
    rules: list[RuleDecision]
    rules_passed: int | None = Field(default=None, exclude_if=unknown)  # in brief, where those are not listed
    pinned: list[Pin] = Field(default_factory=no_items)
    approval: Consent | None = None


class Blocked(Shape):
    """Fields that a refusal adds."""

    blocker: Blocker | None = None
    reason: str | None = None
    human_action_required: bool | None = None
    artifacts: list[str] = Field(default_factory=no_items)
    manual_commands: list[str] = Field(default_factory=no_items)
    decision: DecisionShown | None = None


def decision_shown(decision: Decision) -> DecisionShown:
    """The part of an answer that says what was decided and why."""
    return DecisionShown(
        id=decision.id,
        verdict=decision.verdict,
        policy=decision.policy,
        rules=list(decision.rules),
        pinned=list(decision.pinned),
        approval=decision.approval,
    )
