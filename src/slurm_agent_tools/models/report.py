"""What a finished job was and used."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.shapes import (
    Alert,
    BriefShown,
    JobShown,
    Reply,
    ResourcesShown,
    RunningShown,
    Shape,
    no_items,
)


class Efficiency(Shape):
    """Shares 0..1 of what was given that were used; None means not measured.

    `cpu` is CPU time over CPUs times elapsed time. `memory` is that of the largest step over all its nodes, of the part
    that used most of what it had. `time` is elapsed time over the limit. `gpu` is how busy the GPUs were.
    """

    cpu: float | None = None
    memory: float | None = None
    gpu: float | None = None
    time: float | None = None


class UsageShown(Shape):
    """The figures behind the shares: sums over array tasks and components, memory of the fullest part."""

    cpu_seconds: float | None = None
    cpu_allocated_seconds: float | None = None
    gpu_allocated_seconds: float | None = None
    memory_peak_bytes: int | None = None
    memory_peak: str | None = None
    memory_allocated_bytes: int | None = None
    memory_allocated: str | None = None
    memory_node_bytes: int | None = None  # most that one node may have needed


class GpuUseShown(Shape):
    """How busy the GPUs were, 0..1, and who measured it; `note` says why nothing was measured."""

    utilization: float | None = None
    memory_bytes: int | None = None
    memory: str | None = None
    source: Literal["jobstats", "accounting", "prometheus"] | None = None
    note: str | None = None


class StepShown(Shape):
    """One step: batch, extern or a number, behind the id of its job, task or component."""

    step_id: str
    name: str
    state: str
    run_seconds: int | None = None
    tasks: int | None = None
    cpus: int | None = None
    cpu_seconds: float | None = None
    cpu_efficiency: float | None = None
    memory_bytes: int | None = None
    memory: str | None = None
    memory_allocated_bytes: int | None = None
    memory_efficiency: float | None = None


class Cost(Shape):
    """What was taken up, and its price by the rates of the settings; `note` says why there is no price."""

    cpu_hours: float | None = None
    gpu_hours: float | None = None
    gpu_hours_by_type: dict[str, float] = Field(default_factory=dict)
    amount: float | None = None
    currency: str | None = None
    note: str | None = None


class RequestChange(Shape):
    """One thing to ask for otherwise next time: the line for the script, why, and what it saves. Only proposed."""

    what: Literal["memory", "cpus", "time", "other"]
    directive: str
    why: str
    saves: str | None = None


class Recommendation(Shape):
    """What to do about the request. `target` is a share, 0..1.

    MINIMAL: little was used, but nothing less can be asked for. NOT_JUDGED: the job did not complete.
    """

    verdict: Literal["EFFICIENT", "ADJUST", "MINIMAL", "NOT_MEASURED", "NOT_JUDGED"]
    text: str
    target: float
    changes: list[RequestChange] = Field(default_factory=no_items)


class QueueSeen(Shape):
    """How busy the cluster is now, and the wait that was expected at the submission."""

    depth: int | None = None
    utilization: float | None = None
    estimated_wait_seconds: int | None = None


class CompletionReport(Shape):
    """What a finished job was and used; None means not measured. `text` is the same in Markdown."""

    job_id: str
    outcome: str
    queue_seconds: int | None
    run_seconds: int | None
    max_rss_bytes: int | None
    max_rss: str | None
    requested: ResourcesShown
    text: str
    efficiency: Efficiency = Efficiency()
    usage: UsageShown = UsageShown()
    gpu: GpuUseShown = GpuUseShown()
    steps: list[StepShown] = Field(default_factory=no_items)
    steps_not_shown: int = 0
    cost: Cost = Cost()
    recommendation: Recommendation | None = None
    queue: QueueSeen = QueueSeen()
    retry: Literal[False] = False


class ReportReply(Reply):
    """The report of one job; none while it is not over."""

    written_by_others: ClassVar = ("job", "report")

    status: Literal["finished", "running", "pending", "unknown"]
    job: JobShown
    report: CompletionReport | None = None


class WaitReply(Reply):
    """Answer of wait_for_job. Of many `tasks` those that failed are shown first, then those that go on.

    What a task leaves out is as in `job`, or not known. In brief only those that failed are shown, and
    `tasks_not_shown` counts failed ones. Of several jobs `job` decided the answer: the first that ended, or the first
    that goes on; `jobs` are all.
    """

    written_by_others: ClassVar = ("job", "jobs", "tasks", "report", "alerts")

    status: Literal["finished", "running", "pending", "unknown"]
    job: JobShown
    jobs: list[BriefShown] = Field(default_factory=no_items)
    tasks: list[BriefShown] = Field(default_factory=no_items)
    tasks_by_state: dict[str, int] = Field(default_factory=dict)
    tasks_not_shown: int = 0
    next_poll_seconds: int | None = None
    suggested_timeout_seconds: int | None = None  # of the next call: one answer instead of many
    alerts: list[Alert] = Field(default_factory=no_items)
    running: RunningShown | None = None
    estimated_start: datetime | None = None  # of a pending job, as the scheduler plans it now
    report: CompletionReport | None = None
