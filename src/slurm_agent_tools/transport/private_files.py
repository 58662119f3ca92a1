"""Whether files and folders are those of this user alone, and of one process. On Windows nothing is said of owners."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_ROOT = 0

_WRITE = stat.S_IWGRP | stat.S_IWOTH


def lock(path: Path) -> int:
    """The handle of a lock file that one process has until it closes it or ends, however it ends.

    Raises BlockingIOError where another has it, OSError. The file stays: who removed it could remove another's.
    """
    from fcntl import LOCK_EX, LOCK_NB, flock  # noqa: PLC0415 - POSIX only

    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        flock(handle, LOCK_EX | LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def writable_by_others(path: Path) -> bool:
    """Whether a file or folder is another user's, or its group or all may change it. Raises OSError."""
    if not hasattr(os, "geteuid"):
        return False
    found = path.stat()
    return found.st_uid != os.geteuid() or bool(found.st_mode & _WRITE)


def replaceable(path: Path) -> Path | None:
    """The folder or link on the way to a path by which another user could put something in its place.

    That is a folder in which all may rename (without the sticky bit), and a link of somebody else. Raises OSError.
    """
    if not hasattr(os, "geteuid"):
        return None
    given, real = path.absolute(), path.resolve()
    for part in {*given.parents, given, *real.parents}:
        found = part.lstat()
        if stat.S_ISLNK(found.st_mode):
            if found.st_uid not in {_ROOT, os.geteuid()}:
                return part
        elif found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
            return part
    return None
