"""Words of gres, lists of partitions and memory, where Slurm reads, gives or looks at more than stands in one option."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.policy import lua_host
from tests.unit.policy.lua_host import ask, change, submission
from tests.unit.policy.test_lua_attacks import FILES, SMALL, USER, admitted, plugin
from tests.unit.policy.test_lua_counts import FITS, run
from tests.unit.policy.test_lua_measured import counted

from slurm_agent_tools.models.submission_ticket import Ceilings
from slurm_agent_tools.policy.for_others import Site, TicketSource

MUCH = SMALL | {"min_mem_per_node": 32768, "min_nodes": 1, "max_nodes": 1}
SOURCES = pytest.mark.parametrize("source", [FILES, None], ids=["tickets", "none"])


def gres_build_id(name: str) -> int:
    """As Slurm's gres.c computes it."""
    return sum(ord(letter) << 8 * (place % 4) for place, letter in enumerate(name)) % 2**32


@SOURCES
def test_names_that_slurm_takes_for_one_type_are_one_type(source: TicketSource | None):
    """`--gpus=maaazaaaznmm:3,a100:1 --mem=64G` gave one GPU with 64G, since the last of both counts."""
    assert gres_build_id("maaazaaaznmm") == gres_build_id("a100") != gres_build_id("h100")
    assert gres_build_id("aaaafeee9999") == 0
    words = [
        "gres:gpu:maaazaaaznmm:1,gres:gpu:a100:1", "gres:gpu:a100:1,gres:gpu:maaazaaaznmm", "gres:gpu:aaaafeee9999:2",
        "gres:gpu:h100:1,gres:gpu:a100:1", "gres:gpu:A100:1,gres:gpu:a100:1",
    ]  # fmt: skip
    calls = [submission(USER, **SMALL, tres_per_job=word) for word in words]
    assert admitted(plugin(source), *calls) == [False, False, False, True, True]


@SOURCES
@pytest.mark.parametrize("field", ["tres_per_job", "tres_per_node", "gres"])
def test_what_slurm_passes_over_is_no_gpu(source: TicketSource | None, field: str):
    """Memory would be for GPUs that the job has not: 32G for none."""
    words = [
        "gres:gpu:2",
        "gres/gpu:2",
        "gres/gpu=2",
        "gres/gpu:a100=2",
        "gres:gpu=2",
        "gres:gpu:a100=2",
        "gpu:2",
        "Gpu:2",
    ]
    calls = [submission(USER, **MUCH, **{field: word}) for word in words]
    assert admitted(plugin(source), *calls) == [True, *[False] * 7]
    assert admitted(lua_host.LATER + plugin(source), *calls) == [True, True, True, True, True, True, False, False]


@SOURCES
def test_gres_that_are_no_gpus_are_asked_for_by_one_option(source: TicketSource | None):
    """Of `nvme:3` of the job and `nvme:1` of each node Slurm makes three nodes, each with the GPUs of a node: twelve."""
    gpus = SMALL | {"tres_per_node": "gres:gpu:1,gres:nvme:1"}
    others = [{}, {"tres_per_job": "gres:nvme:3"}, {"tres_per_task": "gres:nvme:1"}, {"tres_per_task": "cpu:1"}]
    assert admitted(plugin(source), *(submission(USER, **gpus, **other) for other in others)) == [
        True,
        False,
        False,
        True,
    ]
    record = {"min_cpus": 2, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024, "tres_per_node": "gres:nvme:1"}
    assert admitted(plugin(source), change(USER, record, tres_per_job="gres:nvme:3")) == [False]


def test_a_comma_in_a_constraint_is_another_factor():
    many = ",".join(["(a|b)"] * 20)
    calls = [submission(USER, **SMALL, features=text) for text in ("a,b,c", many)]
    assert admitted(plugin(None), *calls) == [True, False]


def test_a_job_that_would_be_started_again_is_told_so():
    (found,) = ask(plugin(None), [submission(USER, **SMALL, bitflags=2**45)])
    assert found.code != 0
    assert found.told[0].startswith("auto-retry:")


OF_MANY = {"gpu": {"name": "gpu", "max_share": 1}, "cpu": {"name": "cpu", "max_share": 1, "alternate": "hidden"}}


@SOURCES
def test_a_list_names_no_partition_that_is_not_told(source: TicketSource | None):
    """With one that the user may not use, which gives whole nodes, Slurm gave 160 CPUs, 320G and 16 GPUs in the other."""
    parts = f"PARTS = {lua_host.literal(OF_MANY)}"
    names = ["gpu", "secret", "secret,gpu", "gpu,secret", "gpu,cpu", "cpu", "secret,secret"]
    calls = [submission(USER, **SMALL, partition=name) for name in names]
    told = ask(plugin(source), [parts, *calls], silent=1)
    assert [one.code == 0 for one in told] == [True, True, False, False, False, True, False]
    moves = [("secret", "gpu"), ("gpu", "gpu"), ("gpu", "gpu,secret"), ("gpu", "secret")]
    record = {"min_cpus": 1, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024}
    calls = [change(USER, record | {"partition": before}, partition=after) for before, after in moves]
    told = ask(plugin(source), [parts, *calls], silent=1)
    assert [one.code == 0 for one in told] == [False, True, False, False]


def test_memory_that_is_kept_to_a_node_is_no_more_than_was_judged():
    """Of two GPUs, each on a node of its own with four CPUs, each node was given the memory of both."""
    job = {
        "time_limit": 5, "min_nodes": 1, "ntasks_per_node": 1, "tres_per_job": "gres:gpu:2", "tres_per_node": "gres:gpu:1",
        "cpus_per_tres": "gres:gpu:4", "min_mem_per_cpu": 4096, "pn_min_memory": 4096,
    }  # fmt: skip
    told = "local asked = slurm_job_submit slurm_job_submit = function(job, ...) local code = asked(job, ...)"
    told += " job.comment = tostring(job.min_mem_per_node) return code end"
    (found,) = ask(plugin(None), [told, submission(USER, **job)], silent=1)
    assert (found.code, found.comment) == (0, "16384")


@SOURCES
def test_memory_with_gpus_of_tasks_is_refused_where_memory_brings_cpus(source: TicketSource | None):
    """With MaxMemPerCPU=1024 22.05 made 16 CPUs of 16G, and of these the tasks: eight GPUs of four."""
    limits = {"mmc": {"name": "mmc", "max_mem_per_cpu": 1024}, "gpu": {"name": "gpu"}}
    job = {"time_limit": 5, "num_tasks": 2, "min_cpus": 4, "cpus_per_task": 2, "tres_per_task": "gres:gpu:1"}
    job |= {"min_nodes": 1, "max_nodes": 1}
    node, gpu = {"min_mem_per_node": 8192, "pn_min_memory": 8192}, {"mem_per_tres": "gres:gpu:8192"}
    few = {"min_mem_per_node": 1024, "pn_min_memory": 1024}
    asked = [("mmc", node), ("mmc", gpu), ("mmc", few), ("gpu", node), ("gpu,mmc", node), ("gpu", gpu)]
    calls = [submission(USER, **job, **memory, partition=name) for name, memory in asked]
    later = f"{lua_host.LATER}{plugin(source)}"  # 22.05 is given no GPUs of tasks with several CPUs at all
    told = ask(later, [f"PARTS = {lua_host.literal(limits)}", *calls], silent=1)
    assert [one.code == 0 for one in told] == [False, False, True, True, False, True]
    told = ask(plugin(source), [f"PARTS = {lua_host.literal(limits)}", *calls], silent=1)
    assert [one.code == 0 for one in told] == [False] * 6
    record = job | {"partition": "gpu", "max_nodes": 1}
    calls = [change(USER, record | memory, partition="mmc") for memory in (node, gpu, few)]
    calls += [change(USER, record | gpu, partition="gpu")]
    told = ask(plugin(source), [f"PARTS = {lua_host.literal(limits)}", *calls], silent=1)
    assert [one.code == 0 for one in told] == [False, False, True, True]


def test_cpus_that_slurm_makes_of_memory_count_where_a_cpu_may_have_no_more():
    """With MaxMemPerCPU=4096 22.05 gave ten CPUs for `-n1 --mem=40G`, five for `--mem-per-cpu=20G`, and for
    `--mem-per-gpu=20G` all of a node.
    """
    parts = {"split": {"name": "split", "max_mem_per_cpu": 4096}, "cpu": {"name": "cpu"}}
    job = {"time_limit": 5, "num_tasks": 1, "min_cpus": 1, "cpus_per_task": 1, "min_nodes": 1, "max_nodes": 1}
    node, cpu = {"min_mem_per_node": 40960, "pn_min_memory": 40960}, {"min_mem_per_cpu": 20480, "pn_min_memory": 20480}
    gpu = {"mem_per_tres": "gres:gpu:1024", "tres_per_job": "gres:gpu:1"}
    four = {"num_tasks": 4, "min_cpus": 4, "ntasks_per_node": 4}  # each of them has as many (26.05)
    asked = [
        ("split", node, 9), ("split", node, 10), ("cpu", node, 1), ("cpu,split", node, 9), ("split", cpu, 4), ("split", cpu, 5),
        ("split", gpu, 64), ("cpu", gpu, 1), ("split", node | four, 11), ("split", node | four, 12),
    ]  # fmt: skip
    most = Ceilings(USER, 2**31, time_limit=5, memory_per_node=2**20, memory_per_gpu=2**20, gpus=1, cpus=1, nodes=1)
    calls = [
        f"FITS(blank({lua_host.literal(job | memory | {'partition': name})}),"
        f" '{replace(most, cpus=cpus, gpus=int(memory is gpu), partitions=tuple(name.split(','))).text}')"
        for name, memory, cpus in asked
    ]
    more = FITS.replace("{})\n", f"{lua_host.literal(parts)})\n", 1)
    told = run(Site(tickets=FILES), more, calls)
    assert [not why for why in told] == [False, True, True, False, False, True, False, True, False, True], told
    assert "10 CPUs" in told[0]
    assert "--mem=SIZE" in told[6]


def test_a_job_gets_no_cpus_for_its_memory_by_a_change():
    parts = {"split": {"name": "split", "max_mem_per_cpu": 4096}, "cpu": {"name": "cpu"}}
    record = {"min_cpus": 2, "min_nodes": 1, "max_nodes": 1, "partition": "cpu", "min_mem_per_node": 8192}
    inside = record | {"partition": "split"}
    per_gpu = {**record, "mem_per_tres": "gres:gpu:1024", "tres_per_job": "gres:gpu:1", "min_mem_per_node": 0}
    calls = [
        change(USER, record, partition="split"), change(USER, record | {"min_mem_per_node": 8193}, partition="split"),
        change(USER, inside, min_mem_per_node=8192), change(USER, inside, min_mem_per_node=4096),
        change(USER, inside, min_mem_per_node=12288), change(USER, record, min_mem_per_node=12288),
        change(USER, per_gpu, partition="split"), change(USER, per_gpu, partition="cpu"),
    ]  # fmt: skip
    told = ask(plugin(None), [f"PARTS = {lua_host.literal(parts)}", *calls], silent=1)
    assert [one.code == 0 for one in told] == [True, False, True, True, False, True, False, True]


def test_a_task_on_each_node_and_tasks_of_each_node_are_counted_as_slurm_makes_them():
    """By programs of their own: twelve GPUs of four on three nodes, and twice the CPUs of what was counted."""
    job = {"time_limit": 5, "min_nodes": 3, "tres_per_job": "gres:gpu:4", "tres_per_task": "gres:gpu:4"}
    job |= {"min_mem_per_node": 1024, "pn_min_memory": 1024}
    calls = [submission(USER, **job | more) for more in ({}, {"min_nodes": 1}, {"min_nodes": 1, "num_tasks": 1})]
    assert admitted(plugin(None), *calls) == [False, False, True]
    node = {
        "min_nodes": 2,
        "max_nodes": 2,
        "min_cpus": 1,
        "tres_per_node": "gres:gpu:4",
        "tres_per_task": "gres:gpu:2",
    } | {"min_mem_per_cpu": 1024}
    assert counted(node) == [(8, 4, 2)]


def test_a_job_waits_for_a_hundred_others_at_most():
    calls = [submission(USER, **SMALL, dependency="after" + ":1" * many) for many in (100, 101)]
    assert admitted(plugin(None), *calls) == [True, False]


@SOURCES
def test_no_text_of_a_job_looks_like_another_line_of_slurms(source: TicketSource | None):
    """Other users' tools read a record of a job that a comment held as one of Slurm's own."""
    calls = [submission(USER, **SMALL, **{field: "a\nb"}) for field in ("comment", "name", "work_dir", "std_out")]
    calls += [
        change(USER, {}, comment="a\n\nJobId=3"),
        submission(USER, **SMALL, name="ä\tb"),
        change(USER, {}, comment="a b"),
    ]
    assert admitted(plugin(source), *calls) == [False, False, False, False, False, True, True]
