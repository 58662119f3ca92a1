"""Drives the pure reading of scripts: parses shell with shfmt, reads files of the project."""

from __future__ import annotations

import json
import os
import posixpath
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slurm_agent_tools import process
from slurm_agent_tools.errors import ConfigError, StorageError
from slurm_agent_tools.jobscript.analyse import NeedFile, NeedShell, analyse
from slurm_agent_tools.model import ScriptReading
from slurm_agent_tools.slurm.runner import Files

_MAX_FILE = 2**20
_SECONDS = 5.0


async def read_script(
    data: bytes, path: str, *, project: str, files: Files, arguments: Mapping[str, str] | None = None
) -> ScriptReading:
    """What a batch script asks and does. `path` as it is shown; `arguments` are options on sbatch's command line."""
    reading = analyse(data, path, arguments)
    answer: Any = None
    try:
        while True:
            need = reading.send(answer)
            answer = await _parse(need) if isinstance(need, NeedShell) else await _read(need, project, files)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def _parse(need: NeedShell) -> dict[str, Any] | str:
    """shfmt's syntax tree, or why there is none."""
    try:
        done = await process.run(
            [_shfmt(), "--to-json", f"-ln={need.dialect}"], stdin=need.text, env={"PATH": os.environ.get("PATH", "")},
            timeout=_SECONDS, max_output=256 * 2**20,
        )  # fmt: skip
    except OSError as error:
        raise ConfigError(
            "shfmt", _shfmt(), f"cannot be run: {error.strerror}", hint="Install slurm-agent-tools again."
        ) from error
    if done.exit_code is None or done.truncated:
        return "it takes too long to parse"
    if done.exit_code != 0:
        return done.stderr.decode("utf-8", "replace").replace("<standard input>:", "line ").strip()[:200]
    try:
        tree: dict[str, Any] = json.loads(done.stdout)
    except (ValueError, RecursionError):
        return "it is nested too deeply"
    return tree


def _shfmt() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "shfmt"
    return str(beside) if beside.exists() else shutil.which("shfmt") or "shfmt"


async def _read(need: NeedFile, project: str, files: Files) -> bytes | None:
    """A regular file inside the project, links resolved; None for anything else."""
    path = need.path if posixpath.isabs(need.path) else posixpath.join(project, need.path)
    try:
        real = await files.real_path(path)
        if not real.startswith(project.rstrip("/") + "/"):
            return None
        stat = await files.stat(real)
        if stat is None or stat.kind != "file" or stat.size > _MAX_FILE:
            return None
        return await files.read(real)
    except StorageError:
        return None
