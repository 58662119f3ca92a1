"""Which names a request may call the server by, and which web pages may call it: the answer to DNS rebinding."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.datastructures import Headers

from slurm_agent_tools.http.answers import Refused

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Doors:
    """`hosts` are names without port, small letters; `origins` are whole."""

    hosts: frozenset[str]
    origins: frozenset[str]

    def check(self, headers: Headers) -> None:
        """Raises Refused: 421 for a host that is not this server, 403 for another site's page."""
        host = headers.get("host", "").lower()
        known = _AUTHORITY.fullmatch(host)
        if known is None or known[1] not in self.hosts:
            hint = "Call it by the name it listens on, or declare the name with --public-host or --behind-proxy."
            raise Refused(421, "wrong_host", "The Host header does not name this server", hint)
        for origin in headers.getlist("origin"):
            # Any port of a loopback name would let in other people's pages on a login node: only the same one counts.
            if origin.lower() not in {f"http://{host}", f"https://{host}"} | self.origins:
                hint = "Web pages that may call it are named in the setting http.origins."
                raise Refused(403, "foreign_origin", "The Origin header names another site", hint)


def doors(own: Iterable[str], origins: Iterable[str]) -> Doors:
    """The names of loopback, which forwarded ports use as well, and the given ones."""
    return Doors(LOOPBACK | {name.lower() for name in own}, frozenset(origin.lower().rstrip("/") for origin in origins))
