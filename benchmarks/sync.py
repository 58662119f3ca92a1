"""A second push of 2,000 files of which one changed, beside rsync alone, both through the same sshd."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import anyio
from benchmarks.table import Row
from mcp import Client
from tests.system import scale
from tests.system.faces import Laptop, laptop

from slurm_agent_tools.devcluster import login_node, packages

FILES, RUNS, MOST = 2000, 5, 2.0


def rows() -> list[Row]:
    return anyio.run(_measured)


async def _measured() -> list[Row]:
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(scale.private())
        await packages.ensure_packages(accounting=True, ssh=True, yes=True, say=print)
        login = await login_node.up(place.cluster)
        stack.push_async_callback(login_node.stop, place.cluster)
        mine = laptop(place, login)
        alone = mine.there.parent / "alone"
        alone.mkdir()
        _made(mine)
        remote = shlex.join(["ssh", "-F", str(login.config)])
        rsync = mine.as_user([str(shutil.which("rsync")), "-a", "-e", remote, "./", f"{login.host}:{alone}/"])
        push = mine.as_user(["slurm-agent-tools", "sync", "push", "--json"])
        client = await stack.enter_async_context(mine.client())
        served, command, beside = await _in_turn(mine, client, push, rsync)
    what = f"a push of {FILES} files of which one changed"
    return [
        Row(f"{what}, by a server that runs", served * 1000, "ms", "rsync alone", beside * 1000, MOST),
        Row(f"{what}, by the command with its login", command * 1000, "ms", "rsync alone", beside * 1000, MOST),
    ]


def _made(mine: Laptop) -> None:
    programs = mine.project.parent / "programs"
    for name in ("git", "rsync"):
        (programs / name).write_text(f'#!/bin/sh\nexec {shutil.which(name)} "$@"\n')
        (programs / name).chmod(0o755)
    for number in range(FILES):
        path = mine.project / f"src/p{number % 40}/f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"file {number}\n" * 50)
    mine.own()
    for words in (["init", "-q"], ["add", "."]):
        git = mine.as_user([str(shutil.which("git")), "-C", str(mine.project), *words])
        subprocess.run(git, check=True, env=mine.environment())


async def _in_turn(mine: Laptop, client: Client, push: list[str], rsync: list[str]) -> list[float]:
    """The least seconds of each; one file is changed before each."""

    def command(argv: list[str]) -> None:
        subprocess.run(argv, cwd=mine.project, env=mine.environment(), check=True, capture_output=True)

    best = [float("inf")] * 3
    for turn in range(RUNS + 1):
        for index, argv in enumerate((None, push, rsync)):
            _change(mine.project / "src/p7/f7.txt", f"{turn} {index}\n")
            start = time.perf_counter()
            if argv is None:
                found = await client.call_tool("sync_files", {"direction": "push"})
                if found.is_error or (found.structured_content or {}).get("status") != "done":
                    raise RuntimeError(found)
            else:
                await anyio.to_thread.run_sync(partial(command, argv))
            spent = time.perf_counter() - start
            best[index] = min(best[index], spent) if turn else best[index]  # the first turn brings everything over
    return best


def _change(path: Path, text: str) -> None:
    path.write_text(text * 60)
