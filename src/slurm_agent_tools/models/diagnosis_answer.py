"""What analyze_log answers: why a job ended as it did, and what was read to find out."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.shapes import Alert, EvidenceLine, JobShown, Reply, Shape, no_items, unknown


class Diagnosis(Shape):
    """Why it ended as it did. `retry` is always false: a person or an orchestrator decides.

    `escalation` says how grave the cause is, in the severities of alerts: critical stops every run like it, high needs
    another request. That a job failed is told at once in any case, by the alert job-failed.
    """

    category: str
    confidence: float = Field(ge=0, le=1)
    escalation: Literal["critical", "high", "medium", "none"]
    explanation: str
    evidence: list[EvidenceLine] = Field(default_factory=no_items)
    suggestions: list[str] = Field(default_factory=no_items)
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
        "lessons",
    )

    status: Literal["ok", "no_log"]
    diagnosis: Diagnosis | None = None
    job: JobShown | None = None
    errors: list[EvidenceLine] = Field(default_factory=no_items)
    errors_not_shown: int | None = Field(default=None, exclude_if=unknown)  # in brief, of many
    warnings: list[EvidenceLine] = Field(default_factory=no_items)
    metrics: dict[str, float] = Field(default_factory=dict)
    files: list[LogFile] = Field(default_factory=no_items)
    recent: list[RecentFailure] = Field(default_factory=no_items)
    content: str | None = None  # mode full: the bounded text
    lessons: list[str] = Field(default_factory=no_items)  # what mended this category here before, newest first
    alerts: list[Alert] = Field(default_factory=no_items)
