"""Connections below HTTP: how many, and how long one may take to ask. uvicorn limits neither for one that is silent."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from slurm_agent_tools.config import HttpSettings
from slurm_agent_tools.errors import ConfigError

_SPARE_FILES = 300  # for the ledger, Slurm's commands, and connections that are accepted before they are counted
_LARGEST_HEAD = 16 * 1024


class Terms(uvicorn.Config):
    """uvicorn's settings with ours."""

    def __init__(self, app: Any, http: HttpSettings) -> None:
        super().__init__(
            app, http=Connection, ws="none", lifespan="on", log_config=None, log_level="error", access_log=False,
            proxy_headers=False, server_header=False, backlog=100, timeout_graceful_shutdown=3,
            timeout_keep_alive=round(min(5, http.head_timeout + 0.5)),
            h11_max_incomplete_event_size=_LARGEST_HEAD,
            ssl_certfile=http.tls_cert, ssl_keyfile=http.tls_key,
        )  # fmt: skip
        self.limits = http


class Connection(H11Protocol):
    """One connection. The head of a request has to arrive in time; the longest idle one makes room for a new one."""

    config: Terms

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._timer: asyncio.TimerHandle | None = None
        self._heard = False
        self.since = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether nothing is being answered on it."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it. The limit holds for all together."""
        super().connection_made(transport)
        self._arm()
        if len(self.connections) <= self.config.limits.max_connections:
            return
        others = [one for one in self.connections if isinstance(one, Connection) and one is not self and one.idle]
        if others:
            min(others, key=lambda one: one.since).drop()
        else:
            self._say(503, b"Every connection of this server is busy.\n")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Watch the time while the head, or the unwanted rest of a refused request, is coming in."""
        self._heard = True
        super().data_received(data)
        if self.idle and self.conn.their_state in {h11.IDLE, h11.SEND_BODY}:
            self._arm()
        else:
            self._disarm()

    def on_response_complete(self) -> None:
        """From here on it is idle again."""
        self._heard, self.since = False, time.monotonic()
        super().on_response_complete()

    def drop(self) -> None:
        """Close it at once."""
        self._disarm()
        self.connections.discard(self)
        self.transport.abort()

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.config.limits.head_timeout, self._late)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self._heard and self.conn.our_state is h11.IDLE:
            self._say(408, b"The request did not arrive in time.\n")
        elif not self.transport.is_closing():
            self.transport.close()

    def _say(self, status: int, text: bytes) -> None:
        """Answer what was not asked yet, and close."""
        if self.transport.is_closing():
            return
        head = [("content-type", "text/plain"), ("connection", "close"), ("retry-after", "1")]
        parts = (h11.Response(status_code=status, headers=head), h11.Data(data=text), h11.EndOfMessage())
        self.transport.write(b"".join(self.conn.send(part) or b"" for part in parts))
        self.transport.close()


def room(http: HttpSettings) -> None:
    """See that the process may open enough files for its connections. Raises ConfigError where it may not."""
    try:
        import resource  # noqa: PLC0415 - not everywhere
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = http.max_connections + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            hint = f"Use at most {max(hard - _SPARE_FILES, 4)}, or raise the limit (ulimit -Hn)."
            raise ConfigError("http.max_connections", http.max_connections, "is more than open files allow", hint=hint)
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
