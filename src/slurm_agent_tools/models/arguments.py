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

    cluster: str | None = Field(None, description="A name of the settings' clusters")
    detail: Literal["brief", "full"] = Field("brief", description="full: all figures, rules and what was told before")


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


class Checkpoint(StrictModel):
    """Where a job keeps its checkpoints, and how it goes on from them."""

    dir: str
    resume_from: str | None = Field(None, description="A file, or a pattern (ckpt/step-*.pt): the newest one counts")
    signal_before: str | None = Field(None, description="Send USR1 this long before the time limit, e.g. 5m")


Launcher = Literal["torchrun", "srun", "mpi", "accelerate", "deepspeed"]

Format = Literal["slurm", "pbs", "kubernetes", "skypilot", "shell"]


class GenerateScript(ToolArguments):
    """Arguments of generate_script."""

    name: str = Field(description="Job name")
    command: str = Field(description="What the job runs, as a shell line")
    gpus: int | None = Field(None, ge=0, description="Default 1; 0 for CPU work")
    cpus: int | None = Field(None, ge=1)
    memory: str | None = Field(None, description="Total, e.g. 16G")
    data_size: str | None = Field(None, description="Input size, e.g. 4G; memory becomes 3 times that plus 20 %")
    time_limit: str | None = None
    time_budget: str | None = Field(None, description="When the result is needed, as a duration")
    partition: str | None = None
    array: str | None = None
    setup: list[str] | None = Field(None, description="Lines to run first, e.g. module load cuda")
    checkpoint: Checkpoint | None = None
    distributed: bool = Field(False, description="Several processes, one per GPU, by the launcher that command names")
    launcher: Launcher | None = Field(None, description="What starts the processes; implies distributed")
    nodes: int | None = Field(None, ge=1, description="Nodes of a distributed job; GPUs are shared by them evenly")
    justification: str | None = Field(
        None, max_length=5000, description="Why it needs what the policy asks a reason for"
    )
    format: Format = Field("slurm", description="Others are written for a person to start; partition is their queue")
    backend: str | None = Field(None, description="A page of backends/, which adds image, queue and price")
    image: str | None = Field(None, description="Container image, for kubernetes and skypilot")
    gpu_type: str | None = Field(None, description="Kind of GPU, e.g. A100")
    max_hourly_cost: float | None = Field(None, gt=0, description="USD an hour for one machine, for skypilot")
