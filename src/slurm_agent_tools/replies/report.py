"""What a finished job was and used."""

from __future__ import annotations

from slurm_agent_tools.replies.shapes import ResourcesShown, Shape


class CompletionReport(Shape):
    """What a finished job was and used; None means not measured."""

    job_id: str
    outcome: str
    queue_seconds: int | None
    run_seconds: int | None
    max_rss_bytes: int | None
    max_rss: str | None
    requested: ResourcesShown
    text: str
