"""Twelve submitters at once: six MCP servers that live on from round to round, and six processes of the command line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp.shared.exceptions import MCPError
from tests.system.faces import Place, call

BOUND = 120.0
"""Seconds within which every submitter must have its answer."""
KINDS = ["plain"] * 5 + ["twin", "short", "short", "array", "array", "chain", "chain"]
STAYING = [*filter("short".__ne__, KINDS), "plain", "plain"]
LINES = {
    "plain": ["#SBATCH -p cpu", "sleep 300"],
    "short": ["#SBATCH -p cpu", "sleep 1"],
    "array": ["#SBATCH -p cpu --array=0-3%2", "sleep 300"],
    "chain": ["#SBATCH -p cpu", "sleep 301"],
}


@dataclass
class Ask:
    """One submission of a round and what came of it; `reply` None where the submitter was killed."""

    kind: str
    face: str
    script: str
    delay: float
    dependency: str | None = None
    reply: dict[str, Any] | None = None
    seconds: float = 0.0

    def told(self) -> tuple[str, str, str | None]:
        """What it was and what it was told, in short."""
        reply = self.reply or {}
        return self.face, self.kind, reply.get("job_id") or reply.get("reason") or str(reply or "killed")


def asks(place: Place, number: int, rng: random.Random, kinds: list[str]) -> list[Ask]:
    """Twelve asks with their scripts on disk, faces and kinds mixed; a twin submits the first plain script."""
    faces = ["mcp", "cli"] * 6
    rng.shuffle(faces)
    made = []
    for index, (kind, face) in enumerate(zip(kinds, faces, strict=True)):
        name = f"r{number}-plain0.sh" if kind == "twin" else f"r{number}-{kind}{index}.sh"
        # A server answers at once while a process still loads: spread, so that both faces meet at the lock.
        delay = rng.uniform(0, 4) if face == "mcp" else rng.uniform(0, 0.2)
        if kind != "twin":
            _write(place, name, LINES[kind])
        made.append(Ask(kind, face, name, delay))
    return made


def _write(place: Place, name: str, lines: list[str]) -> None:
    path = place.project / name
    path.write_text("\n".join(["#!/bin/bash", "#SBATCH --output=/dev/null --time=10", *lines, f": {name}"]) + "\n")
    if os.geteuid() == 0:
        shutil.chown(path, place.cluster.user, place.cluster.user)


Asked = tuple[str, dict[str, object], asyncio.Future[dict[str, Any]]]


class Seat:
    """One MCP server and its client. It stays until the block ends; when the server is killed a new one is started."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.pid = 0
        self._asked: asyncio.Queue[Asked | None] = asyncio.Queue()

    async def call(self, tool: str, **arguments: object) -> dict[str, Any] | None:
        """The answer; None when the server died over it."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        await self._asked.put((tool, arguments, answer))
        try:
            return await asyncio.wait_for(answer, BOUND)
        except ConnectionError:
            return None

    async def leave(self) -> None:
        """End the server in order."""
        await self._asked.put(None)

    async def stay(self, started: asyncio.Lock) -> None:
        """Serve until `leave`."""
        while await self._serve(started):
            pass

    async def _serve(self, started: asyncio.Lock) -> bool:
        """One server's life; True when it was killed. Only one that is up has a `pid`, and can be killed."""
        self.pid = 0
        async with contextlib.AsyncExitStack() as stack:
            async with started:  # one at a time, so that a new child process is this one's
                before = _servers()
                client = await stack.enter_async_context(self.place.client())
                (self.pid,) = _servers() - before
            while (asked := await self._asked.get()) is not None:
                tool, arguments, answer = asked
                try:
                    answer.set_result(await call(client, tool, **arguments))
                except MCPError as error:
                    killed = self.pid not in _servers()
                    answer.set_exception(ConnectionError() if killed else error)
                    if killed:
                        return True
        return False


def _servers() -> set[int]:
    """Our own child processes that are MCP servers."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == os.getpid() and b"serve" in words:
                    found.add(int(entry.name))
    return found


@dataclass
class Crowd:
    """The submitters of one round after the other."""

    place: Place
    seats: list[Seat]
    first: asyncio.Event = field(default_factory=asyncio.Event)
    first_id: str = ""
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def round(self, asked: list[Ask], kills: list[float], rng: random.Random) -> None:
        """All at once; returns when each has its answer. After each of `kills` seconds one random submitter dies."""
        self.first, self.first_id, self.processes = asyncio.Event(), "", []
        free = iter(self.seats)
        async with asyncio.timeout(BOUND), asyncio.TaskGroup() as tasks:
            for ask in asked:
                tasks.create_task(self._submit(ask, next(free) if ask.face == "mcp" else None))
            for after in kills:
                tasks.create_task(self._kill(after, rng))

    async def heal(self) -> None:
        """Let those servers be replaced that died while nothing was asked of them."""
        for seat in self.seats:
            if seat.pid not in _servers():
                await seat.call("get_status")

    async def _submit(self, ask: Ask, seat: Seat | None) -> None:
        await asyncio.sleep(ask.delay)
        if ask.kind == "chain":
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.first.wait(), 20)
            ask.dependency = f"afterok:{self.first_id}" if self.first_id else None
        begun = time.monotonic()
        wanted = {"script": ask.script} | ({"dependency": ask.dependency} if ask.dependency else {})
        ask.reply = await (seat.call("submit_job", **wanted) if seat else self._process(wanted))
        ask.seconds = time.monotonic() - begun
        if ask.reply and ask.reply.get("status") == "submitted" and not self.first_id:
            self.first_id = ask.reply["job_id"]
            self.first.set()

    async def _process(self, wanted: dict[str, str]) -> dict[str, Any] | None:
        words = ["--detail=full", *(f"--{name}={value}" for name, value in wanted.items())]
        argv = self.place.cluster.as_user([sys.executable, "-m", "tools.agent_tools.submit_job", *words])
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=self.place.environment(), cwd=self.place.project,
        )  # fmt: skip
        self.processes.append(process)
        out, err = await process.communicate()
        if process.returncode == -signal.SIGKILL:
            return None
        reply: dict[str, Any] = json.loads(out)
        expected = {"submitted": 0, "blocked": 3, "unconfirmed": 4}.get(reply.get("status", ""))
        assert process.returncode == expected, (process.returncode, reply, err)
        return reply

    async def _kill(self, after: float, rng: random.Random) -> None:
        """One submitter dies: mostly the one that is just submitting, else any."""
        await asyncio.sleep(after)
        aimed = {await self._submitting(rng.uniform(0, 0.2))} if rng.random() < 0.75 else None
        servers = {seat.pid for seat in self.seats} & _servers()
        ours = {process.pid for process in self.processes if process.returncode is None} | servers
        ours = ours if aimed is None else ours & aimed
        if ours:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(sorted(ours)), signal.SIGKILL)

    async def _submitting(self, late: float) -> int | None:
        """Who holds the lock of submissions, `late` seconds after the same one was seen with it."""
        for _ in range(100):
            holder = self._holder()
            if holder is not None:
                await asyncio.sleep(late)
                if self._holder() == holder:
                    return holder
            await asyncio.sleep(0.02)
        return None

    def _holder(self) -> int | None:
        lock = self.place.project.parent / ".local/state/slurm-agent-tools/submit-lock.sqlite3"
        if lock.exists():
            for words in map(str.split, Path("/proc/locks").read_text().splitlines()):
                if words[3] == "WRITE" and words[5].endswith(f":{lock.stat().st_ino}"):
                    return int(words[4])
        return None


@contextlib.asynccontextmanager
async def crowd(place: Place) -> AsyncIterator[Crowd]:
    """Six servers, up and connected."""
    seats = [Seat(place) for _ in range(6)]
    one = asyncio.Lock()
    async with asyncio.TaskGroup() as tasks:
        for seat in seats:
            tasks.create_task(seat.stay(one))
        try:
            yield Crowd(place, seats)
        finally:
            for seat in seats:
                await seat.leave()
