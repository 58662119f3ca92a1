"""What the policy decided, as it is shown and logged."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from slurm_agent_tools.models.shapes import EvidenceLine, Shape

Verdict = Literal["allow", "justify", "approve", "deny"]

Outcome = Literal["pass", "warn", "justify", "approve", "deny", "not_evaluated"]

Blocker = Literal["policy", "approval", "tool_unavailable", "cluster_unreachable"]


class RuleResult(Shape):
    """What one rule said. `observed` and `limit` are shown to people; `remedy` holds exact lines."""

    id: str
    outcome: Outcome
    message: str
    observed: str | int | float | None = None
    limit: str | int | float | None = None
    remedy: str | None = None
    evidence: list[EvidenceLine] = Field(default_factory=list)


class PolicyRef(Shape):
    """Which policy decided: its hash over all its files, and the files, lowest first."""

    version: str
    sha256: str
    layers: list[str] = Field(default_factory=list)


class GrantShown(Shape):
    """A person's yes to one exact plan: the approval's id, through which channel, who, when."""

    id: str
    channel: Literal["elicitation", "terminal", "signed"]
    by: str
    at: datetime


class PinShown(Shape):
    """An option the guard puts on the command line."""

    option: str
    why: str


class DecisionShown(Shape):
    """The verdict of the most severe rule, and what every rule said."""

    id: str
    verdict: Verdict
    policy: PolicyRef
    rules: list[RuleResult]
    pinned: list[PinShown] = Field(default_factory=list)
    approval: GrantShown | None = None


class Blocked(Shape):
    """Fields that a refusal adds."""

    blocker: Blocker | None = None
    reason: str | None = None
    human_action_required: bool | None = None
    artifacts: list[str] = Field(default_factory=list)
    manual_commands: list[str] = Field(default_factory=list)
    decision: DecisionShown | None = None
