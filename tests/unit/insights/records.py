"""Records of jobs for the tests of history."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from slurm_agent_tools.models.job import JobRecord, Usage
from slurm_agent_tools.models.job_resources import Resources

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
GIB = 2**30
ASKED = Resources(partition="cpu", nodes=1, cpus=8, memory_bytes=16 * GIB, time_limit_seconds=7200)


def record(number: int = 1, **facts: object) -> JobRecord:
    """A completed run of train.sh; each higher number a minute later."""
    plain = JobRecord(
        job_id=str(number), cluster="lab", project="/home/ada/p", user="ada", name="train", script_path="train.sh",
        script_sha256="0" * 64, requested=ASKED, submitted=NOW + timedelta(minutes=number), state="COMPLETED",
    )  # fmt: skip
    return replace(plain, **facts)  # type: ignore[arg-type]


def run(
    number: int = 1,
    *,
    gib: float | None = 4,
    seconds: int | None = 1000,
    busy: float | None = 2,
    state: str = "COMPLETED",
    **facts: object,
) -> JobRecord:
    """One that used so much: GiB, seconds, CPUs busy on average."""
    asked = facts.get("requested", ASKED)
    assert isinstance(asked, Resources)
    had = (asked.cpus or 1) * (seconds or 0)
    usage = Usage(
        elapsed_seconds=seconds,
        cpu_seconds=None if busy is None else busy * (seconds or 0),
        cpu_allocated_seconds=had,
        memory_peak_bytes=None if gib is None else round(gib * GIB),
        memory_allocated_bytes=asked.memory_bytes,
        time_limit_seconds=asked.time_limit_seconds,
    )
    return record(number, state=state, usage=usage, **facts)
