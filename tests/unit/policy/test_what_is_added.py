"""What is added to a script where it says nothing, with the reason, and whose place a job takes over."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.policy.saying import POLICY

from slurm_agent_tools.api.rule_examples import CPU, FILE, GIB, GPU
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.job_resources import named_jobs, waits_for
from slurm_agent_tools.models.request import Directive, Evidence, JobRequest
from slurm_agent_tools.policy.plan import offered, pins

# --- what is added to a script ------------------------------------------------------------------------------------


def why(request: JobRequest, **parts: object) -> dict[str, str]:
    known = {"gpu": replace(GPU, **parts), "cpu": CPU}  # type: ignore[arg-type]
    return {pin.option: pin.why for pin in pins(request, POLICY, known)}


@pytest.mark.parametrize(
    ("memory", "option", "less"),
    [(64, "--mem-per-gpu=16G", False), (63, "--mem-per-gpu=16128M", True), (256, "--mem-per-gpu=16G", False)],
)
def test_memory_that_was_lowered_to_what_a_node_has_says_so(memory, option, less):
    told = why(JobRequest(partition="gpu", gpus=4, time_limit=60), memory_per_node=memory * GIB)
    assert (list(told), "each GPU of a node" in told[option]) == ([option], less)


@pytest.mark.parametrize(("seconds", "less"), [(7200, False), (7140, True), (None, False)])
def test_a_time_that_was_lowered_to_what_the_partition_allows_says_so(seconds, less):
    told = why(JobRequest(partition="gpu", gpus=1, memory_per_node=1), max_time_seconds=seconds)
    assert ["allows no more" in text for option, text in told.items() if "time" in option] == [less]


@pytest.mark.parametrize(
    ("request_", "kept", "words"),
    [
        (JobRequest(gpus=1, ntasks=1, memory_per_node=GIB), False, ""),
        (
            JobRequest(gpus=1, ntasks=2, memory_per_node=GIB),
            True,
            "the GPU and all tasks on one node; spread, each node would hold",
        ),
        (JobRequest(gpus=2, memory_per_node=GIB), True, "the 2 GPUs on one node; spread, each node would hold"),
        (JobRequest(gpus_per_node=2, ntasks=2), True, "the 2 GPUs on one node; spread, each node would bring"),
        (JobRequest(gpus_per_node=2, ntasks=1, memory_per_node=GIB), False, ""),
        (JobRequest(gpus_per_node=2, ntasks=1), False, ""),
        (JobRequest(gpus=2, memory_per_gpu=GIB), False, ""),
        (JobRequest(gpus=2, memory_per_cpu=GIB, cpus_per_gpu=16), True, "the 2 GPUs"),
        (JobRequest(gpus=2, memory_per_cpu=GIB, cpus_per_gpu=17), False, ""),
        (JobRequest(gpus=2, memory_per_node=GIB, cpus_per_task=32), True, "the 2 GPUs"),
        (JobRequest(gpus=2, memory_per_node=GIB, cpus_per_task=33), False, ""),
        (JobRequest(gpus=2, memory_per_node=256 * GIB), True, "the 2 GPUs"),
        (JobRequest(gpus=2, memory_per_node=257 * GIB), False, ""),
        (JobRequest(gpus=2, memory_per_cpu=8 * GIB, cpus_per_task=32), True, "the 2 GPUs"),
        (JobRequest(gpus=2, memory_per_cpu=9 * GIB, cpus_per_task=32), False, ""),
        (JobRequest(gpus=4, memory_per_node=GIB), True, "the 4 GPUs"),
        (JobRequest(gpus=5, memory_per_node=GIB), False, ""),
        (JobRequest(gpus=2, ntasks_per_gpu=16, memory_per_node=GIB), True, "the 2 GPUs"),
        (JobRequest(gpus=2, ntasks_per_gpu=17, memory_per_node=GIB), False, ""),
    ],
)
def test_gpus_and_tasks_are_kept_on_one_node_where_one_can_hold_them(request_, kept, words):
    told = why(replace(request_, partition="gpu", time_limit=60))
    assert ("--nodes=1" in told) == kept
    assert words in told.get("--nodes=1", "")


@pytest.mark.parametrize(
    ("request_", "size"),
    [
        (JobRequest(gpus_per_node=2), "--mem-per-gpu=8G"),
        (JobRequest(gpus_per_node=2, nodes=2), "--mem-per-gpu=8G"),
        (JobRequest(gpus_per_task=1), "--mem-per-gpu=16G"),
        (JobRequest(gpus_per_task=1, ntasks=4), "--mem-per-gpu=4G"),
        (JobRequest(gpus_per_task=2, nodes=2), "--mem-per-gpu=4G"),
        (JobRequest(gpus_per_socket=2), "--mem-per-gpu=8G"),
        (JobRequest(gpus_per_socket=1, nodes=4), "--mem-per-gpu=4G"),
        (JobRequest(gpus=0), "--mem=16G"),
    ],
)
def test_gpus_are_counted_over_nodes_and_tasks_and_share_the_memory_of_a_node(request_, size):
    assert list(why(replace(request_, partition="gpu", time_limit=60), memory_per_node=16 * GIB)) == [size]


def test_a_priority_that_is_not_offered_is_an_error_that_names_it():
    with pytest.raises(InputError) as caught:
        offered("high", POLICY)
    assert (caught.value.field, caught.value.value) == ("priority", "high")
    assert "priority.high.qos" in (caught.value.hint or "")
    offered("low", POLICY)


def test_a_niceness_longer_than_slurm_takes_is_not_counted():
    def low(value: str) -> str:
        stated = Directive("nice", value, "script", Evidence(FILE, 2, ""))
        request = JobRequest(directives=(stated,), gpus=1, memory_per_node=1, time_limit=60)
        return pins(request, POLICY, None, "low")[0].option

    assert [low("1234567890"), low("12345678901"), low("7")] == ["--nice=1234567890", "--nice=100", "--nice=100"]


@pytest.mark.parametrize(
    ("dependency", "stays"),
    [
        ("afterok:5", False), ("afterany:5:6", False), (None, False), ("afterok:5:6", True), ("afterany:5,afternotok:6", True),
        ("AFTEROK:5,afterany:6", True),
    ],
)  # fmt: skip
def test_a_job_behind_several_is_not_removed_while_one_of_them_runs(dependency: str | None, stays: bool):
    request = JobRequest(gpus=1, memory_per_gpu=1, time_limit=60, dependency=dependency)
    assert ("--kill-on-invalid-dep=no" in why(request)) == stays


# --- slots --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dependency", "ends", "names"),
    [
        ("afterok:5:6_1,afterany:7(unfulfilled)", {5, 7}, {5, 6, 7}),
        ("after:5,afternotok:8,aftercorr:9_*", set(), {5, 8, 9}),
        ("afternotok:8?afterany:9", set(), {8, 9}),
        ("afterburstbuffer:4", {4}, {4}),
        ("singleton", set(), set()),
        (None, set(), set()),
    ],
)
def test_a_dependency_names_jobs_and_waits_for_the_end_of_some(dependency, ends, names):
    assert (waits_for(dependency, ()), named_jobs(dependency)) == (ends, names)
