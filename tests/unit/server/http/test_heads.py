"""The head of a request is bounded as documented, however it arrives."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import uvicorn
from tests.watchdog import SECONDS

from slurm_agent_tools.server.http import connections
from slurm_agent_tools.server.http.connections import LARGEST_HEAD
from slurm_agent_tools.settings import HttpSettings

pytestmark = pytest.mark.proves("http-lets-nobody-in")
OK, WRONG = b"HTTP/1.1 200", b"HTTP/1.1 400"


class App:
    """Says yes to each request, and counts them."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while True:
                told = (await receive())["type"]
                await send({"type": f"{told}.complete"})
                if told == "lifespan.shutdown":
                    return
        self.asked += 1
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[int, App]]:
    app = App()
    server = uvicorn.Server(connections.terms(app, HttpSettings()))
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [made])
            with anyio.fail_after(SECONDS):
                while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                    await anyio.sleep(0.01)
            yield made.getsockname()[1], app
            server.should_exit = True


async def answered(port: int, head: bytes, *, piece: int | None = None) -> bytes:
    """The first bytes of the answer to a head that is sent at once or in pieces."""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        for start in range(0, len(head), piece or len(head)):
            await stream.send(head[start : start + (piece or len(head))])
            await anyio.sleep(0.002 if piece else 0)
        with anyio.fail_after(SECONDS):
            return await stream.receive(1000)


def by_one_header(size: int) -> bytes:
    start, end = b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"\r\n\r\n"
    return start + b"a" * (size - len(start) - len(end)) + end


def by_many_headers(size: int) -> bytes:
    lines = b"".join(b"A%05d: b\r\n" % number for number in range((size - 60) // 11))
    return b"GET / HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n"


def by_its_target(size: int) -> bytes:
    return b"GET /" + b"a" * (size - 60) + b" HTTP/1.1\r\nHost: x\r\n\r\n"


def by_its_query(size: int) -> bytes:
    return b"GET /?" + b"a" * (size - 60) + b" HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("make", [by_one_header, by_many_headers, by_its_target, by_its_query])
async def test_a_head_that_comes_whole_is_held_to_the_limit_as_one_that_comes_in_pieces(make):
    async with serving() as (port, app):
        for piece in (None, 4000):
            assert (await answered(port, make(LARGEST_HEAD - 100), piece=piece)).startswith(OK)
        asked = app.asked
        for size in (LARGEST_HEAD + 200, 3 * LARGEST_HEAD):
            told = await answered(port, make(size))
            assert told.startswith(WRONG), told
            assert b"connection: close" in told.lower()
        assert (await answered(port, make(LARGEST_HEAD + 200), piece=4000)).startswith(WRONG)

        assert app.asked == asked


async def test_the_limit_is_exact():
    async with serving() as (port, _):
        assert (await answered(port, by_one_header(LARGEST_HEAD))).startswith(OK)
        assert (await answered(port, by_one_header(LARGEST_HEAD + 1))).startswith(WRONG)
