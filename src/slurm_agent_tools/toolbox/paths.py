"""Paths that callers name: inside the project, links resolved, nothing but what was asked for."""

from __future__ import annotations

import posixpath

from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.slurm.runner import Stat
from slurm_agent_tools.toolbox.desk import Desk, Shelf


def check_text(field: str, value: str, *, limit: int = 1000) -> str:
    """One line of text without control characters, at most `limit` characters."""
    if not value.strip():
        raise InputError(field, value, "is empty", hint=f"Give {field} some text.")
    if len(value) > limit:
        raise InputError(field, value, f"is longer than {limit} characters", hint="Shorten it.")
    bad = next((character for character in value if ord(character) < 32 or ord(character) == 127), None)
    if bad is not None:
        raise InputError(field, value, f"contains the control character {bad!r}", hint="Use one line of plain text.")
    return value


async def resolve(shelf: Shelf, field: str, path: str) -> str:
    """The absolute path with links resolved. InputError when it leaves the project."""
    check_text(field, path, limit=4000)
    full = path if posixpath.isabs(path) else posixpath.join(shelf.root, path)
    real = await shelf.files.real_path(full)
    if real != shelf.root and not real.startswith(shelf.root.rstrip("/") + "/"):
        raise InputError(field, path, f"leaves the project folder {shelf.root}", hint="Name a file inside the project.")
    return real


def relative(shelf: Shelf, real: str) -> str:
    """A path as the project's people write it."""
    return posixpath.relpath(real, shelf.root)


async def either(desk: Desk, field: str, path: str) -> Shelf:
    """Where a path that a caller names is: here, else on the cluster. Here where it is in neither."""
    if desk.there == desk.here or await _is_there(desk.here, field, path):
        return desk.here
    return desk.there if await _is_there(desk.there, field, path) else desk.here


async def _is_there(shelf: Shelf, field: str, path: str) -> bool:
    try:
        return await shelf.files.stat(await resolve(shelf, field, path)) is not None
    except InputError:
        return False


async def read_file(shelf: Shelf, field: str, path: str, *, limit: int) -> tuple[str, bytes]:
    """A regular file inside the project: (absolute path, bytes). InputError naming the field for anything else."""
    real, stat = await regular(shelf, field, path)
    try:
        data = b"" if stat.size > limit else await shelf.files.read(real, size=limit + 1)
    except StorageError as error:
        raise InputError(field, path, f"cannot be read: {error.message}", hint="Call again.") from error
    if data is None:
        raise InputError(field, path, "disappeared while it was read", hint="Call again.")
    if max(stat.size, len(data)) > limit:
        raise InputError(field, path, f"is larger than {limit} bytes", hint="Name a smaller file.")
    return real, data


async def regular(shelf: Shelf, field: str, path: str) -> tuple[str, Stat]:
    """A regular file inside the project, unread: (absolute path, what it is). InputError for anything else."""
    real = await resolve(shelf, field, path)
    stat = await shelf.files.stat(real)
    if stat is None:
        raise InputError(field, path, "does not exist", hint=f"Looked for {real}.")
    if stat.kind == "dir":
        raise InputError(field, path, "is a directory", hint="Name a file in it.")
    if stat.kind != "file":
        raise InputError(field, path, "is not a regular file", hint="Name a regular file.")
    return real, stat


async def read_script(shelf: Shelf, field: str, path: str, *, limit: int) -> tuple[str, bytes]:
    """A batch script: text, not empty, starting with #!. InputError naming the field otherwise."""
    real, data = await read_file(shelf, field, path, limit=limit)
    if not data.strip():
        raise InputError(field, path, "is empty", hint="Write a batch script that starts with #!/bin/bash.")
    if b"\0" in data:
        raise InputError(field, path, "is a binary file", hint="Name a batch script in text form.")
    if not data.startswith(b"#!"):
        raise InputError(field, path, "does not start with #!", hint="Make #!/bin/bash its first line.")
    return real, data
