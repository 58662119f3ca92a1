"""The worst placement that Slurm may choose, as it was measured on a running cluster."""

from dataclasses import replace

import pytest
from tests.unit.counting import counted

from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.sbatch_options import listed_nodes
from slurm_agent_tools.scripts.directive_lines import read_directives
from slurm_agent_tools.scripts.effective_request import effective, resolve

GB = 2**30
GPU = Partition(
    "gpu", "UP", default=True, nodes=4, max_time_seconds=172800, default_time_seconds=3600, total_gpus=16,
    gpus_per_node=4, cpus_per_node=32, memory_per_node=250 * GB, def_mem_per_cpu=2 * GB,
)  # fmt: skip


def resources(options: str, partition: Partition | None = GPU):
    found = read_directives(f"#!/bin/bash\n#SBATCH {options}\n".encode(), "j.sh")
    return resolve(effective(found.directives), {partition.name: partition} if partition else None)


@pytest.mark.parametrize(
    ("options", "worst"),
    [
        ("--mem=64G --gpus=4 -N1", 16),
        ("--mem=64G --gpus=4", 64),
        ("--mem=64G --gpus=4 -N2", 64),
        ("--mem=16G --gpus=2", 16),
        ("--mem=16G --gpus=2 -n1", 8),
        ("--mem-per-gpu=16G --gpus=4", 16),
        ("--mem-per-cpu=4G -c4 --gpus=2", 16),
        ("--mem-per-cpu=4G -c4 --gpus=1", 16),
        ("--cpus-per-gpu=8 --mem-per-cpu=4G --gpus=1", 32),
        ("--gpus=2 --gpus-per-node=1 --mem=32G", 32),
        ("--gres=gpu:4 --mem=64G", 16),
        ("--gres=gpu:4 --mem=64G -N2", 16),
        ("--gpus=1 --mem=0", 250),
        ("--gpus=1 -c 3", 6),
    ],
)
def test_memory_per_gpu_is_that_of_the_worst_placement(options, worst):
    assert resources(options).memory_per_gpu_bytes == worst * GB


def test_totals_cover_every_node():
    found = resources("-N2 --gpus-per-node=4 --mem=64G --ntasks-per-node=4 -c2")
    assert (found.nodes, found.gpus, found.cpus, found.memory_bytes) == (2, 8, 16, 128 * GB)
    assert found.memory_per_node_bytes == 64 * GB


def test_a_node_may_hold_all_gpus_and_the_memory_of_their_cpus():
    assert resources("--gpus=3 --cpus-per-gpu=3 --mem-per-cpu=1G").memory_per_node_bytes == 9 * GB
    assert resources("--gpus=3 --cpus-per-gpu=3 --mem-per-cpu=1G -N2").memory_per_node_bytes == 6 * GB


def test_without_gpus_there_is_no_memory_per_gpu():
    found = resources("--mem=8G -n4")
    assert (found.gpus, found.memory_per_gpu_bytes, found.memory_per_node_bytes) == (0, None, 8 * GB)


def test_what_is_not_stated_comes_from_the_partition_or_is_not_known():
    assert resources("-n1").time_limit_seconds == 3600
    assert resources("-n1 -t5 --time-min=2-00").time_limit_seconds == 172_800  # which backfill may give
    assert resources("-n1 --time-min=4").time_limit_seconds == 3600
    assert resources("-n1").partition == "gpu"
    unknown = resources("-n1", None)
    assert (unknown.memory_bytes, unknown.time_limit_seconds, unknown.partition) == (None, None, None)


def test_an_array_counts_its_tasks():
    found = resources("--array=0-49%2")
    assert (found.array_tasks, found.array_concurrency) == (50, 2)


MANY = {f"p{number}": replace(GPU, name=f"p{number}") for number in range(40)}


def counting(partitions: list[str], nodes: int) -> int:
    """How many functions run to count a job that names these partitions and so many nodes."""
    lines = f"#SBATCH --partition={','.join(partitions)}\n#SBATCH --nodelist={','.join(['n1'] * nodes)}\n"
    request = effective(read_directives(f"#!/bin/bash\n{lines}".encode(), "j.sh").directives)
    listed_nodes.cache_clear()
    return counted(lambda: resolve(request, MANY), written_in_c=False)[1]


def test_a_partition_that_is_named_often_is_counted_once_and_a_list_of_nodes_once_for_all_of_them():
    assert counting(["p1"] * 200, 1) - counting(["p1"], 1) <= 200  # each name is read

    reads = []
    for nodes in (10, 2000):
        before = counting(["p1"], nodes)
        reads.append(counting([*MANY], nodes) - before)
    assert reads[0] == reads[1]
