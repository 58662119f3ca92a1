"""What Slurm gives or does beyond what a job seems to ask for: more time, memory without a limit, texts without an end."""

from __future__ import annotations

import pytest
from tests.unit.policy.lua_host import ask, change, submission
from tests.unit.policy.test_lua_attacks import FILES, SMALL, USER, admitted, plugin
from tests.unit.policy.test_lua_own_programs import TICKET, WIDE

RECORD = {"min_cpus": 2, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024}
SPREAD = {
    "tres_per_job": "gres:gpu:2",
    "mem_per_tres": "gres:gpu:1024",
    "min_mem_per_node": None,
    "pn_min_memory": None,
}


def told(**fields: object) -> str:
    """The first reason against a small job with these fields; empty where it is let in."""
    answer = ask(plugin(), [submission(USER, **{**SMALL, **fields})])[0]
    return answer.told[0] if answer.told else ""


@pytest.mark.parametrize(("least", "fine"), [(60, True), (1440, True), (1441, False), (43_200, False)])
def test_a_least_time_above_the_time_limit_counts_as_one(least: int, fine: bool):
    """Under a QOS with PartitionTimeLimit backfill gave `--time=5 --time-min=30-00` thirty days."""
    assert (told(time_min=least) == "") is fine
    assert admitted(plugin(), change(USER, RECORD, time_min=least)) == [fine]
    of_ticket = [change(USER, RECORD | TICKET, time_min=WIDE.time_limit + more) for more in (0, 1)]
    assert admitted(plugin(FILES), *of_ticket) == [True, False]


def test_memory_of_each_gpu_is_a_limit_only_on_nodes_with_one():
    """22.05 gave -O -N2 --gpus=2 --ntasks-per-gpu=2 two GPUs on one node, and 0 MB, no limit, on the other."""
    reason = "memory-per-gpu: memory of each GPU bounds nothing on a node without one; ask with --gpus-per-node"
    two = {**SPREAD, "min_nodes": 2, "max_nodes": 2}
    assert told(**two, ntasks_per_tres=2, num_tasks=4) == reason
    assert told(**two | {"tres_per_job": "gres:gpu:1"}) == reason
    assert told(**two) == told(**SPREAD) == ""
    assert told(**two | {"tres_per_job": None, "tres_per_node": "gres:gpu:1"}) == ""


@pytest.mark.parametrize("field", ["name", "wckey", "network", "mail_user", "std_out", "work_dir", "container"])
def test_texts_are_no_longer_than_slurm_takes_them(field: str):
    most = 4096 if field in {"std_out", "work_dir", "container"} else 1024
    assert told(**{field: "x" * (most + 1)}) == f"directives: {field} is longer than {most} letters"
    assert told(**{field: "x" * most}) == ""
    assert admitted(plugin(), change(USER, RECORD, **{field: "x" * (most + 1)})) == [False]


def test_arguments_of_a_script_have_a_bound():
    reason = "directives: the arguments of the script are longer than 20480 letters; write them into a file"
    assert told(argc=2, argv={0: "job.sh", 1: "x" * 20_475}) == reason
    assert told(argc=20_481, argv={0: "job.sh"}) == reason
    assert told(argc=2, argv={0: "job.sh", 1: "x" * 20_474}) == ""


def test_long_lists_of_nodes_are_refused_unread_once_there_were_many_in_a_second():
    """A change of an array is asked about for each of its tasks: of 1,000, others waited for 40 seconds."""
    long = ",".join("a" * 30_000)
    calls = [
        change(USER, RECORD, exc_nodes=long),
        change(USER, RECORD, exc_nodes="a"),
        change(1002, RECORD, exc_nodes="a"),
    ]
    frozen = plugin().replace("os.time()", "1")
    first, second, other = ask(frozen, calls)
    assert (first.code == 0, second.code == 0, other.code == 0) == (False, False, True)
    counted = "local function count_nodes(text)"
    assert counted in frozen
    unread = frozen.replace(counted, counted + " if #text > 40000 then error('read') end", 1)
    assert [one.code for one in ask(unread, calls[:1] * 3)] == [first.code] * 3


def test_what_scrontab_sends_is_refused_by_its_name():
    reason = "directives: what scrontab sends runs again and again by itself; submit one job with sbatch"
    assert told(cron_job=True, het_job_offset=0) == told(cron_job=True) == reason


def test_memory_of_cpus_is_asked_for_each_node_where_no_number_of_tasks_is_told():
    """With --distribution=plane 22.05 puts all CPUs on one of the nodes, and gives the others no limit of memory."""
    even = {**SMALL, "min_nodes": 2, "max_nodes": 2, "cpus_per_task": 8, "min_cpus": 16, "min_mem_per_node": None}
    shown = (
        plugin()
        .replace("job.min_mem_per_node = ", "slurm.log_user('node %d', ", 1)
        .replace("or node) -- no more", "or node)) -- no more", 1)
    )
    answer = ask(shown, [submission(USER, **even, min_mem_per_cpu=2048)])[0]
    assert answer.told == ("node 16384",)
