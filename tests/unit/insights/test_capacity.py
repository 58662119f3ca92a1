"""Whether to submit now, and what says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slurm_agent_tools.insights.capacity import RecentWaits, queue
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.models.shapes import QueueWaits, WaitMeasured
from slurm_agent_tools.models.status_answer import SlurmSection

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
FREE, TAKEN, DOWN = ("mixed", 8), ("allocated", 32), ("down*", 0)


def node(state: str, used: int) -> Node:
    return Node("n1", state, ("gpu",), 32, used, 2**36, None, 4, used // 8)


def mine(left: int = 4) -> SlurmSection:
    return SlurmSection(
        running_jobs=0, pending_jobs=0, active_jobs=4 - left, max_concurrent=4, slots_left=left, jobs=[]
    )


def lately(median: int | None = None, *, maintenance: float | None = None) -> RecentWaits:
    measured = None if median is None else WaitMeasured(median=median, p95=3 * median, jobs=12)
    begins = None if maintenance is None else NOW + timedelta(hours=maintenance)
    return RecentWaits(QueueWaits(measured=measured, note="12 jobs ran in the last 24 hours"), begins, NOW)


@pytest.mark.parametrize(
    ("depth", "state", "left", "known", "says", "why"),
    [
        (0, FREE, 4, None, "SUBMIT_NOW", "resources are free"),
        (5, FREE, 4, lately(9000), "SUBMIT_NOW", "resources are free"),
        (0, DOWN, 4, None, "WAIT", "no node is usable"),
        (1, ("plnd", 0), 4, lately(9000), "SUBMIT_NOW", "1 job is waiting and resources are free"),
        (0, FREE, 0, lately(10), "WAIT", "all 4 of your slots are taken"),
        (21, FREE, 4, None, "ADJUST", "21 jobs are waiting: a smaller"),
        (21, FREE, 4, lately(300), "SUBMIT_NOW", "21 jobs are waiting, but jobs waited 00:05:00"),
        (21, FREE, 4, lately(301), "ADJUST", "21 jobs are waiting"),
        (3, TAKEN, 4, None, "ADJUST", "every cpu and gpu is in use"),
        (3, TAKEN, 4, lately(), "ADJUST", "every cpu and gpu is in use"),
        (3, TAKEN, 4, lately(20), "SUBMIT_NOW", "every cpu and gpu is in use, but jobs waited 00:00:20"),
        (0, FREE, 4, lately(20, maintenance=1), "ADJUST", "a maintenance begins at 2026-05-01 13:00 UTC"),
        (0, FREE, 4, lately(20, maintenance=3), "SUBMIT_NOW", "resources are free"),
    ],
)
def test_one_ground_decides_and_is_named(
    depth: int, state: tuple[str, int], left: int, known: RecentWaits | None, says: str, why: str
):
    found = queue({"PENDING": depth}, [node(*state)], mine(left), known)

    assert found.recommendation == says
    assert why in found.why


def test_where_the_cluster_refuses_this_users_jobs_nobody_is_told_to_submit():
    found = queue({}, [node(*FREE)], mine(), RecentWaits(refused="work as an ordinary user"))

    assert found.recommendation == "ADJUST"
    assert found.why == "the jobs of this user are refused here; work as an ordinary user"


def test_a_wait_is_told_where_it_is_none_or_was_measured_and_never_else():
    free, taken = [node(*FREE)], [node(*TAKEN)]

    assert queue({}, free, mine(), lately(20)).estimated_wait == "none: nobody is waiting"
    told = queue({"PENDING": 2}, taken, mine(), lately(20)).estimated_wait
    assert told == "jobs waited 00:00:20 in the median lately, 95 % of them no longer than 00:01:00 (12 jobs)"
    assert queue({"PENDING": 2}, taken, mine(), lately()).estimated_wait is None
    assert queue({"PENDING": 2}, taken, mine()).estimated_wait is None


def test_all_that_was_looked_at_is_listed():
    found = queue({"PENDING": 2, "RUNNING": 1}, [node(*FREE), node(*DOWN)], mine(3), lately(60, maintenance=50))

    waited = "jobs waited 00:01:00 in the median lately, 95 % of them no longer than 00:03:00 (12 jobs)"
    assert found.grounds == [
        "1 usable node",
        "25% of the CPUs in use",
        "25% of the GPUs in use",
        "2 jobs waiting",
        "3 of your 4 slots left",
        f"{waited}; 12 jobs ran in the last 24 hours",
        "a maintenance begins at 2026-05-03 14:00 UTC",
    ]
    assert found.waits is not None
    assert found.waits.measured == WaitMeasured(median=60, p95=180, jobs=12)
