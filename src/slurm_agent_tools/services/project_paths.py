"""Paths that callers name: inside the project, links resolved, nothing but what was asked for."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slurm_agent_tools.errors import InputError, SlurmError, SlurmUnreachable, StorageError
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.services.context import ClusterContext, ProjectFiles
from slurm_agent_tools.transport.base import NO_FILE, Stat
from slurm_agent_tools.units import ArraySpec

if TYPE_CHECKING:  # all that reads scripts is megabytes, which a server of waits does without
    from slurm_agent_tools.scripts.reader import ReadsScripts


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


async def resolve(project_files: ProjectFiles, field: str, path: str) -> str:
    """The absolute path with links resolved. InputError when it leaves the project."""
    check_text(field, path, limit=4000)
    full = path if posixpath.isabs(path) else posixpath.join(project_files.root, path)
    real = await project_files.files.real_path(full)
    if real != project_files.root and not real.startswith(project_files.root.rstrip("/") + "/"):
        raise InputError(
            field, path, f"leaves the project folder {project_files.root}", hint="Name a file inside the project."
        )
    return real


def relative(project_files: ProjectFiles, real: str) -> str:
    """A path as the project's people write it."""
    return posixpath.relpath(real, project_files.root)


async def either(context: ClusterContext, field: str, path: str) -> ProjectFiles:
    """Where a path that a caller names is: here, else on the cluster. Here where it is in neither."""
    if context.there == context.here or await _is_there(context.here, field, path):
        return context.here
    return context.there if await _is_there(context.there, field, path) else context.here


async def _is_there(project_files: ProjectFiles, field: str, path: str) -> bool:
    try:
        return await project_files.files.stat(await resolve(project_files, field, path)) is not None
    except InputError:
        return False


async def read_file(project_files: ProjectFiles, field: str, path: str, *, limit: int) -> tuple[str, bytes]:
    """A regular file inside the project: (absolute path, bytes). InputError naming the field for anything else."""
    real, stat = await regular(project_files, field, path)
    try:
        data = b"" if stat.size > limit else await project_files.files.read(real, size=limit + 1)
    except StorageError as error:
        raise InputError(field, path, f"cannot be read: {error.message}", hint="Call again.") from error
    if data is None:
        raise InputError(field, path, "disappeared while it was read", hint="Call again.")
    if max(stat.size, len(data)) > limit:
        raise InputError(field, path, f"is larger than {limit} bytes", hint="Name a smaller file.")
    return real, data


async def regular(project_files: ProjectFiles, field: str, path: str) -> tuple[str, Stat]:
    """A regular file inside the project, unread: (absolute path, what it is). InputError for anything else."""
    real = await resolve(project_files, field, path)
    stat = await project_files.files.stat(real)
    if stat is None:
        raise InputError(field, path, "does not exist", hint=f"Looked for {real}.")
    if stat.kind != "file":
        problem, hint = NO_FILE[stat.kind]
        raise InputError(field, path, problem, hint=hint)
    return real, stat


async def read_script(project_files: ProjectFiles, field: str, path: str, *, limit: int) -> tuple[str, bytes]:
    """A batch script: text, not empty, starting with #!. InputError naming the field otherwise."""
    real, data = await read_file(project_files, field, path, limit=limit)
    if not data.strip():
        raise InputError(field, path, "is empty", hint="Write a batch script that starts with #!/bin/bash.")
    if b"\0" in data:
        raise InputError(field, path, "is a binary file", hint="Name a batch script in text form.")
    if not data.startswith(b"#!"):
        raise InputError(field, path, "does not start with #!", hint="Make #!/bin/bash its first line.")
    return real, data


# --- Reading a script with the files that it would run: those on the cluster, where it runs ---------------------------


async def read(
    context: ClusterContext,
    data: bytes,
    path: str,
    reader: ReadsScripts,
    *,
    arguments: Mapping[str, str] | None = None,
    args: Sequence[str] | None = None,
) -> tuple[ScriptReading, SlurmUnreachable | None]:
    """The reading; and why its files are those here, where the cluster's could not be read: then nothing may be sent.

    Raises ConfigError when shfmt cannot be run.
    """
    away: SlurmUnreachable | None = None
    for project_files in (context.there, context.here):
        try:
            found = await reader(
                data, path, project=project_files.root, files=project_files.files, arguments=arguments, args=args
            )  # fmt: skip
        except SlurmError as error:
            away = SlurmUnreachable(error.message, hint=error.hint)
        else:
            return found, away
    raise away or AssertionError  # files here do not speak to a cluster


# --- What a script asks for, for a call that submits nothing ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskedJob:
    """What a script asks for, with its name, its path in the project and the hash of its bytes."""

    name: str
    path: str
    requested: Resources
    array: ArraySpec | None = None
    sha256: str = ""


async def asked_of(context: ClusterContext, field: str, script: str) -> AskedJob:
    """What a script asks for; without a cluster as far as it can be told. Raises InputError."""
    from slurm_agent_tools.scripts.effective_request import resolve as resolved  # noqa: PLC0415 - for these calls alone
    from slurm_agent_tools.scripts.reader import read_script as read_text  # noqa: PLC0415 - the same

    project_files = await either(context, field, script)
    real, data = await read_script(project_files, field, script, limit=context.policy.policy.sizes.script_bytes)
    reading, _ = await read(context, data, relative(project_files, real), read_text)
    partitions = None
    with contextlib.suppress(SlurmError):
        partitions = await context.slurm.partitions()
    name = reading.request.name or reading.path.rsplit("/", 1)[-1]
    asked = resolved(reading.request, partitions)
    return AskedJob(name, reading.path, asked, reading.request.array, reading.sha256)
