"""A refusal says what the nodes have where the request is more than that, and no remedy asks for what nobody has."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.unit.policy.plans import asks, live
from tests.unit.policy.saying import says

from slurm_agent_tools.api.rule_examples import GIB
from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.policy.plan import PlannedRequest

SMALL = Partition(
    "small", "UP", default=True, nodes=4, max_time_seconds=None, default_time_seconds=None,
    total_gpus=8, gpus_per_node=2, cpus_per_node=8, memory_per_node=4 * GIB, memory_per_node_max=20 * GIB,
)  # fmt: skip
OTHER_JOBS = "Memory that one job holds is memory that the node's other jobs cannot use."
OTHER_GPUS = "Memory that one GPU's job holds is memory that the node's other GPUs cannot use."


def memory(size: int, gpus: int = 0, *partitions: Partition, **request: object) -> RuleDecision:
    """What the rule says of so much memory (for each GPU, where there are any) on these partitions; none: not known."""
    per = {"memory_per_gpu_bytes": size * GIB} if gpus else {"memory_per_node_bytes": size * GIB}
    line = f"#SBATCH --{'mem-per-gpu' if gpus else 'mem'}={size}G"
    return says(
        "memory-per-gpu", on(partitions, asks(line, gpus=gpus, resources=Resources(gpus=gpus, **per), **request))
    )


def on(partitions: tuple[Partition, ...], plan: PlannedRequest) -> PlannedRequest:
    return replace(plan, live=live(partitions={one.name: one for one in partitions})) if partitions else plan


def offered(result: RuleDecision) -> list[str]:
    """The sizes and numbers that the lines of its remedy ask for."""
    return re.findall(
        r"^#SBATCH --(?:mem|mem-per-gpu|gpus|gres|gpus-per-node)=(\S+)", result.remedy or "", re.MULTILINE
    )


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpus", [0, 1])
def test_more_than_any_node_has_is_told_and_no_remedy_is_more(gpus):
    result = memory(64, gpus, SMALL)
    assert "a person decides. No node of partition small gives more than 20G. Memory that one" in result.message
    assert offered(result) == ["16G", "20G"]


def test_where_the_nodes_have_less_than_is_free_all_that_they_have_is_the_one_remedy():
    tiny = replace(SMALL, memory_per_node_max=6 * GIB)
    result = memory(24, 1, tiny)
    assert (result.outcome, offered(result)) == ("justify", ["6G"])
    assert "JUSTIFIED" not in (result.remedy or "")
    assert "gives more than 6G." in result.message


def test_what_a_node_has_is_not_told_where_it_is_enough():
    result = memory(18, 1, SMALL)
    assert "No node" not in result.message
    assert offered(result) == ["16G", "18G"]
    assert 'justification="' in (result.remedy or "")


@pytest.mark.parametrize(
    "known", [(), (replace(SMALL, memory_per_node=0, memory_per_node_max=0),), (replace(SMALL, default=False),)]
)
def test_without_a_cluster_nothing_is_told_and_the_policy_alone_counts(known):
    result = memory(64, 1, *known)
    assert "No node" not in result.message
    assert offered(result) == ["16G", "24G"]


def test_the_largest_of_all_partitions_that_it_may_run_in_counts():
    large = replace(SMALL, name="large", default=False, memory_per_node_max=256 * GIB, max_mem_per_node=22 * GIB)
    result = memory(64, 1, SMALL, large, partition="small,large")
    assert "No node of partition small, large gives more than 22G." in result.message
    assert offered(result) == ["16G", "22G"]


@pytest.mark.parametrize(
    ("request_", "share"), [({"gpus_per_node": 2}, 10), ({"nodes": 1}, 10), ({"nodes": 2}, 20), ({}, 20)]
)
def test_gpus_that_share_a_node_share_its_memory(request_, share):
    result = memory(64, 2, SMALL, **request_)
    assert ("which 2 GPUs share" in result.message) == (share == 10)
    assert offered(result) == (["10G"] if share == 10 else ["16G", "20G"])


def test_of_a_whole_node_no_remedy_is_more_than_it_has():
    tiny = replace(SMALL, memory_per_node_max=20 * GIB)
    size = {"memory_per_gpu_bytes": 20 * GIB}
    plan = asks("#SBATCH --mem=0", gpus=1, memory_per_node=0, resources=Resources(gpus=1, **size))
    assert offered(says("memory-per-gpu", on((tiny,), plan))) == ["16G", "20G"]
    assert offered(says("memory-per-gpu", on((replace(SMALL, memory_per_node_max=4 * GIB),), plan))) == ["4G"]
    assert offered(says("memory-per-gpu", plan)) == ["16G", "24G"]


def test_a_job_without_gpus_is_told_of_other_jobs_and_one_with_gpus_of_other_gpus():
    assert memory(640).message.endswith(OTHER_JOBS)
    assert memory(640, 1).message.endswith(OTHER_GPUS)
    whole = {"memory_per_node": 0, "resources": Resources(gpus=0, memory_per_node_bytes=GIB)}
    assert says("memory-per-gpu", asks("#SBATCH --mem=0", gpus=0, **whole)).message.endswith(OTHER_JOBS)


# --- GPUs -------------------------------------------------------------------------------------------------------------


def gpus(line: str, total: int, *partitions: Partition, **request: object) -> RuleDecision:
    return says("gpus", on(partitions, asks(f"#SBATCH --{line}", resources=Resources(gpus=total), **request)))


def test_more_gpus_than_the_partition_has_are_told_and_no_remedy_is_more():
    result = gpus("gpus=16", 16, replace(SMALL, total_gpus=6, nodes=3), gpus=16)
    assert result.outcome == "deny"
    assert result.message == "GPUs: 16 cannot be had as they are asked for. Partition small has 6 GPUs, 2 on a node."
    assert offered(result) == ["4", "6"]


def test_fewer_than_are_free_are_the_one_remedy():
    result = gpus("gpus=6", 6, replace(SMALL, total_gpus=2, nodes=1), gpus=6)
    assert (result.outcome, offered(result)) == ("deny", ["2"])
    assert "JUSTIFIED" not in (result.remedy or "")


@pytest.mark.parametrize("reason", [None, "a sweep over eight seeds at once"])
def test_what_one_node_does_not_have_is_denied_with_the_nodes_that_it_needs_whatever_the_reason(reason):
    result = gpus("gres=gpu:6", 6, SMALL, gpus_per_node=6, justification=reason)
    assert result.outcome == "deny"
    assert "Partition small has 8 GPUs, 2 on a node; 6 are on 3 of its nodes (--nodes=3)." in result.message
    assert offered(result) == ["gpu:2"]


def test_what_slurm_may_place_in_another_way_is_for_a_reason_or_a_person():
    assert gpus("gres=gpu:2", 12, SMALL, nodes=1, nodes_max=6, gpus_per_node=2).outcome == "approve"


def test_a_node_gets_no_more_than_one_has():
    result = gpus("gres=gpu:8", 16, SMALL, nodes=2, gpus_per_node=8)
    assert "Partition small has 8 GPUs, 2 on a node." in result.message
    assert (result.outcome, offered(result)) == ("deny", ["gpu:2"])
    assert "#SBATCH --nodes=1" not in (result.remedy or "")


def test_where_there_is_no_gpu_none_is_advised():
    result = gpus("gpus=6", 6, replace(SMALL, total_gpus=0, gpus_per_node=0), gpus=6)
    assert "Partition small has no GPU." in result.message
    assert result.remedy == "Delete line 2 (`#SBATCH --gpus=6`)."


def test_gpus_are_not_told_where_they_are_enough_or_not_known():
    enough, unknown = gpus("gpus=6", 6, SMALL, gpus=6), gpus("gpus=16", 16, replace(SMALL, cpus_per_node=0), gpus=16)
    assert ("Partition" in enough.message, offered(enough)) == (False, ["4", "6"])
    assert ("Partition" in unknown.message, offered(unknown)) == (False, ["4", "8"])


@pytest.mark.parametrize(
    ("lines", "asked_for", "problem"),
    [
        (("#SBATCH --nodes=5",), {"nodes": 5, "nodes_max": 5}, "5 nodes are more than the 4 of"),
        (("#SBATCH --cpus-per-task=9",), {"cpus_per_task": 9}, "9 CPUs on a node are more than the 8 of"),
        (("#SBATCH --mem=21G",), {"memory_per_node": 21 * GIB}, "21G of memory are more than the 20G of"),
        (("#SBATCH --mem=20G", "#SBATCH --cpus-per-task=8"), {"memory_per_node": 20 * GIB, "cpus_per_task": 8}, ""),
    ],
)
def test_what_no_partition_of_its_has_waits_for_ever(lines, asked_for, problem):
    """A person was asked for such a job, and a ticket was given and spent for it."""
    plan = asks(*lines, **asked_for)
    result = says("partition", on((SMALL,), plan))
    assert (result.outcome, problem in result.message) == ("deny" if problem else "pass", True)
    large = replace(SMALL, name="large", default=True, nodes=9, cpus_per_node=64, memory_per_node_max=64 * GIB)
    unknown = replace(SMALL, nodes=0, cpus_per_node=0, memory_per_node=0, memory_per_node_max=0)
    for known in ((SMALL, large), (unknown,)):
        assert says("partition", on(known, plan)).outcome == "pass"


def test_gpus_in_a_partition_without_any_are_refused_however_few():
    none, one = replace(SMALL, gpus_per_node=0, total_gpus=0), Resources(gpus=1)
    plan = asks("#SBATCH --gpus=1", "#SBATCH --partition=small", gpus=1, partition="small", resources=one)
    result = says("gpus", on((none,), plan))
    assert (result.outcome, "Partition small has no GPU." in result.message) == ("deny", True)
    assert result.remedy == "Delete line 2 (`#SBATCH --gpus=1`)."
    other = says("gpus", on((none, replace(SMALL, name="a100", default=False)), plan))
    assert "#SBATCH --partition=a100" in (other.remedy or "")
    assert says("gpus", on((SMALL,), plan)).outcome == "pass"
    assert says("gpus", on((replace(none, cpus_per_node=0),), plan)).outcome == "pass"
    for lines in ((), ("#SBATCH --reservation=night",)):  # Slurm takes the partition of the reservation
        assert says("gpus", on((none,), asks("#SBATCH --gpus=1", *lines, gpus=1, resources=one))).outcome == "pass"


def test_nodes_beyond_what_the_partition_lets_one_job_have_are_for_its_qos_to_give():
    """With Flags=PartitionMaxNodes such a job ran, and was said to wait for ever."""
    plan = asks("#SBATCH --nodes=2", nodes=2, nodes_max=2)
    assert says("partition", on((replace(SMALL, max_nodes=1),), plan)).outcome == "pass"
    kept = asks("#SBATCH --nodes=9", "#SBATCH --reservation=night", nodes=9, nodes_max=9)
    assert says("partition", on((SMALL,), kept)).outcome == "pass"
