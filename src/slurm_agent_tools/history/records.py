"""What is remembered of one job: what was asked, what was given, what was used and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slurm_agent_tools.model import Resources, Usage


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One submission and, once it is known, its end. None: not known, or not measured."""

    job_id: str
    cluster: str
    project: str
    user: str
    name: str
    script_path: str
    script_sha256: str
    requested: Resources
    submitted: datetime
    state: str
    partition: str | None = None
    run_id: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    category: str | None = None  # of its failure, as analyze_log found it
    usage: Usage | None = None
    result_path: str | None = None  # a saved result of this job, inside the project
