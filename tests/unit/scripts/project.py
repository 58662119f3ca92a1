"""A project in memory, and the reading of a script in it."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from datetime import UTC, datetime

from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.transport.base import Stat

ROOT = "/home/ada/project"


@dataclass
class MemoryFiles:
    """Files by absolute path; `links` lead elsewhere; `sizes` pretend a size."""

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def stat(self, path: str):
        if path not in self.files:
            return None
        return Stat(self.sizes.get(path, len(self.files[path])), "file", datetime(2026, 1, 1, tzinfo=UTC))

    async def read(self, path: str, *, offset: int = 0, size: int | None = None):
        self.asked.append(path)
        return self.files.get(path)

    async def write_new(self, path: str, data: bytes, *, mode: int = 0o600):
        raise AssertionError("reading a script writes nothing")

    async def list(self, folder: str):
        return None

    async def real_path(self, path: str):
        return posixpath.normpath(self.links.get(path, path))


def project(**texts: str) -> MemoryFiles:
    """A project with these files; `__` in a name stands for a dot, `___` for a slash."""
    names = {name: name.replace("___", "/").replace("__", ".") for name in texts}
    return MemoryFiles({f"{ROOT}/{names[name]}": text.encode() for name, text in texts.items()})


async def read(body: str, files: MemoryFiles | None = None, *, path: str = "job.sh", **more: object) -> ScriptReading:
    """The reading of a script; without `#!` in the body it is one for bash."""
    text = body if body.startswith("#!") else f"#!/bin/bash\n{body}\n"
    return await read_script(text.encode(), path, project=ROOT, files=files or MemoryFiles(), **more)  # type: ignore[arg-type]


def rules(reading: ScriptReading) -> set[str]:
    """Rules with a finding that is more than a word."""
    return {finding.rule for finding in reading.findings if finding.level != "warn"}
