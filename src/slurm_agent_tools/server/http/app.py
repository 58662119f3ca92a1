"""The whole server over HTTP: the tools behind the guard, on a socket, until a signal ends it."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from types import FrameType
from typing import Any

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.streamable_http import EventStore
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from slurm_agent_tools.api import printing
from slurm_agent_tools.api.context_registry import ledger_folder
from slurm_agent_tools.api.toolbox import closed_after
from slurm_agent_tools.server.http import connections, listener, open_sessions
from slurm_agent_tools.server.http.auth import PATH, Authenticator
from slurm_agent_tools.server.http.host_check import allowed_hosts
from slurm_agent_tools.server.http.scope_check import ScopedToolbox
from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.server.web.dashboard_app import Dashboard
from slurm_agent_tools.server.web.visitors import Visitors
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.store.tokens import Tokens
from slurm_agent_tools.text import log_events

_LAST_BYTES = 2.0


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigError before anything listens that should not."""
    log_events.configure(settings.log_level)
    tokens, address = Tokens(ledger_folder(settings).folder), listener.chosen(settings)
    listener.check(address, settings.http, tokens)
    connections.open_connections(settings.http)
    async with closed_after(ScopedToolbox.open(settings)) as toolbox:
        guard = assemble(build_server(toolbox, settings), toolbox, tokens, address, settings)
        with listener.listening(address) as made:
            if not tokens.current():
                printing.note("There is no token yet, so nobody is let in: slurm-agent-tools token new --help")
            printing.note(f"listening on {name(address, made[0], tls=settings.http.tls_cert is not None)}")
            await toolbox.during(partial(run, guard, guard, toolbox, made, settings))


def assemble(
    server: MCPServer[Any],
    toolbox: ScopedToolbox,
    tokens: Tokens,
    address: listener.Address,
    settings: Settings,
    events: EventStore | None = None,
    retry: int | None = None,
) -> Authenticator:
    """The SDK's app and the pages behind the guard.

    `events` and `retry` (milliseconds) let a client take up a lost stream.
    """
    http = settings.http
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        event_store=events,
        retry_interval=retry,
        max_request_body_size=http.max_body,
        session_idle_timeout=open_sessions.IDLE_SECONDS,
        max_sessions=open_sessions.MOST,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # AllowedHosts does
    )
    own = [] if address.path is not None or address.wildcard else [address.host, address.ip]
    named = allowed_hosts(
        [*(f"[{one}]" if ":" in one else one for one in own), *http.hosts, *http.proxy],
        [*http.origins, *(f"https://{one}" for one in http.proxy)],
    )
    pages = None
    if "fleet" in settings.toolsets:
        pages = Dashboard.of(toolbox.registry, Visitors(tokens), named, http)
    return Authenticator(inner, toolbox, tokens, named, http, settings.tool_prefix, pages)


async def run(
    app: ASGIApp, guard: Authenticator, toolbox: ScopedToolbox, made: list[socket.socket], settings: Settings
) -> None:
    """Serve `app`, which ends in the guard, until a signal; then end what goes on, within bounds."""
    server = HttpServer(connections.terms(app, settings.http))

    async def leave() -> None:
        await server.told.wait()
        await toolbox.leave(settings.http.stop_seconds)
        with anyio.move_on_after(_LAST_BYTES):
            await guard.answered()
        server.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(guard.watch)
        group.start_soon(leave)
        await server.serve(sockets=made)
        group.cancel_scope.cancel()


def name(address: listener.Address, made: socket.socket, *, tls: bool) -> str:
    """The address as a client writes it."""
    if address.path is not None:
        return f"unix:{address.path} (path {PATH})"
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'https' if tls else 'http'}://{host}:{made.getsockname()[1]}{PATH}"


class HttpServer(uvicorn.Server):
    """uvicorn's server, which does not end by itself at a signal: `told` is set, and who set it on ends it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.told, self._loop = asyncio.Event(), asyncio.get_running_loop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer. asyncio makes the queue of those who wait as short as what it accepts at once: too short."""
        await super().startup(sockets)
        for made in sockets or ():
            made.listen(listener.QUEUE)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's signature
        """Note the signal; a second one changes nothing, since the end is bounded anyway."""
        self._loop.call_soon_threadsafe(self.told.set)
