"""Where a job's output is, and reading its head and tail; never a whole large file."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from slurm_agent_tools.diagnosis.excerpt import LogText, read_text
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies import EvidenceLine, LogFile, SubmitReply
from slurm_agent_tools.slurm.patterns import expand
from slurm_agent_tools.toolbox import paths
from slurm_agent_tools.toolbox.desk import Desk, Shelf

Kind = Literal["stdout", "stderr"]
_HEAD, _TAIL = 256 * 1024, 1024 * 1024
_CONTENT = 100_000
_FOLDER = "logs/slurm"


@dataclass(frozen=True, slots=True)
class Log:
    """One output file: what is shown of it, and its text where it could be read."""

    file: LogFile
    text: LogText | None


async def paths_of(desk: Desk, job: Job) -> list[tuple[str, Kind]]:
    """A job's output files, absolute: as Slurm tells, else from the ledger, else by id under logs/slurm."""
    told = _told(job.stdout, job.stderr, job)
    if not told:
        told = await _remembered(desk, job)
    return told or await _by_name(desk, job)


def _told(stdout: str | None, stderr: str | None, job: Job) -> list[tuple[str, Kind]]:
    found: list[tuple[str, Kind]] = []
    if stdout:
        found.append((expand(stdout, job), "stdout"))
    if stderr and stderr != stdout:
        found.append((expand(stderr, job), "stderr"))
    return [item for item in found if posixpath.isabs(item[0]) and item[0] != "/dev/null"]


async def _remembered(desk: Desk, job: Job) -> list[tuple[str, Kind]]:
    run = await desk.db(desk.store.by_job, desk.owner, job.job_id.base)
    if run is None or run.reply_json is None:
        return []
    logs = SubmitReply.model_validate_json(run.reply_json).log_paths
    return _told(logs.stdout, logs.stderr, job) if logs is not None else []


async def _by_name(desk: Desk, job: Job) -> list[tuple[str, Kind]]:
    wanted, shelf = str(job.job_id).replace("+", "_"), desk.there
    found: list[tuple[str, Kind]] = []
    for folder in (_FOLDER, "."):
        base = posixpath.normpath(posixpath.join(shelf.root, folder))
        for name in await shelf.files.list(base) or []:
            stem, ending = posixpath.splitext(name)
            if ending in {".out", ".err", ".log"} and stem.endswith(wanted) and not stem[: -len(wanted)][-1:].isdigit():
                found.append((posixpath.join(base, name), "stderr" if ending == ".err" else "stdout"))
    return found


async def declared(desk: Desk, path: str) -> Shelf | None:
    """The folder outside the project that the policy lists for logs and that holds this one, links resolved."""
    files = desk.there.files
    real = await files.real_path(path) if posixpath.isabs(path) else ""
    for folder in desk.policy.policy.log_folders:
        root = await files.real_path(folder)
        if real.startswith(root.rstrip("/") + "/"):
            return Shelf(files, root)
    return None


async def read(desk: Desk, path: str, kind: Kind, shelf: Shelf | None = None) -> Log:
    """Head and tail of one file of the project or of a folder for logs; what cannot be read is said, not skipped.

    `shelf`: where the project's file is, if not on the cluster.
    """
    shelf = shelf or desk.there
    ours = shelf in {desk.here, desk.there} and path.startswith(shelf.root.rstrip("/") + "/")
    shown = paths.relative(shelf, path) if ours else path
    try:
        shelf = await declared(desk, path) or shelf
        real = await paths.resolve(shelf, "path", path)
        stat = await shelf.files.stat(real)
        if stat is None:
            return _unread(shown, "does not exist")
        if stat.kind != "file":
            return _unread(shown, "is not a regular file")
        head = await shelf.files.read(real, offset=0, size=min(stat.size, _HEAD)) or b""
        rest = max(_HEAD, stat.size - _TAIL)
        tail = (await shelf.files.read(real, offset=rest, size=_TAIL) or b"") if stat.size > _HEAD else b""
    except InputError:
        return _unread(shown, "lies outside the project and was not read")
    except StorageError as error:
        return _unread(shown, error.message)
    text = read_text(shown, kind, head, tail, stat.size)
    return Log(LogFile(path=shown, size_bytes=stat.size, read_bytes=len(head) + len(tail)), text)


def _unread(path: str, note: str) -> Log:
    return Log(LogFile(path=path, size_bytes=None, read_bytes=0, note=note), None)


def content(lines: Sequence[EvidenceLine]) -> str:
    """The lines as text, bounded, the end kept."""
    whole = "\n".join(line.text for line in lines)
    return whole if len(whole) <= _CONTENT else "[... cut ...]\n" + whole[-_CONTENT:]
