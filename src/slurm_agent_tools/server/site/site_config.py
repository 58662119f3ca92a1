"""What an administrator says of the site's service: `site.toml`, root's alone, read strictly.

The service, `site install`, `site check` and `site remove` read it; nothing of the environment or of a project counts.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.models import allowed_passkeys
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.text.bounded_documents import DocumentError, decoded, toml

PLACE = Path("/etc/slurm-agent-tools/site.toml")

SERVICE = "slurm-agent-site"
"""The account that the service runs as, and its units, where nothing else is said."""

_LARGEST = 64 * 1024

_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,30}")

_OTHERS = stat.S_IWGRP | stat.S_IWOTH

_LONGEST_SOCKET = 100
"""Bytes: sun_path holds 108."""


class SiteConfig(BaseModel):
    """Where everything of the service lies, whom it runs as, and whose jobs need its ticket."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    account: str = Field(SERVICE, description="The account that the service runs as; nobody else uses it")
    slurm_user: str = Field("slurm", description="SlurmUser of slurm.conf, whose group may spend tickets")
    socket: Path = Field(Path("/run/slurm-agent-tools/site.sock"), description="Where users' programs reach it")
    page_origin: str | None = Field(
        None, description="Where people answer by passkey, as https://NAME: a name that serves nothing else"
    )
    page_group: str | None = Field(
        None, description="Group of the web server, which alone reaches the page's socket; default: every local user"
    )
    state: Path = Field(
        Path("/var/lib/slurm-agent-tools/site"), description="Ledger, decision log and approvals: the service's alone"
    )
    policy: Path = Field(Path("/etc/slurm-agent-tools/policy.yaml"), description="The site's policy, root's alone")
    tokens: Literal["files", "hmac"] = Field(
        "files", description="files: a folder that the controller shares; hmac: a key that it shares"
    )
    tickets: Path = Field(
        Path("/var/lib/slurm-agent-tools/tickets"), description="The folder of tickets, with tokens = files"
    )
    key: Path = Field(
        Path("/etc/slurm-agent-tools/ticket.key"), description="The service's copy of the key, with tokens = hmac"
    )
    controller_key: Path = Field(
        Path("/var/lib/slurm-agent-tools/controller/ticket.key"),
        description="SlurmUser's copy of it, in a folder of SlurmUser's own, where spent tickets are noted too",
    )
    controller_old_key: Path | None = Field(
        None, description="SlurmUser's copy of the key before, which counts while both sides change to a new one"
    )
    ticket_seconds: int = Field(120, ge=30, le=3600, description="How long a ticket may wait to be spent")
    calls_per_minute: int = Field(240, ge=10, le=100_000, description="Calls of one user in a minute")
    open_questions: int = Field(20, ge=1, le=1000, description="Questions of one user that wait for a person's answer")
    state_mebibytes: int = Field(
        1024, ge=16, le=2**20, description="What the service keeps of one user, who gets no ticket beyond it"
    )
    plugin: Path = Field(
        Path("/etc/slurm/job_submit.lua"), description="The plugin, beside the controller's slurm.conf"
    )
    units: Path = Field(
        Path("/etc/systemd/system"), description="Where the units go; systemd is told of none elsewhere"
    )
    slurm_conf: Path | None = Field(None, description="slurm.conf to use; default: Slurm's own")
    bin_dir: Path | None = Field(None, description="Folder of Slurm's commands; default: the system's PATH")
    agent_users: tuple[str, ...] = Field((), description="Users of whom every job needs a ticket")
    agent_accounts: tuple[str, ...] = Field((), description="Slurm accounts of which every job needs a ticket")
    exempt_users: tuple[str, ...] = Field((), description="Users whose jobs pass unjudged")
    exempt_accounts: tuple[str, ...] = Field((), description="Slurm accounts whose jobs pass unjudged")
    threads_per_core: int = Field(1, ge=1, le=64, description="Of the nodes, for memory that is given for each CPU")
    most_gpus_per_node: int | None = Field(None, ge=1, le=1024, description="Of the largest node; default: not known")
    default_cpus_per_gpu: int | None = Field(None, ge=1, le=1024, description="Largest DefCpuPerGPU; default: none")

    @field_validator(
        "socket",
        "state",
        "policy",
        "tickets",
        "key",
        "controller_key",
        "controller_old_key",
        "plugin",
        "units",
        "slurm_conf",
        "bin_dir",
    )
    @classmethod
    def _whole(cls, value: Path | None) -> Path | None:
        if value is None:
            return None
        if not value.is_absolute() or ".." in value.parts or not str(value).isprintable():
            raise ValueError("is no whole path: begin it with /, without `..`")
        return value

    @field_validator("socket")
    @classmethod
    def _short(cls, value: Path) -> Path:
        if len(os.fsencode(value)) > _LONGEST_SOCKET:
            raise ValueError(f"is longer than {_LONGEST_SOCKET} bytes, which is more than a socket's name can be")
        return value

    @field_validator("page_origin")
    @classmethod
    def _of_the_site(cls, value: str | None) -> str | None:
        if value is not None and (value == allowed_passkeys.LOOPBACK or not allowed_passkeys.is_origin(value)):
            raise ValueError("is no https://NAME; of localhost every user of a machine can show pages")
        return value

    @field_validator("account", "slurm_user")
    @classmethod
    def _named(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError("is no name of an account: small letters, digits, _ and -, 31 at most")
        return value

    @field_validator("page_group")
    @classmethod
    def _group(cls, value: str | None) -> str | None:
        if value is not None and not _NAME.fullmatch(value):
            raise ValueError("is no name of a group: small letters, digits, _ and -, 31 at most")
        return value

    @field_validator("agent_users", "agent_accounts", "exempt_users", "exempt_accounts")
    @classmethod
    def _words(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [
            name for name in value if not name or len(name) > 250 or not name.isprintable() or set(name) & set(" ,")
        ]
        if wrong:
            raise ValueError(f"holds {wrong[0][:80]!a}, which is no name")
        return value

    @model_validator(mode="after")
    def _its_own(self) -> SiteConfig:
        if self.account in {"root", self.slurm_user}:
            raise ValueError("account must be one of its own: neither root nor SlurmUser")
        if self.account in {*self.agent_users, *self.exempt_users}:
            raise ValueError(f"account {self.account} submits no jobs: take it out of the lists of users")
        both = {*self.agent_users} & {*self.exempt_users} or {*self.agent_accounts} & {*self.exempt_accounts}
        if both:
            raise ValueError(f"{min(both)} cannot both need a ticket and pass unjudged")
        places = [self.state, self.tickets, self.socket.parent, self.controller_key.parent]
        if any(a != b and a.is_relative_to(b) for a in places for b in places) or len({*places}) != len(places):
            told = "the folders of state, tickets, socket and controller_key must be four, none inside another"
            raise ValueError(told)
        return self

    @property
    def page_socket(self) -> Path:
        """Where the site's web server reaches the page, in a folder in which no user can listen."""
        return self.socket.with_name(f"{self.socket.stem}-page.sock")

    @property
    def used(self) -> Path:
        """Where the controller puts the tickets that it has spent."""
        return self.tickets / "used"


def read(path: Path = PLACE) -> SiteConfig:
    """What the file says. Raises ConfigError: for a file that is not root's alone, an unknown key and a wrong value."""
    of_root_alone(path)
    hint = f"Mend {path}."
    try:
        written = toml(decoded(safe_open.read(path, _LARGEST)))
    except DocumentError as error:
        raise ConfigError(path.name, str(path), str(error), hint=f"{error.mend} ({path})") from error
    except OSError as error:
        raise ConfigError(path.name, str(path), f"cannot be read: {error.strerror}", hint=hint) from error
    return parse(written, path)


def parse(written: dict[str, object], path: Path = PLACE) -> SiteConfig:
    """The same of what is read already. Raises ConfigError."""
    try:
        return SiteConfig.model_validate(written)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        known = ", ".join(SiteConfig.model_fields)
        if first["type"] == "extra_forbidden":
            raise ConfigError(
                field, first.get("input"), f"is no key of {path.name}", hint=f"Remove it from {path}. Keys: {known}."
            ) from error
        value = first.get("input") if field else None
        problem = first["msg"].removeprefix("Value error, ")
        raise ConfigError(field or path.name, value, problem, hint=f"Correct it in {path}.") from error


def of_root_alone(path: Path) -> None:
    """Raises ConfigError where others than root may change a file, or what leads to it, links included."""
    real = Path(os.path.realpath(path))
    try:
        loose = [
            place for place in (path.parent, real, *real.parents) if not kept(place.lstat(), is_file=place == real)
        ]
        if path.is_symlink() and path.lstat().st_uid != 0:
            loose.append(path)
    except OSError as error:
        hint = "`slurm-agent-tools site install --yes` writes one, or name another with --config."
        raise ConfigError(path.name, str(path), f"cannot be read: {error.strerror}", hint=hint) from error
    if loose:
        hint = f"An administrator runs: {'; '.join(_mends(loose))}"
        raise ConfigError(path.name, str(path), "could be changed by others than root", hint=hint)


def kept(found: os.stat_result, *, is_file: bool, owners: Collection[int] = (0,)) -> bool:
    """Root's, and written by nobody else; a folder as /tmp, where nobody moves what is another's, is one."""
    if stat.S_ISLNK(found.st_mode):
        return found.st_uid in owners
    sticky = not is_file and bool(found.st_mode & stat.S_ISVTX)
    return found.st_uid in owners and (sticky or not found.st_mode & _OTHERS)


def _mends(places: Iterable[Path]) -> list[str]:
    return [f"chown root {place}; chmod go-w {place}" for place in dict.fromkeys(places)]
