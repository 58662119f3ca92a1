"""The decision log: lines of JSON that are only ever added. A line that was cut off spoils no other one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.store.database import storage

Entry = dict[str, object]

_CLOSED = getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class LogEntries:
    """The entries behind a place, the place behind them, and how many lines are damaged."""

    entries: list[Entry]
    place: int
    damaged: int


def append(path: Path, entry: Mapping[str, object]) -> None:
    """Add one line; on disk before this returns. Raises StorageError.

    What a full disk or a crash cut off before is ended first, so that it stays the only line that is lost.
    """
    line = json.dumps(entry, ensure_ascii=True, separators=(",", ":"), default=str).encode() + b"\n"
    with storage(path):
        fresh = not path.exists()
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _CLOSED, 0o600)
        try:
            whole = b"\n" + line if _torn(handle) else line
            if os.write(handle, whole) != len(whole):
                raise StorageError(f"the decision log {path} took only part of a line", hint="Free disk space.")
            os.fsync(handle)
        finally:
            os.close(handle)
        if fresh:
            sync_folder(path.parent)


def _torn(handle: int) -> bool:
    """Whether the last line has no end."""
    size = os.fstat(handle).st_size
    if size == 0:
        return False
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1) != b"\n"


def sync_folder(folder: Path) -> None:
    """A new name is on disk only when its folder is. Not everywhere can a folder be opened; there this does nothing."""
    try:
        handle = os.open(folder, os.O_RDONLY | _CLOSED)
    except PermissionError:  # Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path, start: int = 0) -> LogEntries:
    """The whole lines from `start` on; one that is still being written is left for later. Raises StorageError."""
    if not path.exists():
        return LogEntries([], start, 0)
    with storage(path), path.open("rb") as file:
        file.seek(start)
        whole, _, _ = file.read().rpartition(b"\n")
    lines = [line for line in whole.split(b"\n") if line]
    entries = [entry for line in lines if (entry := _parse(line)) is not None]
    return LogEntries(entries, start + (len(whole) + 1 if whole else 0), len(lines) - len(entries))


def _parse(line: bytes) -> Entry | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and "at" in entry else None
