"""analyze_log over the newest failures: the summary counts all of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.services.contexts import NothingReachesSlurm, toolbox

from slurm_agent_tools.models.arguments import AnalyzeLog
from slurm_agent_tools.models.diagnosis_answer import RecentFailure
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.services import log_analysis
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.units import JobId

ENDED = datetime(2026, 1, 1, tzinfo=UTC)


class Told:
    """A Slurm whose accounting tells of these jobs."""

    def __init__(self, states: list[str]) -> None:
        self.accounting = SimpleNamespace(missing=None, recent=self._recent)
        self.jobs = tuple(
            Job(JobId(number), "train", state, ("sacct",), ended=ENDED + timedelta(minutes=number))
            for number, state in enumerate(states, start=1)
        )

    async def _recent(self, _: datetime) -> tuple[Job, ...]:
        return self.jobs


async def brief(_: ClusterContext, job: Job) -> RecentFailure:
    return RecentFailure(
        job_id=str(job.job_id), name=job.name, state=job.state, path=None, category="unknown", explanation=""
    )


@pytest.mark.parametrize(
    ("states", "asked", "listed", "said"),
    [
        (["FAILED", "COMPLETED", "TIMEOUT", "FAILED"], 2, ["4", "3"], "3 jobs failed in the last 7 days; the 2 newest"),
        (["FAILED", "TIMEOUT"], 1, ["2"], "2 jobs failed in the last 7 days; the newest is shown."),
        (["FAILED"], 5, ["1"], "1 job failed in the last 7 days."),
        (["COMPLETED"], 5, [], "No job failed in the last 7 days."),
    ],
)
async def test_all_failures_are_counted_and_the_newest_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, states: list[str], asked: int, listed: list[str], said: str
) -> None:
    context = toolbox(tmp_path, NothingReachesSlurm()).context
    object.__setattr__(context, "slurm", Told(states))
    monkeypatch.setattr(log_analysis, "_brief", brief)

    reply = await log_analysis.analyze_log(context, AnalyzeLog(recent_errors=asked), Caller())

    assert [failure.job_id for failure in reply.recent] == listed
    assert reply.summary.startswith(said)
