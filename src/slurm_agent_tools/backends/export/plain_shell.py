"""A script for this machine's own shell, which holds no limit but the time. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from slurm_agent_tools.backends.export.exported_job import TASK_ID, ExportFormat, JobToExport, variables, within_limit
from slurm_agent_tools.models.job_resources import Resources


def _write(job: JobToExport) -> str:
    own = dict.fromkeys(("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID"), '"$$"')
    own |= {"SLURM_SUBMIT_DIR": '"$PWD"', TASK_ID: f'"${TASK_ID}"'}
    lines = [line for line in variables(job, own, "a plain shell") if not line.startswith(f"export {TASK_ID}=")]
    head = [
        "#!/bin/bash",
        f"# {_asked(job)}",
        "# Nothing but the time limit is held here: run it where that much is free.",
    ]
    return "\n\n".join(["\n".join(head), "\n".join(["set -euo pipefail", *lines]), within_limit(job, [])]) + "\n"


def _asked(job: JobToExport) -> str:
    asked = Resources(cpus=job.cpus_per_node, gpus=job.gpus_per_node, memory_bytes=job.memory_per_node)
    return f"Asks for{asked.in_words.removeprefix(':')}."


def _command(_: JobToExport, path: str) -> Sequence[str]:
    return [shlex.join(["bash", path])]


def _notes(job: JobToExport) -> list[str]:
    told = [f"A shell holds the time limit alone. {_asked(job)} Whoever starts it sees to that."]
    return told + (["Tasks: one after the other."] if job.array is not None else [])


SHELL = ExportFormat(".sh", frozenset(), _write, _command, _notes)
