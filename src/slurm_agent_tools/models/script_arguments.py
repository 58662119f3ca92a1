"""What generate_script takes. Loaded where a script is written, or the tools are listed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from slurm_agent_tools.models.arguments import StrictModel, ToolArguments


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
