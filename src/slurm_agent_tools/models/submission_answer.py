"""What is answered about scripts and their jobs: submit_job, generate_script, validate_config, cancel_job."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.decision import Blocked, DecisionShown
from slurm_agent_tools.models.request import Pin
from slurm_agent_tools.models.shapes import (
    Alert,
    JobShown,
    Reply,
    ResourcesShown,
    Shape,
    WaitMeasured,
    no_items,
    unknown,
)

# --- What is known before a job is submitted: how long its like waited and ran, and what they used --------------------


class ExpectedWait(Shape):
    """Slurm's own estimate beside what jobs of this shape waited here lately. Seconds; None: not known, see `note`."""

    from_slurm_seconds: int | None = None
    from_history_seconds: WaitMeasured | None = None
    jobs: int = 0
    note: str | None = None


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


# --- The answers ------------------------------------------------------------------------------------------------------


class LogPaths(Shape):
    """Where the job writes; None where Slurm does not tell. `%a` stands for the number of an array's task."""

    stdout: str | None
    stderr: str | None


class SubmitReply(Reply, Blocked):
    """Answer of submit_job."""

    written_by_others: ClassVar = ("reason", "decision.rules", "alerts")

    status: Literal["submitted", "blocked", "dry_run", "unconfirmed"]
    job_id: str | None = None
    pinned: list[Pin] = Field(default_factory=no_items)
    requested: ResourcesShown | None = None
    granted: ResourcesShown | None = None
    log_paths: LogPaths | None = None
    estimated_start: datetime | None = None
    expected_wait: ExpectedWait | None = None
    foretold: Foretold | None = Field(default=None, exclude_if=unknown)
    sizing: Sizing | None = None
    budget: Budget | None = None
    approval_id: str | None = None
    idempotency_key: str | None = None
    token: str | None = None
    run_id: str | None = None
    alerts: list[Alert] = Field(default_factory=no_items)


class GenerateReply(Reply, Blocked):
    """Answer of generate_script."""

    written_by_others: ClassVar = ()

    status: Literal["written", "blocked"]
    path: str | None = None
    script: str | None = None
    reasons: list[str] = Field(default_factory=no_items)


class LaunchReply(Reply, Blocked):
    """Answer of launch. Prices in US dollars, of all machines; `output` is the end of what sky said."""

    written_by_others: ClassVar = ("output", "decision.rules")

    status: Literal["launched", "blocked", "dry_run", "unconfirmed"]
    name: str
    price_per_hour: float
    price_at_most: float
    autostop_minutes: int
    approval_id: str | None = None
    output: str | None = None


class CancelReply(Reply, Blocked):
    """Answer of cancel_job."""

    written_by_others: ClassVar = ("job", "alerts")

    status: Literal["cancelled", "blocked", "already_finished"]
    job: JobShown | None = None
    alerts: list[Alert] = Field(default_factory=no_items)


class Complaint(Shape):
    """One thing wrong with a config; `path` is the key (a.b[0]) or the option."""

    path: str
    line: int | None = None
    message: str
    remedy: str


class ValidateReply(Reply):
    """Answer of validate_config."""

    written_by_others: ClassVar = ("errors", "warnings", "config_summary", "decision.rules")

    status: Literal["valid", "invalid"]
    errors: list[Complaint] = Field(default_factory=no_items)
    warnings: list[Complaint] = Field(default_factory=no_items)
    config_summary: dict[str, object] = Field(default_factory=dict)
    decision: DecisionShown | None = None
