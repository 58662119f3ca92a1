"""What the tools beyond the core take. Loaded where one of them is called or listed."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, field_validator

from slurm_agent_tools.models.arguments import StrictModel, ToolArguments


class ResourcesAsked(StrictModel):
    """What one job needs on all nodes."""

    gpus: int = Field(0, ge=0)
    cpus: int | None = Field(None, ge=1)
    memory: str | None = Field(None, description="e.g. 16G")
    nodes: int | None = Field(None, ge=1)


class ChooseBackend(ToolArguments):
    """Arguments of choose_backend: exactly one of script and resources."""

    script: str | None = Field(None, description="Batch script in the project")
    args: list[str] | None = Field(None, description="Its arguments")
    resources: ResourcesAsked | None = None
    expected: str | None = Field(None, description="Run time, e.g. 2h; default earlier runs")
    jobs: int = Field(1, ge=1, le=100000, description="Independent jobs like it")
    restartable: bool | None = Field(None, description="Goes on from a checkpoint?")
    urgency: Literal["normal", "urgent"] = "normal"
    new_configuration: bool | None = Field(None, description="Never tried; default what is known")
    budget: float | None = Field(None, ge=0, allow_inf_nan=False, description="Money for all")


class JobAsked(StrictModel):
    """By script or resources."""

    name: str
    count: int = 1
    script: str | None = None
    resources: ResourcesAsked | None = None
    expected: str | None = Field(None, description="2h; default earlier runs, else time limit")
    after: list[str] | None = Field(None, description="Names that end before")
    deadline: str | None = Field(None, description="6h, or ISO 8601")
    priority: float = Field(1, description="Weight")
    share: float | None = Field(None, description="Of one GPU")
    restart: str | None = Field(None, description="Lost per restart")


class PoolAsked(StrictModel):
    """Held at once at most, with prices. Checked where it is planned on: the schema is read by every client."""

    model_config = ConfigDict(json_schema_extra=lambda schema: schema.pop("description"))

    name: str | None = None
    gpus: int | None = None
    cpus: int | None = None
    memory: str | None = None
    jobs: int | None = None
    gpu_hour: float | None = None
    cpu_hour: float | None = None


class PlanJobs(ToolArguments):
    """Arguments of plan_jobs."""

    jobs: list[JobAsked]
    objective: Literal["makespan", "mean_completion", "deadlines", "cost"] = "makespan"
    pool: list[PoolAsked] | None = Field(None, description="Default: usable nodes")
    seconds: float = Field(2, ge=0, le=300)

    @field_validator("pool", mode="before")
    @classmethod
    def _several(cls, said: object) -> object:
        """One pool may be given by itself."""
        return [said] if isinstance(said, dict) else said


class SyncFiles(ToolArguments):
    """Arguments of sync_files."""

    direction: Literal["push", "pull", "status"]
    paths: list[str] | None = Field(None, max_length=1000, description="Only these files or patterns (logs/**/*.out)")
    delete: list[str] | None = Field(None, max_length=1000, description="push: files to delete there, by name")
    dry_run: bool = False


class GetCampaign(ToolArguments):
    """Arguments of get_campaign."""

    name: str = Field(max_length=60, description="Of campaigns/NAME.yaml")
    view: Literal["state", "plan", "table", "report"] = "state"


class AdvanceCampaign(ToolArguments):
    """Arguments of advance_campaign."""

    name: str = Field(max_length=60, description="Of campaigns/NAME.yaml")
    timeout_seconds: float = Field(45, ge=0, le=3600, description="Wait so long for what runs")
    decision: str | None = Field(None, max_length=60, description="A choice of question, made by a person")
    stop: str | None = Field(None, min_length=1, max_length=500, description="Why to send no more")


FleetSection = Literal["inventory", "free", "idle", "shares", "cost", "waits", "alerts"]


class FleetNeed(StrictModel):
    """What one job needs."""

    model_config = ConfigDict(json_schema_extra=lambda schema: schema.pop("description"))

    gpu_memory: str | None = Field(None, description="Each, e.g. 40G")
    gpus: int = 1
    memory: str | None = None
    constraint: str | None = None
    time_limit: str | None = None


class GetFleet(ToolArguments):
    """Arguments of get_fleet."""

    sections: list[FleetSection] | None = Field(None, description="Default all; with match none")
    match: FleetNeed | None = None
