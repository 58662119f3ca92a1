"""What save_result and compare_results take, and what a saved result holds."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.arguments import JobIdText, ToolArguments
from slurm_agent_tools.models.decision import Blocked
from slurm_agent_tools.models.shapes import JobShown, Reply, ResourcesShown, ResultBrief, Shape, no_items


class SaveResult(ToolArguments):
    """Arguments of save_result."""

    name: str = Field(description="Experiment name")
    status: Literal["success", "failed", "cancelled"]
    config: dict[str, object] | str | None = Field(None, description="The configuration, or a path to it")
    metrics: dict[str, object] | None = None
    baseline: str | None = Field(None, description="An earlier result: file or experiment name")
    notes: str | None = None
    job_id: JobIdText | None = None
    output_dir: str = "results"
    dry_run: bool = False


class CompareResults(ToolArguments):
    """Arguments of compare_results."""

    baseline: str = Field(description="Result file or experiment name")
    target: str = Field(description="Result file or experiment name")
    others: list[str] | None = Field(None, max_length=50, description="More targets")
    metrics_only: bool = False


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


class SaveReply(Reply, Blocked):
    """Answer of save_result."""

    written_by_others: ClassVar = ("result",)

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


class ComparedRun(Shape):
    """One of several results beside the baseline."""

    target: ResultBrief
    metrics: dict[str, MetricChange]
    config_diff: dict[str, dict[str, object]] | None = None


class CompareReply(Reply):
    """Answer of compare_results."""

    written_by_others: ClassVar = ("baseline", "target", "metrics", "config_diff", "others")

    status: Literal["ok"]
    baseline: ResultBrief
    target: ResultBrief
    metrics: dict[str, MetricChange]
    config_diff: dict[str, dict[str, object]] | None = None
    others: list[ComparedRun] = Field(default_factory=no_items)
