"""Filename patterns of --output and --error (sbatch(1), filename pattern)."""

from __future__ import annotations

import re

from slurm_agent_tools.model import Job


def expand(pattern: str, job: Job) -> str:
    """The path of one job's file; Slurm itself has put in most of it already."""
    values = {
        "%": "%",
        "A": str(job.job_id.base),
        "a": str(job.job_id.task if job.job_id.task is not None else ""),
        "j": str(job.raw_id or job.job_id.base),
        "J": str(job.raw_id or job.job_id.base),
        "u": job.user or "",
        "x": job.name,
        "n": "0",
        "t": "0",
        "s": "batch",
    }
    return re.sub(r"%(\d*)([%AajJuxnts])", lambda found: values[found[2]].zfill(int(found[1] or 0)), pattern)
