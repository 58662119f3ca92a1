"""The whole server over HTTP: the tools behind the guard, on a socket, until a signal ends it."""

from __future__ import annotations

import signal
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from types import FrameType
from typing import Any

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.streamable_http import EventStore
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from slurm_agent_tools import logs, printing
from slurm_agent_tools.config import Settings
from slurm_agent_tools.http import listen, sessions, wire
from slurm_agent_tools.http.doors import doors
from slurm_agent_tools.http.gate import Gate
from slurm_agent_tools.http.guard import PATH, Guard
from slurm_agent_tools.http.tokens import Tokens
from slurm_agent_tools.mcp import build_server
from slurm_agent_tools.toolbox.desks import ledger_place

_LAST_BYTES = 2.0


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigError before anything listens that should not."""
    logs.configure(settings.log_level)
    tokens, address = Tokens(ledger_place(settings).folder), listen.chosen(settings)
    listen.check(address, settings.http, tokens)
    wire.room(settings.http)
    gate = Gate.open(settings)
    try:
        guard = assemble(build_server(gate, settings), gate, tokens, address, settings)
        with listen.listening(address) as made:
            if not tokens.current():
                printing.note("There is no token yet, so nobody is let in: slurm-agent-tools token new --help")
            printing.note(f"listening on {name(address, made, tls=settings.http.tls_cert is not None)}")
            await gate.during(partial(run, guard, guard, gate, made, settings))
    finally:
        with anyio.CancelScope(shield=True):
            await gate.close()


def assemble(
    server: MCPServer[Any],
    gate: Gate,
    tokens: Tokens,
    address: listen.Address,
    settings: Settings,
    events: EventStore | None = None,
    retry: int | None = None,
) -> Guard:
    """The SDK's app behind the guard. `events` and `retry` (milliseconds) let a client take up a lost stream."""
    http = settings.http
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        event_store=events,
        retry_interval=retry,
        max_request_body_size=http.max_body,
        session_idle_timeout=sessions.IDLE_SECONDS,
        max_sessions=sessions.MOST,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard's doors do it
    )
    own = [] if address.path is not None or address.wildcard else [address.host, address.ip]
    named = doors(
        [*(f"[{one}]" if ":" in one else one for one in own), *http.hosts, *http.proxy],
        [*http.origins, *(f"https://{one}" for one in http.proxy)],
    )
    return Guard(inner, gate, tokens, named, http, settings.tool_prefix)


async def run(app: ASGIApp, guard: Guard, gate: Gate, made: socket.socket, settings: Settings) -> None:
    """Serve `app`, which ends in the guard, until a signal; then end what goes on, within bounds."""

    async def leave() -> None:
        await gate.leave(settings.http.stop_seconds)
        with anyio.move_on_after(_LAST_BYTES):
            await guard.answered()

    async with anyio.create_task_group() as group:
        group.start_soon(guard.watch)
        await Server(wire.Terms(app, settings.http), leave).serve(sockets=[made])
        group.cancel_scope.cancel()


def name(address: listen.Address, made: socket.socket, *, tls: bool) -> str:
    """The address as a client writes it."""
    if address.path is not None:
        return f"unix:{address.path} (path {PATH})"
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'https' if tls else 'http'}://{host}:{made.getsockname()[1]}{PATH}"


class Server(uvicorn.Server):
    """uvicorn's server, which on a signal first lets `leave` end what goes on."""

    def __init__(self, config: uvicorn.Config, leave: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._leave, self._told = leave, False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's signature
        """Note the signal; a second one changes nothing, since the end is bounded anyway."""
        self._told = self._told or sig in {signal.SIGTERM, signal.SIGINT}

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        if self._told:
            await self._leave()
            self.should_exit = True
        return await super().on_tick(counter)
