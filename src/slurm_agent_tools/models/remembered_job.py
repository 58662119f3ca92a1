"""What is remembered of one job, and how it is shown. None means not known or not measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from slurm_agent_tools.models.job import Usage
from slurm_agent_tools.models.request import Resources


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
    tasks: int = 1  # array tasks or components that its usage rests on
    managed: bool = True  # it came through the guard


def merged(kept: Iterable[JobRecord], told: Iterable[JobRecord]) -> list[JobRecord]:
    """The ledger's records completed by those of the accounting, and the jobs that only the accounting has.

    Newest first. What the ledger knows counts; of a job's end, what the accounting tells.
    """
    theirs = {record.job_id: record for record in told}
    ours = [_joined(record, theirs.pop(record.job_id, None)) for record in kept]
    return sorted((*ours, *theirs.values()), key=lambda record: (record.submitted, record.job_id), reverse=True)


def _joined(ours: JobRecord, theirs: JobRecord | None) -> JobRecord:
    if theirs is None:
        return ours
    return replace(
        ours,
        state=theirs.state,
        partition=theirs.partition or ours.partition,
        started=theirs.started or ours.started,
        ended=theirs.ended or ours.ended,
        exit_code=_code(ours.exit_code, theirs.exit_code),
        signal=theirs.signal or ours.signal,
        category=ours.category or theirs.category,
        usage=theirs.usage or ours.usage,
        tasks=theirs.tasks,
    )


def _code(ours: int | None, theirs: int | None) -> int | None:
    """The accounting's word, but for the code of which it keeps the low 7 bits."""
    if theirs is None or (ours is not None and ours & 127 == theirs):
        return ours
    return theirs
