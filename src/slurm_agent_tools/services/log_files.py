"""Reading a job's output: all of a small file; of a large one head, tail and the neighbourhood of what matters."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from slurm_agent_tools.diagnosis import excerpt
from slurm_agent_tools.diagnosis.excerpt import LogText, assemble
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.models.diagnosis_answer import LogFile
from slurm_agent_tools.models.shapes import EvidenceLine
from slurm_agent_tools.services import log_parts, project_paths
from slurm_agent_tools.services.context import ClusterContext, ProjectFiles
from slurm_agent_tools.services.log_paths import Kind, rotated
from slurm_agent_tools.transport.base import NO_FILE, Runner
from slurm_agent_tools.transport.local import LocalRunner
from slurm_agent_tools.units import human_memory

_CONTENT = 100_000


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One output file: what is shown of it, and its text where it could be read."""

    file: LogFile
    text: LogText | None


async def declared(context: ClusterContext, path: str) -> ProjectFiles | None:
    """The folder outside the project that the policy lists for logs and that holds this one, links resolved."""
    files = context.there.files
    real = await files.real_path(path) if posixpath.isabs(path) else ""
    for folder in context.policy.policy.log_folders:
        root = await files.real_path(folder)
        if real.startswith(root.rstrip("/") + "/"):
            return ProjectFiles(files, root)
    return None


async def read(
    context: ClusterContext,
    path: str,
    kind: Kind,
    project_files: ProjectFiles | None = None,
    *,
    whole: bool = False,
    tail: int | None = None,
) -> OutputFile:
    """What matters of one file of the project or of a folder for logs; what cannot be read is said, not skipped.

    `shelf`: where the project's file is, if not on the cluster. `whole`: a large file is searched from end to end.
    `tail`: so many bytes at its end are read and no more.
    """
    project_files = project_files or context.there
    ours = project_files in {context.here, context.there} and path.startswith(project_files.root.rstrip("/") + "/")
    shown = project_paths.relative(project_files, path) if ours else path
    try:
        project_files = await declared(context, path) or project_files
        real = await project_paths.resolve(project_files, "path", path)
        return await _read(_runner(context, project_files), project_files, real, shown, kind, whole=whole, tail=tail)
    except InputError:
        return _unread(shown, "lies outside the project and was not read")
    except StorageError as error:
        return _unread(shown, f"{error.message}. {error.hint}")


def _runner(context: ClusterContext, project_files: ProjectFiles) -> Runner:
    """What runs commands where the file is."""
    return context.transport.runner if project_files.files is context.there.files else LocalRunner(context.settings)


async def _read(
    runner: Runner, project_files: ProjectFiles, real: str, shown: str, kind: Kind, *, whole: bool, tail: int | None
) -> OutputFile:
    stat = await project_files.files.stat(real)
    older = await rotated(project_files, real)
    if stat is None:
        return _unread(shown, _gone(older))
    if stat.kind != "file":
        what = "is a folder: name a file in it" if stat.kind == "dir" else NO_FILE[stat.kind][0]
        return _unread(shown, f"{what}; nothing was read")
    source = log_parts.LogFileSource(runner, project_files.files, real, stat.size)
    found = await (log_parts.read(source, whole=whole) if tail is None else log_parts.last(source, tail))
    if found is None:
        return _unread(shown, _gone(older))
    again = await project_files.files.stat(real)
    text = assemble(shown, kind, excerpt.narrow(found.pieces), stat.size, found.left)
    notes = [*found.notes, _changed(stat.size, again.size if again is not None else None)]
    notes.append(f"older parts lie beside it and were not read: {older}; name one as path to read it" if older else "")
    note = "; ".join(note for note in notes if note) or None
    size = sum(len(piece.data) for piece in found.pieces)
    return OutputFile(LogFile(path=shown, size_bytes=stat.size, read_bytes=size, note=note), text)


def _gone(older: str) -> str:
    beside = f" Older parts lie beside it: {older}." if older else ""
    return (
        "does not exist. It was moved or deleted, or Slurm could not make it: the folder of --output and --error has to"
        f" be there before the job starts.{beside}"
    )


def _changed(before: int, after: int | None) -> str:
    """What became of the file while it was read."""
    if after is None:
        return "it was deleted while it was read"
    if after > before:
        return f"it is still being written: {human_memory(after - before)} came while it was read, so look again later"
    return "it was cut off while it was read, so look again" if after < before else ""


def _unread(path: str, note: str) -> OutputFile:
    return OutputFile(LogFile(path=path, size_bytes=None, read_bytes=0, note=note), None)


def content(lines: Sequence[EvidenceLine]) -> str:
    """The lines as text, bounded, the end kept."""
    whole = "\n".join(line.text for line in lines)
    return whole if len(whole) <= _CONTENT else "[... cut ...]\n" + whole[-_CONTENT:]
