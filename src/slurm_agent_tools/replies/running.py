"""What a running job uses, and how long it may go on."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from slurm_agent_tools.replies.shapes import Shape


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
