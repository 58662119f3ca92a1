"""The report waits a moment for an accounting that lags, and never longer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from tests.unit.insights.parts import GIB, job, step

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.models.job import JobView
from slurm_agent_tools.services.completion_report import settled

DONE = step(cpu=1.0, mem=GIB)
GOING = replace(DONE, state="RUNNING", cpu_seconds=None)


class Slurm:
    """Tells the next view at each question."""

    def __init__(self, *views) -> None:
        self.views, self.asked = list(views), 0

    async def job(self, job_id, *, max_age):
        assert max_age < 0.4  # newer than the look before, and one for all that waited with it
        self.asked += 1
        found = self.views.pop(0) if len(self.views) > 1 else self.views[0]
        if isinstance(found, Exception):
            raise found
        return found


class Clock(FakeClock):
    """Sleeps at once."""

    slept = 0.0

    async def sleep(self, seconds):
        self.slept += seconds


@dataclass
class FakeContext:
    slurm: Slurm
    clock: Clock


@pytest.mark.parametrize(
    ("first", "then", "asked"),
    [
        (JobView(job(DONE)), (), 0),
        (JobView(job(GOING)), (JobView(job(GOING)), JobView(job(DONE))), 2),
        (JobView(job()), (JobView(job(DONE)),), 1),
        (JobView(job(GOING)), (JobView(job(GOING)),), 5),
        (JobView(job(GOING, state="RUNNING")), (), 0),
        (JobView(job(sources=("squeue",))), (), 0),
        (JobView(job(started=None, elapsed_seconds=None, state="CANCELLED")), (), 0),
        (JobView(job(GOING)), (SlurmUnreachable("down"),), 1),
    ],
)
async def test_steps_that_are_not_told_yet_are_asked_for_again_for_two_seconds_at_most(first, then, asked):
    context = FakeContext(Slurm(*then), Clock())
    found = await settled(context, first)
    assert context.slurm.asked == asked
    assert context.clock.slept <= 2
    if asked in {1, 2} and isinstance(then[-1], JobView):
        assert found.job.steps == (DONE,)
