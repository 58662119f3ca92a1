"""What the SSH configuration makes of the host that the settings name. Nothing is connected here."""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import asyncssh
from asyncssh import encryption, kex, mac, public_key

from slurm_agent_tools.errors import ConfigError, SlurmUnreachable
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.transport.ssh import ssh_config
from slurm_agent_tools.transport.ssh.ssh_config import HostValues

JUMPS = 8  # that lead through each other

_ALIVE, _MISSED = 15, 3  # seconds between questions whether the host is there, and how many may stay without answer

_FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}

_FLAGS = {
    "gss_auth": "gssapiauthentication", "gss_kex": "gssapikeyexchange", "kbdint_auth": "kbdinteractiveauthentication",
    "gss_delegate_creds": "gssapidelegatecredentials", "password_auth": "passwordauthentication",
    "public_key_auth": "pubkeyauthentication",
}  # fmt: skip

_ALGORITHMS: dict[str, tuple[str, Callable[[], list[bytes]]]] = {
    "kex_algs": ("kexalgorithms", kex.get_kex_algs),
    "encryption_algs": ("ciphers", encryption.get_encryption_algs),
    "mac_algs": ("macs", mac.get_mac_algs),
    "signature_algs": ("pubkeyacceptedalgorithms", public_key.get_public_key_algs),
}


@dataclass(frozen=True, slots=True)
class SshHop:
    """A host to log in to, as the person names it; None where the SSH configuration or its default decides."""

    host: str
    user: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class SshTarget:
    """What a hop means after the SSH configuration. `files`: where its host key is looked for."""

    hop: SshHop
    host: str
    port: int
    user: str
    name: str  # under which its key is known: HostKeyAlias, or the host
    jumps: tuple[SshHop, ...]
    files: tuple[Path, ...]
    command: bool = False  # reached through a ProxyCommand

    @property
    def spelled(self) -> str:
        """USER@HOST:PORT."""
        return f"{self.user}@{self.host}:{self.port}"


def first(settings: ClusterSettings) -> SshHop:
    """The hop that the settings name."""
    return SshHop(settings.host or "localhost", settings.user, settings.port)


def found(hop: SshHop, settings: ClusterSettings, *, canonical: bool = True) -> HostValues:
    """What the SSH configuration says about a hop; takes as long as ssh. Raises ConfigError and SlurmUnreachable.

    `canonical` False: as it stands, without the domain that CanonicalizeHostname would look for.
    """
    path = settings.ssh_config
    try:
        return ssh_config.read(
            path, hop.host, hop.user, hop.port, seconds=settings.connect_timeout, canonical=canonical
        )
    except ssh_config.NoClient as error:
        hint = "Install the OpenSSH client: of Windows an optional feature, elsewhere the package of that name."
        raise ConfigError("host", hop.host, f"cannot be looked up: {error}", hint=hint) from error
    except ssh_config.NoAnswer as error:
        raise SlurmUnreachable(f"{hop.host} is not found: {error}", hint=f"Try `ssh {hop.host}`.") from error
    except (OSError, ValueError) as error:
        raise _unusable(error, hop, settings) from error


def target(hop: SshHop, settings: ClusterSettings, said: HostValues) -> SshTarget:
    """What a hop is, from what is said of it; nothing is connected. Raises ConfigError."""
    through = said.one("proxyjump")
    try:
        jumps = () if through is None else tuple(read_hop(word) for word in said.filled(through).split(","))
    except ValueError as error:
        raise _unusable(error, hop, settings) from error
    own = settings.known_hosts
    files = [own] if own else [*said.files("userknownhostsfile"), *said.files("globalknownhostsfile")]
    name = (said.one("hostkeyalias") or said.host).lower()
    way = said.one("proxycommand") is not None
    return SshTarget(hop, said.host, said.port, said.user, name, jumps, tuple(files), way)


def key(settings: ClusterSettings) -> str:
    """USER@HOST:PORT of the host that the settings name, asked of no name server. Raises ConfigError."""
    hop = first(settings)
    return target(hop, settings, found(hop, settings, canonical=False)).spelled


def options(hop: SshHop, settings: ClusterSettings, said: HostValues) -> asyncssh.SSHClientConnectionOptions:
    """How to connect, without keys: less what a tool must not do, such as forward the agent or take a terminal."""
    try:
        more: dict[str, object] = {name: value for name, key in _FLAGS.items() if (value := said.flag(key)) is not None}
        more |= {name: chosen for name, key in _ALGORITHMS.items() if (chosen := _algorithms(said, *key)) is not None}
        if os.name != "posix" and (way := said.one("proxycommand")) is not None:
            more["proxy_command"] = said.filled(way)  # elsewhere ours, by the shell: see login
        if (order := said.one("preferredauthentications")) is not None:
            more["preferred_auth"] = order
        if said.flag("compression"):
            more["compression_algs"] = ["zlib@openssh.com", "zlib", "none"]
        if (address := said.one("bindaddress")) is not None:
            more["local_addr"] = (address, 0)
        return asyncssh.SSHClientConnectionOptions(
            config=[], host=said.host, username=said.user, port=said.port, client_keys=None,
            x509_trusted_certs=None, x509_trusted_cert_paths=[],  # known_hosts alone says who is trusted
            host_key_alias=(said.one("hostkeyalias") or said.host).lower(),
            family=_FAMILIES.get((said.one("addressfamily") or "").lower(), socket.AF_UNSPEC),
            env=said.some("setenv") or None, send_env=said.some("sendenv") or None,
            keepalive_interval=_ALIVE, keepalive_count_max=_MISSED, connect_timeout=None, login_timeout=0,
            agent_forwarding=False, x11_forwarding=False, request_pty=False, command=None, **more,
        )  # fmt: skip
    except (OSError, ValueError, asyncssh.Error) as error:
        raise _unusable(error, hop, settings) from error


def _unusable(error: Exception, hop: SshHop, settings: ClusterSettings) -> ConfigError:
    return ConfigError(
        "ssh_config", str(settings.ssh_config or "~/.ssh/config"), f"cannot be used for {hop.host}: {error}",
        hint=f"Mend it until `ssh {hop.host}` works.",
    )  # fmt: skip


def _algorithms(said: HostValues, keyword: str, known: Callable[[], list[bytes]]) -> list[str] | None:
    """A list less what only OpenSSH has; None where ssh tells none. ValueError where none is left."""
    given = said.one(keyword)
    if given is None:
        return None
    names = {name.decode("ascii") for name in known()}
    left = [each for each in given.split(",") if each in names]
    if not left:
        raise ValueError(f"{keyword} names only what is not known here: {given}")
    return left


def read_hop(word: str) -> SshHop:
    """USER@HOST:PORT, the user and the port optional (ssh_config(5), ProxyJump). ValueError."""
    user, _, place = word.strip().removeprefix("ssh://").rpartition("@")
    parts = re.fullmatch(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:]+))(?::(?P<port>\d+))?", place)
    if parts is None:
        raise ValueError(f"ProxyJump {word} is not USER@HOST:PORT")
    return SshHop(parts["six"] or parts["host"], user or None, int(parts["port"]) if parts["port"] else None)


def by_hand(goal: SshTarget, settings: ClusterSettings) -> str:
    """The command with which a person logs in the same way."""
    words = ["ssh"]
    if settings.ssh_config is not None:
        words += ["-F", str(settings.ssh_config)]
    if settings.known_hosts is not None:
        words += ["-o", f"UserKnownHostsFile={settings.known_hosts}"]
    mine = settings.host is not None and goal.hop == first(settings)
    if not mine or settings.port is not None:
        words += ["-p", str(goal.port)]
    user = settings.user if mine else goal.user
    host = str(settings.host) if mine else goal.host
    return shlex.join([*words, f"{user}@{host}" if user else host])
