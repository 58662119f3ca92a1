"""Exit codes that the controller told in full, for when only the accounting is left, which keeps 7 bits of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from slurm_agent_tools.model import Job
from slurm_agent_tools.slurm import truth
from slurm_agent_tools.units import JobId

_KEPT = 1000  # the last ones; the ledger remembers those of managed jobs longer


class Codes:
    """Of the jobs that failed, run by run."""

    def __init__(self) -> None:
        self._kept: dict[tuple[JobId, datetime | None], int] = {}

    def keep(self, jobs: Iterable[Job]) -> None:
        """Remember what the controller told of these."""
        for job in jobs:
            if job.short_code is False and job.exit_code:
                self._kept[job.job_id, job.started] = job.exit_code
        for key in list(self._kept)[:-_KEPT]:
            del self._kept[key]

    def recall(self, jobs: Iterable[Job]) -> tuple[Job, ...]:
        """The accounting's records, with the codes in full where they were told once."""
        return tuple(truth.coded(job, self._kept.get((job.job_id, job.started))) for job in jobs)
