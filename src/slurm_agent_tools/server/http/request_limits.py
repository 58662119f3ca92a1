"""How much one token may take: requests a minute, requests at once, bytes and seconds of one request."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
from starlette.datastructures import Headers
from starlette.types import Receive

from slurm_agent_tools.server.http.refusals import RequestRefused
from slurm_agent_tools.settings import HttpSettings

ADMITTED = "slurm_agent_tools.admitted"  # in the state of a request whose token counts

_BODIES = 8  # of the largest size, held for one token at once: what is made of their JSON takes far more


_MINUTE = 60.0


class RequestLimits:
    """Counts by token. A minute's requests may come at once; after that they come back evenly."""

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._levels: dict[str, tuple[float, float]] = {}  # token -> requests that are left, and when that was
        self._calls: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._swept = 0.0

    @contextmanager
    def one(self, token: str) -> Iterator[Callable[[int], None]]:
        """One request from its head to its answer, and what is to be told of each piece's size. Refused with 429."""
        self._take(token, time.monotonic())
        if self._calls[token] >= self._settings.max_calls:
            hint = f"At most {self._settings.max_calls} at once: end some, or share one wait for several jobs."
            raise RequestRefused(
                429, "too_many_calls", "Too many requests of this token are open", hint, retry_after="1"
            )
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            if self._bytes[token] + size > _BODIES * self._settings.max_body:
                hint = "Call again when others have been answered."
                raise RequestRefused(
                    429, "too_much", "Requests of this token hold too many bytes", hint, retry_after="1"
                )
            self._bytes[token] += size
            held += size

        self._calls[token] += 1
        try:
            yield hold
        finally:
            self._calls[token] -= 1
            self._bytes[token] -= held
            if not self._calls[token]:  # every visit of the dashboard has a name of its own
                del self._calls[token], self._bytes[token]

    def _take(self, token: str, now: float) -> None:
        most = self._settings.per_minute
        if now - self._swept >= _MINUTE:  # who was quiet for a minute has all of it again
            self._swept = now
            self._levels = {one: level for one, level in self._levels.items() if now - level[1] < _MINUTE}
        left, at = self._levels.get(token, (float(most), now))
        left = min(float(most), left + (now - at) * most / 60)
        if left < 1:
            self._levels[token] = (left, now)
            seconds = math.ceil((1 - left) * 60 / most)
            hint = f"At most {most} a minute: call again after {seconds} s, and wait with wait_for_job."
            raise RequestRefused(429, "too_fast", "This token calls too often", hint, retry_after=str(seconds))
        self._levels[token] = (left - 1, now)


async def read_body(
    headers: Headers, receive: Receive, settings: HttpSettings, hold: Callable[[int], None]
) -> bytes | None:
    """The whole body; None where the client went away. Raises Refused: 413 for its size, 408 for its slowness."""
    if int(headers.get("content-length", 0)) > settings.max_body:  # the HTTP parser takes digits alone
        raise _too_large(settings)
    body = bytearray()
    with anyio.move_on_after(settings.body_timeout):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            piece = message.get("body", b"")
            hold(len(piece))
            body += piece
            if len(body) > settings.max_body:
                raise _too_large(settings)
            if not message.get("more_body", False):
                return bytes(body)
    hint = f"Send a request within {settings.body_timeout:g} s."
    raise RequestRefused(408, "too_slow", "The request did not arrive in time", hint, connection="close")


def _too_large(settings: HttpSettings) -> RequestRefused:
    hint = f"At most {settings.max_body} bytes (http.max_body): pass a path instead of content."
    return RequestRefused(413, "too_large", "The request is too large", hint)
