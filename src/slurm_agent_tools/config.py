"""One frozen settings tree: SLURM_AGENT_* in the environment, then slurm-agent.toml in the project, then defaults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from slurm_agent_tools.errors import ConfigError

FILE_NAME = "slurm-agent.toml"
_ROOT_MARKS = (FILE_NAME, ".git")


class SlurmSettings(BaseModel):
    """How Slurm is asked. Times in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    conf: Path | None = Field(None, description="slurm.conf to use; default: Slurm's own, or SLURM_CONF")
    bin_dir: Path | None = Field(None, description="Folder of Slurm's commands; default: PATH")
    read_timeout: float = Field(6.0, gt=0, le=60, description="Time limit of one reading command")
    submit_timeout: float = Field(25.0, gt=0, le=120, description="Time limit of sbatch, scontrol release and scancel")
    poll_scale: float = Field(1.0, gt=0, le=10, description="Multiplies the pauses between looks while waiting")
    cache_seconds: float = Field(10.0, ge=0, le=60, description="How old a shared answer may be")


class Settings(BaseSettings):
    """Every setting, with its default. `slurm-agent-tools doctor` shows each value and where it came from."""

    model_config = SettingsConfigDict(
        env_prefix="SLURM_AGENT_", env_nested_delimiter="__", env_ignore_empty=True, extra="forbid", frozen=True
    )

    project_root: Path = Field(default_factory=Path.cwd, description="The project folder that all paths stay inside")
    state_dir: Path = Field(
        default_factory=lambda: state_home() / "slurm-agent-tools", description="Ledger and decision log, private"
    )
    policy: Path | None = Field(None, description="A policy file that tightens the shipped one")
    tool_prefix: Literal["", "slurm_agent_"] = Field("", description="Published before every MCP tool name")
    log_level: Literal["debug", "info", "warning", "error"] = Field("warning", description="On standard error")
    approval_timeout: float = Field(
        240.0, gt=0, le=3600, description="Seconds that a person at an MCP client may take to answer a question"
    )
    mail_user: str | None = Field(None, description="Address for --mail-user in generated scripts")
    slurm: SlurmSettings = Field(default_factory=SlurmSettings)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment before file; a `.env` that an agent may write counts for nothing."""
        root = init_settings().get("project_root")
        toml = TomlConfigSettingsSource(settings_cls, Path(str(root)) / FILE_NAME if root else None)
        return (env_settings, toml, init_settings)


def state_home() -> Path:
    """XDG_STATE_HOME, else ~/.local/state."""
    named = os.environ.get("XDG_STATE_HOME", "")
    return Path(named) if named.startswith("/") else Path.home() / ".local" / "state"


def find_root(start: Path) -> Path:
    """The nearest folder upward that holds slurm-agent.toml or .git, else `start`; links resolved."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in _ROOT_MARKS):
            return folder
    return start


def load(start: Path | None = None) -> Settings:
    """Settings for the project around `start` (default: the working folder). Raises ConfigError."""
    named = os.environ.get("SLURM_AGENT_PROJECT_ROOT")
    root = Path(named).resolve() if named else find_root(start or Path.cwd())
    if not root.is_dir():
        raise ConfigError(
            "project_root", str(root), "is not a folder", hint="Set SLURM_AGENT_PROJECT_ROOT to a folder."
        )
    try:
        return Settings(project_root=root)
    except (ValidationError, ValueError) as error:
        raise _explained(error, root) from error


def _explained(error: ValueError, root: Path) -> ConfigError:
    if not isinstance(error, ValidationError):
        return ConfigError(FILE_NAME, str(root / FILE_NAME), f"cannot be read: {error}", hint="Mend the TOML syntax.")
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    variable = "SLURM_AGENT_" + "__".join(parts).upper()
    return ConfigError(
        ".".join(parts), first.get("input"), first["msg"], hint=f"Correct it in {FILE_NAME} or in {variable}."
    )
