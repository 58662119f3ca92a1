"""Jobs and steps as the accounting tells them, for the tests of the arithmetic."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from slurm_agent_tools.models.job import Job, Step
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.units import JobId

MIB, GIB = 2**20, 2**30
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def job(*steps: Step, state: str = "COMPLETED", seconds: int = 100, **facts) -> Job:
    """A job of 4 CPUs and 8G on one node, unless `allocated` says otherwise."""
    given = {"cpu": 4, "mem": 8 * GIB, "node": 1} | facts.pop("allocated", {})
    plain = Job(
        JobId(71),
        "train",
        state,
        ("sacct",),
        partition="cpu",
        exit_code=0,
        submitted=NOON - timedelta(minutes=5),
        started=NOON,
        ended=NOON + timedelta(seconds=seconds),
        elapsed_seconds=seconds,
        nodes="cpu01",
        resources=Resources(partition="cpu", time_limit_seconds=7200),
        requested=given,
        allocated=given,
        steps=steps,
    )
    return replace(plain, **facts)


def step(name: str = "batch", *, cpu: float | None = 0.0, mem: int | None = None, **facts) -> Step:
    """`mem`: of each task. A step that was not sampled has `mem` None."""
    tasks = facts.pop("tasks", 1)
    sizes = {"mem": mem or 0}
    plain = Step(
        name,
        "python",
        "COMPLETED",
        exit_code=0,
        max_rss_bytes=mem,
        elapsed_seconds=100,
        cpu_seconds=cpu,
        tres_usage_in_max=sizes,
        tres_usage_in_min=sizes,
        tres_usage_in_ave=sizes,
        tres_usage_in_tot={"mem": (mem or 0) * tasks},
        allocated={"cpu": 4, "mem": 8 * GIB, "node": 1},
        tasks=tasks,
        started=NOON,
    )
    return replace(plain, **facts)


def later(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)
