"""Our own server over HTTP, guard, limits and all, with the fixtures of the conformance scenarios added.

For the tests in this folder alone: `python server.py PORT FOLDER`. The official runner cannot send a token, so a
layer in front of the guard adds one; the guard checks it as any other.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import anyio
import asking
import plain
import resuming

from slurm_agent_tools.server.http import app, listener
from slurm_agent_tools.server.http.scope_check import ScopedToolbox
from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.settings import Settings, SlurmSettings
from slurm_agent_tools.store.tokens import Tokens
from slurm_agent_tools.text import log_events


def main(port: int, folder: Path) -> None:
    log_events.configure("warning")
    settings = Settings(project_root=folder, state_dir=folder, slurm=SlurmSettings(bin_dir=folder / "no-slurm"))
    toolbox, tokens = ScopedToolbox.open(settings), Tokens(folder)
    token = tokens.new("runner", "write")
    server = build_server(toolbox, settings)
    for part in (plain, asking, resuming):
        part.add(server)
    address = listener.Address(host="127.0.0.1", port=port, ip="127.0.0.1")
    guard = app.assemble(server, toolbox, tokens, address, settings, resuming.Events(), 200)

    async def signed(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["headers"].append((b"authorization", f"Bearer {token}".encode()))
        await guard(scope, receive, send)

    with listener.listening(address) as made:
        anyio.run(app.run, signed, guard, toolbox, made, settings)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
