"""What the policy decided and what was known of the job beforehand, as both are shown and logged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from slurm_agent_tools.models.job import JobRecord, PastWait
from slurm_agent_tools.models.request import Evidence, JobRequest, Pin, Resources
from slurm_agent_tools.models.shapes import ResourcesShown, Shape, WaitMeasured, no_items, unknown

Verdict = Literal["allow", "justify", "approve", "deny"]

Outcome = Literal["pass", "warn", "justify", "approve", "deny", "not_evaluated"]

Channel = Literal["elicitation", "terminal", "signed", "passkey"]

PROVEN: tuple[Channel, ...] = ("signed", "passkey")
"""Ways of approval that a program of the user cannot take: the only ones that count under a site's policy."""

WORTH: Mapping[Channel, str] = {
    "elicitation": "one person's convenience: every program of this user can be a client that answers yes",
    "terminal": "one person's convenience: every program of this user, a job too, can give it in the person's place",
    "signed": "a signature by a key of a list that every program of this user can change",
    "passkey": "a passkey of a list that every program of this user can change",
}
"""What a yes of each way is worth where no site's policy is in force."""

SITE_WORTH: Mapping[Channel, str] = {
    "signed": "a signature by a key that the site lists",
    "passkey": "a passkey that the site lists",
}
"""The same under a site's policy."""

Blocker = Literal["policy", "approval", "tool_unavailable", "cluster_unreachable"]


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


# --- What is known before a job is submitted: how long its like waited and ran, and what they used --------------------


class ExpectedWait(Shape):
    """Slurm's own estimate beside what jobs of this shape waited here lately. Seconds; None: not known, see `note`."""

    from_slurm_seconds: int | None = None
    from_history_seconds: WaitMeasured | None = None
    jobs: int = 0
    note: str | None = None


@dataclass(frozen=True, slots=True)
class GivenEstimate:
    """What was foretold of a submission: seconds that it runs, or waits from then on, and how many jobs that rests on.

    Eight of ten lie from `low` to `high`; None where too few estimates had been compared with what happened. `raw`: the
    10, 50 and 90 % quantiles of similar jobs before that correction.
    """

    kind: Literal["run", "wait"]
    expected: float
    low: float | None
    high: float | None
    basis: int
    raw: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class EndedEstimate:
    """What was foretold of a job, and what it ran or waited in seconds."""

    job_id: int
    said: GivenEstimate
    happened: float


@dataclass(frozen=True, slots=True)
class KnownBefore:
    """What is known of earlier jobs: this user's own, what started here lately, and how estimates ended.

    `short`: ids of own jobs that are shorter by design, as smoke runs are.
    """

    records: Sequence[JobRecord] = ()
    starts: Sequence[PastWait] = ()
    ended: Sequence[EndedEstimate] = ()
    short: Collection[str] = ()


class Foretold(Shape):
    """How long it will run and wait, by similar jobs that ended, in words; None: not known."""

    run: str | None = Field(default=None, exclude_if=unknown)
    wait: str | None = Field(default=None, exclude_if=unknown)


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
    warnings: list[str] = Field(default_factory=no_items)


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
    foretold: Foretold | None = None
    sizing: Sizing | None = None
    budget: Budget | None = None
    awaits: str | None = None  # what has to happen before it can start, as a sentence

    @property
    def shown(self) -> dict[str, object]:
        """The fields of an answer that say what is known of a submission's wait, size and time."""
        return {name: value for name, value in self if name != "awaits"}

    @property
    def summary(self) -> str:
        """What of it belongs into a summary; empty where nothing does."""
        sentences = []
        if self.budget is not None and self.budget.fits is False:
            sentences.append(self.budget.why)
        if self.sizing is not None and self.sizing.warnings:
            first, more = self.sizing.warnings[0], len(self.sizing.warnings) - 1
            sentences.append(f"Sizing: {first}" + (f" {more} more in `sizing`." if more else ""))
        return "".join(f" {text}" for text in sentences)
