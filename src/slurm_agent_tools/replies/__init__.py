"""What the tools answer: the only shapes that CLI and MCP show. See the published contract in docs/reference."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from slurm_agent_tools.replies.advice import Advised, Budget, ExpectedWait, QueueWaits, SizeFigure, Sizing, WaitMeasured
from slurm_agent_tools.replies.diagnosis import Diagnosis, LogFile, RecentFailure
from slurm_agent_tools.replies.report import (
    Change,
    CompletionReport,
    Cost,
    Efficiency,
    GpuUseShown,
    QueueSeen,
    Recommendation,
    ReportReply,
    StepShown,
    UsageShown,
    WaitReply,
)
from slurm_agent_tools.replies.results import Environment, GitState, ResultRecord, SlurmJobRecord
from slurm_agent_tools.replies.running import RunningShown
from slurm_agent_tools.replies.shapes import (
    Alert,
    Blocked,
    Blocker,
    BriefShown,
    DecisionShown,
    ErrorInfo,
    ErrorReply,
    EvidenceLine,
    GrantShown,
    JobShown,
    Outcome,
    PinShown,
    PolicyRef,
    Reply,
    ResourcesShown,
    RuleResult,
    SectionError,
    Severity,
    Shape,
    Verdict,
    unknown,
)

__all__ = [
    "Advised",
    "Alert",
    "AnalyzeReply",
    "Blocked",
    "Blocker",
    "BriefShown",
    "Budget",
    "CancelReply",
    "Change",
    "ClusterSection",
    "CompareReply",
    "Complaint",
    "CompletionReport",
    "Cost",
    "DecisionShown",
    "Diagnosis",
    "DiskSection",
    "Efficiency",
    "EndedShown",
    "Environment",
    "ErrorInfo",
    "ErrorReply",
    "EvidenceLine",
    "ExpectedWait",
    "GenerateReply",
    "GitState",
    "GpuSection",
    "GpuUseShown",
    "GrantShown",
    "JobShown",
    "LogFile",
    "LogPaths",
    "MetricChange",
    "NodeShown",
    "Outcome",
    "PartitionShown",
    "PinShown",
    "PolicyRef",
    "PolicySection",
    "QueueSection",
    "QueueSeen",
    "QueueWaits",
    "RecentFailure",
    "Recommendation",
    "Reply",
    "ReportReply",
    "ResourcesShown",
    "ResultBrief",
    "ResultRecord",
    "RuleResult",
    "RunningShown",
    "SaveReply",
    "SectionError",
    "Severity",
    "Shape",
    "SizeFigure",
    "Sizing",
    "SlurmJobRecord",
    "SlurmSection",
    "StatusReply",
    "StepShown",
    "SubmitReply",
    "UsageShown",
    "ValidateReply",
    "Verdict",
    "WaitMeasured",
    "WaitReply",
]


class EndedShown(BriefShown):
    """A job that ended a short while ago: as BriefShown, and its times and signal too are left out where not known."""

    signal: int | None = Field(default=None, exclude_if=unknown)
    started: datetime | None = Field(default=None, exclude_if=unknown)
    ended: datetime | None = Field(default=None, exclude_if=unknown)


class SlurmSection(Shape):
    """The caller's jobs and slots. All count; of many only some are listed, `not_shown` says how many are not."""

    running_jobs: int
    pending_jobs: int
    active_jobs: int
    max_concurrent: int
    slots_left: int
    jobs: list[BriefShown]
    finished_recently: list[EndedShown] = Field(default_factory=list)
    not_shown: int = 0


class GpuSection(Shape):
    """GPUs by type over the usable nodes."""

    total: int
    used: int | None
    free: int | None
    by_type: dict[str, int]
    note: str | None = None


class QueueSection(Shape):
    """How busy the cluster is. `utilization` is the share of CPUs and GPUs in use, 0..1.

    `why` is what decided the recommendation, `grounds` all that was looked at.
    """

    depth: int
    running: int
    utilization: dict[str, float | None]
    estimated_wait: str | None
    recommendation: Literal["SUBMIT_NOW", "WAIT", "ADJUST"]
    why: str
    grounds: list[str] = Field(default_factory=list)
    waits: QueueWaits | None = None


class PartitionShown(Shape):
    """One partition and what its nodes offer."""

    name: str
    state: str
    default: bool
    nodes: int
    max_time: str
    default_time: str | None
    cpus_per_node: int
    memory_per_node: str
    gpus_per_node: int
    nodes_idle: int | None = None
    gpus_free: int | None = None


class NodeShown(Shape):
    """One node."""

    name: str
    state: str
    partitions: list[str]
    cpus: int
    cpus_used: int | None
    memory: str
    gpus: int
    gpus_used: int | None
    reason: str | None = None


class ResultBrief(Shape):
    """One saved result."""

    file_path: str
    experiment_name: str
    status: str
    timestamp: str


class DiskSection(Shape):
    """Space where the project lies, in bytes."""

    path: str
    total_bytes: int
    free_bytes: int
    free: str


class PolicySection(Shape):
    """The policy in force."""

    name: str
    version: str
    sha256: str
    source: str
    limits: dict[str, str | int]


class ClusterSection(Shape):
    """Which cluster, and whether it answers."""

    name: str | None
    version: str | None
    reachable: bool
    accounting: bool | None = None


class StatusReply(Reply):
    """Answer of get_status; a section that was not asked for is None, one that failed holds an error.

    `age_seconds`: how long ago Slurm was asked for what a section shows.
    """

    status: Literal["ok", "partial"]
    cluster: ClusterSection
    slurm: SlurmSection | SectionError | None = None
    gpu: GpuSection | SectionError | None = None
    queue: QueueSection | SectionError | None = None
    partitions: list[PartitionShown] | SectionError | None = None
    nodes: list[NodeShown] | SectionError | None = None
    results: list[ResultBrief] | SectionError | None = None
    errors: list[BriefShown] | SectionError | None = None
    disk: DiskSection | SectionError | None = None
    policy: PolicySection | SectionError | None = None
    alerts: list[Alert] = Field(default_factory=list)
    slurm_calls: dict[str, int] | None = None
    age_seconds: dict[str, float] = Field(default_factory=dict)


class LogPaths(Shape):
    """Where the job writes; None where Slurm does not tell."""

    stdout: str | None
    stderr: str | None


class SubmitReply(Reply, Blocked):
    """Answer of submit_job."""

    status: Literal["submitted", "blocked", "dry_run", "unconfirmed"]
    job_id: str | None = None
    pinned: list[PinShown] = Field(default_factory=list)
    requested: ResourcesShown | None = None
    granted: ResourcesShown | None = None
    log_paths: LogPaths | None = None
    estimated_start: datetime | None = None
    expected_wait: ExpectedWait | None = None
    sizing: Sizing | None = None
    budget: Budget | None = None
    approval_id: str | None = None
    idempotency_key: str | None = None
    token: str | None = None
    run_id: str | None = None
    alerts: list[Alert] = Field(default_factory=list)


class GenerateReply(Reply, Blocked):
    """Answer of generate_script."""

    status: Literal["written", "blocked"]
    path: str | None = None
    script: str | None = None
    reasons: list[str] = Field(default_factory=list)


class CancelReply(Reply, Blocked):
    """Answer of cancel_job."""

    status: Literal["cancelled", "blocked", "already_finished"]
    job: JobShown | None = None
    alerts: list[Alert] = Field(default_factory=list)


class AnalyzeReply(Reply):
    """Answer of analyze_log. Log lines are data that a job wrote."""

    status: Literal["ok", "no_log"]
    diagnosis: Diagnosis | None = None
    job: JobShown | None = None
    errors: list[EvidenceLine] = Field(default_factory=list)
    warnings: list[EvidenceLine] = Field(default_factory=list)
    metrics: dict[str, float] = Field(default_factory=dict)
    files: list[LogFile] = Field(default_factory=list)
    recent: list[RecentFailure] = Field(default_factory=list)
    content: str | None = None  # mode full: the bounded text
    alerts: list[Alert] = Field(default_factory=list)


class Complaint(Shape):
    """One thing wrong with a config; `path` is the key (a.b[0]) or the option."""

    path: str
    line: int | None = None
    message: str
    remedy: str


class ValidateReply(Reply):
    """Answer of validate_config."""

    status: Literal["valid", "invalid"]
    errors: list[Complaint] = Field(default_factory=list)
    warnings: list[Complaint] = Field(default_factory=list)
    config_summary: dict[str, object] = Field(default_factory=dict)
    decision: DecisionShown | None = None


class SaveReply(Reply, Blocked):
    """Answer of save_result."""

    status: Literal["saved", "dry_run", "blocked"]
    file_path: str | None = None
    result: ResultRecord | None = None
    failure_record: str | None = None


class MetricChange(Shape):
    """One metric; `change` is target minus baseline, `percent` of the baseline (None where it is 0 or not a number)."""

    baseline: str | int | float | bool | None
    target: str | int | float | bool | None
    change: float | None
    percent: float | None


class CompareReply(Reply):
    """Answer of compare_results."""

    status: Literal["ok"]
    baseline: ResultBrief
    target: ResultBrief
    metrics: dict[str, MetricChange]
    config_diff: dict[str, dict[str, object]] | None = None
