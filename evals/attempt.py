"""Give one task to an agent: a fresh devcluster, the project, the prompt; then look at what became of it.

    python -m evals.attempt TASK

The project has `.mcp.json` and `.vscode/mcp.json`, whose server writes a transcript beside it. Enter ends the attempt.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from evals import transcript
from evals.catalogue import NAMES, load
from evals.place import SERVER, Place
from evals.run import judged, private

from slurm_agent_tools.devcluster import definition, login_node

ROOT = Path(__file__).parents[1]


def client_files(place: Place, calls: Path) -> None:
    """What Claude Code and VS Code start in the project: the server as the user, recorded."""
    argv = [sys.executable, "-m", "evals.record", str(calls), "--", *definition.run_as(place.account, place.server)]
    server = {"type": "stdio", "command": argv[0], "args": argv[1:], "env": place.session() | {"PYTHONPATH": str(ROOT)}}
    (place.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"slurm-agent-tools": server}}, indent=2))
    (place.project / ".vscode").mkdir(exist_ok=True)
    (place.project / ".vscode/mcp.json").write_text(json.dumps({"servers": {"slurm-agent-tools": server}}, indent=2))


async def _attempt(name: str) -> str | None:
    task = load(name)
    async with private() as cluster:
        place = Place(cluster, cluster.user, cluster.folder / "attempt", SERVER, task.elsewhere)
        if task.elsewhere:
            await login_node.up(cluster)
        await to_thread.run_sync(place.build, task)
        values = await to_thread.run_sync(partial(task.prepare, place))
        calls = cluster.folder / "calls.jsonl"
        client_files(place, calls)
        print(f"Open an agent in {place.project} and type:\n\n{task.prompt.format(**values)}\n")
        await to_thread.run_sync(input, "Enter when it has finished: ")
        if calls.exists():
            told = transcript.read(calls)
            print(f"{len(told)} calls, {sum(step['asked'] + step['answered'] for step in told)} bytes")
            (Path.cwd() / f"{name}.jsonl").write_bytes(calls.read_bytes())
        return judged(task, await to_thread.run_sync(place.outcome, values))


def main() -> int:
    """One attempt; 0 when the task is done."""
    parser = argparse.ArgumentParser(prog="python -m evals.attempt", description="Give one task to an agent.")
    parser.add_argument("task", choices=NAMES)
    wrong = anyio.run(_attempt, parser.parse_args().task)
    print("done" if wrong is None else f"not done: {wrong}")
    return 0 if wrong is None else 1


if __name__ == "__main__":
    raise SystemExit(main())
