"""What a ticket lets in another shape is judged too: a bigger job than was asked for gets no ticket by itself."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import anyio
import pytest
import yaml
from tests.unit.policy.plans import live

from slurm_agent_tools.api.rule_examples import NOW
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.decision import Consent, Decision
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest, ScriptReading
from slurm_agent_tools.models.submission_ticket import Ceilings
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate, harsher_verdict
from slurm_agent_tools.policy.loading import LoadedPolicy, load, shipped
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.transport.local import LocalFiles

GIB = 2**30
WHY = "eight GPUs, as the model of the paper has"
GPU = Partition(
    name="gpu", state="UP", default=True, nodes=2, max_time_seconds=None, default_time_seconds=None, cpus_per_node=64,
    gpus_per_node=4, memory_per_node=1024 * GIB, total_cpus=128, total_gpus=8,
)  # fmt: skip
CPU = replace(GPU, name="cpu", default=False, nodes=16, gpus_per_node=0, total_gpus=0, memory_per_node=256 * GIB)
MANY = replace(GPU, name="many", default=False, nodes=16)
WHOLE = replace(GPU, name="whole", default=False, exclusive=True)
ALSO = replace(WHOLE, name="also")
SPLIT = replace(CPU, name="split", max_mem_per_cpu=1000 * 2**20)


def policy(**limits: object) -> LoadedPolicy:
    document = yaml.safe_load(shipped())
    document["limits"] |= limits
    return load(yaml.safe_dump(document).encode())


def reading(*directives: str) -> ScriptReading:
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {one}" for one in directives),
        "./train",
    ]
    data = "\n".join([*lines, ""]).encode()
    return anyio.run(lambda: read_script(data, "train.sh", project="/", files=LocalFiles()))


def given(request: JobRequest) -> Ceilings:
    return tickets.ceilings(request, uid=1001, expires=2_000_000_000, most_gpus_per_node=8)


def context(loaded: LoadedPolicy, grant: Consent | None = None) -> EvaluationContext:
    known = live(partitions={one.name: one for one in (GPU, CPU, MANY, WHOLE, ALSO, SPLIT)})
    return EvaluationContext(
        loaded, "/p", decision_id="1", live=known, grant=grant, request_sha256="0" * 64, justification=WHY
    )


def decided(script: ScriptReading, loaded: LoadedPolicy, grant: Consent | None = None) -> Decision:
    return tickets.evaluate_for_ticket(given, script, context(loaded, grant))


def by_itself(script: ScriptReading, loaded: LoadedPolicy) -> Decision:
    return evaluate(script, context(loaded))


FEW = {"gpus": {"free": 2, "justify": 3}}
SHORT = {"cpu_hours_per_job": 8.0, "cpu_hours_per_day": 12.0}
SMALL = {"memory_without_gpus": {"free": "2G", "justify": "4G"}}


WIDER = ("--partition=gpu", "--nodes=2", "--ntasks=2", "--gpus=4", "--mem=12G", "--time=10")
"""12G on each node, of which its ticket for four GPUs lets 48G be on one."""


def test_a_ticket_that_lets_more_in_another_shape_needs_a_person():
    script = reading("--partition=gpu", "--nodes=2", "--ntasks=8", "--gpus-per-task=1", "--mem=96G", "--time=30")
    assert by_itself(script, policy()).verdict == "allow"
    made = decided(script, policy())
    assert made.verdict == "approve"
    (told,) = [one for one in made.rules if one.outcome == "approve"]
    assert told.id == "memory-per-gpu"  # 96G for one GPU
    assert "A ticket holds numbers" in told.message


@pytest.mark.parametrize(("level", "verdict"), [("deny", "deny"), ("approve", "approve")])
def test_a_rule_against_the_request_itself_counts_where_its_ticket_lets_more(level: str, verdict: str):
    """The most that the ticket lets passed the rule, and only that was asked about."""
    pytest.importorskip("cel_expr_python")
    rule = {
        "id": "own",
        "when": "job.memory_mb < 40000",
        "level": level,
        "message": "Too few.",
        "remedy": "Ask for more.",
    }
    loaded = load(yaml.safe_dump(yaml.safe_load(shipped()) | {"site_rules": [rule]}).encode())
    script = reading(*WIDER)
    assert (
        decided(script, policy(memory_per_gpu={"free": "1G", "justify": "2G"})).resources.memory_per_node_bytes
        == 24 * GIB
    )
    made = decided(script, loaded)
    assert (by_itself(script, loaded).verdict, made.verdict) == (verdict, verdict)
    assert [one.id for one in made.rules if one.outcome == level] == ["own"]


def test_a_rule_against_the_request_itself_counts_beside_a_persons_yes_to_another_rule():
    """A person was asked about the time limit alone, and with their yes no reason was asked for any more."""
    pytest.importorskip("cel_expr_python")
    rule = {"id": "own", "when": "job.memory_mb < 40000", "level": "justify", "message": "Few.", "remedy": "Say why."}
    document = yaml.safe_load(shipped()) | {"site_rules": [rule]}
    document["limits"]["time_limit"] = {"free": "5", "justify": "6"}
    loaded = load(yaml.safe_dump(document).encode())
    script = reading(*WIDER)
    asked = replace(context(loaded), justification=None)
    assert tickets.evaluate_for_ticket(given, script, asked).verdict == "approve"
    yes = replace(asked, grant=Consent("1", "signed", "ada", NOW))
    made = tickets.evaluate_for_ticket(given, script, yes)
    assert made.verdict == "justify"
    assert [one.id for one in made.rules if one.outcome == "justify"] == ["own"]


@pytest.mark.parametrize(
    ("names", "fine"), [("whole,gpu", False), ("gpu,whole", False), ("whole,also", True), ("gpu,many", True)]
)
def test_partitions_of_whole_nodes_and_others_are_named_apart(names: str, fine: bool):
    """64G for one GPU were judged as the memory of a whole node with four, and spent in the other partition alone."""
    script = reading(f"--partition={names}", "--nodes=1", "--gpus=1", "--mem=16G", "--time=5")
    with nullcontext() if fine else pytest.raises(InputError, match="are of whole nodes and others"):
        decided(script, policy())


@pytest.mark.parametrize(
    "directives",
    [
        "--partition=cpu --mem-per-cpu=5G --ntasks=16",  # a person read 80G on one node, and 160G ran on two
        "--partition=cpu --mem=5G --ntasks=8",
        "--partition=cpu --mem-per-cpu=1G --ntasks=64",
    ],
)
def test_what_a_person_reads_is_all_that_its_ticket_lets(directives: str):
    script, loaded = reading(*directives.split(), "--time=20"), policy(**SMALL)
    made = decided(script, loaded)
    assert made.verdict == "approve"
    assert [pin.option for pin in made.pinned] == ["--nodes=1"]
    assert given(made.request).nodes == made.resources.nodes == 1
    yes = Consent("1", "signed", "ada", NOW)
    granted = decided(script, loaded, grant=yes)
    assert granted.verdict == "allow"
    assert (granted.resources, granted.pinned) == (made.resources, made.pinned)


@pytest.mark.parametrize(("free", "verdict"), [("2G", "approve"), ("4G", "allow")])
def test_a_job_that_one_node_holds_is_kept_there(free: str, verdict: str):
    """The budget was for 12 CPUs, and as many nodes with all their memory could come of it."""
    script = reading("--partition=cpu", "--ntasks=12", "--mem=3G", "--time=30")
    made = decided(script, policy(**SHORT, memory_without_gpus={"free": free, "justify": free}))
    assert made.verdict == verdict
    assert [pin.option for pin in made.pinned] == ["--nodes=1"]
    assert given(made.request).nodes == made.resources.nodes == 1


def test_of_two_decisions_the_more_severe_one_is_told():
    made = decided(reading("--partition=cpu", "--mem=1G", "--time=20"), policy())
    by_severity = [replace(made, verdict=verdict) for verdict in ("allow", "justify", "approve", "deny")]
    found = [[harsher_verdict(first, second) for second in by_severity] for first in by_severity]
    assert found == [[place > other for other in range(4)] for place in range(4)]


@pytest.mark.parametrize(
    "directives",
    [
        "--partition=gpu --gpus=1 --ntasks-per-node=6 --ntasks=12",  # 64 CPUs ran, and twelve were judged
        "--partition=gpu --gpus=2 --nodes=1-2",
        "--partition=cpu --ntasks=80",  # which no node holds
    ],
)
def test_for_what_no_ticket_is_for_the_verdict_is_that_of_the_policy(directives: str):
    script, loaded = reading(*directives.split(), "--mem-per-cpu=1G", "--time=30"), policy()
    made = decided(script, loaded)
    assert made == by_itself(script, loaded)
    with pytest.raises(InputError, match="one number"):
        given(made.request)


@pytest.mark.parametrize("memory", ["--mem-per-cpu=16M", "--mem-per-gpu=1G"])
def test_for_whole_nodes_with_memory_of_each_cpu_or_gpu_there_is_no_ticket(memory: str):
    """The ticket was for --mem=16G, and 576G of all CPUs of the node were given."""
    request = by_itself(reading("--partition=gpu", "--gpus=1", "--exclusive", memory, "--time=5"), policy()).request
    with pytest.raises(InputError, match="whole nodes") as caught:
        given(request)
    assert caught.value.hint == "Write #SBATCH --mem."


@pytest.mark.parametrize("memory", ["--mem-per-cpu=16M", "--mem-per-gpu=1G"])
def test_so_it_is_where_the_partition_gives_whole_nodes(memory: str):
    """The plugin refused it, and a signed ticket for it was used up by then."""
    for partition, fine in (("whole", False), ("gpu", True)):
        script = reading(f"--partition={partition}", "--gpus=1", "--nodes=1", memory, "--time=5")
        with nullcontext() if fine else pytest.raises(InputError, match="the partition gives whole nodes"):
            decided(script, policy())


@pytest.mark.parametrize(("words", "fine"), [("", False), ("--ntasks-per-node=15", True), ("--mem=900M", True)])
def test_where_slurm_makes_cpus_of_memory_tasks_are_said_for_each_node(words: str, fine: bool):
    """26.05 made 30 CPUs of 16000M for 15 tasks, where a CPU may have 1000M, and a ticket for 16 was enough."""
    script = reading("--partition=split", "--nodes=1", "--ntasks=15", "--mem=16000M", "--time=5", *words.split())
    with nullcontext() if fine else pytest.raises(InputError, match="more than MaxMemPerCPU"):
        decided(script, policy())


@pytest.mark.parametrize(
    ("words", "fine"),
    [("--gpus=1 --mem-per-gpu=2G", False), ("--gpus-per-task=1 --ntasks=1 --mem=16G", False), ("--gpus=1 --mem=16G", True),
     ("--gpus-per-task=1 --ntasks=1 --mem=900M", True), ("--gpus-per-task=1 --ntasks=1 --mem-per-cpu=900M", True)],
)  # fmt: skip
def test_gpus_with_which_memory_goes_are_told_where_it_makes_cpus(words: str, fine: bool):
    """A person was asked, and the plugin refused the job."""
    script = reading("--partition=gsplit", "--nodes=1", "--time=5", *words.split())
    known = context(policy())
    split = replace(GPU, name="gsplit", default=False, max_mem_per_cpu=1000 * 2**20)
    known = replace(known, live=live(partitions={"gsplit": split}))
    with nullcontext() if fine else pytest.raises(InputError, match="brings CPUs with MaxMemPerCPU"):
        tickets.evaluate_for_ticket(given, script, known)


def test_a_person_reads_the_memory_that_all_gpus_may_have_on_one_node():
    script = reading("--partition=gpu", "--nodes=2", "--gpus=4", "--ntasks=2", "--mem=24G", "--time=5")
    made = decided(script, policy(memory_per_gpu={"free": "4G", "justify": "8G"}))
    assert made.verdict == "approve"
    assert made.resources.memory_per_node_bytes == 48 * GIB


def test_whole_nodes_are_judged_as_they_are_counted_whatever_the_shape():
    whole = replace(GPU, name="whole", exclusive=True)
    script = reading("--partition=whole", "--gpus=1", "--nodes=1", "--mem=48G", "--time=20")
    known = replace(context(policy()), live=live(partitions={"whole": whole}))
    made, alone = tickets.evaluate_for_ticket(given, script, known), evaluate(script, known)
    assert (made.verdict, made.resources.memory_per_gpu_bytes) == (alone.verdict, 12 * GIB)


def test_the_guards_own_memory_on_whole_nodes_that_differ_asks_nobody():
    mixed = replace(GPU, name="whole", exclusive=True, gpus_per_node_min=2)
    known = replace(context(policy()), live=live(partitions={"whole": mixed}))
    made = tickets.evaluate_for_ticket(given, reading("--partition=whole", "--gpus=1", "--time=20"), known)
    memory = next(one for one in made.rules if one.id == "memory-per-gpu")
    assert (memory.outcome, made.resources.memory_per_gpu_bytes) == ("pass", 16 * GIB)


def test_with_a_reservation_the_partition_has_to_be_named():
    script = reading("--reservation=lab", "--time=5", "--mem=1G")
    with pytest.raises(InputError, match="reservation"):
        given(by_itself(script, policy()).request)
    assert (
        given(
            by_itself(reading("--reservation=lab", "--partition=cpu", "--time=5", "--mem=1G"), policy()).request
        ).nodes
        == 1
    )


@pytest.mark.parametrize(
    "directives",
    [
        "--partition=gpu --gpus=2 --nodes=1 --mem=32G",
        "--partition=many --nodes=2 --gpus-per-node=4 --ntasks-per-node=4 --mem=64G",
        "--partition=cpu --ntasks=4 --nodes=2 --mem=1G",
        "--partition=gpu --gpus=1",
        "--partition=cpu --mem=1G --array=0-9%2",
    ],
)
def test_what_asks_for_no_more_with_its_ticket_is_judged_as_it_is(directives: str):
    script, loaded = reading(*directives.split(), "--time=20"), policy()
    made, alone = decided(script, loaded), by_itself(script, loaded)
    assert (made.verdict, made.resources, made.pinned) == (alone.verdict, alone.resources, alone.pinned)


def test_hours_count_as_they_may_be_and_the_rest_is_shown_as_it_was_asked():
    made = decided(reading(*WIDER, "--cpus-per-gpu=2"), policy())
    assert (made.verdict, made.resources.cpus) == (
        "allow",
        12,
    )  # three GPUs may be on one node, and CPUs for them on both
    assert (made.resources.nodes, made.resources.memory_bytes) == (2, 24 * GIB)
