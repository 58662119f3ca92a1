"""One submission at a time, whatever the clock does meanwhile."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from tests.unit.services.contexts import NothingReachesSlurm, toolbox
from tests.watchdog import SECONDS

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.services import submit
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.store.ledger_location import submission_lock


class Jumping:
    """A clock that is set by hours, once more in every pause."""

    def __init__(self, hours: int) -> None:
        self.step, self.off, self.pauses = timedelta(hours=hours), timedelta(), 0

    def now(self) -> datetime:
        return datetime.now(UTC) + self.off

    async def sleep(self, seconds: float) -> None:
        self.off, self.pauses = self.off + self.step, self.pauses + 1
        await anyio.sleep(seconds)


@pytest.fixture
def scripted(tmp_path: Path):
    tools = toolbox(tmp_path, NothingReachesSlurm())
    Path(tools.context.project, "a.sh").write_text("#!/bin/bash\nhostname\n")
    yield tools
    tools.context.store.close()


@pytest.mark.parametrize("hours", [-5, 5])
async def test_a_clock_that_is_set_meanwhile_makes_no_one_wait_longer_or_give_up_sooner(scripted, monkeypatch, hours):
    clock = Jumping(hours)
    context = replace(scripted.context, clock=clock)
    monkeypatch.setattr(submit, "_LOCK_SECONDS", 0.3)
    going_on = pytest.raises(StorageError, match="another submission by this user is still going on")
    with submission_lock(context.store.place), anyio.fail_after(SECONDS), going_on:
        await submit.submit_job(context, SubmitJob(script="a.sh"), Caller())
    assert clock.pauses > 1
