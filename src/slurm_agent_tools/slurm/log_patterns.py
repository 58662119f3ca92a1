"""Filename patterns of --output and --error (sbatch(1), filename pattern), as they come out for a batch script."""

from __future__ import annotations

import posixpath
import re

from slurm_agent_tools.models.job import Job
from slurm_agent_tools.units import NO_TASK

_WIDEST = 10  # a larger width counts as this one

_UNNAMED = "sbatch"

_OWN_NAME = re.compile(rf"\b{_UNNAMED}\b(?=[^/]*$)")

_PATTERN = re.compile(r"%(\d*)([%AabJjNnstux])")

_FIRST = re.compile(r"([^\[,]+)(?:\[(\d+))?")


def expand(pattern: str, job: Job) -> str:
    """The path of one job's file; Slurm itself has put in most of it already.

    A backslash anywhere turns every pattern off and is itself left out. Only numbers are filled up with zeros.
    """
    if "\\" in pattern:
        return re.sub(r"\\(.?)", r"\1", pattern)
    numbers, texts = _numbers(job), {"%": "%", "N": _node(job), "s": "batch", "u": job.user or "", "x": job.name}

    def value(found: re.Match[str]) -> str:
        width, letter = min(int(found[1] or 0), _WIDEST), found[2]
        return texts[letter] if letter in texts else str(numbers[letter]).zfill(width)

    return _PATTERN.sub(value, pattern)


def of_task(pattern: str, job: Job) -> str:
    """The pattern with the number of the job's task, where Slurm had put in that there is none."""
    return pattern if job.job_id.task is None else pattern.replace(NO_TASK, str(job.job_id.task))


def spellings(pattern: str, job: Job) -> list[str]:
    """Where the file may be, the likeliest first; below the folder that the job started in where no folder is named.

    Slurm's record may hold no pattern any more but a job's name with a per cent sign; an older Slurm leaves %b as it
    is; a script that came by standard input has no name for %x (all three measured on 22.05).
    """
    made = [expand(pattern, job), expand(pattern.replace("%b", "%%b"), job), pattern]
    if job.name == _UNNAMED:
        made += [_OWN_NAME.sub("(null)", path) for path in made]
    inside = [posixpath.normpath(posixpath.join(job.work_dir or "", path)) for path in made]
    return list(dict.fromkeys(inside))


def _numbers(job: Job) -> dict[str, int]:
    task = int(NO_TASK) if job.job_id.task is None else job.job_id.task  # measured on 22.05
    raw = job.raw_id or job.job_id.base
    return {
        "A": job.job_id.base,
        "a": task,
        "b": task % 10,
        "j": raw,
        "J": raw,
        "n": 0,
        "t": 0,
    }


def _node(job: Job) -> str:
    """The first node, without its domain: the script runs there."""
    found = _FIRST.match(job.nodes or "")
    return (found[1] + (found[2] or "")).partition(".")[0] if found else ""
