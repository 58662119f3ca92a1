"""What a run is: its settings, its configuration (arm), the hash of what its stage runs, and what it asks for.

What a stage asks of Slurm is no part of its hash, and neither is what its trials write.
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
from slurm_agent_tools.models.campaign import Setting, TrialRequest
from slurm_agent_tools.models.campaign_file import RESOURCES, CampaignStage
from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.transport.base import NO_FILE, Files
from slurm_agent_tools.units import parse_memory


def defaults(stage: CampaignStage) -> dict[str, Setting]:
    """Every parameter of the stage with its default."""
    return {name: parameter.default for name, parameter in stage.parameters.items()}


def varies(stage: CampaignStage, names: Iterable[str]) -> list[str]:
    """Those of the names that say something to this stage: its parameters, and what it can ask for."""
    return [name for name in names if name in stage.parameters or (name in RESOURCES and _asks(stage, name))]


def lengths(stage: CampaignStage, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """The settings that only say how much is done."""
    return {name: value for name, value in settings.items() if _is_length(stage, name)}


def arm_of(stage: CampaignStage, settings: Mapping[str, Setting]) -> str:
    """12 hex digits that are the same for all runs of one configuration, whatever their length."""
    return _digest(
        "arm",
        stage.name,
        {name: value for name, value in _telling(stage, settings).items() if not _is_length(stage, name)},
    )[:12]


def identity_of(stage: CampaignStage, settings: Mapping[str, Setting], repeat: int, code: str) -> str:
    """16 hex digits that are the same for all that runs the same: code, configuration, length, number of the repeat.

    A memory limit or a time limit is no part of it, unless memory is what was varied. CPUs, GPUs and nodes are: what
    runs sees them, and its speed depends on them.
    """
    return _digest("run", stage.name, _telling(stage, settings), repeat, code)[:16]


def request_of(
    stage: CampaignStage, settings: Mapping[str, Setting], *, smoke: bool = False, like: TrialRequest | None = None
) -> TrialRequest:
    """What a run asks for. `like`: the request with which this configuration was mended; it asks for no less."""
    asked = stage.resources
    varied = _resources(stage, settings)
    memory = _memory(varied["memory"]) if "memory" in varied else asked.memory
    time_limit = stage.smoke.time_limit if smoke and stage.smoke.time_limit is not None else asked.time_limit
    if like is not None:
        time_limit = max(time_limit, like.time_limit_seconds)
        if memory is not None and like.memory_bytes is not None:
            memory = max(memory, like.memory_bytes)
    return TrialRequest(
        cpus=_count(varied.get("cpus"), asked.cpus),
        memory_bytes=memory,
        gpus=_count(varied.get("gpus"), asked.gpus) or 0,
        nodes=_count(varied.get("nodes"), asked.nodes),
        time_limit_seconds=time_limit,
        partition=asked.partition,
    )


def _asks(stage: CampaignStage, resource: str) -> bool:
    return resource != "gpus" or stage.kind == "gpu"


def _is_length(stage: CampaignStage, name: str) -> bool:
    return name in stage.parameters and stage.parameters[name].length


def _telling(stage: CampaignStage, settings: Mapping[str, Setting]) -> dict[str, Setting | None]:
    """The settings, with cpus, gpus and nodes as they come to be; memory only where it is another than the stage's."""
    asked, varied = stage.resources, _resources(stage, settings)
    telling: dict[str, Setting | None] = {name: value for name, value in settings.items() if name not in varied}
    needs: dict[str, Setting | None] = {
        "cpus": _count(varied.get("cpus"), asked.cpus),
        "gpus": _count(varied.get("gpus"), asked.gpus),
        "nodes": _count(varied.get("nodes"), asked.nodes),
    }
    if "memory" in varied and _memory(varied["memory"]) != asked.memory:
        needs["memory"] = _memory(varied["memory"])
    return {**telling, **{f"asks {name}": value for name, value in needs.items()}}


def _resources(stage: CampaignStage, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """The settings that are asked of Slurm; a parameter of the stage that has such a name is none of them."""
    return {name: settings[name] for name in RESOURCES if name in settings and name not in stage.parameters}


def _count(value: Setting | None, otherwise: int | None) -> int | None:
    return otherwise if value is None else int(value)


def _memory(value: Setting) -> int:
    return parse_memory(value) if isinstance(value, str) else int(value)


def _digest(*parts: object) -> str:
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


_DIRECTIVE = re.compile(rb"^#SBATCH[^\n]*\n?", re.MULTILINE)

_HASHED = 32 * 2**20
"""Bytes of a file that is told by its contents; a larger one by its size and its time, as in `input_files`."""

_SCRIPT = 2**20

_LEFT_BY_RUNS = re.compile(r"^\.|^__pycache__$|\.py[co]$")
"""Names in a folder that are no part of what is read: hidden ones, and what Python makes of the code in it."""

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
        "setup": stage.setup,
        "told": ways_told(stage),
        "measured": measures(stage),
        **named,
    }
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def ways_told(stage: CampaignStage) -> dict[str, list[str | None]]:
    """How the stage is told each parameter: its option, its variable or its key; two of them are None."""
    return {name: [one.argument, one.environment, one.config] for name, one in stage.parameters.items()}


def measures(stage: CampaignStage) -> dict[str, object]:
    """Where the metrics of a run come from, and what must hold for it to have passed."""
    source = None if stage.metrics is None else stage.metrics.model_dump(mode="json")
    return {"metrics": source, "passes": stage.passes.model_dump(mode="json")}


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
