"""Waiting: bounded in time, and with progress. What a crowd of waits costs is in test_scale."""

from __future__ import annotations

import time

import pytest
from tests.system.faces import call

SLEEPER = b"#!/bin/bash\nsleep 60\n"


@pytest.fixture
def sleeper(place):
    job_id = place.slurm("sbatch", "--parsable", "-pcpu", "--time=5", "-J", "sleeper", "-o", "/dev/null", stdin=SLEEPER)
    yield job_id
    place.slurm("scancel", job_id)


@pytest.mark.proves("wait-is-bounded", "both-eras")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_wait_that_outlives_the_call_returns_in_time_with_progress_and_goes_on(place, sleeper, mode):
    seen: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, message))

    async with place.client(mode) as client:
        for seconds in (3, 2):
            start = time.monotonic()
            result = await client.call_tool(
                "wait_for_job", {"job_id": sleeper, "timeout_seconds": seconds}, progress_callback=progress
            )
            took = time.monotonic() - start
            reply = result.structured_content
            assert reply["status"] in {"running", "pending"}
            assert reply["next_poll_seconds"] == 10
            assert seconds - 0.5 <= took <= seconds + 2
            assert seen
            assert sleeper in (seen[-1][1] or "")
            seen.clear()
        place.slurm("scancel", sleeper)
        reply = await call(client, "wait_for_job", job_id=sleeper, timeout_seconds=20)
        assert (reply["status"], reply["job"]["state"]) == ("finished", "CANCELLED")
