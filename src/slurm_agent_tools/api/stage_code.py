"""What a stage runs, read where its jobs run: one hash of script, code, data and settings.

What a stage asks of Slurm is no part of it, and neither is what its trials write.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from slurm_agent_tools.backends.input_files import WRITES, InputFile, read_inputs
from slurm_agent_tools.campaigns.trial_identity import measures, ways_told
from slurm_agent_tools.errors import InputError, SlurmError, SlurmUnreachable
from slurm_agent_tools.models.campaign_file import CampaignStage
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.transport.base import NO_FILE, Files, Stat

_DIRECTIVE = re.compile(rb"^#SBATCH[^\n]*\n?", re.MULTILINE)

_HASHED = 32 * 2**20
"""Bytes of a file that is told by its contents; a larger one by its size and its time, as in `input_files`."""

_SCRIPT = 2**20

_LEFT_BY_RUNS = re.compile(r"^\.|^__pycache__$|\.py[co]$")
"""Names in a folder that are no part of what is read: hidden ones, and what Python makes of the code in it."""

_TRIAL = r"r\d+-t\d+"
"""What `{trial}` stands for, as a pattern."""

_SETTLED = 10.0
"""Seconds since a file was written last before its times tell whether it is written again."""


class StageHashes:
    """Hashes of what stages run, for one call. What was hashed before is hashed again only where a file changed.

    That is told by device, inode, size and both times of every file that was looked at, by the names in every folder
    and by where every link leads. Where a file had been written a moment before, or does not tell these, nothing is
    kept. `now`: the time by which files are dated.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._known: dict[tuple[str, str], tuple[str, _Seen]] = {}

    async def of(self, files: Files, root: str, stage: CampaignStage, *, far: bool = False) -> str:
        """See stage_code."""
        key = (root, stage.model_dump_json())
        known = self._known.get(key)
        if known is not None and await known[1].stands(files):
            return known[0]
        began, watched = self._now(), _WatchedFiles(files)
        found = await stage_code(cast("Files", watched), root, stage, far=far)
        self._known.pop(key, None)
        if watched.seen.settled(began):
            self._known[key] = found, watched.seen
        return found


async def stage_code(files: Files, root: str, stage: CampaignStage, *, far: bool = False) -> str:
    """A hash, 64 hex digits, of what the stage runs in the project `root`. `far`: over a connection.

    Raises InputError for a file that the campaign names and that is not there, StorageError for one that cannot be
    read, SlurmUnreachable where the machine with the files cannot be reached.
    """
    path, data = await _script(files, root, stage)
    try:
        reading = await read_script(data, path, project=root, files=files)
    except SlurmError as error:
        raise SlurmUnreachable(error.message, hint=error.hint) from error
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
        "files": _read_only(found, (*_written(stage), re.escape(path))),
        "setup": stage.setup,
        "told": ways_told(stage),
        "measured": measures(stage),
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
    """Regular expressions of what a trial writes, as far as the campaign's file says."""
    source = stage.metrics.file if stage.metrics is not None else None
    named = [*stage.passes.files, *([source] if source is not None else [])]
    patterns = (re.escape(posixpath.normpath(name)) for name in named)
    own = re.escape("{trial}")
    return tuple(f"{one.replace(own, _TRIAL)}(?:/.*)?" if own in one else one for one in patterns)


def _read_only(found: Mapping[str, InputFile], written: Iterable[str]) -> dict[str, str]:
    """The files that are read, without those that the trials write."""
    patterns = [*written]
    return {
        name: one.identity
        for name, one in sorted(found.items())
        if name != WRITES and not any(re.fullmatch(pattern, name) for pattern in patterns)
    }


async def _told(files: Files, root: str, field: str, path: str, seen: set[str] | None = None) -> str:
    """A file's hash; of a folder those of the files in it, but for what Python itself leaves there.

    `seen`: the folders that are told already, of which a link leads to one: it is told by where it leads.
    """
    seen = set() if seen is None else seen
    real = await inside(files, root, field, path)
    stat = await files.stat(real)
    if stat is not None and stat.kind == "dir":
        if real in seen:
            return f"the folder {posixpath.relpath(real, root)}"
        seen.add(real)
        names = [name for name in sorted(await files.list(real) or []) if not _LEFT_BY_RUNS.search(name)]
        parts = [[name, await _told(files, root, field, posixpath.join(path, name), seen)] for name in names]
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


# --- what was looked at -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Seen:
    """What a hash rests on: what each path was, the names in each folder, and where each path led."""

    stats: dict[str, Stat | None] = field(default_factory=dict)
    names: dict[str, list[str] | None] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def settled(self, now: float) -> bool:
        """Whether every file would show another version if it was written from now on."""
        found = [stat for stat in self.stats.values() if stat is not None and stat.kind != "dir"]
        return all(stat.version is not None and max(stat.version[2:]) / 1e9 < now - _SETTLED for stat in found)

    async def stands(self, files: Files) -> bool:
        """Whether all is still so. The version of a folder is none of it: its names are."""
        for path, leads in self.places.items():
            if await files.real_path(path) != leads:
                return False
        for path, before in self.stats.items():
            stat = await files.stat(path)
            same_folder = stat is not None and before is not None and stat.kind == before.kind == "dir"
            if stat != before and not same_folder:
                return False
        for folder, names in self.names.items():
            if await files.list(folder) != names:
                return False
        return True


class _WatchedFiles:
    """Files that are only looked at, and remember what was seen: of each the first, which came before it was read."""

    def __init__(self, files: Files) -> None:
        self._files, self.seen = files, _Seen()

    async def stat(self, path: str) -> Stat | None:
        return self.seen.stats.setdefault(path, await self._files.stat(path))

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes | None:
        await self.stat(path)
        return await self._files.read(path, offset=offset, size=size)

    async def list(self, folder: str) -> list[str] | None:
        return self.seen.names.setdefault(folder, await self._files.list(folder))

    async def real_path(self, path: str) -> str:
        return self.seen.places.setdefault(path, await self._files.real_path(path))
