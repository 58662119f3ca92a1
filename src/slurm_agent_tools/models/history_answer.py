"""What is shown of remembered jobs: records, figures, advice."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.job_sizing import SizingFigure
from slurm_agent_tools.models.shapes import JobShown, Reply, ResourcesShown, Shape, no_items, unknown

# --- What is remembered of jobs, and what it advises. Bytes and seconds; None means not known or not measured ---------


class MemoryServerRecord(Shape):
    """A job's record as memory servers store it: hand it to `store_memory` as it is."""

    content: str
    memory_type: Literal["slurm_job"]
    tags: list[str]
    metadata: dict[str, Any] = Field(description="What is known of the job; tags and type once more")


class RememberedUsage(Shape):
    """What a job used; of an array CPU and GPU time in all, memory and elapsed time of the largest task."""

    elapsed_seconds: int | None = None
    cpu_seconds: float | None = None
    cpu_allocated_seconds: float | None = None
    gpu_allocated_seconds: float | None = Field(default=None, exclude_if=unknown)
    gpu_utilization: float | None = Field(default=None, exclude_if=unknown)
    gpu_memory_bytes: int | None = Field(default=None, exclude_if=unknown)
    memory_peak_bytes: int | None = None
    memory_allocated_bytes: int | None = None
    memory_node_bytes: int | None = Field(default=None, exclude_if=unknown)
    time_limit_seconds: int | None = None


class PastJob(Shape):
    """One remembered job. `likeness` (0 to 1) only where a script was named to compare with."""

    job_id: str
    name: str
    state: str
    tags: list[str]
    likeness: float | None = Field(default=None, exclude_if=unknown)
    script_path: str
    script_sha256: str
    requested: ResourcesShown
    partition: str | None = None
    run_id: str | None = None
    submitted: datetime
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    category: str | None = None
    usage: RememberedUsage | None = None
    result_path: str | None = None
    tasks: int = 1
    managed: bool = Field(default=True, description="It came through submit_job")
    memory: MemoryServerRecord | None = Field(
        default=None, exclude_if=unknown, description="The same as memory servers store it; of one job only"
    )


class MemoryServerJob(Shape):
    """One remembered job as memory servers store it; every figure stands in `memory`, once."""

    job_id: str
    state: str
    likeness: float | None = Field(default=None, exclude_if=unknown)
    memory: MemoryServerRecord


class AdviceShown(Shape):
    """What to ask for, and the number of completed runs that it rests on. Memory in bytes, time in seconds."""

    basis: int
    enough: bool
    summary: str
    memory: SizingFigure
    time: SizingFigure
    cpus: SizingFigure
    warnings: list[str]
    recommended: ResourcesShown | None = None


class HistoryReply(Reply):
    """Remembered jobs, newest first, or the best match first where text or a script was given."""

    written_by_others: ClassVar = ("jobs",)

    jobs: list[PastJob] | list[MemoryServerJob]
    advice: AdviceShown | None = None
    note: str | None = None


class JobReply(Reply):
    """One job: what Slurm says of it now, and what is remembered of it. `job` is null where Slurm forgot it."""

    written_by_others: ClassVar = ("job", "tasks", "remembered")

    status: Literal["ok"]
    job: JobShown | None = None
    tasks: list[JobShown] = Field(default_factory=no_items)
    tasks_by_state: dict[str, int] = Field(default_factory=dict)
    tasks_not_shown: int = 0
    remembered: PastJob | None = None
