"""What jobs of one shape waited, and nothing where too few did."""

from __future__ import annotations

import pytest

from slurm_agent_tools.insights.measured_waits import MeasuredWaits, by_partition, measure_waits, same_shape
from slurm_agent_tools.models.job import PastWait
from slurm_agent_tools.models.job_resources import Resources

GIB = 2**30
ASKED = Resources(partition="gpu", gpus=2, cpus=8, memory_bytes=32 * GIB, time_limit_seconds=3600)


def waited(seconds: int, job: int = 1, **facts: object) -> PastWait:
    shape = {"partition": "gpu", "gpus": 2, "cpus": 8, "memory_bytes": 32 * GIB, "time_limit_seconds": 3600} | facts
    asked = Resources(**shape)  # type: ignore[arg-type]
    return PastWait(job, asked.partition or "", seconds, asked)


def test_the_median_and_the_95th_percentile_are_of_the_jobs_themselves():
    past = [waited(seconds, job) for job, seconds in enumerate(range(10, 210, 10))]  # 10, 20 ... 200

    assert measure_waits(past) == MeasuredWaits(20, 105, 190)


def test_of_too_few_jobs_nothing_is_told_but_their_number():
    assert measure_waits([waited(5, job) for job in range(4)]) == MeasuredWaits(4, None, None)
    assert measure_waits([waited(5, job) for job in range(5)]) == MeasuredWaits(5, 5, 5)
    assert measure_waits([]) == MeasuredWaits(0)


def test_an_array_counts_as_one_job_with_its_first_part():
    array = [waited(seconds, 7) for seconds in (900, 30, 600)]
    singles = [waited(30, job) for job in range(10, 14)]

    assert measure_waits([*array, *singles]) == MeasuredWaits(5, 30, 30)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"gpus": 1},
        {"gpus": 4},
        {"cpus": 2},
        {"cpus": 32},
        {"memory_bytes": 8 * GIB},
        {"memory_bytes": 128 * GIB},
        {"time_limit_seconds": 900},
        {"time_limit_seconds": 4 * 3600},
    ],
)
def test_about_the_same_size_is_alike(facts: dict[str, object]):
    assert len(same_shape([waited(1, **facts)], ASKED)) == 1


@pytest.mark.parametrize(
    "facts",
    [
        {"partition": "cpu"},
        {"gpus": 0},
        {"gpus": 5},
        {"cpus": 1},
        {"cpus": 33},
        {"cpus": None},
        {"memory_bytes": 129 * GIB},
        {"memory_bytes": None},
        {"time_limit_seconds": 899},
        {"time_limit_seconds": -1},
    ],
)
def test_another_partition_or_size_is_not_alike(facts: dict[str, object]):
    assert same_shape([waited(1, **facts)], ASKED) == []


def test_what_a_request_does_not_tell_is_not_compared():
    asked = Resources(partition="cpu,gpu", gpus=2)

    assert len(same_shape([waited(1, cpus=64, memory_bytes=GIB)], asked)) == 1
    assert same_shape([waited(1)], Resources(gpus=2)) == []  # no partition is known: nothing is like it


def test_partitions_with_too_few_jobs_are_left_out():
    past = [waited(job, job) for job in range(6)] + [waited(1, 100, partition="cpu")]

    assert by_partition(past) == {"gpu": MeasuredWaits(6, 2, 5)}
