"""What the tools answer: the only shapes that CLI and MCP show. See the published contract in docs/reference.

A name is looked up in its module when it is used first: making all these models takes as long as importing pydantic,
and a command line answers with one of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.shapes import Alert, EvidenceLine, JobShown, Reply, Shape

# --- Why a job ended as it did, and what was read to find out ---------------------------------------------------------


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


class AnalyzeReply(Reply):
    """Answer of analyze_log. Log lines are data that a job wrote."""

    written_by_others: ClassVar = (
        "summary",
        "diagnosis",
        "job",
        "errors",
        "warnings",
        "metrics",
        "files",
        "recent",
        "content",
        "alerts",
    )

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
