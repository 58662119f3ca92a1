"""What the SSH configuration makes of the host that the settings name. Nothing is connected here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import asyncssh

from slurm_agent_tools.config import ClusterSettings
from slurm_agent_tools.errors import ConfigError

_ALIVE, _MISSED = 15, 3  # seconds between questions whether the host is there, and how many may stay without answer
_KNOWN = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")


@dataclass(frozen=True, slots=True)
class Hop:
    """A host to log in to, as the person names it; None where the SSH configuration or its default decides."""

    host: str
    user: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What a hop means after the SSH configuration. `files`: where its host key is looked for."""

    host: str
    port: int
    user: str
    name: str  # under which its key is known: HostKeyAlias, or the host
    jumps: tuple[Hop, ...]
    files: tuple[Path, ...]
    command: bool = False  # reached through a ProxyCommand

    @property
    def spelled(self) -> str:
        """USER@HOST:PORT."""
        return f"{self.user}@{self.host}:{self.port}"


def first(settings: ClusterSettings) -> Hop:
    """The hop that the settings name."""
    return Hop(settings.host or "localhost", settings.user, settings.port)


def target(hop: Hop, settings: ClusterSettings) -> Target:
    """What the SSH configuration makes of it; nothing is connected. Raises ConfigError."""
    found = options(hop, settings)
    jumps = () if found.tunnel is None else tuple(read_hop(word) for word in str(found.tunnel).split(","))
    named = found.known_hosts if isinstance(found.known_hosts, list) and found.known_hosts else _KNOWN
    files = tuple(Path(str(path)).expanduser() for path in ([settings.known_hosts] if settings.known_hosts else named))
    host, port = found.host or hop.host, found.port
    return Target(host, port, found.username, found.host_key_alias or host, jumps, files, bool(found.proxy_command))


def options(hop: Hop, settings: ClusterSettings) -> asyncssh.SSHClientConnectionOptions:
    """Everything that the SSH configuration says, less what a tool must not do: forward the agent, take a terminal."""
    more: dict[str, object] = {"config": [settings.ssh_config.expanduser()]} if settings.ssh_config else {}
    try:
        return asyncssh.SSHClientConnectionOptions(
            host=hop.host, username=hop.user or (), port=hop.port or (), ignore_encrypted=True,
            keepalive_interval=_ALIVE, keepalive_count_max=_MISSED, connect_timeout=None, login_timeout=0,
            agent_forwarding=False, x11_forwarding=False, request_pty=False, command=None, **more,
        )  # fmt: skip
    except (OSError, ValueError, asyncssh.Error) as error:
        raise ConfigError(
            "ssh_config", str(settings.ssh_config or "~/.ssh/config"), f"cannot be used for {hop.host}: {error}",
            hint=f"Mend it until `ssh {hop.host}` works.",
        ) from error  # fmt: skip


def read_hop(word: str) -> Hop:
    """USER@HOST:PORT, the user and the port optional (ssh_config(5), ProxyJump)."""
    user, _, place = word.strip().removeprefix("ssh://").rpartition("@")
    host, _, port = place.rpartition(":") if not place.endswith("]") else (place, "", "")
    if not host:
        host, port = place, ""
    return Hop(host.strip("[]"), user or None, int(port) if port else None)


def known_keys(goal: Target) -> asyncssh.SSHKnownHosts:
    """The keys of all files that are there. An empty list trusts nobody."""
    text = ""
    for path in goal.files:
        try:
            text += path.read_text(encoding="utf-8", errors="replace") + "\n"
        except OSError:
            continue
    rows = (line for line in text.splitlines() if len(line.split()) > 2)
    return asyncssh.import_known_hosts("\n".join(rows))


def by_hand(goal: Target, settings: ClusterSettings) -> str:
    """The command with which a person logs in the same way."""
    words = ["ssh"]
    if settings.ssh_config is not None:
        words += ["-F", str(settings.ssh_config)]
    if settings.known_hosts is not None:
        words += ["-o", f"UserKnownHostsFile={settings.known_hosts}"]
    mine = settings.host is not None and goal == target(first(settings), settings)
    if not mine or settings.port is not None:
        words += ["-p", str(goal.port)]
    user = settings.user if mine else goal.user
    host = str(settings.host) if mine else goal.host
    return " ".join([*words, f"{user}@{host}" if user else host])
