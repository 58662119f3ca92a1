"""What the policy decided and what was known of the job beforehand, as both are shown and logged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from slurm_agent_tools.models.request import Evidence, JobRequest, Pin, Resources
from slurm_agent_tools.models.shapes import EvidenceLine, ResourcesShown, Shape, WaitMeasured, unknown

Verdict = Literal["allow", "justify", "approve", "deny"]

Outcome = Literal["pass", "warn", "justify", "approve", "deny", "not_evaluated"]

Channel = Literal["elicitation", "terminal", "signed"]

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
    channel: Channel
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
    rules_passed: int | None = Field(default=None, exclude_if=unknown)  # in brief, where those are not listed
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


# --- What a decision is: the verdict, what every rule said, and the exact request that was judged. Frozen records -----


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
    """A person's yes to one exact plan: the approval's id, through which channel, who, when."""

    id: str
    channel: Channel
    by: str
    at: datetime


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


def decision_shown(made: Decision) -> DecisionShown:
    """The part of an answer that says what was decided and why."""
    return DecisionShown(
        id=made.id,
        verdict=made.verdict,
        policy=PolicyRef(version=made.policy.version, sha256=made.policy.sha256, layers=list(made.policy.layers)),
        rules=[rule_shown(rule) for rule in made.rules],
        pinned=[PinShown(option=pin.option, why=pin.why) for pin in made.pinned],
        approval=None if made.approval is None else grant_shown(made.approval),
    )


def grant_shown(yes: Consent) -> GrantShown:
    """A person's yes."""
    return GrantShown(id=yes.id, channel=yes.channel, by=yes.by, at=yes.at)


def rule_shown(rule: RuleDecision) -> RuleResult:
    """What one rule said."""
    return RuleResult(
        id=rule.id, outcome=rule.outcome, message=rule.message, observed=rule.observed, limit=rule.limit,
        remedy=rule.remedy,
        evidence=[EvidenceLine(file=line.file, line=line.line, text=line.text) for line in rule.evidence],
    )  # fmt: skip


# --- What is known before a job is submitted: how long its like waited and ran, and what they used --------------------


class ExpectedWait(Shape):
    """Slurm's own estimate beside what jobs of this shape waited here lately. Seconds; None: not known, see `note`."""

    from_slurm_seconds: int | None = None
    from_history_seconds: WaitMeasured | None = None
    jobs: int = 0
    note: str | None = None


class SizeFigure(Shape):
    """One quantity of a request beside its use: bytes, seconds or CPUs. `used` is the 95th percentile of `runs`."""

    requested: int | None = None
    used: float | None = None
    most_used: float | None = None
    over_request_percent: int | None = None
    recommended: int | None = None
    runs: int = 0


class Sizing(Shape):
    """What earlier runs of this job's name or script used, and what to ask for. A warning blocks nothing."""

    runs: int
    summary: str
    memory: SizeFigure
    time: SizeFigure
    cpus: SizeFigure
    recommended: ResourcesShown | None = None
    warnings: list[str] = Field(default_factory=list)


class Budget(Shape):
    """Whether the result is there in time: wait plus run against the budget, in seconds. `fits` None: not known.

    False means that it may be late: where a run's length is not known from earlier ones, its time limit counts.
    """

    fits: bool | None
    budget_seconds: int
    wait_seconds: int | None
    run_seconds: int | None
    why: str


class Advised(Shape):
    """What goes into an answer of submit_job beside the decision."""

    estimated_start: datetime | None = None
    expected_wait: ExpectedWait | None = None
    sizing: Sizing | None = None
    budget: Budget | None = None
    awaits: str | None = None  # what has to happen before it can start, as a sentence
