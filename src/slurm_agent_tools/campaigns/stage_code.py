"""What a stage runs, as one hash: its script or command, the files that it reads, and the configuration it begins from.

What it asks of Slurm is no part of it, and neither is what its trials write.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from slurm_agent_tools.backends.input_files import WRITES, InputFile, read_inputs
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign_file import CampaignStage
from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.transport.base import NO_FILE, Files

_DIRECTIVE = re.compile(rb"^#SBATCH[^\n]*\n?", re.MULTILINE)

_HASHED = 32 * 2**20
"""Bytes of a file that is told by its contents; a larger one by its size and its time, as in `input_files`."""

_SCRIPT = 2**20

ReadScript = Callable[[bytes, str], Awaitable[ScriptReading]]
"""Reads a batch script, its bytes and its path in the project."""


async def stage_code(files: Files, root: str, stage: CampaignStage, read: ReadScript, *, far: bool = False) -> str:
    """A hash, 64 hex digits, of what the stage runs in the project `root`. `far`: over a connection.

    Raises InputError for a file that the campaign names and that is not there, StorageError for one that cannot be
    read.
    """
    path, data = await _script(files, root, stage)
    reading = await read(data, path)
    try:
        found = await read_inputs(files, root, reading, (), far=far)
    except ValueError as error:
        raise InputError(f"stages.{stage.name}", path, f"cannot be told by its files: {error}") from error
    named = {
        f"reads.{name}": await _told(files, root, f"stages.{stage.name}.reads", name) for name in sorted(stage.reads)
    }
    if stage.config_file is not None:
        field = f"stages.{stage.name}.config_file"
        named["config_file"] = await _told(files, root, field, stage.config_file)
    body = {
        "script": hashlib.sha256(_DIRECTIVE.sub(b"", data)).hexdigest(),
        "files": _read_only(found, (*_written(stage), path)),
        **named,
    }
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


async def _script(files: Files, root: str, stage: CampaignStage) -> tuple[str, bytes]:
    """The script, or one that runs the command as a trial's own will: its path in the project and its bytes."""
    if stage.script is not None:
        data = await _read(files, root, f"stages.{stage.name}.script", stage.script, _SCRIPT)
        return posixpath.normpath(stage.script), data
    lines = ["#!/bin/bash", *stage.setup, shlex.join(stage.command or ())]
    return f"campaigns/{stage.name}.sh", "\n".join([*lines, ""]).encode()


def _written(stage: CampaignStage) -> tuple[str, ...]:
    """Patterns of what a trial writes, as far as the campaign's file says."""
    source = stage.metrics.file if stage.metrics is not None else None
    named = [*stage.passes.files, *([source] if source is not None else [])]
    return tuple(posixpath.normpath(name.replace("{trial}", "*")) for name in named)


def _read_only(found: Mapping[str, InputFile], written: Iterable[str]) -> dict[str, str]:
    """The files that are read, without those that the trials write."""
    patterns = [*written]
    return {
        name: one.identity
        for name, one in sorted(found.items())
        if name != WRITES and not any(fnmatchcase(name, pattern) for pattern in patterns)
    }


async def _told(files: Files, root: str, field: str, path: str) -> str:
    """A file's hash; of a folder those of the files in it."""
    real = await inside(files, root, field, path)
    stat = await files.stat(real)
    if stat is not None and stat.kind == "dir":
        names = [name for name in await files.list(real) or [] if not name.startswith(".")]
        parts = [[name, await _told(files, root, field, posixpath.join(path, name))] for name in names]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    if stat is not None and stat.kind == "file" and stat.size > _HASHED:
        return f"{stat.size} bytes of {stat.modified.isoformat()}"
    return hashlib.sha256(await _read(files, root, field, path, _HASHED)).hexdigest()


async def _read(files: Files, root: str, field: str, path: str, limit: int) -> bytes:
    real = await inside(files, root, field, path)
    stat = await files.stat(real)
    if stat is None:
        raise InputError(field, path, "does not exist", hint=f"Looked for {real}.")
    if stat.kind != "file":
        problem, hint = NO_FILE[stat.kind]
        raise InputError(field, path, problem, hint=hint)
    data = await files.read(real, size=limit + 1)
    if data is None or len(data) > limit:
        raise InputError(field, path, f"cannot be read, or is larger than {limit} bytes", hint="Name a smaller file.")
    return data


async def inside(files: Files, root: str, field: str, path: str) -> str:
    """The absolute path, links resolved. Raises InputError where it leaves the project `root`."""
    real = await files.real_path(posixpath.join(root, path))
    if not real.startswith(root.rstrip("/") + "/"):
        raise InputError(field, path, f"leaves the project folder {root}", hint="Name a file inside the project.")
    return real
