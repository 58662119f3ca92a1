"""What partitions rest on and seldom changes: what their nodes have, and the cluster's own defaults of memory.

Kept for an hour, in memory and in a file for the next process, and only as long as `scontrol show partition` says the
same word for word but for states: other nodes, limits or another cluster are asked anew. A file that is old, foreign or
broken is not there. Nothing rests on it alone: the held job is compared with what was allowed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.text import bounded_read
from slurm_agent_tools.text.bounded_documents import decoded, json_value
from slurm_agent_tools.transport.base import Completed

AGE = 3600.0
"""Seconds."""

_FORMAT = 1

_LIMIT = 2**22  # bytes

_SETTINGS = ("DefMemPerCPU", "DefMemPerNode", "MaxMemPerCPU", "MaxMemPerNode", "JobDefaults")

_STATE = re.compile(rb" State=\S*")


@dataclass(frozen=True, slots=True)
class Equipment:
    """What the nodes of one partition have; the names and units are those of Partition."""

    gpus_per_node: int
    cpus_per_node: int
    memory_per_node: int
    memory_per_node_max: int
    gpus_per_node_min: int
    threads_per_core: int
    total_gpus: int

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Equipment:
        """What these have, as far as a partition tells it."""
        memory, gpus = [node.memory_bytes for node in nodes], [node.gpus for node in nodes]
        return cls(
            gpus_per_node=max(gpus, default=0),
            cpus_per_node=max((node.cpus for node in nodes), default=0),
            memory_per_node=min(memory, default=0),
            memory_per_node_max=max(memory, default=0),
            gpus_per_node_min=min(filter(None, gpus), default=0),
            threads_per_core=max((node.threads_per_core for node in nodes), default=1),
            total_gpus=sum(gpus),
        )

    def on(self, partition: Partition) -> Partition:
        """The partition with what its nodes have."""
        return replace(partition, **asdict(self))


@dataclass(frozen=True, slots=True)
class Backdrop:
    """When (seconds since 1970) and beside which partitions it was told: the cluster's defaults, and the equipment."""

    at: float
    mark: str
    config: Mapping[str, str]
    equipment: Mapping[str, Equipment]


def mark(done: Completed) -> str:
    """What changes with anything that `scontrol show partition` says, but for states."""
    return hashlib.sha256(_STATE.sub(b"", done.stdout)).hexdigest()


def tell(now: datetime, sign: str, config: Mapping[str, str], nodes: Mapping[str, Sequence[Node]]) -> Backdrop:
    """What is kept of these answers; `nodes` by the name of their partition."""
    kept = {name: config[name] for name in _SETTINGS if name in config}
    return Backdrop(now.timestamp(), sign, kept, {name: Equipment.of(found) for name, found in nodes.items()})


class KeptBackdrop:
    """The last one of a cluster; `path` is its file, None where it lives as long as the process."""

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._read = path, False
        self._known: Backdrop | None = None

    async def get(self, now: datetime, sign: str, names: frozenset[str]) -> Backdrop | None:
        """What is kept beside just these partitions, and not too old."""
        if self._known is None and not self._read and self._path is not None:
            self._read, self._known = True, await anyio.to_thread.run_sync(partial(_load, self._path))
        known = self._known
        if known is None or known.mark != sign or not 0 <= now.timestamp() - known.at <= AGE:
            return None
        return known if names == known.equipment.keys() else None

    async def keep(self, found: Backdrop) -> None:
        """Keep it. A disk that cannot be written costs the next process two commands, and no more."""
        self._known = found
        if self._path is not None:
            await anyio.to_thread.run_sync(partial(_save, self._path, found))

    def forget(self) -> None:
        """Somebody wants to know it anew."""
        self._known, self._read = None, True


def _load(path: Path) -> Backdrop | None:
    try:
        return None if path.is_symlink() else _understood(json_value(decoded(bounded_read.read(path, _LIMIT))))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _understood(told: Any) -> Backdrop | None:
    equipment = {name: Equipment(**numbers) for name, numbers in told["equipment"].items()}
    config = {name: text for name, text in told["config"].items() if name in _SETTINGS and isinstance(text, str)}
    numbers = [number for one in equipment.values() for number in asdict(one).values()]
    if told["format"] != _FORMAT or any(type(number) is not int or number < 0 for number in numbers):
        return None
    return Backdrop(float(told["at"]), str(told["mark"]), config, equipment)


def _save(path: Path, found: Backdrop) -> None:
    """Whole or not at all, for its owner alone."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with contextlib.suppress(OSError):
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                json.dump({"format": _FORMAT, **asdict(found)}, file)
            draft.replace(path)
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
