"""A job script for PBS Pro and OpenPBS. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from slurm_agent_tools.backends.export.exported_job import (
    TASK_ID,
    ExportFormat,
    JobToExport,
    even,
    task_lines,
    variables,
)
from slurm_agent_tools.errors import InputError

LOGS = "logs/slurm/"

_NAME = 230
_QUEUE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,14}(?:@[A-Za-z0-9.-]+)?")


def _write(job: JobToExport) -> str:
    lines = ["#!/bin/bash", *(f"#PBS {option}" for option in _options(job))]
    own = {
        "SLURM_JOB_ID": '"${PBS_JOBID%%[!0-9]*}"',
        "SLURM_ARRAY_JOB_ID": '"${PBS_JOBID%%[!0-9]*}"',
        "SLURM_SUBMIT_DIR": '"$PBS_O_WORKDIR"',
    }
    before, task = _task(job)
    own |= {TASK_ID: task} if task else {}
    start = ["set -euo pipefail", 'cd "$PBS_O_WORKDIR"', *before, *variables(job, own, "PBS")]
    return "\n\n".join(["\n".join(lines), "\n".join(start), job.body]) + "\n"


def _options(job: JobToExport) -> list[str]:
    chunk = [f"select={job.nodes}", f"ncpus={job.cpus_per_node}", f"mpiprocs={job.tasks_per_node}"]
    chunk += [f"ngpus={job.gpus_per_node}"] if job.gpus_per_node else []
    whole = job.memory_per_node % 2**30 == 0
    chunk += [f"mem={job.memory_per_node // 2**30}gb" if whole else f"mem={job.memory_per_node // 2**20}mb"]
    hours, rest = divmod(job.time_limit, 3600)
    options = [f"-N {_name(job)}", "-S /bin/bash", f"-l {':'.join(chunk)}"]
    options += ["-l place=scatter"] if job.nodes > 1 else []
    options += [f"-l walltime={hours:02d}:{rest // 60:02d}:{rest % 60:02d}", "-j oe", f"-o {LOGS}", "-r n"]
    if job.queue is not None:
        if _QUEUE.fullmatch(job.queue) is None:
            hint = "Up to 15 letters, digits, dashes and underscores, the first a letter."
            raise InputError("partition", job.queue, "cannot be the name of a queue of PBS", hint=hint)
        options.append(f"-q {job.queue}")
    if job.array is not None and len(job.tasks) > 1:
        options.append(f"-J {_range(job)}{f'%{job.array.limit}' if job.array.limit else ''}")
    return options + ([f"-m ae -M {job.mail_user}"] if job.mail_user else [])


def _name(job: JobToExport) -> str:
    """Letters, digits and four signs, the first a letter: any other name is refused by qsub."""
    name = re.sub(r"[^A-Za-z0-9+._-]+", "-", job.name)[:_NAME]
    return name if re.match(r"[A-Za-z]", name) else f"job-{name}"[:_NAME]


def _range(job: JobToExport) -> str:
    """PBS counts in even steps alone; other numbers stand in a list, of which it counts the places."""
    spread = even(job.tasks)
    first, last, step = spread or (0, len(job.tasks) - 1, 1)
    return f"{first}-{last}{f':{step}' if step > 1 else ''}"


def _task(job: JobToExport) -> tuple[list[str], str]:
    """The number of a task; an array of one task is none to PBS, which wants two."""
    if job.array is None:
        return [], ""
    if len(job.tasks) == 1:
        return [], str(job.tasks[0])
    return ([], '"$PBS_ARRAY_INDEX"') if even(job.tasks) is not None else task_lines(job, "PBS_ARRAY_INDEX")


def _command(_: JobToExport, path: str) -> Sequence[str]:
    return [shlex.join(["qsub", path])]


def _notes(job: JobToExport) -> list[str]:
    told = [f"PBS keeps the job's output in {LOGS}, named by its number; the folder must be there when the job starts."]
    if _name(job) != job.name:
        told.append(f"Name: {_name(job)}, as PBS takes no other signs.")
    if job.queue is None:
        told.append("Queue: the site's default; `partition` names another.")
    return told


PBS = ExportFormat(".pbs", frozenset(), _write, _command, _notes)
