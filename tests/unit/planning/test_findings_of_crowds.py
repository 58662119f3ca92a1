"""Findings where many wait: what it costs to look, and whether all of it is counted."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from tests.unit.planning.clusters import DAY, END, GIB, HOUR, SPAN, everyday, week

from slurm_agent_tools.models.accounted import AccountedJob, ClusterRecord
from slurm_agent_tools.planning.findings.ranked import find_all

WAITS = AccountedJob("kay", "large", ("gpu",), "PENDING", END - 3 * DAY, None, None, 8, GIB, 4, 1, limit=864000)


def calls_of(record: ClusterRecord) -> int:
    """How many functions of Python are called to find everything."""
    count = 0

    def seen(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        find_all(record)
    finally:
        sys.setprofile(None)
    return count


def test_a_queue_of_thousands_who_wait_for_days_costs_little_for_each_of_them():
    record = week([*everyday()])
    crowd = tuple(replace(WAITS, user=f"u{number % 9}", ready=END - SPAN + number) for number in range(2_000))
    few, many = (calls_of(replace(record, jobs=(*record.jobs, *some))) for some in (crowd[:100], crowd))
    assert many - few < 200 * len(crowd)


def test_everybody_who_waits_is_counted_however_many_users_there_are():
    record = week([*everyday()])
    crowd = tuple(replace(WAITS, user=f"u{number}", cpus=1) for number in range(200))
    told = {one.partition: one for one in find_all(replace(record, jobs=(*record.jobs, *crowd))).bottlenecks}
    assert told["gpu"].hours == pytest.approx(200 * (3 * DAY - HOUR) / HOUR, rel=0.02)
