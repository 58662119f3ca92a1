"""What no command of Slurm's sends, and a user's own program can: the plugin refuses it, or judges the job that Slurm makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.policy import lua_host
from tests.unit.policy.lua_host import ask, change, submission
from tests.unit.policy.test_lua_attacks import ALLOWED, FILES, SMALL, USER, admitted, plugin
from tests.watchdog import ends

from slurm_agent_tools.models.submission_ticket import SubmissionTicket
from slurm_agent_tools.policy.for_others import TicketSource

BY_COMMANDS = (0, 1, 9, 14, 15, 19, 21, 22, 24, 25, 26, 27, 28, 38, 39, 40, 41, 43, 44, 48, 49)
"""Flags that options of sbatch, srun, salloc, scrontab and scontrol set, and that messages always have (slurm.h)."""

WIDE = replace(ALLOWED, gpus=8, nodes=4, cpus=64, gres=("gpu:a100", "gpu:h100"))
TICKET = {"admin_comment": SubmissionTicket("ab" * 16, WIDE, None).admin_comment}


@pytest.mark.parametrize("source", [FILES, None], ids=["tickets", "none"])
def test_a_flag_that_slurm_keeps_for_itself_is_refused(source: TicketSource | None):
    """With flag 23 a job with --mem-per-gpu=1G came with the default memory of each CPU: 62.5G for one GPU."""
    calls = [submission(USER, **SMALL, bitflags=2**place) for place in range(53)]
    told = ask(plugin(source), calls)
    assert [place for place, one in enumerate(told) if one.code == 0] == list(BY_COMMANDS)
    assert "no command of Slurm's sends flag 23 of a job" in told[23].told[0]


def test_gpus_of_more_tasks_than_the_job_has_gpus_for_count_beside_cpus_of_a_node():
    """24.11 and 26.05 gave eight of them on two nodes for --gpus=1 and eight tasks, where four are allowed."""
    job = {
        "num_tasks": 12,
        "min_cpus": 12,
        "pn_min_cpus": 2,
        "tres_per_job": "gres/gpu:1",
        "tres_per_task": "gres/gpu:1",
    }
    nodes = {"min_nodes": 2, "max_nodes": 2, "min_mem_per_node": 1000, "pn_min_memory": 1000}
    text = lua_host.LATER + plugin(None)
    call = submission(USER, **{**SMALL, **job, **nodes})
    assert any("12 GPUs" in line for line in ask(text, [call])[0].told)
    few = submission(USER, **{**SMALL, **job, **nodes, "num_tasks": 2, "min_cpus": 2})
    assert [
        line for line in ask(text, [few])[0].told if "not those of its tasks; no command of Slurm's sends that" in line
    ]


@pytest.mark.parametrize("mark", [{}, TICKET], ids=["none", "ticket"])
def test_neither_does_a_change_send_such_a_flag(mark: dict[str, str]):
    record = {"min_cpus": 2, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024, **mark}
    calls = [change(USER, record, bitflags=2**place) for place in (21, 49, 23, 31, 34)]
    assert admitted(plugin(), *calls) == [True, True, False, False, False]


@pytest.mark.parametrize("mark", [{}, TICKET], ids=["none", "ticket"])
def test_a_change_to_gpus_of_another_type_is_refused(mark: dict[str, str]):
    """Slurm adds them to those that the job asks for: two of one type and four of another."""
    record = {
        "min_cpus": 2,
        "min_nodes": 1,
        "max_nodes": 2,
        "tres_per_job": "gres:gpu:a100:4",
        "min_mem_per_node": 1024,
    }
    words = ["gres:gpu:a100:3", "gres:gpu:h100:2", "gres:gpu:2", "gres:gpu:a100:1,gres:gpu:h100:1"]
    assert admitted(plugin(), *(change(USER, record | mark, tres_per_job=word) for word in words)) == [
        True, False, False, False,
    ]  # fmt: skip
    both = record | mark | {"tres_per_job": "gres:gpu:a100:2,gres:gpu:h100:2"}
    assert admitted(plugin(), change(USER, both, tres_per_job="gres:gpu:a100:2")) == [False]


@pytest.mark.parametrize("mark", [{}, TICKET], ids=["none", "ticket"])
@pytest.mark.parametrize("beside", [{"min_mem_per_cpu": 2000}, {"min_mem_per_node": 0}])
def test_a_job_with_memory_of_each_gpu_is_changed_without_a_look_at_what_slurm_writes_beside_it(
    mark: dict[str, str], beside: dict[str, int]
):
    """That is the partition's default, or 0 once the job was looked at: each change of such a job was refused for it."""
    record = {"min_cpus": 32, "min_nodes": 1, "max_nodes": 1, "tres_per_job": "gres:gpu:4", **beside, **mark}
    record |= {"mem_per_tres": "gres:gpu:8192"}
    plain = {"admin_comment": SubmissionTicket("ab" * 16, replace(WIDE, gres=()), None).admin_comment}
    record |= plain if mark else {}
    fine = [{"time_limit": 5}, {"features": "ib"}, {"comment": "x"}, {"tres_per_job": "gres:gpu:3"}]
    refused = [{"min_mem_per_node": 512}, {"min_mem_per_cpu": 512}, {"mem_per_tres": "gres:gpu:1024"}]
    calls = [change(USER, record, **words) for words in (*fine, *refused)]
    assert admitted(plugin(), *calls) == [True] * len(fine) + [False] * len(refused)


@pytest.mark.parametrize("mark", [{}, TICKET], ids=["none", "ticket"])
def test_memory_of_each_gpu_that_is_a_partitions_default_is_none_of_a_job_with_memory_of_its_own(mark: dict[str, str]):
    """Slurm writes DefMemPerGPU into the record of each job: 64G of four GPUs stayed for one."""
    record = {"min_cpus": 2, "min_nodes": 1, "max_nodes": 1, "tres_per_job": "gres:gpu:4", "min_mem_per_node": 65536}
    tight = {
        "admin_comment": SubmissionTicket("ab" * 16, replace(WIDE, memory_per_gpu=16384, gres=()), None).admin_comment
    }
    record |= {"mem_per_tres": "gpu:4096"} | (tight if mark else {})
    calls = [change(USER, record, tres_per_job="gres:gpu:1"), change(USER, record, min_mem_per_node=8192)]
    assert admitted(plugin(), *calls) == [False, True]


BY_TASKS = {"time_limit": 5, "environment": {}, "tres_per_task": "gres:gpu:1", "mem_per_tres": "gres:gpu:16384"}
PER_CPU = {"time_limit": 5, "environment": {}, "pn_min_memory": 4096, "min_mem_per_cpu": 4096}


@pytest.mark.parametrize(
    "fields",
    [
        BY_TASKS | {"min_nodes": 1, "max_nodes": 1, "num_tasks": 0, "min_cpus": 8},  # 8 GPUs and 128G of one
        BY_TASKS | {"min_nodes": 1, "min_cpus": 8},
        BY_TASKS | {"min_nodes": 1, "min_cpus": 8, "tres_per_job": "gres:gpu:2"},  # 8 of two
        BY_TASKS | {"min_nodes": 1, "min_cpus": 8, "ntasks_per_node": 4},  # 8 of four, on two nodes
        PER_CPU | {"min_nodes": 1, "min_cpus": 1, "sockets_per_node": 2, "cores_per_socket": 16, "tres_per_task": ""},
        PER_CPU | {"min_nodes": 1, "min_cpus": 1, "cores_per_socket": 16, "tres_per_node": "gres:gpu:4"},
        PER_CPU | {"min_nodes": 1, "min_cpus": 1, "threads_per_core": 8},  # with --overcommit eight CPUs
        PER_CPU | {"min_nodes": 1, "min_cpus": 1, "cpus_per_task": 3, "max_cpus": 64},
        PER_CPU | {"min_nodes": 1, "min_cpus": 1, "cpus_per_task": 3, "tres_per_task": ""},
        PER_CPU | {"min_nodes": 1, "min_cpus": 1, "cpus_per_task": 3, "tres_per_task": "gres:gpu:0"},
    ],
)
@pytest.mark.parametrize("source", [FILES, None], ids=["tickets", "none"])
def test_cpus_that_no_task_accounts_for_bring_neither_gpus_nor_memory(
    source: TicketSource | None, fields: dict[str, object]
):
    """22.05 makes them of a layout of cores with --overcommit, of which the plugin is not told, or takes them for tasks."""
    alone = {
        name: value
        for name, value in fields.items()
        if name not in {"num_tasks", "min_cpus", "max_cpus", "cores_per_socket", "tres_per_job"}
    }
    alone = {name: value for name, value in alone.items() if value not in ("", "gres:gpu:0")}
    one = alone | {"min_cpus": 1, "sockets_per_node": 1, "threads_per_core": 2, "ntasks_per_node": 1}
    assert admitted(plugin(source), submission(USER, **fields), submission(USER, **one)) == [False, True]


def test_no_cpus_for_each_gpu_are_those_of_the_partitions_default():
    """Slurm passes over a count of 0: eight CPUs with 16G each came for one GPU."""
    job = PER_CPU | {"tres_per_node": "gres:gpu:1", "min_nodes": 1, "max_nodes": 1, "cpus_per_tres": "gres:gpu:0"}
    assert admitted(plugin(), submission(USER, **job)) == [True]
    assert admitted(plugin(default_cpus_per_gpu=8), submission(USER, **job)) == [False]


@pytest.mark.parametrize("field", ["threads_per_core", "cores_per_socket", "sockets_per_node", "num_tasks"])
def test_a_zero_that_would_keep_slurm_in_a_loop_or_count_as_none_is_refused(field: str):
    assert admitted(plugin(None), submission(USER, **SMALL, **{field: 0})) == [False]


@pytest.mark.parametrize("field", ["req_nodes", "exc_nodes"])
def test_a_list_of_more_nodes_than_any_site_has_is_refused_before_slurm_looks_for_each(field: str):
    """`a[0-999]b[0-499]`, which is 16 letters, kept slurmctld from everybody else for ten seconds, and 100 MB of its log."""
    many, few = {field: "a[0-999]b[0-5]"}, {field: "a[0-9]b[0-5]"}
    record = {"min_cpus": 2, "min_nodes": 1, "max_nodes": 60, "min_mem_per_node": 1024}
    calls = [submission(USER, **SMALL, **many), change(USER, record, **many), change(USER, record, **few)]
    assert admitted(plugin(None), *calls) == [False, False, True]
    functions = [submission(USER, **SMALL, exc_nodes=text) for text in ("feature{a100},a1", "{" * 65_000)]
    with ends():
        assert admitted(plugin(None), *functions) == [True, False]


def test_one_user_names_so_many_nodes_in_a_second_and_no_more():
    """A change of an array is made for each task: 4950 names for sixty kept others waiting for seven seconds."""
    record = {"min_cpus": 2, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024}
    calls = [change(USER, record, exc_nodes="a[0-4949]")] * 60
    other = change(USER + 1, record, exc_nodes="a[0-4949]")
    told = ask(plugin(None), ["os.time = function() return 1 end", *calls, other], silent=1)
    assert [one.code == 0 for one in told] == [True] * 4 + [False] * 56 + [True]
    later = ["local second = 0; os.time = function() second = second + 1; return second end", *calls]
    assert all(one.code == 0 for one in ask(plugin(None), later, silent=1))


@pytest.mark.parametrize("mark", [{}, TICKET], ids=["none", "ticket"])
def test_a_job_of_a_partition_of_whole_nodes_is_not_moved_out_of_it(mark: dict[str, str]):
    """Slurm writes into it that it takes whole nodes, once it has looked at it: eight GPUs and 96 CPUs elsewhere."""
    parts = {"whole": {"name": "whole", "max_share": 0, "total_nodes": 2, "total_cpus": 8},
             "gpu": {"name": "gpu", "max_share": 1, "total_nodes": 2, "total_cpus": 64}}  # fmt: skip
    ticket = {"admin_comment": SubmissionTicket("ab" * 16, replace(WIDE, partitions=("gpu",)), None).admin_comment}
    record = {"min_cpus": 2, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024} | (ticket if mark else {})
    moves = [change(USER, record | {"partition": name}, partition="gpu") for name in ("whole", "whole,gpu", "gpu")]
    told = ask(plugin(), [f"PARTS = {lua_host.literal(parts)}", *moves], silent=1)
    assert [one.code == 0 for one in told] == [False, False, True]
    both = change(USER, record | {"partition": "gpu"}, partition="gpu,whole")
    listed = [submission(USER, **SMALL, partition=names) for names in ("gpu,whole", "whole", "gpu")]
    told = ask(plugin(), [f"PARTS = {lua_host.literal(parts)}", both, *listed], silent=1)
    assert [one.code == 0 for one in told] == [False, False, True, True]  # a list with one of them is one everywhere
    drains = parts | {"cpu": {"name": "cpu", "max_share": 1, "alternate": "whole"}}
    listed = [submission(USER, **SMALL, partition=names) for names in ("cpu,gpu", "cpu")]
    told = ask(plugin(None), [f"PARTS = {lua_host.literal(drains)}", *listed], silent=1)
    assert [one.code == 0 for one in told] == [False, True]


def test_a_text_that_old_versions_of_slurm_free_twice_is_taken_away():
    """`extra` with a dependency that is refused ended the slurmctld of 22.05; 23.02 and later have an option for it."""
    made = lua_host.literal({"user_id": USER, "user_name": "ada", "extra": "a" * 40, **SMALL})
    call = f"local job = blank({made}) assert(slurm_job_submit(job, PARTS, {USER}) == 0) print(job.extra)"
    assert lua_host.lines(plugin(None), [call]) == [""]
    later = f"{lua_host.LATER}{plugin(None)}"
    assert lua_host.lines(later, [call]) == ["a" * 40]


@pytest.mark.parametrize("mark", [{}, TICKET], ids=["none", "ticket"])
def test_a_list_of_partitions_that_names_none_is_refused(mark: dict[str, str]):
    """26.05 takes the default one for it, which may give whole nodes."""
    record = {"min_cpus": 2, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024, **mark}
    calls = [change(USER, record, partition=text) for text in ("", ",", " ,,")]
    assert admitted(plugin(), *calls, submission(USER, **SMALL, partition=",")) == [False] * 4


def test_alternatives_that_slurm_would_multiply_out_are_few():
    """With node_features/helpers 17 factors of 26.05 took 30 s and 800 MB, and each further one doubles that."""
    racks = f"[{'|'.join(f'rack{number}' for number in range(100))}]"
    texts = ["&".join(["(nps1|a100)"] * 17), "|".join(["a"] * 400), racks, "&".join(["(a|b)"] * 6)]
    calls = [submission(USER, **SMALL, **{field: text}) for field in ("features", "prefer") for text in texts]
    assert admitted(plugin(None), *calls) == [False, False, True, True] * 2


def test_an_array_that_names_no_task_is_one_job():
    """Of `%4` and `,` Slurm makes one, whose hours were counted as none."""
    job = SMALL | {"time_limit": 300, "min_cpus": 8, "num_tasks": 8}
    limited = plugin(None).replace("  jobs = 4,", "  jobs = 4, cpu_hours = 1,")
    calls = [submission(USER, **job, array_inx=text) for text in ("%4", ",", "0")]
    assert "cpu_hours = 1" in limited
    assert admitted(limited, *calls) == [False] * 3


@pytest.mark.parametrize("source", [FILES, None], ids=["tickets", "none"])
def test_cpus_of_no_task_whose_memory_brings_more_are_refused(source: TicketSource | None):
    """With MaxMemPerCPU=100 22.05 gave twelve CPUs of 200M for three without a number of tasks, and 54 for six of three tasks.

    Of four CPUs of 100M on two nodes 24.11 and 26.05 made four on each: the plugin asks for their memory on each node.
    """
    parts = {"split": {"name": "split", "max_mem_per_cpu": 100}, "cpu": {"name": "cpu"}}
    job = {"time_limit": 5, "min_mem_per_cpu": 200, "pn_min_memory": 200, "partition": "split", "min_cpus": 3}
    fine: list[dict[str, object]] = [
        {"num_tasks": 3}, {"cpus_per_task": 3}, {"min_nodes": 3, "max_nodes": 3}, {"min_mem_per_cpu": 100, "max_nodes": 1},
        {"partition": "cpu"}, {"num_tasks": 1, "tres_per_job": "gres:gpu:1", "cpus_per_tres": "gres:gpu:3"},
    ]  # fmt: skip
    taken: list[dict[str, object]] = [
        {}, {"max_nodes": 1}, {"partition": "cpu,split"}, {"num_tasks": 2, "ntasks_per_node": 2},
        {"min_mem_per_cpu": 100, "max_nodes": 3},
    ]  # fmt: skip
    calls = [submission(USER, **job | more) for more in (*taken, *fine)]
    told = ask(plugin(source), [f"PARTS = {lua_host.literal(parts)}", *calls], silent=1)
    assert [one.code == 0 for one in told] == [False] * len(taken) + [True] * len(fine)
    assert "makes more of their memory; ask with --ntasks" in told[0].told[0]


@pytest.mark.parametrize("source", [FILES, None], ids=["tickets", "none"])
def test_so_many_tasks_that_the_controller_lays_out_nothing_else_are_refused(source: TicketSource | None):
    """With --overcommit and --distribution=plane 200,000 tasks on two nodes kept 26.05 from everybody for good."""
    job = {"time_limit": 5, "min_mem_per_node": 500, "pn_min_memory": 500, "min_cpus": 1}
    many: list[dict[str, object]] = [
        {"num_tasks": 2_000_000_000}, {"num_tasks": 65534}, {"num_tasks": 200}, {},
        {"min_nodes": 500, "max_nodes": 500, "ntasks_per_node": 500},
    ]  # fmt: skip
    told = ask(plugin(source), [submission(USER, **job | more) for more in many])
    assert [one.code == 0 for one in told] == [False, False, True, True, False]
    assert "more than 65533 tasks; ask for fewer" in told[0].told[0]


def test_memory_of_each_cpu_that_slurm_splits_has_whole_megabytes():
    """With MaxMemPerCPU=1000 24.11 and 26.05 gave 17 CPUs of 964M for `-n1 --mem-per-cpu=16G`: 4M more."""
    parts = {"split": {"name": "split", "max_mem_per_cpu": 1000}, "cpu": {"name": "cpu"}}
    parts |= {name: {"name": name, "max_mem_per_cpu": size} for name, size in (("s1024", 1024), ("s1500", 1500))}
    job = {"time_limit": 5, "num_tasks": 1, "min_cpus": 1, "min_nodes": 1, "max_nodes": 1}
    asked = [
        ("split", 16384),
        ("split", 16383),
        ("s1500,s1024", 16384),
        ("s1024", 16384),
        ("split", 16000),
        ("cpu", 16384),
    ]
    calls = [submission(USER, **job, min_mem_per_cpu=size, pn_min_memory=size, partition=name) for name, size in asked]
    told = ask(plugin(FILES), [f"PARTS = {lua_host.literal(parts)}", *calls], silent=1)
    assert [one.code == 0 for one in told] == [False, False, False, True, True, True]
    assert "16388M on a node is more than 16G" in told[0].told[0]


@pytest.mark.parametrize("source", [FILES, None], ids=["tickets", "none"])
def test_a_job_whose_memory_was_split_stays_in_its_partition(source: TicketSource | None):
    """Slurm went back to what was asked: 11 CPUs of 1490M for 16 of 1024M, by `scontrol update Partition=`."""
    parts = {name: {"name": name, "max_mem_per_cpu": size} for name, size in (("s1024", 1024), ("s1500", 1500))}
    parts |= {"cpu": {"name": "cpu"}}
    record = {"min_cpus": 16, "min_nodes": 1, "max_nodes": 1, "time_limit": 5}
    cpu, node = record | {"min_mem_per_cpu": 1024}, record | {"min_mem_per_node": 1024}
    moves = [(cpu, "s1024", "s1500"), (cpu, "s1024", "cpu"), (node, "s1024", "s1500"), (cpu, "cpu", "s1500")]
    calls = [change(USER, one | {"partition": first}, partition=then) for one, first, then in moves]
    told = ask(plugin(source), [f"PARTS = {lua_host.literal(parts)}", *calls], silent=1)
    assert [one.code == 0 for one in told] == [False, False, True, True]
