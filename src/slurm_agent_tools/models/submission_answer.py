"""What is answered about scripts and their jobs: submit_job, generate_script, validate_config, cancel_job."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.decision import (
    Blocked,
    Budget,
    DecisionShown,
    ExpectedWait,
    Foretold,
    Sizing,
)
from slurm_agent_tools.models.request import Pin
from slurm_agent_tools.models.shapes import Alert, JobShown, Reply, ResourcesShown, Shape, unknown


class LogPaths(Shape):
    """Where the job writes; None where Slurm does not tell. `%a` stands for the number of an array's task."""

    stdout: str | None
    stderr: str | None


class SubmitReply(Reply, Blocked):
    """Answer of submit_job."""

    written_by_others: ClassVar = ("reason", "decision.rules", "alerts")

    status: Literal["submitted", "blocked", "dry_run", "unconfirmed"]
    job_id: str | None = None
    pinned: list[Pin] = Field(default_factory=list)
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
    alerts: list[Alert] = Field(default_factory=list)


class GenerateReply(Reply, Blocked):
    """Answer of generate_script."""

    written_by_others: ClassVar = ()

    status: Literal["written", "blocked"]
    path: str | None = None
    script: str | None = None
    reasons: list[str] = Field(default_factory=list)


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
    alerts: list[Alert] = Field(default_factory=list)


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
    errors: list[Complaint] = Field(default_factory=list)
    warnings: list[Complaint] = Field(default_factory=list)
    config_summary: dict[str, object] = Field(default_factory=dict)
    decision: DecisionShown | None = None
