"""One frozen settings tree: SLURM_AGENT_* in the environment, then slurm-agent.toml in the project, then defaults."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from slurm_agent_tools.errors import ConfigError

FILE_NAME = "slurm-agent.toml"

ENVIRONMENT = "environment"

_ROOT_MARKS = (FILE_NAME, ".git")

_TRUSTED = frozenset({"bin_dir", "conf", "ssh_config", "known_hosts"})

_OUTSIDE = {  # what runs, and who is told what
    "memory": ("command", "url", "env", "token_env"),
    "gpu_metrics": ("url", "query"),
    "http": ("hosts", "proxy", "origins", "tls_cert", "tls_key"),  # who may come in, and who could listen in
}

_PLAIN = re.compile(r"[\w.:@%+\[\]][\w.:@%+\[\]-]*")

_PREFIX = "SLURM_AGENT_"

_BESIDE = ("devcluster", "test_")  # how names begin that are for the devcluster and the tests

_TABLES = ("slurm", "clusters", "http", "rates", "efficiency", "gpu_metrics", "memory")  # may be given whole, as JSON


class SlurmSettings(BaseModel):
    """How Slurm is asked. Times in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    conf: Path | None = Field(None, description="slurm.conf to use; default: Slurm's own, or SLURM_CONF")
    bin_dir: Path | None = Field(None, description="Folder of Slurm's commands; default: PATH")
    read_timeout: float = Field(6.0, gt=0, le=60, description="Time limit of one reading command")
    submit_timeout: float = Field(25.0, gt=0, le=120, description="Time limit of sbatch, scontrol release and scancel")
    poll_scale: float = Field(1.0, gt=0, le=10, description="Multiplies the pauses between looks while waiting")
    cache_seconds: float = Field(10.0, ge=0, le=60, description="How old a shared answer may be")


class HttpSettings(BaseModel):
    """`serve --http`: where it listens, whom it answers, and how much it takes. Times in seconds.

    Names, origins and TLS files count on the command line and in the environment alone.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    listen: str | None = Field(
        None, description="unix:PATH or HOST:PORT; default: a socket in XDG_RUNTIME_DIR, else in the state folder"
    )
    hosts: tuple[str, ...] = Field((), description="Further names by which clients call it, without port")
    proxy: tuple[str, ...] = Field((), description="Public names of the proxy in front of it, which does TLS")
    origins: tuple[str, ...] = Field((), description="Web pages that may call it, as https://NAME[:PORT]")
    tls_cert: Path | None = Field(None, description="Certificate with its chain, PEM")
    tls_key: Path | None = Field(None, description="Private key of the certificate, PEM")
    max_body: int = Field(2**20, ge=1024, le=64 * 2**20, description="Largest request, bytes")
    max_connections: int = Field(800, ge=4, le=20000, description="At once; the longest idle one makes room")
    max_calls: int = Field(600, ge=1, description="Requests of one token being answered at once")
    per_minute: int = Field(1200, ge=1, description="Requests of one token a minute")
    head_timeout: float = Field(10.0, gt=0, le=120, description="For a connection to send a request's head")
    body_timeout: float = Field(
        20.0, gt=0, le=300, description="For the rest of a request, and for each part of its answer to be taken"
    )
    stop_seconds: float = Field(10.0, gt=0, le=300, description="For answers under way when it is told to stop")


class MemorySettings(BaseModel):
    """A memory server that is told of every job; off by default. All but the times in the environment alone."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    command: tuple[str, ...] = Field((), description="Starts the server on standard input and output; argument list")
    url: str | None = Field(
        None, pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$", description="Where it is, over streamable HTTP"
    )
    env: tuple[str, ...] = Field((), description="Names of variables of the environment that `command` gets")
    token_env: str | None = Field(None, description="Name of the variable that holds the bearer token for `url`")
    timeout: float = Field(30.0, gt=0, le=300, description="Seconds for handing over what is due, connecting included")
    pause: float = Field(60.0, ge=0, le=3600, description="Seconds until it is tried again after a failure")

    @model_validator(mode="after")
    def _one_way(self) -> MemorySettings:
        if self.command and self.url:
            raise ValueError("give command or url, not both")
        return self

    @property
    def on(self) -> bool:
        """True where there is one."""
        return bool(self.command or self.url)


class ClusterSettings(BaseModel):
    """One cluster of `[clusters.NAME]`: on this machine, or behind an SSH host. Times in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    host: str | None = Field(None, description="SSH host, a name of ~/.ssh/config or an address; default: this machine")
    user: str | None = Field(None, description="User name there; default: as ~/.ssh/config says")
    port: int | None = Field(None, ge=1, le=65535, description="SSH port; default: as ~/.ssh/config says")
    remote_root: str | None = Field(
        None, description="The project folder on the cluster: absolute, or below the home folder there"
    )
    ssh_config: Path | None = Field(
        None, description="SSH client configuration (ssh -F); default: the person's and the machine's"
    )
    known_hosts: Path | None = Field(None, description="Host keys; default: as the SSH configuration says")
    connect_timeout: float = Field(10.0, gt=0, le=120, description="Time limit of opening the connection")
    idle_seconds: float = Field(600.0, gt=0, description="An unused connection is closed after this time")
    slurm: SlurmSettings = Field(default_factory=SlurmSettings)

    @model_validator(mode="after")
    def _plain(self) -> ClusterSettings:
        """An agent may write these, and the person's `Match exec` and ProxyCommand put them into a shell's line."""
        for name, value in (("host", self.host), ("user", self.user)):
            if value is not None and _PLAIN.fullmatch(value) is None:
                raise ValueError(f"{name} {value!r} is more than a name: letters, digits and ._:@%+[]- are taken")
        return self

    @model_validator(mode="after")
    def _rooted(self) -> ClusterSettings:
        if self.host is not None and not self.remote_root:
            raise ValueError("remote_root is needed with host: the project folder on the cluster")
        return self


class RateSettings(BaseModel):
    """What a job costs, for the completion report; without rates no cost is told."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    currency: str | None = Field(None, max_length=8, description="Of the rates, as EUR; needed where there is one")
    cpu_hour: float | None = Field(None, ge=0, allow_inf_nan=False, description="Price of one CPU for one hour")
    gpu_hour: dict[str, float] = Field(
        default_factory=dict, description="Price of one GPU for one hour by its type in Slurm; `other` for all others"
    )

    @model_validator(mode="after")
    def _priced(self) -> RateSettings:
        if (self.cpu_hour is not None or self.gpu_hour) and not self.currency:
            raise ValueError("currency is needed beside a rate")
        if any(not 0 <= price < float("inf") for price in self.gpu_hour.values()):
            raise ValueError("a price per hour is 0 or more")
        return self


class EfficiencySettings(BaseModel):
    """From which share of its request, used, a job is called efficient."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    memory: float = Field(0.8, gt=0, le=1, description="Share of its memory from which a job is efficient")
    cpu: float = Field(0.8, gt=0, le=1, description="Share of its CPU time from which a job is efficient")
    target: float = Field(0.95, gt=0, le=1, description="The share to aim at, as shown in the report")


class GpuMetricsSettings(BaseModel):
    """A Prometheus that knows how busy the GPUs were, for the report. Address and query in the environment alone."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    url: str | None = Field(
        None, pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$", description="Its address, as http://prometheus:9090"
    )
    query: str = Field(
        'avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{hpc_job=~"$jobs"}[${seconds}s]))',
        description="PromQL with one value in per cent at the job's end; `$jobs`, `$nodes`, `$seconds` are filled in",
    )
    timeout: float = Field(3.0, gt=0, le=20, description="Seconds that its answer may take")


class Settings(BaseModel):
    """Every setting, with its default. `slurm-agent-tools doctor` shows each value and where it came from."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

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
    http: HttpSettings = Field(default_factory=HttpSettings)
    rates: RateSettings = Field(default_factory=RateSettings)
    efficiency: EfficiencySettings = Field(default_factory=EfficiencySettings)
    gpu_metrics: GpuMetricsSettings = Field(default_factory=GpuMetricsSettings)
    memory: MemorySettings = Field(default_factory=MemorySettings)
    cluster: str | None = Field(None, description="Which of `clusters` a call means that names none")
    clusters: dict[str, ClusterSettings] = Field(default_factory=dict, description="Clusters by name")


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
        said = sources(root)
        _check_places(said[FILE_NAME], root)
        _check_outside(said[FILE_NAME])
        return Settings.model_validate({"project_root": root, **_merged(said[FILE_NAME], said[ENVIRONMENT])})
    except (ValidationError, ValueError) as error:
        raise _explained(error, root) from error


def sources(root: Path) -> dict[str, dict[str, Any]]:
    """What is said and where, as nested tables; the environment counts before the file. ConfigError, ValueError."""
    return {ENVIRONMENT: _environment(), FILE_NAME: _written(root)}


def _check_places(written: dict[str, Any], root: Path, above: str = "") -> None:
    """What says which programs run and which hosts are trusted must not lie where an agent may write. ConfigError."""
    for name, value in written.items():
        if isinstance(value, dict):
            _check_places(value, root, f"{above}{name}.")
        elif (
            name in _TRUSTED
            and isinstance(value, str)
            and (root / Path(value).expanduser()).resolve().is_relative_to(root)
        ):
            hint = f"Keep it outside of the project, or set SLURM_AGENT_{f'{above}{name}'.replace('.', '__').upper()}."
            raise ConfigError(f"{above}{name}", value, "lies in the project, where an agent may write", hint=hint)


def _check_outside(written: dict[str, Any]) -> None:
    """Agents may write the project's file: it must not name a program or whom to tell. Raises ConfigError."""
    for above, names in _OUTSIDE.items():
        table = written.get(above)
        named = [name for name in names if isinstance(table, dict) and name in table]
        if isinstance(table, dict) and named:
            problem = f"counts in the environment alone, not in {FILE_NAME}"
            hint = f"Set SLURM_AGENT_{above.upper()}__{named[0].upper()} where the server is started."
            raise ConfigError(f"{above}.{named[0]}", table[named[0]], problem, hint=hint)


def _written(root: Path) -> dict[str, Any]:
    """What slurm-agent.toml says. Raises ValueError."""
    try:
        text = (root / FILE_NAME).read_text(encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError):
        return {}
    except OSError as error:
        raise ValueError(error.strerror) from error
    import tomllib  # noqa: PLC0415 - most projects have no such file

    return tomllib.loads(text)


def _environment() -> dict[str, Any]:
    """What SLURM_AGENT_* variables say: `__` goes a level down, an empty one is not set, a table or a list is JSON."""
    found: dict[str, Any] = {}
    for variable, value in os.environ.items():
        if not value or not variable.upper().startswith(_PREFIX):
            continue
        first, *rest = variable[len(_PREFIX) :].lower().split("__")
        if first in Settings.model_fields:
            json_text = first in _TABLES and value.lstrip().startswith(("{", "["))
            entry = _parsed(variable, value) if json_text else value
            for part in reversed(rest):
                entry = {part: entry}
            found = _merged(found, {first: entry})
        elif not first.startswith(_BESIDE):
            raise _unknown(variable, value, first)
    return found


def _unknown(variable: str, value: str, name: str) -> ConfigError:
    """A misspelt name must not leave a wish without effect, such as that for a stricter policy."""
    from difflib import get_close_matches  # noqa: PLC0415 - for an error alone

    near = get_close_matches(name, Settings.model_fields, n=1)
    hint = f"Did you mean {_PREFIX}{near[0].upper()}?" if near else "slurm-agent-tools doctor lists the settings."
    return ConfigError(variable, value, "belongs to no setting", hint=hint)


def _parsed(variable: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(variable, text, f"is not JSON: {error}", hint=f"Correct {variable}.") from error


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Both, table by table; where both say something, `above` counts."""
    result = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = _merged(result[key], value) if both else value
    return result


def _explained(error: ValueError, root: Path) -> ConfigError:
    if not isinstance(error, ValidationError):
        return ConfigError(FILE_NAME, str(root / FILE_NAME), f"cannot be read: {error}", hint="Mend the TOML syntax.")
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    variable = _PREFIX + "__".join(parts).upper()
    problem = "belongs to no setting" if first["type"] == "extra_forbidden" else first["msg"]
    return ConfigError(
        ".".join(parts), first.get("input"), problem, hint=f"Correct it in {FILE_NAME} or in {variable}."
    )
