"""Which names a request may call the server by, and which web pages may call it: the answer to DNS rebinding."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.datastructures import Headers

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.http.refusals import RequestRefused
from slurm_agent_tools.settings import HttpSettings

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

_NAME = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9._-]+")

_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?/?")

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """`hosts` are names without port, small letters; `origins` are whole."""

    hosts: frozenset[str]
    origins: frozenset[str]

    def check(self, headers: Headers) -> None:
        """Raises Refused: 421 for a host that is not this server, 403 for another site's page."""
        host = headers.get("host", "").lower()
        known = _AUTHORITY.fullmatch(host)
        if known is None or known[1] not in self.hosts:
            hint = "Call it by the name it listens on, or declare the name with --public-host or --behind-proxy."
            raise RequestRefused(421, "wrong_host", "The Host header does not name this server", hint)
        for origin in headers.getlist("origin"):
            # Any port of a loopback name would let in other people's pages on a login node: only the same one counts.
            if origin.lower() not in {f"http://{host}", f"https://{host}"} | self.origins:
                hint = "Web pages that may call it are named in the setting http.origins."
                raise RequestRefused(403, "foreign_origin", "The Origin header names another site", hint)


def names_fit(http: HttpSettings) -> None:
    """Raises ConfigError for a name or an origin that no request can ever have."""
    for field, names in (("http.hosts", http.hosts), ("http.proxy", http.proxy)):
        for name in names:
            if not _NAME.fullmatch(name.lower()):
                hint = "Write the name alone, without https:// and port, as clients call it: hpc.example.org"
                raise ConfigError(field, name, "is no name of a host", hint=hint)
    for origin in http.origins:
        if not _ORIGIN.fullmatch(origin.lower()):
            hint = "Write https://NAME or https://NAME:PORT, without a path."
            raise ConfigError("http.origins", origin, "is no origin of web pages", hint=hint)


def allowed_hosts(own: Iterable[str], origins: Iterable[str]) -> AllowedHosts:
    """The names of loopback, which forwarded ports use as well, and the given ones."""
    return AllowedHosts(
        LOOPBACK | {name.lower() for name in own}, frozenset(origin.lower().rstrip("/") for origin in origins)
    )
