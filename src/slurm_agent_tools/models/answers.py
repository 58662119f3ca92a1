"""What the tools answer: the only shapes that CLI and MCP show. See the published contract in docs/reference."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from slurm_agent_tools.models.advice import Budget, ExpectedWait, QueueWaits, Sizing
from slurm_agent_tools.models.decision import Blocked, DecisionShown, PinShown
from slurm_agent_tools.models.result import ResultRecord
from slurm_agent_tools.models.shapes import (
    Alert,
    BriefShown,
    EvidenceLine,
    JobShown,
    Reply,
    ResourcesShown,
    SectionError,
    Shape,
    unknown,
)


class Diagnosis(Shape):
    """Why it ended as it did. `retry` is always false: a person or an orchestrator decides.

    `escalation` says how grave the cause is, in the severities of alerts: critical stops every run like it, high needs
    another request. That a job failed is told at once in any case, by the alert job-failed.
    """

    category: str
    confidence: float = Field(ge=0, le=1)
    escalation: Literal["critical", "high", "medium", "none"]
    explanation: str
    evidence: list[EvidenceLine] = Field(default_factory=list)
    suggestions: list[str] = Field(default_factory=list)
    proposed_change: str | None = None
    retry: Literal[False] = False


class LogFile(Shape):
    """A file that was read, or was looked for."""

    path: str
    size_bytes: int | None
    read_bytes: int
    note: str | None = None


class RecentFailure(Shape):
    """One recent failure in brief."""

    job_id: str | None
    name: str | None
    state: str | None
    path: str | None
    category: str
    explanation: str


# --- What a running job uses, and how long it may go on ---------------------------------------------------------------


class RunningShown(Shape):
    """A running job now; of an array or a het job the part that is nearest to its memory limit. None: not measured.

    `memory_bytes` is what all running steps have together. `memory_share` compares it with what was granted, or the
    largest task's peak with what was granted on one node, whichever is more. `cpu_share` is CPU time of the running
    steps over the CPU time that they could have had. `elapsed_seconds` is Slurm's own figure. `note` says why
    something was not measured, and that at the pace of its log the job will not be done in time.
    """

    job_id: str
    parts: int
    elapsed_seconds: int | None
    time_left_seconds: int | None
    estimated_end: datetime | None
    estimated_from: Literal["progress", "time limit"] | None
    progress: float | None = None
    memory_bytes: int | None = None
    memory: str | None = None
    memory_task_peak_bytes: int | None = None
    memory_limit_bytes: int | None = None
    memory_limit: str | None = None
    memory_share: float | None = None
    cpu_seconds: float | None = None
    cpu_share: float | None = None
    note: str | None = None


# --- What the tools answer: the only shapes that CLI and MCP show. See the published contract in docs/reference -------


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
