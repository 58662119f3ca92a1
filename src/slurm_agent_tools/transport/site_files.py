"""How files, folders and accounts of the site's service are put and taken away: by root, whole, through no link."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.transport import process

LARGEST = 4 * 2**20
"""Bytes of a file of the machine's that is read."""

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are looked for by root and by the service."""

ENV = {"PATH": PATH, "LC_ALL": "C"}
"""Of every command that is run for the service, whatever the administrator's own is."""


def as_account(name: str) -> list[str]:
    """Words before a command, by which root runs it as this account and in none of its own groups."""
    return ["setpriv", f"--reuid={name}", f"--regid={name}", "--clear-groups"]


def plugin_line(conf: Path) -> str | None:
    """The line of slurm.conf that makes the controller load job_submit.lua."""
    try:
        text = safe_open.read(conf, LARGEST).decode(errors="replace")
    except OSError:
        return None
    found = re.search(r"^[ \t]*JobSubmitPlugins[ \t]*=[^\n#]*\blua\b[^\n]*", text, re.IGNORECASE | re.MULTILINE)
    return None if found is None else found[0].strip()


def command(argv: Sequence[str]) -> None:
    """Run one command of the system. Raises AgentToolsError with what it said."""
    try:
        ended = process.answered(argv, timeout=60, env=ENV)
    except OSError as error:
        raise AgentToolsError(f"{argv[0]} could not be started: {error.strerror}") from error
    if ended.exit_code != 0:
        said = ended.stderr.decode(errors="replace").strip()[-300:]
        raise AgentToolsError(f"`{shlex.join(argv)}` failed: {said}")


def put_folder(path: Path, uid: int, gid: int, mode: int, flags: int | None = None) -> None:
    """A folder with these rights, or with `flags` a file that is there. A link in its place is an error."""
    if flags is None:
        for missing in reversed([one for one in path.parents if not one.exists()]):
            put_folder(missing, 0, 0, 0o755)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW if flags is None else flags)
    try:
        os.fchown(handle, uid, gid)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def put_file(path: Path, uid: int, gid: int, mode: int, data: bytes) -> None:
    """A new file in place of the old one, whole, and newer by its time: only that makes the controller read it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchown(file.fileno(), uid, gid)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            before = path.lstat()
            if not stat.S_ISREG(before.st_mode):
                raise OSError(errno.EEXIST, "something that is no file is in its place")
            later = max(int(time.time()), int(before.st_mtime) + 1)
            os.utime(draft, (later, later))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    safe_open.sync_folder(path.parent)


def take_away(path: Path) -> None:
    """A file, a link, or a folder with all that is in it; no link is followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
