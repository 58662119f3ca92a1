from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_agent_tools.api.rule_examples import CPU, GPU
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.request import Directive, Evidence, JobRequest
from slurm_agent_tools.policy.document import HighPriority
from slurm_agent_tools.policy.loading import Base, load, shipped
from slurm_agent_tools.policy.plan import pins

POLICY = load(shipped()).policy
GIB = 2**30
BOTH = {"gpu": GPU, "cpu": CPU}


def options(request: JobRequest, partitions=BOTH) -> list[str]:
    return [pin.option for pin in pins(request, POLICY, partitions)]


def test_a_silent_script_gets_one_gpu_its_memory_and_two_hours_on_a_gpu_partition():
    assert options(JobRequest(partition="gpu")) == ["--gpus=1", "--mem-per-gpu=16G", "--time=02:00:00"]


def test_the_default_partition_counts_when_none_is_named():
    assert options(JobRequest()) == options(JobRequest(partition="gpu"))


def test_a_silent_script_on_a_cpu_partition_gets_memory_per_node():
    assert options(JobRequest(partition="cpu")) == ["--mem=16G", "--time=02:00:00"]


def test_without_a_known_cluster_no_gpu_is_guessed():
    assert options(JobRequest(partition="gpu"), None) == ["--mem=16G", "--time=02:00:00"]
    assert options(JobRequest(gpus=2), None) == ["--mem-per-gpu=16G", "--time=02:00:00"]


@pytest.mark.parametrize("way", ["gpus", "gpus_per_node", "gpus_per_task", "gpus_per_socket"])
def test_gpus_stated_in_any_way_are_left_alone(way: str):
    assert options(JobRequest(partition="gpu", **{way: 1})) == ["--mem-per-gpu=16G", "--time=02:00:00"]


def test_no_gpu_stated_as_zero_is_left_alone():
    assert options(JobRequest(partition="gpu", gpus=0)) == ["--mem=16G", "--time=02:00:00"]


@pytest.mark.parametrize("way", ["memory_per_node", "memory_per_cpu", "memory_per_gpu"])
@pytest.mark.parametrize("size", [0, 8 * GIB])
def test_memory_stated_in_any_way_is_left_alone(way: str, size: int):
    assert options(JobRequest(partition="gpu", gpus=1, time_limit=60, **{way: size})) == []


def test_on_several_nodes_each_gets_a_gpu():
    """sbatch takes no fewer GPUs than nodes: --gpus=1 with --nodes=2 was refused by it each time."""
    assert options(JobRequest(partition="gpu", nodes=2)) == [
        "--gpus-per-node=1",
        "--mem-per-gpu=16G",
        "--time=02:00:00",
    ]


def test_where_slurm_makes_cpus_of_memory_it_is_asked_for_the_node():
    """A site's plugin lets no memory of GPUs in there: of that of one 22.05 made all CPUs that a node has."""
    split = {"split": replace(GPU, name="split", max_mem_per_cpu=4 * GIB)}
    shown = {
        "one": options(JobRequest(partition="split", gpus=1), split),
        "two": options(JobRequest(partition="split", gpus=2), split),
        "on two nodes": options(JobRequest(partition="split", gpus=2, nodes=2, nodes_max=2), split),
        "none": options(JobRequest(partition="split", gpus=0), split),
    }
    assert shown == {
        "one": ["--mem=16G", "--time=02:00:00"],
        "two": ["--mem=32G", "--time=02:00:00", "--nodes=1"],
        "on two nodes": ["--mem=16G", "--time=02:00:00"],
        "none": ["--mem=16G", "--time=02:00:00"],
    }


def test_the_memory_is_never_more_than_the_nodes_have():
    small = replace(CPU, name="small", memory_per_node=4 * GIB)
    tight = replace(GPU, name="tight", memory_per_node=32 * GIB)
    limited = replace(CPU, name="limited", max_mem_per_node=6 * GIB)
    known = {p.name: p for p in (small, tight, limited)}

    assert options(JobRequest(partition="small"), known)[0] == "--mem=4G"
    assert options(JobRequest(partition="tight", gpus=4), known)[0] == "--mem-per-gpu=8G"
    assert options(JobRequest(partition="tight", gpus=1), known)[0] == "--mem-per-gpu=16G"
    assert options(JobRequest(partition="limited"), known)[0] == "--mem=6G"
    assert options(JobRequest(partition="limited,small"), known)[0] == "--mem=4G"


def test_the_memory_is_never_more_than_what_the_policy_gives_freely():
    strict = load(shipped(), [("x", b"limits: {memory_per_gpu: {free: 8G}}")]).policy

    assert pins(JobRequest(gpus=1, time_limit=60), strict, None)[0].option == "--mem-per-gpu=8G"


def test_the_time_is_never_more_than_the_partition_allows():
    short = replace(CPU, name="short", max_time_seconds=1800)

    assert options(JobRequest(partition="short"), {"short": short})[-1] == "--time=00:30:00"


@pytest.mark.parametrize("partitions", [BOTH, None])
@pytest.mark.parametrize(
    "request_",
    [
        JobRequest(partition="gpu", gpus=4, memory_per_node=64 * GIB, time_limit=60),
        JobRequest(partition="gpu", gpus=2, memory_per_cpu=4 * GIB, cpus_per_task=4, time_limit=60),
        JobRequest(partition="gpu", gpus_per_task=1, ntasks=4, memory_per_node=64 * GIB, time_limit=60),
    ],
)
def test_several_gpus_beside_memory_per_node_are_kept_on_one_node(request_: JobRequest, partitions):
    assert options(request_, partitions) == ["--nodes=1"]


@pytest.mark.parametrize(
    "change",
    [
        {"nodes": 2},
        {"gpus": 1},
        {"gpus": 8},
        {"gpus_per_node": 2},
        {"memory_per_node": 512 * GIB},
        {"ntasks": 64},
        {"memory_per_node": None, "memory_per_gpu": 16 * GIB},
    ],
)
def test_a_stated_placement_or_one_that_no_node_can_hold_is_left_alone(change):
    request = JobRequest(partition="gpu", gpus=4, memory_per_node=64 * GIB, time_limit=60)

    assert options(replace(request, **change)) == []


@pytest.mark.parametrize(
    "request_",
    [
        JobRequest(partition="gpu", gpus=1, ntasks=5, memory_per_node=16 * GIB, time_limit=60),
        JobRequest(partition="gpu", gpus_per_node=2, ntasks=4, memory_per_gpu=16 * GIB, time_limit=60),
        JobRequest(partition="gpu", gpus=1, ntasks_per_gpu=4, memory_per_cpu=4 * GIB, time_limit=60),
        JobRequest(partition="gpu", gpus=2, ntasks_per_node=2, memory_per_node=32 * GIB, time_limit=60),
    ],
)
def test_tasks_that_could_take_nodes_of_their_own_are_kept_on_one(request_: JobRequest):
    assert options(request_) == ["--nodes=1"]


def test_nodes_that_are_given_whole_are_kept_to_one():
    whole = {"gpu": replace(GPU, exclusive=True)}
    request = JobRequest(partition="gpu", gpus=4, memory_per_gpu=16 * GIB, time_limit=60)
    assert options(request, whole) == ["--nodes=1"]
    assert options(request) == []


def test_the_memory_of_nodes_that_are_given_whole_is_that_of_the_fewest_gpus_of_one():
    """By these it is judged: a person was asked about a number of the guard's own."""
    mixed = replace(GPU, exclusive=True, gpus_per_node=4, gpus_per_node_min=2)
    request = JobRequest(partition="gpu", gpus=1, time_limit=60)
    assert options(request, {"gpu": mixed}) == ["--mem=32G"]
    assert options(request, {"gpu": replace(mixed, gpus_per_node_min=0)}) == ["--mem=64G"]


def test_tasks_that_the_script_itself_spreads_over_nodes_are_left_alone():
    request = JobRequest(partition="gpu", gpus=2, ntasks=4, ntasks_per_node=2, memory_per_node=16 * GIB, time_limit=60)
    assert options(request) == []
    assert options(replace(request, ntasks=None, ntasks_per_node=None, gpus_per_node=1)) == []


def test_every_pin_says_why():
    assert all(pin.why for pin in pins(JobRequest(), POLICY, BOTH))


# --- priority ------------------------------------------------------------------------------------------------------

PLAIN = JobRequest(partition="cpu", memory_per_node=GIB, time_limit=60)


def asked(priority: str | None, request: JobRequest = PLAIN, *, qos: tuple[str, ...] = ()) -> list[str]:
    priorities = POLICY.priority.model_copy(update={"high": HighPriority(qos=qos)})
    policy = POLICY.model_copy(update={"priority": priorities})
    return [pin.option for pin in pins(request, policy, BOTH, priority)]


def nice(*values: str | None) -> JobRequest:
    given = [Directive("nice", value, "script", Evidence("x", 2, "")) for value in values]
    return replace(PLAIN, directives=tuple(given))


def test_a_low_priority_is_the_policys_nice_value_and_normal_is_nothing():
    assert asked("low") == ["--nice=100"]
    assert asked("normal") == asked(None) == []


@pytest.mark.parametrize(
    ("values", "option"), [(("500",), "--nice=500"), (("5",), "--nice=100"), ((None,), "--nice=100"), (("900", "7"), "--nice=100"), (("-50",), "--nice=100"), (("9" * 5000,), "--nice=100")]
)  # fmt: skip
def test_a_low_priority_never_lifts_a_job(values: tuple[str | None, ...], option: str):
    assert asked("low", nice(*values)) == [option]


def test_a_high_priority_is_the_first_qos_of_the_policy_and_an_error_without_one():
    assert asked("high", qos=("urgent", "high")) == ["--qos=urgent"]
    with pytest.raises(InputError, match="is not offered by this policy") as caught:
        asked("high")
    assert "priority.high.qos" in caught.value.hint


def test_a_script_that_names_a_qos_of_high_priority_keeps_it_and_any_other_is_replaced():
    assert asked("high", replace(PLAIN, qos="high"), qos=("urgent", "high")) == []
    assert asked("high", replace(PLAIN, qos="normal"), qos=("urgent", "high")) == ["--qos=urgent"]


def test_a_layer_makes_low_lower_and_lists_no_qos_of_its_own():
    layer = b"priority: {low: {nice: 300}, high: {qos: [urgent]}}"
    looser = b"priority: {low: {nice: 10}}"
    site = Base("site", "/etc/p.yaml", b"priority: {high: {qos: [urgent, high]}}")

    tightened = load(shipped(), [("project", layer)])
    assert (tightened.policy.priority.low.nice, tightened.policy.priority.high.qos) == (300, ())
    assert any("priority.high.qos" in note for note in tightened.notes)
    assert load(shipped(), [("project", looser)]).policy.priority.low.nice == 100
    assert load(shipped(), [("project", layer)], base=site).policy.priority.high.qos == ("urgent",)
