"""The dashboard by itself: on loopback or a private socket, behind a link that works once, until a signal ends it.

And the one page that makes a passkey, until it is made.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import anyio

from slurm_agent_tools.api.context_registry import OpenedContexts, ledger_folder
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.models.allowed_passkeys import LOOPBACK, AllowedPasskey
from slurm_agent_tools.server.http import connections, listener
from slurm_agent_tools.server.http.app import HttpServer
from slurm_agent_tools.server.http.host_check import allowed_hosts
from slurm_agent_tools.server.web.dashboard_app import Dashboard
from slurm_agent_tools.server.web.passkey_enrolment import PasskeyEnrolment
from slurm_agent_tools.server.web.visitors import Visitors
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.store.tokens import Tokens
from slurm_agent_tools.text import log_events

ANYWHERE = "localhost:0"
"""A free port of loopback, by its name: a browser takes a passkey for a name alone."""


async def serve_dashboard(settings: Settings, cluster: str | None, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `say` is told the link. Raises ConfigError for an address beyond loopback."""
    log_events.configure(settings.log_level)
    http = settings.http
    if http.listen is None:
        http = http.model_copy(update={"listen": ANYWHERE})
    tokens = Tokens(ledger_folder(settings).folder)
    address = listener.chosen(settings.model_copy(update={"http": http}))
    if address.exposed:
        hint = "Use 127.0.0.1:PORT or unix:PATH; beyond loopback the pages are beside slurm-agent-tools serve --http."
        raise ConfigError("http.listen", http.listen, "is beyond loopback", hint=hint)
    plain = http.model_copy(update={"tls_cert": None, "tls_key": None})
    connections.open_connections(plain)
    registry = OpenedContexts(settings)
    try:
        with listener.listening(address) as made:
            visitors = Visitors(tokens)
            own = [] if address.path is not None else [f"[{address.host}]" if ":" in address.host else address.host]
            hosts = allowed_hosts([*own, *http.hosts], http.origins)
            server = HttpServer(connections.terms(Dashboard.of(registry, visitors, hosts, plain, cluster), plain))
            host = own[0] if own else "localhost"
            port = "" if address.path is not None else f":{made[0].getsockname()[1]}"
            where = f" (through the socket {address.path})" if address.path is not None else ""
            say(f"http://{host}{port}/open/{visitors.link()}{where}")
            await _serve_until(server, made, server.told.wait)
    finally:
        with anyio.CancelScope(shield=True):
            await registry.close()


async def make_passkey(settings: Settings, name: str, origin: str, say: Callable[[str], None]) -> AllowedPasskey | None:
    """The key that a browser makes on the page whose link `say` is told; None where a signal ended it first.

    Raises ConfigError for an address beyond loopback.
    """
    http = settings.http.model_copy(update={"tls_cert": None, "tls_key": None})
    address = listener.chosen(settings)
    if address.exposed:
        hint = "Use localhost:PORT; for another origin let the proxy of that name lead there."
        raise ConfigError("listen", http.listen, "is beyond loopback", hint=hint)
    host = AllowedPasskey(name, origin, b"", b"").rp_id
    app = PasskeyEnrolment(name, origin, allowed_hosts([host], [origin] if origin != LOOPBACK else []))
    with listener.listening(address) as made:
        app.port = 0 if address.path is not None else made[0].getsockname()[1]
        server = HttpServer(connections.terms(app, http))
        start = f"{LOOPBACK}:{app.port}" if origin == LOOPBACK else origin
        say(f"{start}/enrol/{app.secret}")

        async def made_one() -> None:
            await app.done.wait()
            await anyio.sleep(1)  # until the browser has its answer

        await _serve_until(server, made, server.told.wait, made_one)
    return app.key


async def _serve_until(
    server: HttpServer, sockets: list[socket.socket], *ends: Callable[[], Awaitable[object]]
) -> None:
    """Serve until one of these has come to its end."""

    async def end_after(end: Callable[[], Awaitable[object]]) -> None:
        await end()
        server.should_exit = True

    async with anyio.create_task_group() as group:
        for end in ends:
            group.start_soon(end_after, end)
        await server.serve(sockets=sockets)
        group.cancel_scope.cancel()
