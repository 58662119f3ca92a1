"""From process start to the answer to `initialize`: our server beside a bare one of the MCP SDK."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.table import Row
from benchmarks.timing import Spent, environment, first_line, in_turn, python

LIMIT = 1.15
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


def answered(argv: list[str], env: dict[str, str], folder: Path) -> Spent:
    """From the start of a server to its answer to `initialize`."""
    spent, line = first_line(argv, env, json.dumps(INITIALIZE).encode() + b"\n", folder)
    if "serverInfo" not in json.loads(line).get("result", {}):
        raise RuntimeError(f"{argv} did not answer initialize: {line!r}")
    return spent


def measure(runs: int) -> tuple[Spent, Spent]:
    """Ours and the bare server's, the least of `runs` of each."""
    with tempfile.TemporaryDirectory(prefix="sat-bench-") as name:
        folder = Path(name)
        env = environment(folder)
        ours = python("-m", "slurm_agent_tools", "serve")
        bare = python(str(Path(__file__).with_name("bare_server.py")))
        found = in_turn([partial(answered, argv, env, folder) for argv in (ours, bare)], runs)
    return found[0], found[1]


def rows() -> list[Row]:
    """On the clock, which is what a client waits for, and in processor time, which a busy machine disturbs less."""
    ours, bare = measure(runs=12)
    name = "bare server of the MCP SDK"
    return [
        Row("start to `initialize`, clock", ours.wall * 1e3, "ms", name, bare.wall * 1e3, LIMIT),
        Row("start to `initialize`, processor", ours.cpu * 1e3, "ms", name, bare.cpu * 1e3),
    ]
