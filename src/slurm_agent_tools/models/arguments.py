"""What the tools take: the arguments that callers send, checked."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Section = Literal["jobs", "gpu", "queue", "partitions", "nodes", "results", "errors", "disk", "policy"]

Stage = Literal["smoke", "pilot", "production"]

JobIdText = Annotated[str, Field(description="123, 123_4 or 123+1")]


class StrictModel(BaseModel):
    """What callers send: unknown names are errors, a number is taken for text."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True, frozen=True, defer_build=True)


class ToolArguments(StrictModel):
    """Arguments of one tool."""

    cluster: str | None = Field(None, description="A name in the settings")
    detail: Literal["brief", "full"] = Field("brief", description="full: all there is")


class GetStatus(ToolArguments):
    """Arguments of get_status."""

    sections: list[Section] | None = Field(None, description="Only these; default jobs, gpu, queue, partitions, policy")
    detailed: bool = Field(False, description="Every node, and counts of Slurm calls")
    refresh: bool = Field(False, description="Ask Slurm now instead of using answers up to 10 s old")


class SubmitJob(ToolArguments):
    """Arguments of submit_job."""

    script: str = Field(description="Batch script, a path inside the project")
    job_name: str | None = None
    args: list[str] | None = Field(None, description="Arguments for the script")
    partition: str | None = None
    time_limit: str | None = Field(None, description="MINUTES, HH:MM:SS or D-HH:MM:SS")
    dependency: str | None = Field(None, description="As sbatch --dependency, e.g. afterok:123")
    array: str | None = Field(None, description="As sbatch --array, e.g. 0-9%4")
    priority: Literal["low", "normal", "high"] | None = None
    time_budget: str | None = Field(None, description="When the result is needed, from now: 90min, 2h or as time_limit")
    justification: str | None = Field(None, max_length=5000, description="Why the request is above what is free")
    run_id: str | None = Field(None, description="Your own id, kept with the job: letters, digits, ._:@/+-")
    stage: Stage | None = Field(None, description="smoke: a short trial first, which opens the larger ones")
    idempotency_key: str | None = Field(None, description="Repeat a call with the same key: never a second job")
    dry_run: bool = Field(False, description="Check only; submit nothing")


class WaitForJob(ToolArguments):
    """Arguments of wait_for_job."""

    job_id: JobIdText | None = None
    job_ids: list[JobIdText] | None = Field(None, min_length=1, max_length=50, description="Several jobs, with until")
    until: Literal["any", "all"] = Field("any", description="Of job_ids: answer when one has ended, or all")
    timeout_seconds: float = Field(45, ge=0, le=3600, description="Then answer with what is known")

    @property
    def wanted(self) -> tuple[str, ...]:
        """All ids, each once."""
        return tuple(dict.fromkeys([*([self.job_id] if self.job_id is not None else []), *(self.job_ids or [])]))


class CancelJob(ToolArguments):
    """Arguments of cancel_job."""

    job_id: JobIdText
    reason: str = Field(min_length=1, max_length=500, description="Why, for the record")


class AnalyzeLog(ToolArguments):
    """Arguments of analyze_log: exactly one of job_id, path, recent_errors."""

    job_id: JobIdText | None = None
    path: str | None = Field(None, description="A log file inside the project")
    recent_errors: int | None = Field(None, ge=1, le=50, description="The newest N failed jobs or logs")
    mode: Literal["auto", "error", "metrics", "full"] = "auto"


class ValidateConfig(ToolArguments):
    """Arguments of validate_config."""

    config_path: str = Field(description="YAML, TOML or JSON config, or a batch script")
    strict: bool = Field(False, description="Warnings count as errors")
