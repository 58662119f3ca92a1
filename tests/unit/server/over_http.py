"""A server on a port of loopback, as clients over HTTP meet it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest
import uvicorn
from mcp.server import MCPServer
from tests.watchdog import SECONDS


@asynccontextmanager
async def served(server: MCPServer[Any]) -> AsyncIterator[str]:
    """Its URL, while it is served."""
    http = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error", lifespan="on"))
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        async with anyio.create_task_group() as group:
            group.start_soon(partial(http.serve, sockets=[made]))
            with anyio.fail_after(SECONDS):
                while not http.started:  # noqa: ASYNC110 - uvicorn has no event for it
                    await anyio.sleep(0.01)
            try:
                yield f"http://127.0.0.1:{made.getsockname()[1]}/mcp"
            finally:
                http.should_exit = True


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no ::1, so nobody can listen there")
