"""What a saved result holds."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from slurm_agent_tools.models.shapes import JobShown, ResourcesShown, Shape


class GitState(Shape):
    """The project's git state; all None outside a repository."""

    commit: str | None = None
    branch: str | None = None
    dirty: bool | None = None


class SlurmJobRecord(Shape):
    """The job behind a result, as accounting tells it."""

    job: JobShown
    max_rss_bytes: int | None = None
    requested: ResourcesShown | None = None


class Environment(Shape):
    """Where a result was made."""

    git: GitState
    python_version: str
    platform: str
    slurm_job: SlurmJobRecord | None = None


class ResultRecord(Shape):
    """One saved result. `config_diff` maps a key to `{baseline, target}`."""

    experiment_name: str
    timestamp: datetime
    status: Literal["success", "failed", "cancelled"]
    run_id: str | None = None
    config: dict[str, object] | None = None
    config_diff: dict[str, dict[str, object]] | None = None
    baseline_experiment: str | None = None
    metrics: dict[str, object] = Field(default_factory=dict)
    environment: Environment
    notes: str | None = None
