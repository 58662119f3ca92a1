"""How many sessions of the older era one token has open: the SDK counts those of all together, and refuses all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.datastructures import Headers
from starlette.types import Message, Scope

from slurm_agent_tools.server.http.refusals import RequestRefused

IDLE_SECONDS = 900.0  # the SDK ends a session after this time without a request

MOST = 1500  # of all tokens

MOST_OF_ONE = 600

_BAD, _GONE = 400, 404


@dataclass(slots=True)
class _Open:
    token: str
    calls: int = 0
    at: float = 0.0


class Sessions:
    """Kept as the SDK keeps them: open until it is ended, or was without a request for `IDLE_SECONDS`."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    def admit(self, token: str) -> None:
        """Raises Refused with 429 where this token can have no further one."""
        now = time.monotonic()
        over = [name for name, one in self._open.items() if not one.calls and now - one.at > IDLE_SECONDS]
        for name in over:
            del self._open[name]
        if sum(one.token == token for one in self._open.values()) >= MOST_OF_ONE:
            hint = f"At most {MOST_OF_ONE}: end some with DELETE; one that is not used ends after 15 minutes."
            raise RequestRefused(
                429, "too_many_sessions", "This token has too many sessions open", hint, retry_after="60"
            )

    def seen(self, token: str, asked: Scope, answer: Message) -> None:
        """The begin of an answer: whether a session was made, or is over."""
        named = Headers(scope=asked).get(MCP_SESSION_ID_HEADER)
        made = Headers(raw=answer["headers"]).get(MCP_SESSION_ID_HEADER)
        good = answer["status"] < _BAD
        if named is None and made is not None and good:
            self._open[made] = _Open(token, at=time.monotonic())
        over = answer["status"] == _GONE or (asked["method"] == "DELETE" and good)
        if named is not None and over and named in self._open and self._open[named].token == token:
            del self._open[named]

    @contextmanager
    def used(self, name: str | None) -> Iterator[None]:
        """A request in it, from its head to the end of its answer."""
        one = self._open.get(name or "")
        if one is None:
            yield
            return
        one.calls += 1
        try:
            yield
        finally:
            one.calls -= 1
            one.at = time.monotonic()
