"""uvicorn as this server runs it: its settings, our hold on its connections, and files enough for them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.http.held_connections import HELD_BY, LARGEST_HEAD, Connection, Crowd
from slurm_agent_tools.settings import HttpSettings

_SPARE_FILES = 300  # for the ledger, Slurm's commands, and connections that are accepted before they are counted


def terms(app: ASGIApp, http: HttpSettings) -> uvicorn.Config:
    """uvicorn's settings, with every connection held within the limits."""
    config = uvicorn.Config(
        partial(_serve, app), http="h11", ws="none", lifespan="on", interface="asgi3", log_config=None,
        log_level="error", access_log=False, proxy_headers=False, server_header=False, backlog=100,
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
