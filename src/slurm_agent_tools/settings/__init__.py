"""One frozen settings tree: the environment, the user's file, the site's, the project's, then defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from slurm_agent_tools.errors import ConfigError, InputError
from slurm_agent_tools.settings import workstation_place
from slurm_agent_tools.settings.setting_sources import FILE_NAME, PREFIX, find_root, merged, near, sayable, whole_path
from slurm_agent_tools.settings.setting_sources import sources as sources_of
from slurm_agent_tools.settings.workstation_place import state_home

LOCAL = "local"
"""The cluster that Slurm's commands on this machine mean by themselves."""

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}")

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@%+-]{0,254}")

_PARTS = ("slurm", "http", "rates", "efficiency", "gpu_metrics", "fleet", "notify", "memory")

_TABLES = (*_PARTS, "clusters", "toolsets", "dry_run")
"""May be given whole, as JSON."""

Toolset = Literal["core", "campaigns", "planning", "fleet", "files"]

TOOLSETS: tuple[Toolset, ...] = get_args(Toolset)


_T = TypeVar("_T")


def _made(kind: Callable[[], _T]) -> Callable[[], _T]:
    """The maker of a default: pydantic asks each for its signature, which takes a class ten times as long to tell."""

    def make() -> _T:
        return kind()

    return make


def _is_address(text: str) -> bool:
    """`::1`, `[::1]` or `fe80::1%eth0`."""
    import ipaddress  # noqa: PLC0415 - few name a host by its number

    address, _, zone = (text[1:-1] if text.startswith("[") and text.endswith("]") else text).partition("%")
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return not zone or _HOST.fullmatch(zone) is not None


class SlurmSettings(BaseModel):
    """How Slurm is asked. Times in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    conf: Path | None = Field(None, description="slurm.conf to use; default: Slurm's own, or SLURM_CONF")
    bin_dir: Path | None = Field(None, description="Folder of Slurm's commands; default: PATH")
    read_timeout: float = Field(6.0, gt=0, le=60, description="Time limit of one reading command")
    submit_timeout: float = Field(25.0, gt=0, le=120, description="Time limit of sbatch, scontrol release and scancel")
    poll_scale: float = Field(1.0, gt=0, le=10, description="Multiplies the pauses between looks while waiting")
    cache_seconds: float = Field(10.0, ge=0, le=60, description="How old a shared answer may be")

    _whole = field_validator("conf", "bin_dir")(whole_path)


class HttpSettings(BaseModel):
    """`serve --http`: where it listens, whom it answers, and how much it takes. Times in seconds.

    Where it listens, names, origins and TLS files are not for the project's file to say.
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
    open_metrics: bool = Field(False, description="On loopback or a socket, /metrics answers without a token")
    stop_seconds: float = Field(10.0, gt=0, le=300, description="For answers under way when it is told to stop")


class MemorySettings(BaseModel):
    """A memory server that is told of every job; off by default. Only its times are for the project to say."""

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
    slurm: SlurmSettings = Field(default_factory=_made(SlurmSettings))

    _whole = field_validator("ssh_config", "known_hosts")(whole_path)

    @model_validator(mode="before")
    @classmethod
    def _there(cls, said: Any) -> Any:
        """`~` would be read as the home folder here, and the path is one on the cluster."""
        slurm = said.get("slurm") if isinstance(said, dict) and said.get("host") else None
        for name in ("bin_dir", "conf"):
            if isinstance(slurm, dict) and str(slurm.get(name) or "").startswith("~"):
                raise ValueError(f"slurm.{name} {slurm[name]!r} is a path on the cluster: begin it with /")
        return said

    @model_validator(mode="after")
    def _plain(self) -> ClusterSettings:
        """The person's `Match exec` and ProxyCommand put both into a shell's line, and `ssh` reads options."""
        if self.host is not None and _HOST.fullmatch(self.host) is None and not _is_address(self.host):
            taken = "at most 253 letters, digits and ._- are taken, or an IP address"
            raise ValueError(f"host {self.host[:80]!a} is more than a name: {taken}")
        if self.user is not None and _USER.fullmatch(self.user) is None:
            raise ValueError(f"user {self.user[:80]!a} is more than a name: letters, digits and ._@%+- are taken")
        return self

    @model_validator(mode="after")
    def _rooted(self) -> ClusterSettings:
        if self.host is not None and not self.remote_root:
            raise ValueError("remote_root is needed with host: the project folder on the cluster")
        if self.remote_root is not None and not self.remote_root.isprintable():
            raise ValueError(f"remote_root {self.remote_root[:80]!a} holds a control character")
        return self


class RateSettings(BaseModel):
    """What a job costs, for the completion report; without rates no cost is told."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    currency: str | None = Field(None, max_length=8, description="Of the rates, as EUR; needed where there is one")
    cpu_hour: float | None = Field(None, ge=0, allow_inf_nan=False, description="Price of one CPU for one hour")
    gpu_hour: dict[str, float] = Field(
        default_factory=_made(dict),
        description="Price of one GPU for one hour by its type in Slurm; `other` for all others",
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
    """A Prometheus that knows how busy the GPUs were, for the report and the fleet. The project says nothing of it."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    url: str | None = Field(
        None, pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$", description="Its address, as http://prometheus:9090"
    )
    query: str = Field(
        'avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{hpc_job=~"$jobs"}[${seconds}s]))',
        description="PromQL with one value in per cent at the job's end; `$jobs`, `$nodes`, `$seconds` are filled in",
    )
    series: str = Field(
        'DCGM_FI_DEV_GPU_UTIL{hpc_job=~"$jobs"}',
        description="PromQL with one series in per cent for each GPU that a running job holds; `$jobs` is filled in",
    )
    job_label: str = Field("hpc_job", description="The label of `series` that holds the number of the job")
    timeout: float = Field(3.0, gt=0, le=20, description="Seconds that its answer may take")


class FleetSettings(BaseModel):
    """How get_fleet sorts GPUs, and what counts as idle. A quota is a share, 0..1, of the GPU hours of one day."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    tiers: dict[str, float] = Field(
        default_factory=lambda: {"80G and more": 80.0, "32G to 79G": 32.0, "8G to 31G": 8.0},
        description="Name of a tier -> least memory of its GPUs in GB",
    )
    gpu_memory: dict[str, float] = Field(
        default_factory=_made(dict),
        description="Memory of one GPU in GB by its type in Slurm, where the name is no sign",
    )
    may_vanish: tuple[str, ...] = Field((), description="Partitions whose nodes may go away, beside what Slurm tells")
    idle_minutes: float = Field(10.0, ge=0.05, le=1440, description="Unused for so long, a GPU is idle")
    gpu_steps: bool = Field(
        False, description="Whether nvidia-smi may be run in a short step of your own jobs that nobody else measures"
    )
    quotas: dict[str, float] = Field(
        default_factory=_made(dict),
        description="campaign:NAME, user:NAME or tag:NAME (with * in it) -> share of a day's GPU hours",
    )

    @model_validator(mode="after")
    def _sensible(self) -> FleetSettings:
        if not self.tiers or any(not 0 <= size < 10_000 for size in (*self.tiers.values(), *self.gpu_memory.values())):
            raise ValueError("the memory of a GPU is a number of GB, and there is at least one tier")
        if any(not 0 <= share <= 1 for share in self.quotas.values()):
            raise ValueError("a quota is a share from 0 to 1")
        if wrong := [name for name in self.quotas if name.partition(":")[0] not in {"campaign", "user", "tag"}]:
            raise ValueError(f"quota {wrong[0][:80]!a} begins with none of campaign:, user: and tag:")
        return self


class NotifySettings(BaseModel):
    """`watch`: where alerts go, and when. For people alone to say, but for what is left out."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    env: tuple[str, ...] = Field((), description="Names of variables that hold an address each, as Apprise writes them")
    file: Path | None = Field(None, description="File with an address a line, that its owner alone can read")
    least: Literal["critical", "high", "medium"] = Field("medium", description="Alerts below it are not sent")
    quiet_hours: str | None = Field(
        None,
        pattern=r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$",
        description="As 22:00-07:00, by this machine's clock: alerts wait for its end, critical ones do not",
    )

    _whole = field_validator("file")(whole_path)

    @field_validator("env")
    @classmethod
    def _names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) for name in value):
            raise ValueError("holds what is no name of a variable: name the variable that holds the address")
        return value


class Settings(BaseModel):
    """Every setting, with its default. `slurm-agent-tools doctor --settings` shows each value and from where."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    project_root: Path = Field(
        default_factory=_made(Path.cwd), description="The project folder that all paths stay inside"
    )
    state_dir: Path = Field(
        default_factory=lambda: state_home() / "slurm-agent-tools", description="Ledger and decision log, private"
    )
    policy: Path | None = Field(None, description="A policy file that tightens the shipped one")
    tool_prefix: Literal["", "slurm_agent_"] = Field("", description="Published before every MCP tool name")
    toolsets: tuple[Toolset, ...] = Field(
        TOOLSETS, description="Which sets of tools are published and offered; `core` always is among them"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("warning", description="On standard error")
    approval_timeout: float = Field(
        240.0, gt=0, le=3600, description="Seconds that a person at an MCP client may take to answer a question"
    )
    dry_run: tuple[str, ...] = Field(
        (), description="The project's own check: an argument list that validate_config runs; {path} is the file"
    )
    mail_user: str | None = Field(None, description="Address for --mail-user in generated scripts")
    slurm: SlurmSettings = Field(default_factory=_made(SlurmSettings))
    http: HttpSettings = Field(default_factory=_made(HttpSettings))
    rates: RateSettings = Field(default_factory=_made(RateSettings))
    efficiency: EfficiencySettings = Field(default_factory=_made(EfficiencySettings))
    gpu_metrics: GpuMetricsSettings = Field(default_factory=_made(GpuMetricsSettings))
    fleet: FleetSettings = Field(default_factory=_made(FleetSettings))
    notify: NotifySettings = Field(default_factory=_made(NotifySettings))
    memory: MemorySettings = Field(default_factory=_made(MemorySettings))
    site_socket: Path | None = Field(None, description="Socket of the site's service, which then judges submissions")
    cluster: str | None = Field(None, description="Which of `clusters` a call means that names none")
    clusters: dict[str, ClusterSettings] = Field(default_factory=_made(dict), description="Clusters by name")

    _whole = field_validator("state_dir", "site_socket")(whole_path)

    @field_validator("toolsets")
    @classmethod
    def _with_core(cls, value: tuple[Toolset, ...]) -> tuple[Toolset, ...]:
        """What the tools say of each other, and the instructions for agents, name those of the core."""
        if "core" not in value:
            raise ValueError('leaves out "core", which the other toolsets need: add it')
        return value

    def need_toolset(self, toolset: Toolset, command: str) -> None:
        """Raise InputError where the toolset that this command belongs to is switched off."""
        if toolset not in self.toolsets:
            hint = f"Add {toolset} to the setting toolsets; slurm-agent-tools doctor says where it was set."
            raise InputError("command", command, f"belongs to the toolset {toolset}, which is switched off", hint=hint)


def load(start: Path | None = None) -> Settings:
    """Settings for the project around `start` (default: the working folder). Raises ConfigError."""
    named = os.environ.get("SLURM_AGENT_PROJECT_ROOT")
    root = Path(named).expanduser().resolve() if named else find_root(start or Path.cwd())
    if not root.is_dir():
        raise ConfigError(
            "project_root", str(root), "is not a folder", hint="Set SLURM_AGENT_PROJECT_ROOT to a folder."
        )
    said: dict[str, Any] = {part: {} for part in _PARTS}  # a part's own default costs a validator of its own
    for tables in reversed(sources(root).values()):
        said = merged(said, tables)
    try:
        return with_workstation(Settings.model_validate({**said, "project_root": root}))
    except ValidationError as error:
        raise _explained(error) from error


def with_workstation(settings: Settings) -> Settings:
    """The same with the cluster `workstation`, where this machine has one that nobody wrote down.

    It is what a call means that names no cluster where there is no other Slurm; where there is one, that stays.
    """
    name = workstation_place.NAME
    found = None if name in settings.clusters else workstation_place.find()
    if found is None:
        return settings
    slurm = settings.slurm.model_copy(update={"conf": found.conf, "bin_dir": found.bin_dir})
    clusters = {**settings.clusters, name: ClusterSettings(slurm=slurm)}
    return settings.model_copy(update={"clusters": clusters, "cluster": settings.cluster or _usual(settings)})


def _usual(settings: Settings) -> str | None:
    """What a call means that names no cluster, where a workstation is there beside those that were written down."""
    if settings.clusters:
        return next(iter(settings.clusters)) if len(settings.clusters) == 1 else None
    named = settings.slurm.conf or settings.slurm.bin_dir
    return LOCAL if named or workstation_place.other_slurm() else workstation_place.NAME


def sources(root: Path) -> dict[str, dict[str, Any]]:
    """What is said and where, as nested tables; the first that says something counts. Raises ConfigError."""
    return sources_of(root, Settings, _TABLES)


def _explained(error: ValidationError) -> ConfigError:
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    variable = PREFIX + "__".join(parts).upper()
    unknown = first["type"] == "extra_forbidden"
    problem = "belongs to no setting" if unknown else first["msg"]
    meant = near(Settings, ClusterSettings, parts) if unknown else ""
    return ConfigError(
        ".".join(parts),
        sayable(parts, first.get("input")),
        problem,
        hint=f"{meant}Correct it in {FILE_NAME} or in {variable}.",
    )
