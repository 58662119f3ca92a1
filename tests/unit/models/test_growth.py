"""Slurm's numbers of a job beside those that were allowed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_agent_tools.models.job_resources import Resources, grown_since

GIB = 2**30
ALLOWED = Resources(
    partition="gpu", nodes=1, cpus=4, gpus=2, memory_bytes=32 * GIB, memory_per_gpu_bytes=16 * GIB,
    time_limit_seconds=7200,
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "kind", "what"),
    [
        ({"memory_bytes": 33 * GIB}, "memory", "the memory is 33G, allowed was 32G"),
        ({"memory_per_gpu_bytes": 32 * GIB}, "memory", "the memory per GPU is 32G, allowed was 16G"),
        ({"gpus": 3}, "gpus", "the number of GPUs is 3, allowed was 2"),
        ({"time_limit_seconds": 7260}, "time", "the time limit is 02:01:00, allowed was 02:00:00"),
        ({"time_limit_seconds": -1}, "time", "the time limit is UNLIMITED, allowed was 02:00:00"),
        ({"cpus": 5}, "cpus", "the number of CPUs is 5, allowed was 4"),
        ({"nodes": 2}, "nodes", "the number of nodes is 2, allowed was 1"),
        ({"partition": "special"}, "partition", "the partition is special, allowed was gpu"),
    ],
)
def test_every_number_that_grew_is_named(change, kind, what):
    [found] = grown_since([ALLOWED], replace(ALLOWED, **change), started=False)
    assert (found.kind, found.what) == (kind, what)


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"memory_bytes": 32 * GIB + 2 * 2**20},
        {"memory_bytes": None, "memory_per_gpu_bytes": None, "gpus": None, "cpus": None, "nodes": None},
        {"time_limit_seconds": 60, "gpus": 1, "cpus": 1, "memory_bytes": GIB},
        {"partition": None},
    ],
)
def test_less_the_same_rounding_and_what_is_not_known_are_no_drift(change, started):
    assert grown_since([ALLOWED], replace(ALLOWED, **change), started=started) == []


def test_a_started_job_may_hold_whole_cores_and_lie_on_more_nodes():
    assert grown_since([ALLOWED], replace(ALLOWED, cpus=8, nodes=2), started=True) == []
    assert [change.kind for change in grown_since([ALLOWED], replace(ALLOWED, cpus=9), started=True)] == ["cpus"]


def test_a_range_of_nodes_may_multiply_memory_and_cpus():
    allowed = Resources(nodes=1, gpus=0, cpus=8, memory_bytes=16 * GIB)
    assert grown_since([allowed], replace(allowed, nodes=2, cpus=16, memory_bytes=32 * GIB), started=True) == []
    [change] = grown_since([allowed], replace(allowed, nodes=2, memory_bytes=40 * GIB), started=True)
    assert change.kind == "memory"


def test_the_largest_of_what_was_asked_and_granted_counts_and_nothing_known_is_no_limit():
    granted = Resources(partition="gpu", cpus=8, gpus=2)
    assert grown_since([ALLOWED, granted], replace(ALLOWED, cpus=8), started=False) == []
    assert grown_since([Resources()], ALLOWED, started=False) == []


def test_an_unlimited_job_that_was_allowed_may_be_anything_in_time():
    allowed = replace(ALLOWED, time_limit_seconds=-1)
    assert grown_since([allowed], replace(ALLOWED, time_limit_seconds=-1), started=True) == []


def test_one_of_several_allowed_partitions_is_no_drift():
    allowed = replace(ALLOWED, partition="gpu,special")
    assert grown_since([allowed], replace(ALLOWED, partition="special"), started=True) == []


def test_memory_per_node_counts_without_gpus():
    allowed = Resources(nodes=2, gpus=0, memory_bytes=8 * GIB)
    [change] = grown_since([allowed], replace(allowed, nodes=1), started=False)
    assert change.what == "the memory per node is 8G, allowed was 4G"
