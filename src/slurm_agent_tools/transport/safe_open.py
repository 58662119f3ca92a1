"""Making and extending files by a path whose links are resolved already: a link in a folder's place is no way out.

Where the system can open one name below an open folder (POSIX), every folder on the way is opened like that and none
may be a link. Elsewhere the path is opened as it is. Folders and files are made for their owner alone. Raises OSError.
Files are opened to read by text/bounded_read.py.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slurm_agent_tools.text.bounded_read import CLOSED, FOLDER, IN_STEPS, NO_LINK, NO_WAIT

_PRIVATE = 0o700

_NAMELESS = getattr(os, "O_TMPFILE", 0)

_HANDLES = "/proc/self/fd"


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """An open folder; without a handle its path stands for it."""

    handle: int | None
    path: str

    def name(self, name: str) -> str:
        """What names a file in it."""
        return name if self.handle is not None else posixpath.join(self.path, name)


def _in_steps() -> bool:
    return IN_STEPS


@contextmanager
def folder(path: str, *, make: bool) -> Iterator[OpenFolder]:
    """Open a folder; with `make`, those that are missing on the way are made."""
    if not _in_steps():
        if make:
            make_private(path)
        yield OpenFolder(None, path)
        return
    handle = os.open("/", FOLDER)
    try:
        for name in filter(None, path.split("/")):
            inner = _into(handle, name, make=make)
            os.close(handle)
            handle = inner
        yield OpenFolder(handle, path)
    finally:
        os.close(handle)


def _into(handle: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, FOLDER, dir_fd=handle)
    except FileNotFoundError:
        if not make:
            raise
        with contextlib.suppress(FileExistsError):  # somebody else made it just now
            os.mkdir(name, _PRIVATE, dir_fd=handle)
            _sync(handle)
        return os.open(name, FOLDER, dir_fd=handle)


def make_private(path: str) -> None:
    """Make a folder and those above it, each for its owner alone: makedirs gives a mode to the last one only."""
    if not os.path.isdir(path):  # noqa: PTH112
        make_private(os.path.dirname(path))  # noqa: PTH120
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, _PRIVATE)  # noqa: PTH102


def open_end(path: str) -> int:
    """The handle of a file that is there, to write at its end."""
    place, name = posixpath.split(path)
    with folder(place, make=False) as where:
        return os.open(where.name(name), os.O_WRONLY | os.O_APPEND | NO_LINK | NO_WAIT | CLOSED, dir_fd=where.handle)


def touch_private(path: str) -> None:
    """Make an empty file for its owner alone, where there is none."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOSED, 0o600))


def create(where: OpenFolder, name: str, mode: int) -> int:
    """The handle of a new file to write."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | CLOSED
    return os.open(where.name(name), flags, mode, dir_fd=where.handle)


def create_nameless(where: OpenFolder, mode: int) -> int | None:
    """The handle of a new file to write that has no name yet, so that a process that is killed leaves nothing behind.

    None where the system or the file system has no such files.
    """
    if not _NAMELESS or where.handle is None or not os.path.isdir(_HANDLES):  # noqa: PTH112
        return None
    try:
        return os.open(".", os.O_WRONLY | _NAMELESS | CLOSED, mode, dir_fd=where.handle)
    except OSError:
        return None


def name_it(where: OpenFolder, handle: int, name: str) -> bool:
    """Give a whole file without a name its name, on disk; False where the name is taken."""
    try:
        os.link(f"{_HANDLES}/{handle}", name, dst_dir_fd=where.handle, follow_symlinks=True)
    except FileExistsError:
        return False
    if where.handle is not None:
        _sync(where.handle)
    return True


def take(where: OpenFolder, draft: str, name: str) -> bool:
    """Give a whole draft its name, on disk; False where the name is taken, which a rename would not tell."""
    try:
        os.link(where.name(draft), where.name(name), src_dir_fd=where.handle, dst_dir_fd=where.handle,
                follow_symlinks=os.link not in os.supports_follow_symlinks)  # fmt: skip
    except FileExistsError:
        return False
    if where.handle is not None:
        _sync(where.handle)
    return True


def _sync(handle: int) -> None:
    """A new name is on disk only when its folder is. What is open for walking only is opened once more."""
    again = os.open(".", os.O_RDONLY | CLOSED, dir_fd=handle)
    try:
        os.fsync(again)
    finally:
        os.close(again)


@contextmanager
def dropped(where: OpenFolder, name: str) -> Iterator[None]:
    """Remove a name at the end, whatever happens."""
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(where.name(name), dir_fd=where.handle)


def sync_folder(folder: Path) -> None:
    """A new name is on disk only when its folder is. Not everywhere can a folder be opened; there this does nothing."""
    try:
        handle = os.open(folder, os.O_RDONLY | CLOSED)
    except PermissionError:  # Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
