"""What the exported floor counts on a real controller: partitions that give more than is asked, and sbatch's own words.

The cluster is this module's own, as in test_floor.py.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.effort import tries
from tests.system.faces import Place
from tests.system.test_floor import CPU, accepted, clear, export, floored, manage, replaced, sbatch
from tests.unit.policy import random_sizes

pytestmark = pytest.mark.proves("floor-holds")

__all__ = ["floored"]


TELLING = """
local FIELDS = { "num_tasks", "min_nodes", "max_nodes", "cpus_per_task", "ntasks_per_node", "ntasks_per_tres", "pn_min_cpus",
  "min_cpus", "tres_per_job", "tres_per_node", "gres", "tres_per_task", "cpus_per_tres", "mem_per_tres", "min_mem_per_node",
  "min_mem_per_cpu" }
function slurm_job_submit(job, parts, uid)
  for _, field in ipairs(FIELDS) do
    local value = job[field]
    if type(value) == "number" then value = string.format("%.0f", value) end
    if value ~= nil then slurm.log_user("told %s=%s", field, value) end
  end
  return slurm.ERROR
end
function slurm_job_modify() return slurm.ERROR end
slurm.log_info("telling")
return slurm.SUCCESS
"""
UNSTATED = {"65534", "4294967294", "18446744073709551614"}


def test_what_sbatch_makes_of_random_requests_is_what_unit_tests_tell_the_plugin(floored):
    chance, refused = random.Random(3), 0  # noqa: S311 - of tests
    with replaced(floored, TELLING):
        for made in (random_sizes.options(chance) for _ in range(tries(200))):
            _, said = sbatch(floored, "-pgpu", *(f"--{name}={value}" for name, value in made.items()))
            told = dict(re.findall(r"told (\w+)=(\S+)", said))
            ours = {name: str(value) for name, value in random_sizes.fields(made).items() if name != "pn_min_memory"}
            refused += not told  # a few have a reason of their own, and later versions refuse more
            assert not told or {name: one for name, one in told.items() if one not in UNSTATED} == ours, (made, said)
    assert refused < tries(200) / 4 or floored.cluster.release is not None


@contextmanager
def partition(place: Place, name: str, *words: str) -> Iterator[None]:
    """One more partition, of the GPU nodes."""
    nodes = ",".join(one for one in place.cluster.nodes if "gpu" in one)
    manage(place.cluster, ["scontrol", "create", f"PartitionName={name}", f"Nodes={nodes}", "State=UP", *words])
    try:
        yield
    finally:
        clear(place)
        manage(place.cluster, ["scontrol", "delete", f"PartitionName={name}"])


def test_in_a_partition_of_whole_nodes_what_a_node_has_is_counted(floored):
    whole = "Exclusive=NODE" if floored.cluster.release == "26.05" else "OverSubscribe=EXCLUSIVE"
    with (
        partition(floored, "whole", whole),
        replaced(floored, export(floored, "job-submit-lua", "--most-gpus-per-node=4")),
    ):
        job_id, said = sbatch(floored, "-pwhole", "-t5", "--mem-per-cpu=1G")
        assert job_id is None
        assert "partition whole gives whole nodes, and memory for each CPU for all their CPUs; write --mem=16G" in said
        job_id, said = sbatch(floored, "-pcpu,whole", "-t5", "--gpus=3", "--mem-per-gpu=1G")
        assert job_id is None
        assert "12 GPUs on all the nodes that Slurm may take (--nodes=1 keeps it to one) are more than 8" in said
        assert accepted(floored, "-pwhole", "-t5", "--gpus=3", "--nodes=1", "--mem-per-gpu=1G")
        job_id = accepted(floored, "-pgpu", "-t5", "-N1", "--gpus=3", "--mem-per-cpu=1G")
        done = floored.run(["scontrol", "update", f"JobId={job_id}", "Partition=whole"])
        assert done.returncode != 0


def test_cpus_that_come_with_gpus_are_counted_where_the_site_says_how_many(floored):
    words = ("-t5", "--gpus=1", "--mem-per-cpu=8G")
    with partition(floored, "fed", "JobDefaults=DefCpuPerGPU=8"):
        assert accepted(floored, "-pfed", *words)
        with replaced(floored, export(floored, "job-submit-lua", "--default-cpus-per-gpu=8")):
            job_id, said = sbatch(floored, "-pfed", *words)
            assert job_id is None
            assert "64G per GPU is more than 24G" in said
            assert accepted(floored, "-pfed", *words, "-c2")


def test_a_job_in_a_hidden_partition_counts_as_one_of_its_owners(floored):
    with partition(floored, "veiled", "Hidden=YES"):
        job_id = accepted(floored, "-pveiled", *CPU[1:], "--mem=1G")
        assert job_id not in floored.slurm("squeue", "-h", "-o", "%i").split()
        _, told = floored.cli("get_status", "--no-cache", "--detail=full")
        assert f"'{job_id}'" in str(told)
        assert "veiled" in str(told)
