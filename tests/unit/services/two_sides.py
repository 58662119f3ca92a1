"""A project here, its folder behind an SSH server of the test's own, and the tools between them."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.unit.services.contexts import OneContext, TestedToolbox, toolbox
from tests.unit.transport.sshserver import Node

from slurm_agent_tools.models.sync_answer import SyncReply
from slurm_agent_tools.models.toolset_arguments import SyncFiles
from slurm_agent_tools.transport.base import LoginEnvironment
from slurm_agent_tools.transport.ssh.remote import SshTransport


@dataclass
class Sides:
    """Both folders and the tools; `told` is what progress was reported."""

    here: Path
    there: Path
    box: TestedToolbox
    node: Node
    told: list[tuple[float, float | None, str]]
    on_progress: Callable[[float, float | None, str], Awaitable[None]] | None = None

    async def sync(self, direction: str, **more: Any) -> SyncReply:
        """Call the tool."""
        ask = SyncFiles.model_validate({"direction": direction, **more})
        reply = await self.box.call("sync_files", ask, progress=self._note)
        assert isinstance(reply, SyncReply)
        return reply

    async def _note(self, done: float, total: float | None, message: str) -> None:
        self.told.append((done, total, message))
        if self.on_progress is not None:
            await self.on_progress(done, total, message)

    def write(self, name: str, text: str | bytes = "x\n", *, there: bool = False) -> Path:
        """Write a file on one side."""
        path = (self.there if there else self.here) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def track(self, *names: str) -> None:
        """Have git track what is here now."""
        git(self.here, "add", "-f", "--", *(names or (".",)))

    def files(self, *, there: bool = True) -> dict[str, bytes]:
        """Every file of a side by its name, git's own left out."""
        root = self.there if there else self.here
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file() and not path.is_symlink() and ".git" not in path.relative_to(root).parts
        }

    def change(self, **facts: Any) -> None:
        """Change the context of the tools."""
        self.box.context = replace(self.box.context, **facts)
        self.box.registry = OneContext(self.box.context)

    def policy(self, **facts: Any) -> None:
        """Change fields of the policy."""
        loaded = self.box.context.policy
        self.change(policy=replace(loaded, policy=loaded.policy.model_copy(update=facts)))


def git(folder: Path, *words: str) -> None:
    """Run git."""
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


@asynccontextmanager
async def two_sides(folder: Path, node: Node) -> AsyncIterator[Sides]:
    """A new project of git, and an empty folder of its own there."""
    there = folder / "there"
    there.mkdir()
    node.streams = True
    settings = node.settings(remote_root=str(there))
    remote = SshTransport("far", settings)
    box = toolbox(folder, remote.runner)
    sides = Sides(folder / "project", there, box, node, [])
    git(sides.here, "init", "-q")
    sides.change(
        settings=box.context.settings.model_copy(update={"clusters": {"far": settings}}), cluster="far",
        transport=remote, environment=LoginEnvironment("alice", str(there.resolve()), {}),
    )  # fmt: skip
    try:
        yield sides
    finally:
        await remote.close()
        sides.box.context.store.close()
