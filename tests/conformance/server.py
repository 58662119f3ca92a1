"""Our own server factory over streamable HTTP on loopback, with the fixtures of the conformance scenarios added.

For the tests in this folder alone: `python server.py PORT`.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import asking
import plain
import resuming

from slurm_agent_tools import logs
from slurm_agent_tools.config import Settings
from slurm_agent_tools.errors import SlurmMissing
from slurm_agent_tools.mcp import build_server


class NoSlurm:
    """The toolbox of a machine without Slurm."""

    async def call(self, name: str, *_: Any, **__: Any) -> None:
        raise SlurmMissing(f"{name}: there is no Slurm here", hint="Install it.")


def main(port: int) -> None:
    logs.configure("warning")
    server = build_server(NoSlurm(), Settings())
    for part in (plain, asking, resuming):
        part.add(server)
    server.run("streamable-http", host="127.0.0.1", port=port, event_store=resuming.Events(), retry_interval=200)


if __name__ == "__main__":
    main(int(sys.argv[1]))
