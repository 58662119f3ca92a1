"""What a refused request asks for is told beside what the partition has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_agent_tools.insights.capacity import beside
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition

GIB = 2**30
CPU = Partition(
    "cpu", "UP", default=True, nodes=2, max_time_seconds=None, default_time_seconds=None, cpus_per_node=64,
    memory_per_node=188 * GIB,
)  # fmt: skip
GPU = replace(CPU, name="gpu", default=False, nodes=3, gpus_per_node=4, total_gpus=12, memory_per_node_max=500 * GIB)
PARTITIONS = {"cpu": CPU, "gpu": GPU}
MORE = "allocation failure: More processors requested than permitted"
SENT = "Correct the request; nothing was sent."


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Resources("cpu", nodes=9), "Partition cpu has 2 nodes of up to 64 CPUs and 188G; asked for: 9 nodes."),
        (Resources(nodes=9), "Partition cpu has 2 nodes of up to 64 CPUs and 188G; asked for: 9 nodes."),
        (
            Resources("cpu", nodes=1, cpus=65, gpus=1),
            "Partition cpu has 2 nodes of up to 64 CPUs and 188G; asked for: 65 CPUs on 1 node, 1 GPU on 1 node.",
        ),
        (
            Resources("cpu", nodes=1, memory_per_node_bytes=501 * GIB),
            "Partition cpu has 2 nodes of up to 64 CPUs and 188G; asked for: 501G of memory on a node.",
        ),
        (
            Resources("gpu", nodes=2, gpus=9),
            "Partition gpu has 3 nodes of up to 64 CPUs, 4 GPUs and 500G; asked for: 9 GPUs on 2 nodes.",
        ),
    ],
)
def test_what_is_more_than_the_partition_has_is_told(asked: Resources, told: str):
    assert beside(asked, PARTITIONS, MORE) == f"{told} {SENT}"


def test_each_partition_of_a_list_is_told():
    hint = beside(Resources("cpu,gpu", nodes=9), PARTITIONS, MORE)

    assert "Partition cpu has 2 nodes" in hint
    assert "Partition gpu has 3 nodes" in hint


def test_nodes_beyond_those_that_one_job_may_have_are_told():
    hint = beside(Resources("cpu", nodes=2), {"cpu": replace(CPU, max_nodes=1)}, MORE)

    assert "asked for: 2 nodes, where one job may have 1." in hint


@pytest.mark.parametrize("asked", [Resources("cpu", nodes=2, cpus=128), Resources("gone", nodes=99), Resources()])
def test_nothing_is_guessed_where_the_partition_has_it_all_or_is_not_known(asked: Resources):
    assert beside(asked, PARTITIONS, MORE) == SENT


def test_a_user_whose_jobs_slurm_does_not_run_is_told_to_submit_as_another():
    hint = beside(Resources("cpu", nodes=9), PARTITIONS, "allocation failure: Invalid user id")

    assert hint.startswith("Slurm runs no jobs of this user")
    assert "nodes" not in hint
