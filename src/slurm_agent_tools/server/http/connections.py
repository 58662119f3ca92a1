"""One connection, and all of them: how many there are, and how long one may take to ask and to hear."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.http.request_limits import ADMITTED
from slurm_agent_tools.settings import HttpSettings
from slurm_agent_tools.transport.unix_peer import peer_uid

_SPARE_FILES = 300  # for the ledger, Slurm's commands, and connections that are accepted before they are counted
LARGEST_HEAD = 16 * 1024

_AT_ONCE = 100
"""Connections that are accepted in one turn of the loop, before any of them is counted: each holds a file."""

HELD_BY = "slurm_agent_tools.connection"  # in the state of each request

NO_ACCOUNT = -1
"""Stands for all numbers that no account has, so that together they have one caller's part."""

_LENGTHS = frozenset({b"content-length", b"transfer-encoding"})

_UNREADABLE = b"HTTP/1.1 400 "

_BUSY = "Every connection of this server is busy. Call again in a moment.\n"

_LATE = "The request did not arrive in time.\n"

_WRONG = (
    "Invalid HTTP request received. Speak HTTP/1.1, send a head of at most"
    f" {LARGEST_HEAD // 1024} KiB and one valid length.\n"
)


class Crowd:
    """All connections of a server.

    Where there are too many, the longest quiet one without a request that a token admitted makes room for a new one.
    Where the kernel tells users apart, it is one of the user who holds most, so that nobody's crowd closes another's.
    """

    def __init__(self, limits: HttpSettings) -> None:
        self.limits = limits
        self.open: set[Connection] = set()

    def enter(self, new: Connection) -> bool:
        """Count one more, and make room for it. Whether it has a place."""
        free = [one for one in self.open if one.free]
        self.open.add(new)
        if free and len(self.open) > self.limits.max_connections:
            held = Counter(one.uid for one in self.open)
            min(free, key=lambda one: (-held[one.uid], one.since)).drop()
        return len(self.open) <= self.limits.max_connections


class Connection(asyncio.Protocol):
    """One connection. The head of a request has to arrive in time, and an answer has to be taken."""

    _transport: asyncio.Transport

    def __init__(self, inner: type[asyncio.Protocol], crowd: Crowd, *, app_state: dict[str, Any], **more: Any) -> None:
        make = cast("type[Any]", inner)
        self._inner: asyncio.Protocol = make(app_state={**app_state, HELD_BY: self}, **more)
        self._crowd, self._loop = crowd, asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None
        self._request: Scope | None = None  # the one that is being answered
        self._answering = self._heard = False
        self._whole = self._placed = True  # all that was asked has arrived; the limit leaves room for it
        self.since = time.monotonic()
        self.uid: int | None = None

    @property
    def free(self) -> bool:
        """Whether it may be closed for another: who brings no token must not be able to keep others out."""
        return self._request is None or not self._request["state"].get(ADMITTED)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it. The limit holds for all together."""
        self._transport = cast("asyncio.Transport", transport)
        self.uid = _account(peer_uid(transport.get_extra_info("socket")))
        self._inner.connection_made(cast("asyncio.Transport", _Outgoing(self._transport, self)))
        self._arm()
        self._placed = self._crowd.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it and its timers."""
        self._forget()
        self.resume_writing()
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        """Hand it on."""
        return self._inner.eof_received()

    def data_received(self, data: bytes) -> None:
        """Watch the time while the head, or the unwanted rest of a refused request, is coming in."""
        if not self._placed:  # told only now: what is closed with unread bytes loses its answer on the way
            self.say(503, _BUSY, "retry-after: 1")
            return
        self._heard, self.since = True, time.monotonic()
        self._inner.data_received(data)
        if self._request is None:
            self._arm()

    def pause_writing(self) -> None:
        """More is written than the other side takes: from here on it has to take some, time after time."""
        self._inner.pause_writing()
        if self._taking is None:
            self._watch(self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It was taken."""
        self._inner.resume_writing()
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the app answer a request whose head is here."""
        self._disarm()
        self._request = scope
        self._whole = not any(name in _LENGTHS for name, _ in scope["headers"])
        if _head_size(scope) > LARGEST_HEAD:  # the HTTP parser bounds only what has not come whole
            app = PlainTextResponse(_WRONG, 400, {"connection": "close"})

        async def heard() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                self._whole = True
            return message

        async def told(message: Message) -> None:
            self._answering = True
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                self._answered(scope)

        try:
            await app(scope, heard, told)
        finally:
            self._answered(scope)

    def _answered(self, scope: Scope) -> None:
        if self._request is scope:  # and not one that was sent behind it
            self._request, self._answering = None, False
            self._heard, self.since = False, time.monotonic()

    def drop(self) -> None:
        """Close it at once."""
        self._forget()
        self._transport.abort()

    def unreadable(self, data: bytes) -> bool:
        """Whether these bytes are uvicorn's own answer to what is no request, and not the app's."""
        return not self._answering and data.startswith(_UNREADABLE)

    def say(self, status: int, text: str, *headers: str) -> None:
        """Answer what nobody else answers, and close."""
        if self._transport.is_closing():
            return
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", "content-type: text/plain; charset=utf-8"]
        lines += [f"content-length: {len(text)}", "connection: close", *headers]
        self._transport.write(("\r\n".join(lines) + "\r\n\r\n" + text).encode())
        self._transport.close()

    def _forget(self) -> None:
        self._disarm()
        self._crowd.open.discard(self)

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(self._crowd.limits.head_timeout, self._late)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self, left: int) -> None:
        self._taking = self._loop.call_later(self._crowd.limits.body_timeout, self._taken, left)

    def _taken(self, left: int) -> None:
        now = self._transport.get_write_buffer_size()
        if now < left:
            self._watch(now)
        else:
            self.drop()

    def _late(self) -> None:
        self._timer = None
        if not self._placed:
            self.say(503, _BUSY, "retry-after: 1")
        elif self._heard and self._whole:
            self.say(408, _LATE, "retry-after: 1")
        else:  # silent, or still sending what was refused: another answer would be one too many
            self._transport.close()


def _account(uid: int | None) -> int | None:
    """The number, where an account has it: a user may connect under ten thousands that none has (subuid(5))."""
    if uid is None:
        return None
    import pwd  # noqa: PLC0415 - not everywhere

    try:
        return pwd.getpwuid(uid).pw_uid
    except KeyError:
        return NO_ACCOUNT


def _head_size(scope: Scope) -> int:
    """The bytes of a request's line and headers, each as short as it can be written."""
    asked = sum(len(scope.get(part) or "") for part in ("method", "raw_path", "query_string"))
    line = asked + len("  HTTP/1.1\r\n\r\n")
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in scope["headers"])


class _Outgoing:
    """What uvicorn writes to: the transport, but for uvicorn's own words about a request that it cannot read.

    The one who asked sees nothing else, so it is told what may be wrong.
    """

    def __init__(self, transport: asyncio.Transport, held: Connection) -> None:
        self._transport, self._held = transport, held

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send it, or what stands in its place; nothing after that."""
        if self._held.unreadable(data):
            self._held.say(400, _WRONG)
        elif not self._transport.is_closing():
            self._transport.write(data)


def terms(app: ASGIApp, http: HttpSettings) -> uvicorn.Config:
    """uvicorn's settings, with every connection held within the limits."""
    config = uvicorn.Config(
        partial(_serve, app), http="h11", ws="none", lifespan="on", interface="asgi3", log_config=None,
        log_level="error", access_log=False, proxy_headers=False, server_header=False, backlog=_AT_ONCE,
        timeout_graceful_shutdown=3, timeout_keep_alive=round(min(5, http.head_timeout + 0.5)),
        h11_max_incomplete_event_size=LARGEST_HEAD, ssl_certfile=http.tls_cert, ssl_keyfile=http.tls_key,
    )  # fmt: skip
    config.load()
    held = partial(Connection, config.http_protocol_class, Crowd(http))
    config.http_protocol_class = cast("type[asyncio.Protocol]", held)
    return config


async def _serve(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    held: Connection | None = scope.get("state", {}).get(HELD_BY)
    if held is None:  # the start and the stop of the server
        await app(scope, receive, send)
    else:
        await held.serve(app, scope, receive, send)


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
