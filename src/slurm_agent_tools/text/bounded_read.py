"""Reading a file that somebody else may have written: a stored file, of a bounded size, without waiting for anybody.

What can fail is an OSError whose `strerror` says what is wrong in words. It never holds a line of the file, nor where a
link leads. A disk or network file system that does not answer is not bounded here: callers that serve others read in a
thread.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from pathlib import Path

CLOSED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

NO_LINK = getattr(os, "O_NOFOLLOW", 0)

NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # a pipe that took the place of a file would let the reader wait for ever

FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | NO_LINK | CLOSED

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
    folder = open_folder(place)
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISLNK(found.st_mode):  # what follows says what is wrong with a link
            _stored(found)
        handle = os.open(name, os.O_RDONLY | NO_LINK | NO_WAIT | CLOSED, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        _stored(os.fstat(handle))
    except NotStored:
        os.close(handle)
        raise
    return handle


def open_folder(path: str) -> int:
    """The handle of a folder, for walking only; no part of its absolute path may be a link. Raises OSError."""
    handle = os.open("/", FOLDER)
    for name in filter(None, path.split("/")):
        try:
            inner = os.open(name, FOLDER, dir_fd=handle)
        finally:
            os.close(handle)
        handle = inner
    return handle


def _stored(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise NotStored(errno.EINVAL, f"it is {kind}, not a file")
