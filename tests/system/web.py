"""Our server over HTTP as a process of its own, and ways to speak to it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.watchdog import SECONDS

STARTS_WITHIN = SECONDS
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@dataclass
class Web:
    """A server that runs; `url` is its root. `path` is that of its Unix socket, if it listens on one."""

    process: subprocess.Popen[bytes]
    url: str
    path: Path | None = None

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def ask(self, method: str, path: str = "/mcp", token: str | None = None, **more: Any) -> httpx2.Response:
        headers = more.pop("headers", {}) | ({} if token is None else {"authorization": f"Bearer {token}"})
        transport = httpx2.HTTPTransport(uds=str(self.path)) if self.path else None
        with httpx2.Client(transport=transport, timeout=more.pop("seconds", 20)) as client:
            return client.request(method, self.url + path, headers=headers, **more)

    def post(self, token: str | None, body: Any, **headers: str) -> httpx2.Response:
        return self.ask("POST", token=token, json=body, headers=HEADERS | headers)

    @asynccontextmanager
    async def client(self, token: str, mode: str = "auto", **more: Any) -> AsyncIterator[Client]:
        signed = httpx2.AsyncClient(
            headers={"authorization": f"Bearer {token}"}, timeout=60,
            transport=httpx2.AsyncHTTPTransport(uds=str(self.path)) if self.path else None,
        )  # fmt: skip
        async with (
            signed as http,
            Client(streamable_http_client(self.url + "/mcp", http_client=http), mode=mode, **more) as made,
        ):
            yield made

    def tells(self, *words: str, seconds: float = SECONDS) -> bool:
        """Whether a line with these words comes on its standard error in time."""
        said, end = b"", time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.process.stderr], [], [], 0.1)[0]:
                said += os.read(self.process.stderr.fileno(), 65536)
            if any(all(word in line for word in words) for line in said.decode("utf-8", "replace").splitlines()):
                return True
        return False

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        """The exit code; what the server said last is shown where it is not 0."""
        code = self.process.wait(30)
        if code:
            print(self.process.stderr.read().decode())  # noqa: T201
        return code


@contextmanager
def serving(
    words: Sequence[str], env: dict[str, str], cwd: Path, wrap: Callable[[list[str]], list[str]] = list
) -> Iterator[Web]:
    """`serve --http` with these words, until the block ends."""
    argv = wrap([sys.executable, "-m", "slurm_agent_tools", "serve", "--http", *words])
    process = subprocess.Popen(argv, env=env, cwd=cwd, stderr=subprocess.PIPE)
    try:
        place = _announced(process)
        if place.startswith("unix:"):
            yield Web(process, "http://localhost", Path(place.removeprefix("unix:").partition(" ")[0]))
        else:
            yield Web(process, place.removesuffix("/mcp"))
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)
        process.stderr.close()


def refused(words: Sequence[str], env: dict[str, str], cwd: Path) -> dict[str, Any]:
    """The error of a server that does not start."""
    argv = [sys.executable, "-m", "slurm_agent_tools", "serve", "--http", *words]
    done = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    return done.stderr


def call(tool: str, number: int = 1, **arguments: Any) -> dict[str, Any]:
    """A tool call of the stateless era."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def stateless(tool: str) -> dict[str, str]:
    return {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool}


def _announced(process: subprocess.Popen[bytes]) -> str:
    """What the server says that it listens on."""
    said, end = b"", time.monotonic() + STARTS_WITHIN
    while time.monotonic() < end:
        if select.select([process.stderr], [], [], 0.2)[0]:
            piece = os.read(process.stderr.fileno(), 65536)
            said += piece
            for line in said.splitlines():
                if line.startswith(b"listening on "):
                    return line.decode().removeprefix("listening on ")
            if not piece:
                break
    raise AssertionError(f"the server did not start: {said.decode()}")


def decisions(state: Path) -> list[dict[str, Any]]:
    path = state / "slurm-agent-tools" / "decisions.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]
