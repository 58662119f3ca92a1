"""Connections below HTTP: how many, and how long one may take to ask and to hear. uvicorn limits none of it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.http.request_limits import ADMITTED
from slurm_agent_tools.settings import HttpSettings

_SPARE_FILES = 300  # for the ledger, Slurm's commands, and connections that are accepted before they are counted

_LARGEST_HEAD = 16 * 1024

_BUSY = b"Every connection of this server is busy. Call again in a moment.\n"


class ConnectionSettings(uvicorn.Config):
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
    """One connection. The head of a request has to arrive in time, and an answer has to be taken.

    Where there are too many, the longest quiet one without a request that a token admitted makes room for a new one.
    """

    config: ConnectionSettings

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._timer: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None
        self._heard = self._late_comer = False
        self.since = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether nothing is being answered on it."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def free(self) -> bool:
        """Whether it may be closed for another: who brings no token must not be able to keep others out."""
        return self.idle or not self.cycle.scope["state"].get(ADMITTED)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it. The limit holds for all together."""
        super().connection_made(transport)
        self._arm()
        most = self.config.limits.max_connections
        others = [one for one in self.connections if isinstance(one, Connection) and one is not self and one.free]
        if others and len(self.connections) > most:
            min(others, key=lambda one: one.since).drop()
        self._late_comer = len(self.connections) > most

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._disarm()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Watch the time while the head, or the unwanted rest of a refused request, is coming in."""
        if self._late_comer:  # told only now: what is closed with unread bytes loses its answer on the way
            self._say(503, _BUSY)
            return
        self._heard, self.since = True, time.monotonic()
        super().data_received(data)
        if self.idle and self.conn.their_state in {h11.IDLE, h11.SEND_BODY}:
            self._arm()
        else:
            self._disarm()

    def pause_writing(self) -> None:
        """More is written than the other side takes: from here on it has to take some, time after time."""
        super().pause_writing()
        if self._taking is None:
            self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It was taken."""
        super().resume_writing()
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def on_response_complete(self) -> None:
        """From here on it is idle again."""
        self._heard, self.since = False, time.monotonic()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """As uvicorn's, with what may be wrong: the one who asked sees nothing else."""
        size = _LARGEST_HEAD // 1024
        super().send_400_response(f"{msg} Speak HTTP/1.1, send a head of at most {size} KiB and one valid length.\n")

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

    def _watch(self, left: int) -> None:
        self._taking = self.loop.call_later(self.config.limits.body_timeout, self._taken, left)

    def _taken(self, left: int) -> None:
        now = self.transport.get_write_buffer_size()
        if now < left:
            self._watch(now)
        else:
            self.drop()

    def _late(self) -> None:
        self._timer = None
        if self._late_comer:
            self._say(503, _BUSY)
        elif self._heard and self.conn.our_state is h11.IDLE:
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


def open_connections(http: HttpSettings) -> None:
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
