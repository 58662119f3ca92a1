"""Changes of jobs by the plugin, of which Slurm gave more than it tells; and what a user changes beside a job."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.policy import lua_host
from tests.unit.policy.lua_host import ask, change, submission
from tests.unit.policy.test_lua_attacks import ALLOWED, PER_CPU, SMALL, USER, admitted, plugin

from slurm_agent_tools.models.submission_ticket import SubmissionTicket


@pytest.mark.parametrize("job", [SMALL, {**SMALL, "account": ""}, {**SMALL, "time_limit": 9999}])
def test_the_account_that_was_judged_stays_the_jobs_whatever_becomes_of_the_default(job: dict[str, object]):
    """The user's own default was changed between two looks of the plugin, or its and Slurm's: an agents' job then."""
    text = plugin(agent_accounts=("agents",), exempt_accounts=("staff",))
    default = "staff" if job["time_limit"] == 9999 else "lab"
    made = lua_host.literal({"user_id": USER, "user_name": "ada", **job})
    looks = f"""
    local looked = 0
    local job = setmetatable(blank({made}), {{ __index = function(_, key)
      if key == "default_account" then looked = looked + 1 return looked == 1 and "{default}" or "agents" end
    end }})
    assert(slurm_job_submit(job, PARTS, {USER}) == 0) print(job.account)"""
    assert lua_host.lines(text, [looks]) == [default]


def test_nodes_of_a_job_are_not_changed_and_gpus_only_made_fewer():
    ticket = SubmissionTicket("ab" * 16, replace(ALLOWED, nodes=4, gpus=4, cpus=64), None)
    record = {
        "min_cpus": 2,
        "min_nodes": 1,
        "max_nodes": 2,
        "tres_per_job": "gres:gpu:2",
        "admin_comment": ticket.admin_comment,
    }
    more = [
        {"min_nodes": 3, "max_nodes": 3}, {"max_nodes": 3}, {"max_nodes": 0}, {"min_nodes": 2, "max_nodes": 2},
        {"req_nodes": "a[1-3]"}, {"tres_per_job": "gres:gpu:3"}, {"bitflags": 2**34},
    ]  # fmt: skip
    same = [{"tres_per_job": "gres:gpu:1"}, {"time_limit": 5}, {"req_nodes": "a[1-2]"}, {"min_mem_per_node": 512}]
    for kept in (record, {**record, "admin_comment": ""}):
        by_node, by_cpu = kept | {"min_mem_per_node": 1024}, kept | {"min_mem_per_cpu": 1024}
        calls = [change(USER, by_node, **one) for one in (*more, *same)]
        assert admitted(plugin(), *calls) == [False] * len(more) + [True] * len(same)
        assert admitted(plugin(), change(USER, by_cpu, tres_per_job="gres:gpu:1")) == [False]


def test_memory_is_only_made_less_where_each_task_has_gpus():
    """How many tasks there are is told of no job: of -n1 -c4 --gpus-per-task=1 four were counted, and one GPU came."""
    record = {"min_cpus": 4, "min_nodes": 1, "max_nodes": 1, "tres_per_task": "gres:gpu:1", "min_mem_per_node": 8192}
    calls = [change(USER, record, min_mem_per_node=size) for size in (4096, 8192, 8193, 65536)]
    assert admitted(plugin(), *calls) == [True, True, False, False]


def test_the_partition_to_which_jobs_of_another_one_come_counts_too():
    """A job for a partition that drains was given whole nodes, or four, of its Alternate."""
    whole = {"name": "whole", "max_share": 0, "total_nodes": 2, "total_cpus": 64}
    parts = {
        "dr1": {"name": "dr1", "max_share": 1, "alternate": "dr2"}, "dr2": {"name": "dr2", "max_share": 1, "alternate": "whole"},
        "ring": {"name": "ring", "max_share": 1, "alternate": "ring"}, "whole": whole,
    }  # fmt: skip
    calls = [submission(USER, **PER_CPU, **more) for more in ({"partition": "dr1"}, {"partition": "ring"}, {})]
    for default, good in (("dr1", [False, True, False]), ("ring", [False, True, True])):
        known = parts | {default: parts[default] | {"flag_default": 1}}
        told = ask(plugin(None), [f"PARTS = {lua_host.literal(known)}", *calls], silent=1)
        assert [one.code == 0 for one in told] == good
    ticket = SubmissionTicket("ab" * 16, replace(ALLOWED, partitions=("ring",)), None).admin_comment
    for names, good in (("ring", True), ("dr1", False), ("ring,dr1", False)):
        changed = change(USER, {"admin_comment": ticket, "min_mem_per_node": 1024}, partition=names)
        told = ask(plugin(), [f"PARTS = {lua_host.literal(parts)}", changed], silent=1)
        assert (told[0].code == 0) is good, names


def test_gpus_of_a_job_are_not_changed_where_each_task_has_some_nor_its_memory_made_more():
    record = {
        "min_cpus": 4,
        "min_nodes": 1,
        "max_nodes": 1,
        "tres_per_task": "gres:gpu:1",
        "tres_per_job": "gres:gpu:4",
    }
    record |= {"min_mem_per_node": 16384}
    fields = [{"tres_per_job": "gres:gpu:3"}, {"min_mem_per_node": 65536}, {"min_mem_per_node": 8192}]
    for mark in ({}, {"admin_comment": SubmissionTicket("ab" * 16, replace(ALLOWED, gpus=4), None).admin_comment}):
        assert admitted(plugin(), *(change(USER, record | mark, **one) for one in fields)) == [False, False, True]


def test_an_empty_account_in_a_change_is_the_default_one_and_may_be_an_agents():
    record = {"min_mem_per_node": 1024}
    assert admitted(plugin(agent_accounts=("agents",)), change(USER, record, account="")) == [False]


def test_a_move_counts_the_nodes_that_a_partition_which_is_not_told_has_made_more():
    """Of a partition with AllowGroups and MinNodes=2 nothing is told here: 8 GPUs and 128G came of four."""
    ticket = SubmissionTicket("ab" * 16, replace(ALLOWED, gpus=4, nodes=1, partitions=("gpu",)), None).admin_comment
    record = {"min_cpus": 2, "tres_per_node": "gres:gpu:4", "min_mem_per_node": 65536}
    for mark in ({}, {"admin_comment": ticket}):
        moves = [change(USER, record | mark | {"min_nodes": nodes}, partition="gpu") for nodes in (1, 2)]
        told = ask(plugin(), ['PARTS = {gpu = {name = "gpu", max_share = 1}}', *moves], silent=1)
        assert [one.code == 0 for one in told] == [True, False]
        assert admitted(plugin(), *moves) == [False, False]  # into one that is not told


def test_a_job_in_a_partition_that_is_not_told_comes_on_no_more_nodes_than_were_counted():
    """Where a directory's groups are not listed, Slurm lets a user of AllowGroups in later: by MinNodes=2 with 8 GPUs."""
    fields = {"time_limit": 5, "min_mem_per_node": 1024, "pn_min_memory": 1024, "tres_per_node": "gres:gpu:4"}
    made = lua_host.literal({"user_id": USER, "user_name": "ada", "partition": "gpu", **fields})
    call = f"local job = blank({made}) assert(slurm_job_submit(job, PARTS, {USER}) == 0) print(job.max_nodes)"
    told = 'PARTS = {gpu = {name = "gpu", max_share = 1}}'
    assert lua_host.lines(plugin(None), [call, told, call]) == ["1", "4294967294"]


def test_whole_nodes_give_memory_of_each_cpu_for_all_of_them_so_no_ticket_is_for_it():
    whole = {"whole": {"name": "whole", "max_share": 0, "total_nodes": 1, "total_cpus": 96}}
    ticket = SubmissionTicket(
        "ab" * 16, replace(ALLOWED, whole_nodes=True, partitions=("gpu", "whole")), None
    ).admin_comment
    record = {"min_cpus": 1, "min_nodes": 1, "max_nodes": 1, "admin_comment": ticket}
    changes = [
        change(USER, record | memory, **words)
        for memory in ({"min_mem_per_node": 1024}, {"min_mem_per_cpu": 1024})
        for words in ({"partition": "whole"}, {"shared": 0})
    ]
    told = ask(plugin(), [f"PARTS = {lua_host.literal(whole)}", *changes], silent=1)
    assert [one.code == 0 for one in told] == [True, True, False, False]
