"""A crowd costs Slurm what one costs, in little memory; so does a long queue. `make bench` has the times."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio.to_thread
import pytest
from tests.system import dashboards, scale
from tests.system.faces import Place

from slurm_agent_tools.services import completion_report

SIZE = scale.FULL if os.environ.get("SOAK") else scale.SHORT

WATCHED = 600 if os.environ.get("SOAK") else 20
"""Seconds for which pages are open."""


@pytest.mark.proves("waits-share-queries", "crowds-are-cheap", "long-queues-are-cheap")
async def test_a_crowd_of_waits_and_a_long_queue_cost_little():
    async with scale.private() as place:
        ids = scale.submit(place, SIZE)
        async with place.client() as client:
            crowd = await scale.wait(place, client, ids, SIZE.waits, SIZE)
            one = await scale.wait(place, client, ids[-1:], 1, SIZE)
            waited = scale.peak()
            await scale.fill(place, SIZE.queued)
            asked = await scale.status(place, client, 2)
            asked.memory = scale.peak()
        print(crowd.calls, one.calls, crowd.states, waited, asked)  # noqa: T201 - shown by `make soak`
    ended = sum(number % SIZE.jobs < SIZE.ending for number in range(SIZE.waits))
    assert crowd.states == {"COMPLETED": ended, "PENDING": SIZE.waits - ended}
    # One at each tick that the waits have met, and one at each look for steps that the accounting is told late.
    again = max(0, crowd.calls["sacct"] - int(crowd.seconds // scale.TICK + 1))
    assert again <= completion_report.LOOKS
    assert crowd.calls["squeue"] <= one.calls["squeue"] + 1 + again
    # Four jobs one by one, a listing at the start, and one at every moment in which jobs end; three at a look again.
    assert crowd.calls.total() <= one.calls.total() + 6 + SIZE.ending + 3 * again
    assert waited <= 150
    assert asked.memory <= 180  # with the rows of a look and of the one before it
    assert asked.size < 3_000
    assert asked.depth >= SIZE.queued


@pytest.mark.proves("long-queues-are-cheap")
async def test_pages_over_a_large_cluster_cost_little():
    async with scale.private(SIZE.nodes) as place:
        await scale.fill(place, SIZE.queued)
        told = await anyio.to_thread.run_sync(dashboards.measured, place, ("now", "fleet"), 2)
        nodes = len(set(place.slurm("sinfo", "-h", "-N", "-o", "%N").split()))
    print(told)  # noqa: T201 - shown by `make soak`
    assert nodes > SIZE.nodes
    assert told.memory < 200
    assert told.size < 150_000


@pytest.mark.proves("pages-cost-one-look")
def test_fifty_open_pages_cost_slurm_what_one_does(place: Place, tmp_path: Path):
    with ThreadPoolExecutor(2) as pool:  # side by side: a machine that is busy slows both alike
        one = pool.submit(dashboards.watched, place, 1, WATCHED, tmp_path / "one")
        fifty = pool.submit(dashboards.watched, place, 50, WATCHED, tmp_path / "fifty")
    few, many = one.result(), fifty.result()
    print(few, many)  # noqa: T201 - shown by `make soak`
    most = WATCHED / dashboards.TICK + 1
    assert 0 < few["squeue"] <= most
    assert 0 < many["squeue"] <= most
    assert many["scontrol"] <= many["squeue"] + WATCHED / 60 * 2 + 4  # nodes each time; partitions, reservations
    assert many.total() <= 3 * most
