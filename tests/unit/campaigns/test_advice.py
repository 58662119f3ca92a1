"""What to try next, from what the runs measured."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.campaigns.simulated import STAGE, Measure, Simulation, campaign

from slurm_agent_tools.campaigns.advice import advice
from slurm_agent_tools.models.campaign import RoundDesigned, Trial, TrialEnd, TrialId

GIB = 2**30

SIZES = {"kind": "grid", "vary": {"cpus": [2, 16]}}

MANY = {"kind": "grid", "vary": {"rate": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}}


def end(**changes: Any) -> TrialEnd:
    """A run that used all that it asked for and did not wait."""
    usual: dict[str, Any] = {
        "queue_seconds": 2.0,
        "run_seconds": 500.0,
        "memory_peak_bytes": int(0.9 * GIB),
        "memory_allocated_bytes": GIB,
        "cpu_used": 0.95,
        "metrics": {"loss": 1.0},
    }
    return TrialEnd("1", "COMPLETED", passed=True, **{**usual, **changes})


def told(this: dict[str, Any], measure: Measure, **parts: Any) -> tuple[str, ...]:
    simulation = Simulation(campaign(this, **parts))
    simulation.round(0, measure)
    return advice(simulation.file, simulation.state)


def gpu_stage(**changes: Any) -> dict[str, Any]:
    resources = {"gpus": 1, "cpus": 4, "memory": "1G", "time_limit": "10m"}
    return {**STAGE, "kind": "gpu", "resources": resources, **changes}


def test_nothing_is_advised_where_all_is_well() -> None:
    assert told(MANY, lambda _: end()) == ()


def test_nothing_is_advised_where_nothing_was_measured() -> None:
    assert told(MANY, lambda _: TrialEnd("1", "COMPLETED", passed=True)) == ()


def test_large_jobs_that_wait_longer_are_better_split() -> None:
    (said,) = told(SIZES, lambda trial: end(queue_seconds=2400.0 if trial.request.cpus == 16 else 30.0))
    assert "16 CPUs" in said
    assert "00:40:00" in said
    assert "00:00:30" in said
    assert "smaller" in said


def test_a_long_queue_of_jobs_of_one_size_is_told_beside_their_run() -> None:
    (said,) = told(MANY, lambda _: end(queue_seconds=3600.0, run_seconds=500.0))
    assert "01:00:00" in said
    assert "00:08:20" in said


def test_cpus_that_are_little_used_are_too_many() -> None:
    (said,) = told({"kind": "list", "trials": [{"cpus": 16}]}, lambda _: end(cpu_used=0.2))
    assert "20%" in said
    assert "ask for 4" in said


def test_memory_that_is_little_used_is_too_much() -> None:
    (said,) = told(MANY, lambda _: end(memory_peak_bytes=GIB, memory_allocated_bytes=16 * GIB))
    assert "16" in said
    assert "1383M" in said


def test_a_time_limit_far_above_the_run_keeps_it_out_of_gaps() -> None:
    long = {**STAGE, "resources": {"cpus": 2, "memory": "1G", "time_limit": "24h"}}
    (said,) = told(MANY, lambda _: end(), stages=[long])
    assert "1-00:00:00" in said
    assert "00:10:00" in said


def test_a_gpu_stage_whose_cpus_are_busy_waits_for_data() -> None:
    prepare = {**STAGE, "name": "prepare"}
    said = told(
        {**MANY, "stages": ["training"]},
        lambda _: end(gpu_used=0.2, cpu_used=0.97),
        stages=[prepare, gpu_stage()],
    )
    assert len(said) == 1
    assert "20%" in said[0]
    assert "97%" in said[0]
    assert "CPU stage prepare" in said[0]


def test_a_gpu_stage_that_is_idle_for_another_reason_is_given_more_work() -> None:
    (said,) = told(MANY, lambda _: end(gpu_used=0.2, cpu_used=0.6), stages=[gpu_stage()])
    assert "several runs on one GPU" in said


def out_of_memory(category: str = "host-out-of-memory") -> TrialEnd:
    return TrialEnd("1", "OUT_OF_MEMORY", passed=False, category=category)


@pytest.mark.parametrize(
    ("category", "fixes", "expected"),
    [
        ("host-out-of-memory", [], "memory: 1229M"),
        ("gpu-out-of-memory", [], "half the batch"),
        ("host-out-of-memory", [{"on": "host-out-of-memory", "memory": "2G"}], "also after the fix"),
    ],
)
def test_out_of_memory_is_answered_by_the_files_fix(category: str, fixes: list[dict[str, Any]], expected: str) -> None:
    (said,) = told({"kind": "smoke"}, lambda _: out_of_memory(category), fixes=fixes)
    assert "1 run ran out of" in said
    assert expected in said


def test_what_mended_a_failure_is_to_be_written_into_the_file() -> None:
    simulation = Simulation(campaign({"kind": "list", "trials": [{"batch": 64}]}))
    base, trial = simulation.design(0)
    simulation.run([base], lambda _: end())
    simulation.run([trial], lambda _: out_of_memory())
    mend = Trial(
        TrialId(0, 3), "training", "fix", trial.arm, trial.identity, trial.settings, trial.request,
        replaces=trial.id, mended="memory 2G instead of 1G",
    )  # fmt: skip
    simulation.happen(RoundDesigned(0, 1, "mend", (mend,)))
    simulation.run([mend], lambda _: end())
    (said,) = advice(simulation.file, simulation.state)
    assert "r0-t3 passed (memory 2G instead of 1G)" in said


def test_the_stage_that_takes_most_of_the_time_is_the_bottleneck() -> None:
    fetch = {**STAGE, "name": "fetch"}
    said = told(MANY, lambda trial: end(run_seconds=100.0 if trial.stage == "fetch" else 500.0), stages=[fetch, STAGE])
    assert said[0].startswith("training (CPU) is the bottleneck: 83%")
