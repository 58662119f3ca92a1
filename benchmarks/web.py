"""How soon the server over HTTP answers or breaks off when callers are many, slow, or send what is made to be slow."""

from __future__ import annotations

import json
import os
import resource
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from benchmarks.table import Row
from tests.system.http.slow import hear, knock
from tests.system.web import HEADERS, Web, call, serving, stateless

from slurm_agent_tools.store.tokens import Tokens

IDLE, ENTRIES = 1000, 1_300_000
HEAD = BODY = 1.5  # seconds after which the server is told to give up


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="sat-bench-") as name:
        home = Path(name)
        for folder in ("project", "bin"):
            (home / folder).mkdir()
        (home / "project" / "train.yaml").write_text("lr: 0.1\n")
        tokens = Tokens(home / "state" / "slurm-agent-tools")
        token = tokens.new("bench", "read")
        return [_idle(home, token), _wrong(home, token), *_broken_off(home, token), _revoked(home, tokens)]


@contextmanager
def _serving(home: Path, **settings: str) -> Iterator[Web]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "SLURM_AGENT_SLURM__BIN_DIR": str(home / "bin"),
    } | {f"SLURM_AGENT_HTTP__{name}": value for name, value in settings.items()}
    with serving(["--listen", "127.0.0.1:0"], env, home / "project") as web:
        yield web


def _timed(work: Callable[[], object]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def _idle(home: Path, token: str) -> Row:
    """A call while so many connections are open and say nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096) if hard >= 0 else 4096, hard))
    try:
        with _serving(home, HEAD_TIMEOUT="60") as web, ExitStack() as stack:
            for _ in range(IDLE):
                stack.enter_context(knock(web, "GET /mcp HTTP/1.1\r\n"))
            body = call("validate_config", config_path="train.yaml")
            took = _timed(partial(web.post, token, body, **stateless("validate_config")))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return Row(f"a call over HTTP beside {IDLE} idle connections", took, "s", limit=2)


def _wrong(home: Path, token: str) -> Row:
    """A call with a list of so many wrong entries."""
    text = json.dumps(call("get_status", sections=["@"])).replace('"@"', "{}," * ENTRIES + "{}")
    with _serving(home, MAX_BODY=str(4 * 2**20)) as web:
        headers = HEADERS | stateless("get_status")
        ask = partial(web.ask, "POST", token=token, content=text, headers=headers, seconds=60)
        return Row(f"a call over HTTP with {ENTRIES:,} wrong entries", _timed(ask), "s", limit=6)


def _broken_off(home: Path, token: str) -> list[Row]:
    """How long after its limit a connection that comes slowly is closed."""
    begun = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 1000\r\n\r\n{{"
    slow = {"silent connection": "", "slow head": "GET /healthz HTTP/1.1\r\nX: ", "slow body": begun}
    found = []
    with _serving(home, HEAD_TIMEOUT=str(HEAD), BODY_TIMEOUT=str(BODY)) as web:
        for what, text in slow.items():
            with knock(web, text) as conn:
                took = _timed(partial(_dripped if what == "slow head" else hear, conn))
            found.append(Row(f"a {what} is closed, after its limit", max(0.0, took - HEAD), "s", limit=3))
    return found


def _dripped(conn: socket.socket) -> None:
    """Send letter by letter until there is an answer."""
    conn.settimeout(0.05)
    said = b""
    while not said:
        with suppress(TimeoutError):
            said = conn.recv(100)
        if not said:
            conn.send(b"x")


def _revoked(home: Path, tokens: Tokens) -> Row:
    """How long a stream goes on whose token was revoked."""
    token = tokens.new("listener", "read")
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    with _serving(home) as web:
        begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        session = web.post(token, begin).headers["mcp-session-id"]
        head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\n"
        with knock(web, f"GET /mcp HTTP/1.1\r\n{head}Mcp-Session-Id: {session}\r\n\r\n") as conn:
            conn.recv(100)
            tokens.revoke("listener")
            return Row("a stream over HTTP ends after its token was revoked", _timed(partial(hear, conn)), "s", limit=4)
