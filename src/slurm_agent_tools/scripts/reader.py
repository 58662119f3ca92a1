"""Drives the pure reading of scripts: parses shell with shfmt, reads files of the project."""

from __future__ import annotations

import os
import posixpath
import shutil
import sysconfig
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slurm_agent_tools.errors import ConfigError, StorageError
from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.scripts.analyse import analyse
from slurm_agent_tools.scripts.reading_state import Answer, NeedFile, NeedShell
from slurm_agent_tools.scripts.shell_tree import load
from slurm_agent_tools.transport import process

if TYPE_CHECKING:
    from slurm_agent_tools.transport.base import Files


MAX_FILE = 2**20

MAX_SHELL = 2**19

_SECONDS = 0.5

_SECONDS_PER_BYTE = 1 / 100_000

_MAX_TREE = 64 * 2**20

# shfmt is written in Go, which collects its garbage less often when it may; the limit keeps its memory bounded.
_GO = {"GOGC": "400", "GOMEMLIMIT": "256MiB"}


async def read_script(
    data: bytes,
    path: str,
    *,
    project: str,
    files: Files,
    arguments: Mapping[str, str] | None = None,
    args: Sequence[str] | None = None,
) -> ScriptReading:
    """What a batch script asks and does.

    `path` as it is shown, relative to `project`; `arguments` are options on sbatch's command line; `args` the script's
    own arguments, None where they are not known. Raises ConfigError when shfmt cannot be run.
    """
    reading = analyse(data, path, arguments, args=args)
    root = await files.real_path(project)
    answer: Answer = None
    while True:
        try:
            need = reading.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        answer = await _parse(need) if isinstance(need, NeedShell) else await _read(need, root, files)


async def _parse(need: NeedShell) -> dict[str, Any] | str:
    """shfmt's syntax tree, or why there is none."""
    if len(need.text) > MAX_SHELL:
        return f"it is larger than {MAX_SHELL // 2**10} KB"
    argv = [_shfmt(), "--to-json", f"-ln={need.dialect}"]
    seconds = _SECONDS + len(need.text) * _SECONDS_PER_BYTE
    try:
        done = await process.run(
            argv,
            stdin=need.text,
            env={"PATH": os.environ.get("PATH", ""), **_GO},
            timeout=seconds,
            max_output=_MAX_TREE,
        )
    except OSError as error:
        raise ConfigError(
            "shfmt", argv[0], f"cannot be run: {error.strerror}", hint="Install slurm-agent-tools again."
        ) from error
    if done.exit_code is None or done.truncated:
        return "it takes too long to parse"
    if done.exit_code != 0:
        return done.stderr.decode("utf-8", "replace").replace("<standard input>:", "line ").strip()[:200]
    try:
        return load(done.stdout)
    except (ValueError, RecursionError):
        return "it is nested too deeply"


@cache
def _shfmt() -> str:
    """The binary that came with the package, else the one on PATH."""
    beside = Path(sysconfig.get_path("scripts")) / "shfmt"
    return str(beside) if beside.exists() else shutil.which("shfmt") or "shfmt"


async def _read(need: NeedFile, root: str, files: Files) -> bytes | str | None:
    """A regular file inside the project, links resolved; None for anything else."""
    path = need.path if posixpath.isabs(need.path) else posixpath.join(root, need.path)
    try:
        real = await files.real_path(path)
        if not real.startswith(root.rstrip("/") + "/"):
            return None
        stat = await files.stat(real)
        if stat is None or stat.kind != "file":
            return None
        if stat.size > MAX_FILE:
            return "is too large to be read"
        return await files.read(real)
    except (StorageError, ValueError):  # ValueError: a name that no file can have
        return "cannot be read"
