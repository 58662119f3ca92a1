"""Where the server listens: a socket in a private folder or an address, and what an address needs before it may."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn

from slurm_agent_tools.api.context_registry import ledger_folder
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.http.host_check import names_fit
from slurm_agent_tools.settings import HttpSettings, Settings
from slurm_agent_tools.store.tokens import Tokens
from slurm_agent_tools.transport.private_files import lock, replaceable


def check_certificate(http: HttpSettings) -> None:
    """Raises ConfigError where they cannot be used, or where others can read the key."""
    named = {"http.tls_cert": http.tls_cert, "http.tls_key": http.tls_key}
    for name, path in named.items():
        if path is not None and not (path.is_file() and os.access(path, os.R_OK)):
            raise ConfigError(name, str(path), "cannot be read", hint="Name a PEM file that this user can read.")
    if http.tls_cert is None and http.tls_key is None:
        return
    if http.tls_cert is None or http.tls_key is None:
        lacking = next(name for name, path in named.items() if path is None)
        raise ConfigError(lacking, None, "is needed with the other one", hint="Give --tls-cert and --tls-key.")
    _usable(http.tls_cert, http.tls_key)


def _usable(cert: Path, key: Path) -> None:
    if hasattr(os, "geteuid") and key.stat().st_mode & stat.S_IROTH:
        raise ConfigError("http.tls_key", str(key), "can be read by everybody", hint=f"chmod 600 {key}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, _no_one_to_ask)
    except _Encrypted as error:
        hint = "Write it without: openssl pkey -in KEY -out PLAIN, with umask 077."
        raise ConfigError("http.tls_key", str(key), "needs a passphrase", hint=hint) from error
    except (OSError, ValueError) as error:  # SSLError is an OSError
        what = getattr(error, "reason", None) or error
        hint = f"Give the certificate with its chain, PEM, and the key that belongs to it ({key})."
        raise ConfigError("http.tls_cert", str(cert), f"cannot be used: {what}", hint=hint) from error


class _Encrypted(Exception):
    """The key is encrypted, and a server has nobody to ask."""


def _no_one_to_ask() -> NoReturn:
    raise _Encrypted


# --- Where the server listens: a socket in a private folder or an address, and what an address needs before it may ----


_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")

_LONGEST_PATH = 100  # the kernel takes 107 bytes

QUEUE = 4096
"""Connections that wait in the kernel until they are accepted. A Unix socket refuses at once where it is full."""


@dataclass(frozen=True, slots=True)
class Address:
    """`path` of a socket, or `host` (brackets off) and `port`; `ip` is what the host means here."""

    path: Path | None = None
    host: str = ""
    port: int = 0
    ip: str = ""

    @property
    def exposed(self) -> bool:
        """Whether it can be reached from other machines."""
        return self.path is None and not ip_address(self.ip).is_loopback

    @property
    def wildcard(self) -> bool:
        """Whether it is every address of this machine, which is no name to call it by."""
        return self.path is None and ip_address(self.ip).is_unspecified


def chosen(settings: Settings) -> Address:
    """The address of the settings. Raises ConfigError naming `http.listen`."""
    text = settings.http.listen
    if text is None:
        return Address(path=_usual(settings))
    if text.startswith("unix:"):
        path = Path(text.removeprefix("unix:")).expanduser().absolute()
        if len(os.fsencode(path)) > _LONGEST_PATH:
            raise _wrong(text, "is too long for a socket's path", f"Use at most {_LONGEST_PATH} bytes.")
        return Address(path=path)
    parts = _ADDRESS.fullmatch(text)
    if parts is None or int(parts[2]) > 65535:
        raise _wrong(text, "is no address", "Write unix:/PATH or HOST:PORT, for example 127.0.0.1:8642.")
    host = parts[1].strip("[]")
    try:
        found = socket.getaddrinfo(host, int(parts[2]), type=socket.SOCK_STREAM)
    except OSError as error:
        raise _wrong(text, f"names no address: {error.strerror}", "Use a name or address of this machine.") from error
    ip = min(found, key=lambda item: item[0] != socket.AF_INET)[4][0]
    return Address(host=host.lower(), port=int(parts[2]), ip=str(ip))


def check(address: Address, http: HttpSettings, tokens: Tokens) -> None:
    """Raises ConfigError where the settings do not fit together, or where others could listen in or come in."""
    check_certificate(http)
    names_fit(http)
    if http.open_metrics and (address.exposed or http.proxy):
        hint = "Take it back, and give Prometheus a token: slurm-agent-tools token new --name prometheus --scope scrape"
        raise ConfigError("http.open_metrics", True, "is only for loopback or a socket, without a proxy", hint=hint)
    if not address.exposed:
        return
    if http.tls_cert is None and not http.proxy:
        hint = (
            "Listen on unix:PATH or 127.0.0.1:PORT and forward it by SSH; or give --tls-cert and --tls-key;"
            " or name the proxy that does TLS: --behind-proxy HOST."
        )
        raise _wrong(http.listen, "is beyond loopback, where tokens would travel without TLS", hint)
    if not tokens.current():
        hint = "Make one first: slurm-agent-tools token new --name NAME --scope read"
        raise _wrong(http.listen, "is beyond loopback, and there is no token", hint)
    if address.wildcard and not (http.hosts or http.proxy):
        hint = "Name it: --public-host NAME, without port."
        raise ConfigError("http.hosts", [], "is needed: no name of this server is known", hint=hint)


@contextmanager
def listening(address: Address) -> Iterator[list[socket.socket]]:
    """The sockets that listen, and are gone afterwards; the first is the one that was named. Raises ConfigError."""
    with ExitStack() as held:
        if address.path is not None:
            yield [held.enter_context(_private(address.path))]
        else:
            yield [held.enter_context(one) for one in _on_every_name(address)]


_TWINS = {"127.0.0.1": "::1", "::1": "127.0.0.1"}
"""Both are `localhost`: who held the other one would be handed links and tokens that were meant for this server."""

_NOT_HERE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""The machine has no such address, so that nobody else can listen there either."""

_TRIES = 16


def _on_every_name(address: Address) -> list[socket.socket]:
    """A socket on the address, and one of the same port on its twin. Raises ConfigError where another has either."""
    twin, tries = _TWINS.get(address.ip), 1 if address.port else _TRIES
    while True:
        first, tries = _bound_to(address.ip, address.port), tries - 1
        try:
            return [first] if twin is None else [first, _bound_to(twin, first.getsockname()[1])]
        except ConfigError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in _NOT_HERE:
                return [first]
            first.close()
            if not tries:  # of free ports the next one may be free on both
                raise


def _bound_to(ip: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        return socket.create_server((ip, port), family=family, backlog=QUEUE)
    except OSError as error:
        name = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
        raise _wrong(name, f"cannot be listened on: {error.strerror}", "Use another port.") from error


@contextmanager
def _private(path: Path) -> Iterator[socket.socket]:
    if not hasattr(socket, "AF_UNIX") or not hasattr(os, "geteuid"):
        raise _wrong(f"unix:{path}", "needs a POSIX system", "Use --listen 127.0.0.1:PORT.")
    _folder(path.parent)
    handle = _alone(path)
    try:
        _clear(path)
        with _bound(path) as made:
            yield made
    finally:
        os.close(handle)


def _alone(path: Path) -> int:
    """A lock's handle: two servers that start at once must not both find the socket of a third one stale."""
    try:
        return lock(path.with_name(f"{path.name}.lock"))
    except BlockingIOError as error:
        raise _taken(path) from error
    except OSError as error:
        raise _wrong(f"unix:{path}", f"cannot be made: {error.strerror}", "Use another path.") from error


@contextmanager
def _bound(path: Path) -> Iterator[socket.socket]:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with made:
        try:
            made.bind(str(path))  # in a folder that only this user can enter
            path.chmod(0o600)
            made.listen(QUEUE)
        except OSError as error:
            raise _wrong(f"unix:{path}", f"cannot be made: {error.strerror}", "Use another path.") from error
        mine = path.stat().st_ino
        try:
            yield made
        finally:
            with suppress(FileNotFoundError):
                if path.stat().st_ino == mine:
                    path.unlink()


def _folder(folder: Path) -> None:
    """Make the folder private, or see that it is."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found, weak = folder.stat(), replaceable(folder)
    except OSError as error:
        raise _wrong(f"unix:{folder}", f"cannot be made: {error.strerror}", "Use a folder of your own.") from error
    if weak is not None:
        problem = f"can be replaced by others, by way of {weak}: clients would hand them their tokens"
        raise _wrong(f"unix:{folder}", problem, "Use a folder below your home.")
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        hint = f"Use a folder of its own, or: chmod 700 {folder}"
        raise _wrong(f"unix:{folder}", "is a folder that others can enter", hint)


def _clear(path: Path) -> None:
    """Remove what a server that is gone left behind, and nothing else."""
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise _wrong(f"unix:{path}", "is a file that is no socket", "Use another path.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as error:
            raise _wrong(f"unix:{path}", f"is in use or unclear: {error}", "Use another path.") from error
    raise _taken(path)


def _taken(path: Path) -> ConfigError:
    return _wrong(f"unix:{path}", "is in use by another server", "Stop that one, or use another path.")


def _usual(settings: Settings) -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and os.access(runtime, os.W_OK):
        return Path(runtime) / "slurm-agent-tools" / "mcp.sock"
    return ledger_folder(settings).folder.absolute() / "http" / "mcp.sock"


def _wrong(value: object, problem: str, hint: str) -> ConfigError:
    return ConfigError("http.listen", value, problem, hint=hint)
