"""The worst placement. The rows with a measured allocation are what a running Slurm gave."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_agent_tools.models.geometry import layout
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.sbatch_options import listed_nodes
from slurm_agent_tools.scripts.directive_lines import read_directives
from slurm_agent_tools.scripts.effective_request import effective, resolve

GIB = 2**30
GPU = Partition(
    "gpu", "UP", default=True, nodes=4, max_time_seconds=86400, default_time_seconds=3600,
    gpus_per_node=4, cpus_per_node=32, memory_per_node=250 * GIB,
)  # fmt: skip
CPU = replace(GPU, name="cpu", default=False, gpus_per_node=0, memory_per_node=64 * GIB, default_time_seconds=None)


def resolved(line: str, *partitions: Partition) -> Resources:
    found = read_directives(f"#!/bin/bash\n#SBATCH {line}\n".encode(), "job.sh")
    request = effective(found.directives)
    assert not (*found.problems, *request.problems)
    return resolve(request, {one.name: one for one in partitions} if partitions else None)


WORST = [
    ("--mem=64G --gpus=4 -N1", 16),
    ("--mem=64G --gpus=4", 64),
    ("--mem=64G --gpus=4 -N2", 64),
    ("--mem=16G --gpus=2", 16),
    ("--mem=16G --gpus=2 -n1", 8),
    ("--mem-per-gpu=16G --gpus=3", 16),
    ("--mem-per-cpu=4G -c4 --gpus=2", 16),
    ("--mem-per-cpu=4G -c4 --gpus=1", 16),
    ("--cpus-per-gpu=8 --mem-per-cpu=4G --gpus=1", 32),
    ("--mincpus=8 --mem-per-cpu=4G --gpus=1", 32),
    ("-B 2:8:1 --mem-per-cpu=4G --gpus=1", 64),
    ("--sockets-per-node=2 --cores-per-socket=8 --mem-per-cpu=4G --gpus=1", 64),
    ("--exclusive --mem-per-cpu=2G --gpus=1", 16),
    ("--exclusive --mem=16G --gpus=1", 4),
    ("--gpus=1", 250),
    ("--mem=0 --gpus=1", 250),
    ("--gpus=2 --gpus-per-node=1 --mem=32G", 32),
    ("--ntasks-per-gpu=2 --gpus=2 --mem-per-cpu=8G", 24),  # on two nodes three tasks go beside one GPU
    ("--ntasks-per-gpu=2 --gpus=2 --mem-per-cpu=8G -N1", 16),
    ("--gres=gpu:2 --mem=32G", 16),
    ("-N2 --gres=gpu:2 --mem=32G", 16),
    ("--gpus-per-task=1 -n4 --mem=64G", 64),
    ("--gpus-per-task=1 -n4 -N1 --mem=64G", 16),
    ("--gpus-per-task=2 -n2 --mem=32G", 16),
    ("-n8 --mem-per-cpu=2G --gpus=2", 14),
    ("-n5 --mem=16G --gpus=1", 64),  # four nodes, three of them without a GPU
    ("-n5 --mem=16G --gpus=1 -N1", 16),
    ("-n4 --mem-per-cpu=4G --gpus=1", 16),
    ("-N1-4 --mem=64G --gpus=4", 64),
    ("--gpus-per-node=1 -n2 -N2 --ntasks-per-node=16 --mem-per-cpu=8G", 128),  # each node gets 16 CPUs (measured)
    ("--gpus-per-task=1 -n2 -N2 --ntasks-per-node=16 --mem-per-cpu=8G", 128),
    ("--gpus-per-task=1 -n8 -N2 --ntasks-per-node=4 --mem-per-cpu=8G", 8),
    ("-N4 --gpus=2 --mem=16G", 32),
]


# What was allocated where it was more than the pending job showed, or might have been: options, memory per GPU in MB.
MEASURED = [
    ("--gpus=2 --ntasks-per-gpu=2 --mem-per-cpu=100M", 300),
    ("--gpus=2 --ntasks-per-gpu=2 --mem-per-cpu=100M -c4 -B2:3:1", 1600),
    ("--gpus=3 --ntasks-per-gpu=3 --mem-per-cpu=100M", 800),
    ("--gpus=1 --ntasks-per-gpu=2 --mem-per-cpu=100M -N1 -n1", 200),
    ("--gpus=2 -n8 --mem-per-cpu=100M", 700),
    ("--gpus=2 -n8 --mem=100M", 100),
    ("--gpus=1 -n40 --mem=100M -N2", 200),
    ("--gpus=2 --gpus-per-task=1 --mem-per-cpu=100M -c4", 400),
    ("--gpus=2 --mem-per-cpu=100M --mincpus=4", 400),
    ("--gpus=3 --mem-per-cpu=100M -n9", 800),
]


@pytest.mark.parametrize(("line", "megabytes"), MEASURED, ids=[line for line, _ in MEASURED])
def test_the_worst_placement_covers_what_was_allocated(line: str, megabytes: int):
    found = resolved(line, GPU).memory_per_gpu_bytes
    assert found is not None
    assert found >= megabytes * 2**20


def test_whole_cores_are_given_where_a_core_has_two_threads():
    two = replace(GPU, threads_per_core=2)
    assert resolved("-n1 --mem-per-cpu=8G --gpus=1", two).memory_per_gpu_bytes == 16 * GIB
    assert resolved("-n1 -c3 --mem-per-cpu=2G --gpus=1", two).memory_per_gpu_bytes == 8 * GIB
    assert resolved("-n1 -c3 --threads-per-core=1 --mem-per-cpu=2G --gpus=1", two).memory_per_gpu_bytes == 12 * GIB
    assert resolved("-n1 -c3 --hint=nomultithread --mem-per-cpu=2G --gpus=1", two).memory_per_gpu_bytes == 12 * GIB
    assert resolved("--cpus-per-gpu=3 --mem-per-cpu=2G --gpus=1", two).memory_per_gpu_bytes == 8 * GIB


def test_memory_above_the_maximum_of_a_cpu_is_spread_over_more_and_rounded_up():
    found = resolved("-n1 --mem-per-cpu=16G --gpus=1", replace(GPU, max_mem_per_cpu=4 * GIB - 2**20))
    assert found.memory_per_gpu_bytes == 5 * 3277 * 2**20


def test_where_nodes_differ_the_largest_memory_and_the_fewest_gpus_count():
    mixed = replace(GPU, memory_per_node=192 * GIB, memory_per_node_max=960 * GIB, gpus_per_node=8, gpus_per_node_min=2)
    assert resolved("--gpus=1", mixed).memory_per_gpu_bytes == 960 * GIB
    assert resolved("--gpus=1 --exclusive --mem=64G", mixed).memory_per_gpu_bytes == 32 * GIB
    assert resolved("--gpus=1", replace(mixed, max_mem_per_node=100 * GIB)).memory_per_gpu_bytes == 100 * GIB


def test_gpus_of_every_node_that_may_be_given_count():
    assert resolved("-N1-4 --gres=gpu:4 --mem-per-gpu=1G", GPU).gpus == 16
    assert resolved("-n3 --gpus-per-socket=2 --sockets-per-node=2 --mem-per-gpu=1G", GPU).gpus == 12
    assert resolved("-n3 --gres=gpu:2 --mem-per-gpu=1G -N1", GPU).gpus == 2
    assert resolved("--gpus=4 --mem-per-gpu=1G", replace(GPU, exclusive=True)).gpus == 16
    found = resolved("--gpus=3 --mem-per-gpu=1G -N1", replace(GPU, exclusive=True))
    assert (found.gpus, found.memory_per_node_bytes) == (4, 4 * GIB)


LAYOUTS = [
    ("-B 2:8", (2, 8, None)),
    ("-B *:8", (None, 8, None)),
    ("-B 2:*:1 --cores-per-socket=5", (2, 5, 1)),
    ("--cores-per-socket=5 -B 2", (2, None, None)),
    ("--sockets-per-node=2 --cores-per-socket=3", (2, 3, None)),
    ("-B 2-4:8", (2, 8, None)),
]


@pytest.mark.parametrize(("line", "numbers"), LAYOUTS, ids=[line for line, _ in LAYOUTS])
def test_the_layout_of_a_node_is_set_by_the_last_option(line: str, numbers: tuple[int | None, ...]):
    assert layout(effective(read_directives(f"#!/bin/bash\n#SBATCH {line}\n".encode(), "job.sh").directives)) == numbers


@pytest.mark.parametrize(("line", "gibibytes"), WORST, ids=[line for line, _ in WORST])
def test_memory_per_gpu_is_that_of_the_worst_placement(line: str, gibibytes: int):
    assert resolved(line, GPU).memory_per_gpu_bytes == gibibytes * GIB


def test_gpus_of_small_nodes_cannot_be_scattered_one_by_one():
    small = replace(GPU, gpus_per_node=2)

    assert resolved("--mem=64G --gpus=4 -N2", small).memory_per_gpu_bytes == 32 * GIB


def test_a_partition_of_one_node_keeps_all_gpus_together():
    assert resolved("--mem=64G --gpus=4", replace(GPU, nodes=1)).memory_per_gpu_bytes == 16 * GIB
    assert resolved("--mem=64G --gpus=4", replace(GPU, max_nodes=1)).memory_per_gpu_bytes == 16 * GIB


def test_a_partition_that_shares_no_node_gives_all_of_it():
    found = resolved("--gpus=1 --mem-per-cpu=2G", replace(GPU, exclusive=True))

    assert (found.gpus, found.cpus, found.memory_per_gpu_bytes) == (4, 32, 16 * GIB)


def test_beside_a_partition_of_whole_nodes_a_list_gives_whole_nodes_of_all():
    whole = replace(CPU, name="whole", exclusive=True)
    found = resolved("-p whole,gpu --gpus=1 --mem-per-cpu=2G", whole, GPU)

    assert (found.gpus, found.cpus) == (4, 32)
    assert resolved("-p gpu --gpus=1 --mem-per-cpu=2G", whole, GPU).gpus == 1


def test_memory_of_a_node_brings_cpus_where_each_has_a_limit_and_tasks_with_gpus_for_them():
    """22.05 gave eight GPUs for `-n4 -c2 --gpus-per-task=1 --mem=16G` with MaxMemPerCPU=1024."""
    limited = replace(GPU, max_mem_per_cpu=GIB)
    assert resolved("-N1 -n2 --gpus-per-task=1 --mem=8G", limited).gpus == 8
    assert resolved("-N1 -n2 --gpus-per-task=1 --mem=8G", GPU).gpus == 2
    assert resolved("-N1 -n2 --gpus-per-task=1 --mem-per-gpu=8G", limited).gpus == 2
    assert resolved("-N1 -n2 --gpus-per-task=1 --mem-per-cpu=8G", limited).gpus == 2


def test_cpus_that_slurm_makes_of_memory_count_where_a_cpu_may_have_no_more():
    """22.05 gave 10, 5 and 63 CPUs, the last of a node that has 63."""
    limited = replace(GPU, max_mem_per_cpu=4 * GIB, cpus_per_node=63)
    assert resolved("-N1 -n1 --mem=40G", limited).cpus == 10
    assert resolved("-N2 -n2 --mem=40G", limited).cpus == 20
    assert resolved("-N1 -n1 --mem-per-cpu=20G", limited).cpus == 5
    assert resolved("-N1 --gpus=1 --mem-per-gpu=16G", limited).cpus == 63
    assert resolved("-N1 -n1 --mem=40G", GPU).cpus == 1
    assert resolved("-N1 -n4 --ntasks-per-node=4 --mem=20G", limited).cpus == 8  # two for each task (26.05)
    assert resolved("-N2 -n8 --ntasks-per-node=4 --mem=20G", limited).cpus == 16


TOTALS = [
    ("--mem=64G --gpus=4 -N2", (2, 2, 4, 128)),
    ("--mem-per-cpu=4G -c4 --gpus=1", (1, 4, 1, 16)),
    ("--mem-per-gpu=16G --gres=gpu:2 -N2", (2, 2, 4, 64)),
    ("-n4 -c2 --mem-per-cpu=1G", (1, 8, 0, 8)),
    ("-N2 --ntasks-per-node=4 --mem=8G", (2, 8, 0, 16)),
    ("-n5 --ntasks-per-node=2 --mem=8G", (3, 6, 0, 24)),
    ("-n2 -N2 --ntasks-per-node=60 --mem-per-cpu=1G", (2, 120, 0, 120)),  # as a job that runs shows
    ("-n2 --ntasks-per-node=4 -c2 --mem-per-cpu=1G", (1, 8, 0, 8)),
    ("-N2 -n3 --ntasks-per-node=2 --gpus-per-task=2 --mem-per-gpu=1G", (2, 4, 8, 6)),  # 8 GPUs, where 6 are asked for
    ("-N1-2 -n5 --ntasks-per-node=2 --mem=8G", (1, 5, 0, 8)),
    ("--gpus=4 --gpus-per-task=2 -c3 --mem-per-gpu=8G", (1, 6, 4, 32)),
    ("-w n[1-3] --mem=1G", (3, 3, 0, 3)),
]


@pytest.mark.parametrize(("line", "numbers"), TOTALS, ids=[line for line, _ in TOTALS])
def test_totals_are_counted_as_slurm_counts_them(line: str, numbers: tuple[int, int, int, int]):
    found = resolved(line, GPU)

    assert (found.nodes, found.cpus, found.gpus, (found.memory_bytes or 0) // GIB) == numbers


DEFAULTS = [
    ({"def_mem_per_gpu": 8 * GIB}, "--gpus=2", 8),
    ({"def_mem_per_cpu": 4 * GIB}, "--gpus=1 -c4", 16),
    ({"def_mem_per_node": 32 * GIB}, "--gpus=2 -N1", 16),
    ({"max_mem_per_node": 100 * GIB}, "--gpus=1", 100),
]


@pytest.mark.parametrize(("defaults", "line", "gibibytes"), DEFAULTS, ids=[str(one[0]) for one in DEFAULTS])
def test_without_a_stated_memory_the_partitions_default_counts(defaults: dict[str, int], line: str, gibibytes: int):
    assert resolved(line, replace(GPU, **defaults)).memory_per_gpu_bytes == gibibytes * GIB


def test_what_needs_the_cluster_is_not_guessed_without_one():
    found = resolved("--gpus=1")

    assert (found.memory_bytes, found.memory_per_gpu_bytes, found.time_limit_seconds, found.partition) == (None,) * 4


def test_a_job_without_gpus_is_judged_by_its_node():
    found = resolved("-n8 --mem-per-cpu=2G", GPU)

    assert (found.memory_per_node_bytes, found.memory_per_gpu_bytes, found.gpus) == (16 * GIB, None, 0)


def test_of_several_partitions_the_largest_number_counts():
    found = resolved("-p gpu,cpu --mem=0", GPU, CPU)

    assert (found.partition, found.memory_per_node_bytes) == ("gpu,cpu", 250 * GIB)


def test_the_time_is_the_stated_one_else_the_partitions():
    assert resolved("-t 30", GPU).time_limit_seconds == 1800
    assert resolved("-n1", GPU).time_limit_seconds == 3600
    assert resolved("-p cpu", GPU, CPU).time_limit_seconds == 86400
    assert resolved("-n1", replace(GPU, max_time_seconds=None, default_time_seconds=None)).time_limit_seconds == -1


def test_an_array_is_counted_by_tasks_and_by_what_may_run_at_once():
    found = resolved("-a 0-49%4", GPU)

    assert (found.array_tasks, found.array_concurrency) == (50, 4)


@pytest.mark.parametrize(
    ("text", "count"), [("a", 1), ("a,b", 2), ("n[1-3,7]", 4), ("n[01-04],m1", 5), ("n[1-2]x[1-3]", 6), ("", 1)]
)
def test_named_nodes_are_counted(text: str, count: int):
    assert listed_nodes(text) == count


def test_default_cpus_of_gpus_count_where_neither_task_nor_gpu_names_any():
    eight = replace(GPU, def_cpu_per_gpu=8)
    lines = {
        "--gpus=1": 8,
        "--gpus=2": 16,
        "--gpus=1 -n1": 8,
        "--gpus=1 -c2": 2,
        "--gpus=1 --cpus-per-gpu=3": 3,
        "-n1": 1,
    }
    for line, cpus in lines.items():
        found = resolved(f"--mem-per-cpu=1G --nodes=1 {line}", eight)
        assert found.cpus == cpus, line
        assert found.memory_per_gpu_bytes in {None, cpus // (found.gpus or 1) * GIB}, line


# Measured on 22.05.8, with more tasks than --cpus-per-gpu has CPUs for on 26.05.5: one GPU free on each of three nodes,
# or all of them.
@pytest.mark.parametrize(
    ("line", "cpus", "gpus"),
    [
        ("--gpus=2 -c8", 16, 2), ("--gpus=2 --ntasks-per-node=2 -c2", 8, 2), ("-n3 --ntasks-per-node=3 --gpus=3", 9, 3),
        ("--gpus=2 --mincpus=6", 12, 2), ("-N1-2 -c8 --gres=gpu:4", 16, 8), ("-N1-2 -n5 --ntasks-per-node=4", 8, 0),
        ("-n5 --ntasks-per-node=2 --gpus-per-task=1", 6, 6), ("--ntasks-per-gpu=2 -N2 -c2", 8, 2),
        ("--gpus=1 -n6 --cpus-per-gpu=4", 8, 2), ("-N1 --gpus=1 -n6 --cpus-per-gpu=4", 6, 1),
        ("-N1-3 -n7 --ntasks-per-node=3 --gpus-per-task=1", 9, 9), ("-N1-2 -n2 --gres=gpu:2 --cpus-per-gpu=4", 16, 4),
        ("--ntasks-per-gpu=4 -N3", 12, 3), ("--gpus-per-task=2 --cpus-per-gpu=1 -n2 --ntasks-per-node=2 -N2", 8, 8),
        ("-N2-4 --gpus=2 --gpus-per-task=2", 2, 4), ("-B2:4:1", 8, 0), ("-B2:4:1 -N2", 16, 0), ("-B2:4:1 --gpus=2", 8, 2),
    ],
)  # fmt: skip
def test_what_slurm_gave_is_no_more_than_what_is_counted(line: str, cpus: int, gpus: int):
    found = resolved(f"--mem=1G {line}", GPU)
    assert (found.cpus, found.gpus) == (cpus, gpus)
