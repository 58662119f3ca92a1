"""What get_status answers."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.shapes import (
    Alert,
    BriefShown,
    QueueWaits,
    Reply,
    ResultBrief,
    SectionError,
    Shape,
    no_items,
    no_values,
    unknown,
)


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
    finished_recently: list[EndedShown] = Field(default_factory=no_items)
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

    `why` is what decided the recommendation, `grounds` all that was looked at. `full_partitions`: where no job starts
    now, each with the reason. `estimates`: how often what was foretold of this project's jobs held.
    """

    depth: int
    running: int
    utilization: dict[str, float | None]
    estimated_wait: str | None
    recommendation: Literal["SUBMIT_NOW", "WAIT", "ADJUST"]
    why: str
    grounds: list[str] = Field(default_factory=no_items)
    waits: QueueWaits | None = None
    full_partitions: dict[str, str] = Field(default_factory=no_values)
    estimates: str | None = Field(default=None, exclude_if=unknown)


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
    """Which cluster, by Slurm's name, and whether it answers. `known_as`: its name in calls, where that is another."""

    name: str | None
    version: str | None
    reachable: bool
    accounting: bool | None = None
    known_as: str | None = Field(default=None, exclude_if=unknown)


class StageShown(Shape):
    """The last run of a stage."""

    job_id: str
    state: Literal["passed", "failed", "active", "unknown", "cancelled"]
    why: str | None = Field(default=None, exclude_if=unknown)


class LadderShown(Shape):
    """What was tried of one configuration, by stage."""

    configuration: str
    script: str
    stages: dict[str, StageShown]


class StatusReply(Reply):
    """Answer of get_status; a section that was not asked for is None, one that failed holds an error.

    `age_seconds`: how long ago Slurm was asked for what a section shows.
    """

    written_by_others: ClassVar = (
        "slurm.jobs",
        "slurm.finished_recently",
        "partitions",
        "nodes",
        "results",
        "errors",
        "alerts",
    )

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
    ladders: list[LadderShown] = Field(default_factory=no_items)
    alerts: list[Alert] = Field(default_factory=no_items)
    slurm_calls: dict[str, int] | None = None
    age_seconds: dict[str, float] = Field(default_factory=no_values)
