"""Which files hold a job's output: as Slurm tells, else as the ledger remembers, else by the job's id."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.services.context import ClusterContext, ProjectFiles
from slurm_agent_tools.slurm import log_patterns
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.units import by_task

Kind = Literal["stdout", "stderr"]

Found = list[tuple[str, Kind]]

_OUT: Kind = "stdout"

_ERR: Kind = "stderr"

_FOLDER = "logs/slurm"

_NOWHERE = ("/dev/null", "/dev/zero", "")

_TURNED = re.compile(r"\.(?:\d+|old|bak|gz|bz2|xz|zst|\d+\.(?:gz|bz2|xz|zst)|-?\d{8}(?:\.gz)?)")

_SHOWN = 5


async def paths_of(context: ClusterContext, job: Job, run: Submission | None = None) -> Found:
    """A job's output files, absolute, whether they are there or not.

    Slurm's own record first; where it has none any more the ledger, which knows an array's files by their pattern only;
    then names that end in the job's id under logs/slurm, in the project folder and in that of the job. An array as a
    whole has no file: `%a` stays where the number of a task is put in. `run`: its submission, where it was
    read already.
    """
    run = run or await context.db(context.store.by_job, context.owner, job.job_id.base)
    asked = run.requested.array_tasks if run is not None else job.resources.array_tasks
    many = job.job_id.task is None and (asked is not None or job.job_id.tasks is not None)
    return [((by_task(path) if many else None) or path, kind) for path, kind in await _found(context, job, run)]


async def _found(context: ClusterContext, job: Job, run: Submission | None) -> Found:
    told = await _told(context, job.stdout, job.stderr, job)
    if told:
        return told
    remembered = [] if run is None else await _told(context, run.stdout, run.stderr, job)
    if any([await _is_there(context, path) for path, _ in remembered]):
        return remembered
    return await _by_name(context, job) or remembered


async def _told(context: ClusterContext, stdout: str | None, stderr: str | None, job: Job) -> Found:
    """Standard error goes where standard output goes unless it is told apart."""
    found: dict[str, Kind] = {}
    for pattern, kind in ((stdout, _OUT), (stderr, _ERR)):
        if pattern and pattern not in _NOWHERE:
            path = await _there(context, log_patterns.spellings(log_patterns.of_task(pattern, job), job))
            if posixpath.isabs(path):
                found.setdefault(path, kind)
    return list(found.items())


async def _there(context: ClusterContext, spelled: Sequence[str]) -> str:
    """The first that is there, else the first."""
    for path in spelled if len(spelled) > 1 else ():
        if await _is_there(context, path):
            return path
    return spelled[0]


async def _is_there(context: ClusterContext, path: str) -> bool:
    try:
        return posixpath.isabs(path) and await context.there.files.stat(path) is not None
    except StorageError:  # reading it will tell why
        return True


async def _by_name(context: ClusterContext, job: Job) -> Found:
    """Slurm's default is slurm-%j.out, and slurm-%A_%a.out for an array."""
    wanted = {str(job.job_id).replace("+", "_"), str(job.raw_id or job.job_id)}
    found: Found = []
    for base in _folders(context.there, job):
        for name in await context.there.files.list(base) or []:
            stem, ending = posixpath.splitext(name)
            if ending in {".out", ".err", ".log"} and any(_ends(stem, number) for number in wanted):
                found.append((posixpath.join(base, name), "stderr" if ending == ".err" else "stdout"))
    return found


def _folders(project_files: ProjectFiles, job: Job) -> Iterable[str]:
    inside = job.work_dir is not None and (job.work_dir + "/").startswith(project_files.root.rstrip("/") + "/")
    names = [_FOLDER, ".", *([job.work_dir] if inside and job.work_dir else [])]
    return dict.fromkeys(posixpath.normpath(posixpath.join(project_files.root, name)) for name in names)


def _ends(stem: str, number: str) -> bool:
    """True where a name ends in this number and not in a longer one."""
    return stem.endswith(number) and not stem[: -len(number)][-1:].isdigit()


async def rotated(project_files: ProjectFiles, path: str) -> str:
    """Names of older parts of a log that lie beside it (train.out.1, train.out.gz), as part of a sentence, or ''."""
    folder, name = posixpath.split(path)
    beside = await project_files.files.list(folder) or []
    parts = [other for other in beside if other.startswith(name) and _TURNED.fullmatch(other[len(name) :])]
    more = f" and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    return ", ".join(parts[:_SHOWN]) + more
