"""Opening files by a path that others can change: a link in a folder's place is no way out.

What somebody else may have written is read as a stored file, of a bounded size, without waiting for anybody. Files are
made and extended by a path whose links are resolved already; where the system can open one name below an open folder
(POSIX), every folder on the way is opened like that and none may be a link. Elsewhere the path is opened as it is.

What can fail is an OSError whose `strerror` says what is wrong in words. It never holds a line of the file, nor where a
link leads. A disk or network file system that does not answer is not bounded here: callers that serve others read in a
thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CLOSED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

NO_LINK = getattr(os, "O_NOFOLLOW", 0)

NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # a pipe that took the place of a file would let the reader wait for ever

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | NO_LINK | CLOSED

IN_STEPS = os.open in os.supports_dir_fd and bool(NO_LINK)
"""Whether one name below an open folder can be opened here (POSIX)."""

_PIECE = 2**20

_KINDS = {
    stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}  # fmt: skip


class NotStored(OSError):
    """A pipe, device, socket or folder where a file was wanted."""


def read(path: Path, limit: int, *, within: Path | None = None) -> bytes:
    """All bytes of a file of at most `limit` bytes. Links are followed; with `within`, inside of that folder alone.

    Raises OSError: FileNotFoundError and NotADirectoryError where there is none, NotStored, and EFBIG for a larger one.
    """
    real = os.path.realpath(path)
    if within is not None and not Path(real).is_relative_to(os.path.realpath(within)):
        raise OSError(errno.ELOOP, f"it is a link that leads out of {within}")
    handle = open_file(real)
    try:
        data = _bounded(handle, limit)
        if data and os.fstat(handle).st_size == 0:  # what the kernel makes up while it is read
            raise NotStored(errno.EINVAL, "it is not a stored file")
        return data
    finally:
        os.close(handle)


def _bounded(handle: int, limit: int) -> bytes:
    large = OSError(errno.EFBIG, f"it is larger than {limit} bytes")
    if os.fstat(handle).st_size > limit:
        raise large
    parts, left = [], limit + 1
    while left > 0 and (part := os.read(handle, min(left, _PIECE))):
        parts.append(part)
        left -= len(part)
    if left == 0:  # it grew meanwhile
        raise large
    return b"".join(parts)


def open_file(path: str) -> int:
    """The handle of a stored file to read. No part of `path` may be a link: who resolved it checked what it found.

    Raises OSError: NotStored for anything but a file, which is not even opened: to open a device can do something.
    """
    place, name = posixpath.split(path)
    if not IN_STEPS:
        _stored(os.stat(path))  # noqa: PTH116
        return os.open(path, os.O_RDONLY | NO_LINK | NO_WAIT | CLOSED)
    with folder(place, make=False) as where:
        return open_stored(where, name)


def open_stored(where: OpenFolder, name: str) -> int:
    """The handle of a stored file in an open folder, as `open_file` gives it."""
    found = os.stat(name, dir_fd=where.handle, follow_symlinks=False)
    if not stat.S_ISLNK(found.st_mode):  # what follows says what is wrong with a link
        _stored(found)
    handle = os.open(name, os.O_RDONLY | NO_LINK | NO_WAIT | CLOSED, dir_fd=where.handle)
    try:
        _stored(os.fstat(handle))
    except NotStored:
        os.close(handle)
        raise
    return handle


def _stored(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise NotStored(errno.EINVAL, f"it is {kind}, not a file")


# --- Making and extending files and folders, for their owner alone. Raises OSError ------------------------------------


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


@contextmanager
def folder(path: str, *, make: bool) -> Iterator[OpenFolder]:
    """Open a folder; with `make`, those that are missing on the way are made."""
    if not IN_STEPS:
        if make:
            make_private(path)
        yield OpenFolder(None, path)
        return
    handle = os.open("/", _FOLDER)
    try:
        for name in filter(None, path.split("/")):
            try:
                inner = os.open(name, _FOLDER, dir_fd=handle)
            except FileNotFoundError:
                if not make:
                    raise
                inner = _made(handle, name)
            os.close(handle)
            handle = inner
        yield OpenFolder(handle, path)
    finally:
        os.close(handle)


def _made(handle: int, name: str) -> int:
    with contextlib.suppress(FileExistsError):  # somebody else made it just now
        os.mkdir(name, _PRIVATE, dir_fd=handle)
        _sync(handle)
    return os.open(name, _FOLDER, dir_fd=handle)


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


def identity(path: str) -> tuple[int, int] | None:
    """Which file has this name now; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


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


def replace(where: OpenFolder, draft: str, name: str) -> None:
    """Give a whole draft its name in place of the file or link that has it, on disk. A folder is never replaced."""
    os.replace(where.name(draft), where.name(name), src_dir_fd=where.handle, dst_dir_fd=where.handle)
    if where.handle is not None:
        _sync(where.handle)


def link(where: OpenFolder, name: str, leads: str) -> None:
    """Make a symbolic link."""
    os.symlink(leads, where.name(name), dir_fd=where.handle)


def permit(where: OpenFolder, name: str, mode: int) -> None:
    """Give a regular file its permissions."""
    handle = os.open(where.name(name), os.O_RDONLY | NO_LINK | NO_WAIT | CLOSED, dir_fd=where.handle)
    try:
        _stored(os.fstat(handle))
        if hasattr(os, "fchmod"):
            os.fchmod(handle, mode)
    finally:
        os.close(handle)


def remove(path: str) -> bool:
    """Remove one file or link, never a folder; False where there is none."""
    place, name = posixpath.split(path)
    try:
        with folder(place, make=False) as where:
            os.unlink(where.name(name), dir_fd=where.handle)
    except FileNotFoundError:
        return False
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
