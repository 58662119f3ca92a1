"""What the ledger knows of earlier runs that ran out of memory."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.insights.records import ASKED, GIB, record

from slurm_agent_tools.models.job import Job, JobRecord
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.services.log_analysis import ran_out_before
from slurm_agent_tools.units import JobId


def job(gib: int | None) -> Job:
    return Job(
        JobId(9), "train", "OUT_OF_MEMORY", ("sacct",),
        resources=Resources(memory_bytes=None if gib is None else gib * GIB),
    )  # fmt: skip


def with_memory(number: int, gib: int, **facts: object) -> JobRecord:
    return record(number, requested=replace(ASKED, memory_bytes=gib * GIB), **facts)


def test_earlier_ends_with_less_memory_are_named_oldest_first_and_twice_as_much_is_advised() -> None:
    records = [
        with_memory(9, 4, state="OUT_OF_MEMORY"),
        with_memory(8, 3, state="FAILED", category="host-out-of-memory"),
        with_memory(7, 2, state="OUT_OF_MEMORY"),
        with_memory(6, 1),
    ]

    text = ran_out_before(records, job(4))

    assert text is not None
    assert "(job 7 with 2G, job 8 with 3G), and 4G was not enough either" in text
    assert "twice as much, 8G" in text


def test_nothing_is_said_of_runs_with_as_much_or_of_other_ends() -> None:
    records = [with_memory(7, 4, state="OUT_OF_MEMORY"), with_memory(6, 2, state="FAILED", category="missing-module")]

    assert ran_out_before(records, job(4)) is None
    assert ran_out_before([with_memory(7, 2, state="OUT_OF_MEMORY")], job(None)) is None
    assert ran_out_before([], job(4)) is None
