"""The plugin against options and fields of which Slurm gives more together than for each alone."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.policy import lua_host
from tests.unit.policy.lua_host import ask, change, submission
from tests.unit.policy.test_lua_attacks import ALLOWED, FILES, SMALL, USER, admitted, plugin

from slurm_agent_tools.models import submission_ticket
from slurm_agent_tools.models.submission_ticket import SubmissionTicket
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.policy.for_others import Site, TicketSource, job_submit_lua
from slurm_agent_tools.policy.loading import load, shipped


@pytest.mark.parametrize("source", [FILES, None], ids=["tickets", "none"])
@pytest.mark.parametrize(
    ("taken", "plain"),
    [
        ({"ntasks_per_tres": 64, "num_tasks": 64, "min_nodes": 1, "max_nodes": 1}, {"ntasks_per_tres": 64, "num_tasks": 64, "tres_per_job": "gres:gpu:1", "min_nodes": 1, "max_nodes": 1}),
        ({"tres_per_task": "gres:gpu:1", "num_tasks": 2, "min_cpus": 9}, {"tres_per_task": "gres:gpu:1", "num_tasks": 2, "min_cpus": 2}),
        ({"contiguous": 1, "req_nodes": "a,z"}, {"contiguous": 1}),
        ({"contiguous": 2, "req_nodes": "a,z"}, {"contiguous": 65534, "req_nodes": "a,z"}),
        ({"contiguous": 2}, {"contiguous": 1}),  # after which no slurmctld starts
        (
            {"ntasks_per_tres": 1, "tres_per_node": "gres:gpu:1", "num_tasks": 2, "min_cpus": 2},
            {"ntasks_per_tres": 1, "tres_per_node": "gres:gpu:1", "num_tasks": 2, "min_cpus": 2, "min_nodes": 2, "max_nodes": 2},
        ),
        (
            {"ntasks_per_tres": 2, "tres_per_job": "gres:gpu:2", "min_cpus": 6},
            {"ntasks_per_tres": 2, "tres_per_job": "gres:gpu:2", "min_cpus": 4},
        ),
        (
            {"ntasks_per_tres": 0, "tres_per_task": "gres:gpu:1", "num_tasks": 1, "min_cpus": 1},
            {"ntasks_per_tres": 65534, "tres_per_task": "gres:gpu:1", "num_tasks": 1, "min_cpus": 1},
        ),
        (
            {"ntasks_per_tres": 1, "tres_per_task": "gres:gpu:1", "num_tasks": 1, "min_cpus": 1},
            {"tres_per_task": "gres:gpu:1", "num_tasks": 1, "min_cpus": 1},
        ),
        (
            {"tres_per_job": "gres:gpu:2", "tres_per_node": "gres:gpu:1", "num_tasks": 1},
            {"tres_per_job": "gres:gpu:2", "tres_per_node": "gres:gpu:1", "num_tasks": 2},
        ),
        (
            {"tres_per_task": "gres:gpu:4090:1", "num_tasks": 1, "min_cpus": 1, "cpus_per_tres": "gres:gpu:1"},
            {"tres_per_task": "gres:gpu:1", "num_tasks": 1, "min_cpus": 1, "cpus_per_tres": "gres:gpu:1"},
        ),
        ({"tres_per_job": "gres:gpu:1", "ntasks_per_core": 60, "cpus_per_tres": "gres:gpu:1"}, {"tres_per_job": "gres:gpu:1", "ntasks_per_core": 60}),
        (
            {"tres_per_task": "gres:gpu:h100:1", "num_tasks": 1, "min_cpus": 1, "cpus_per_tres": "gres:gpu:1"},
            {"tres_per_task": "gres:gpu:1", "num_tasks": 1, "min_cpus": 1, "cpus_per_tres": "gres:gpu:1"},
        ),
        (
            {"tres_per_node": "gres:gpu:1", "min_nodes": 1, "max_nodes": 3},
            {"tres_per_node": "gres:gpu:1", "min_nodes": 3, "max_nodes": 3},
        ),
        (
            {"ntasks_per_tres": 1, "tres_per_node": "gres:gpu:2", "num_tasks": 2, "min_cpus": 6},
            {"ntasks_per_tres": 1, "tres_per_node": "gres:gpu:2", "num_tasks": 2, "min_cpus": 2},
        ),
        ({"ntasks_per_tres": 3, "num_tasks": 1, "min_cpus": 1}, {"ntasks_per_tres": 3, "num_tasks": 3, "min_cpus": 3, "tres_per_job": "gres:gpu:1"}),
        (
            {"tres_per_task": "gres:gpu:1", "num_tasks": 4, "min_cpus": 4, "ntasks_per_node": 1, "min_nodes": 1, "max_nodes": 1},
            {"tres_per_task": "gres:gpu:1", "num_tasks": 4, "min_cpus": 4, "ntasks_per_node": 4, "min_nodes": 1, "max_nodes": 1},
        ),
        (
            {"tres_per_task": "gres:gpu:1", "num_tasks": 1, "min_cpus": 1, "ntasks_per_node": 4, "min_nodes": 1, "max_nodes": 1},
            {"tres_per_task": "gres:gpu:1", "num_tasks": 4, "min_cpus": 4, "ntasks_per_node": 2, "min_nodes": 2},
        ),
        ({"tres_per_node": "gres:gpu:1", "max_nodes": 0}, {"tres_per_node": "gres:gpu:1", "max_nodes": 1}),
        (
            {"tres_per_task": "gres:gpu:1", "cpus_per_tres": "gres:gpu:1", "num_tasks": 3, "min_cpus": 3, "min_nodes": 2, "max_nodes": 2},
            {"tres_per_task": "gres:gpu:1", "cpus_per_tres": "gres:gpu:1", "num_tasks": 2, "min_cpus": 2, "min_nodes": 2, "max_nodes": 2},
        ),
        (
            {"tres_per_job": "gres:gpu:4", "tres_per_task": "gres:gpu:1", "min_nodes": 1, "max_nodes": 1},
            {"tres_per_job": "gres:gpu:4", "tres_per_task": "gres:gpu:1", "num_tasks": 4, "min_nodes": 1, "max_nodes": 1},
        ),
        (
            {"tres_per_job": "gres:gpu:2", "cpus_per_tres": "gres:gpu:3", "num_tasks": 3, "ntasks_per_node": 1, "min_nodes": 2, "max_nodes": 2},
            {"tres_per_job": "gres:gpu:2", "cpus_per_tres": "gres:gpu:3", "num_tasks": 2, "ntasks_per_node": 1, "min_nodes": 2, "max_nodes": 2},
        ),
        (
            {"cpus_per_tres": "gres:gpu:7", "num_tasks": 2, "ntasks_per_node": 1},
            {"cpus_per_tres": "gres:gpu:7", "num_tasks": 2, "ntasks_per_node": 1, "tres_per_node": "gres:gpu:1"},
        ),
        (
            {"cpus_per_tres": "gres:gpu:7", "tres_per_job": "gres:gpu:0", "num_tasks": 1},
            {"cpus_per_tres": "gres:gpu:7", "tres_per_job": "gres:gpu:1", "num_tasks": 1},
        ),
        (
            {"tres_per_node": "gres:gpu:2", "num_tasks": 2, "min_cpus": 2, "threads_per_core": 1},
            {"tres_per_node": "gres:gpu:2", "num_tasks": 2, "min_cpus": 2, "threads_per_core": 1, "min_nodes": 1, "max_nodes": 1},
        ),
        (
            {"tres_per_job": "gres:gpu:2", "num_tasks": 2, "min_cpus": 6},
            {"tres_per_job": "gres:gpu:2", "num_tasks": 2, "min_cpus": 6, "cpus_per_task": 3},
        ),
    ],
    ids=["tasks of no GPU", "CPUs of no task", "nodes between", "nodes between by another number", "a state that is not read", "a node without a GPU for its task", "CPUs of no task of a GPU", "no tasks for each GPU", "tasks of GPUs of tasks", "nodes without a task", "a type by digits", "tasks of a core", "a type of GPUs of a task",
         "a range of nodes", "more tasks than GPUs of a node", "tasks left over", "tasks that become fewer", "tasks that become more", "any number of nodes", "CPUs of tasks of others", "GPUs of no number of tasks", "more tasks than places",
         "CPUs of no GPU", "CPUs of GPUs of which there are none", "single threads", "CPUs of no task nor GPU"],
)  # fmt: skip
def test_what_takes_more_together_is_refused(
    source: TicketSource | None, taken: dict[str, object], plain: dict[str, object]
):
    assert admitted(plugin(source), *(submission(USER, **SMALL, **more) for more in (taken, plain))) == [False, True]


def test_gpus_of_a_job_that_are_not_those_of_its_tasks_count_as_the_more_of_both():
    """By a program of its own 24.11 and 26.05 gave eight GPUs for four, and all memory to one."""
    eight = {"num_tasks": 9, "min_cpus": 9, "tres_per_job": "gres:gpu:4", "tres_per_task": "gres:gpu:1"}
    more = {"num_tasks": 1, "min_cpus": 1, "tres_per_job": "gres:gpu:4", "tres_per_task": "gres:gpu:1", "max_nodes": 1}
    large = {**SMALL, "min_mem_per_node": 64 * 1024, "pn_min_memory": 64 * 1024}
    same = more | {"num_tasks": 4, "min_cpus": 4}
    asked = [submission(USER, **SMALL, **eight), submission(USER, **large, **more), submission(USER, **large, **same)]
    assert admitted(plugin(), *asked) == [False, False, True]


def test_without_tasks_those_of_the_nodes_have_their_gpus():
    """By a program of its own 24.11 and 26.05 gave eight GPUs for two."""
    asked = {"tres_per_job": "gres:gpu:2", "tres_per_task": "gres:gpu:1", "min_nodes": 1, "max_nodes": 1}
    calls = [submission(USER, **SMALL, **asked, ntasks_per_node=many) for many in (9, 2)]
    told = submission(USER, **SMALL, **asked, ntasks_per_node=2, num_tasks=2)
    assert admitted(plugin(), *calls, told) == [
        False,
        False,
        True,
    ]  # and one for two, once there was no number of tasks


@pytest.mark.parametrize("dependency", ["expand:7", "afterok:6,EXPAND:7"])
def test_a_job_that_adds_to_another_one_is_refused(dependency: str):
    """Where a site sets `permit_job_expansion`, what it has becomes the other one's (measured on 26.05)."""
    record = {"min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024}
    calls = [submission(USER, **SMALL, dependency=dependency), change(USER, record, dependency=dependency)]
    assert admitted(plugin(), *calls, submission(USER, **SMALL, dependency="afterok:6")) == [False, False, True]


TWO_AT_LEAST = {
    "two": {"name": "two", "max_share": 1, "total_cpus": 8, "total_nodes": 4, "min_nodes": 2, "max_nodes": 4}
}
ON_TWO: dict[str, object] = {**SMALL, "partition": "two"}


def in_two(*calls: str, ticket: TicketSource | None = None) -> list[bool]:
    text = f"PARTS = {lua_host.literal(TWO_AT_LEAST)}"
    return [one.code == 0 for one in lua_host.ask(plugin(ticket), [text, *calls], silent=1)]


def test_a_partition_gives_at_least_its_fewest_nodes():
    """All GPUs and all memory came again on the second node, which nobody asked for."""
    asked = [submission(USER, **ON_TWO, tres_per_node=f"gres:gpu:{many}") for many in (1, 2, 5)]
    assert in_two(*asked) == [True, True, False]
    plain = {"num_tasks": 1, "min_cpus": 1, "min_nodes": 1}  # as sbatch sends a job that says no nodes
    asked = [submission(USER, **ON_TWO, **plain, tres_per_node=f"gres:gpu:{many}") for many in (2, 5)]
    assert in_two(*asked) == [True, False]
    record = {"min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024}
    wide = record | {"min_nodes": 2, "max_nodes": 2}
    moved = [change(USER, one, partition="two") for one in (record, wide)]
    assert in_two(*moved) == [False, True]
    mark = {"admin_comment": SubmissionTicket("ab" * 16, replace(ALLOWED, nodes=4), None).admin_comment}
    assert in_two(change(USER, record | mark, partition="two"), ticket=FILES) == [False]


def test_several_tasks_name_the_nodes_where_a_partition_gives_more_than_one():
    """With --distribution=plane 24.11 and 26.05 put all tasks on one node, and took the other one's memory and no GPU."""
    several = {"num_tasks": 3, "min_cpus": 6, "cpus_per_task": 2, "tres_per_node": "gres:gpu:1"}
    named = {"min_nodes": 2, "max_nodes": 2}
    asked = [submission(USER, **ON_TWO, **several, **more) for more in ({}, {"min_nodes": 1}, named)]
    assert in_two(*asked) == [False, False, True]


def test_a_list_of_reservations_moves_no_job():
    """It came into the reservation's partition, which gave whole nodes."""
    record = {"min_nodes": 1, "max_nodes": 1, "min_mem_per_cpu": 2048}
    calls = [change(USER, record, reservation=names) for names in ("ra,ra", "ra")]
    flagged = submission(USER, **SMALL, reservation="ra,ra", partition="cpu", bitflags=2**31)
    assert admitted(plugin(None), *calls, flagged) == [False, True, False]


def test_with_a_list_of_reservations_a_job_names_its_partition():
    """Slurm looked at the partitions of both, and whole nodes of the one stayed in the other: 32 CPUs and four GPUs."""
    asked = [{"reservation": "ra,rb"}, {"reservation": "ra,rb", "partition": "gpu"}, {"reservation": "ra"}]
    assert admitted(plugin(None), *(submission(USER, **SMALL, **one) for one in asked)) == [False, True, True]


def test_with_a_reservation_a_job_names_its_partition_where_one_gives_more_nodes():
    """The plugin told three tasks for one, which ran three times in a partition that gives one node."""
    parts = {"minn": {"name": "minn", "min_nodes": 3}, "cpu": {"name": "cpu", "flag_default": 1}}
    asked = [{"reservation": "ra"}, {"reservation": "ra", "partition": "cpu"}, {"partition": "cpu"}, {}]
    calls = [submission(USER, **SMALL, **one) for one in asked]
    told = ask(plugin(None), [f"PARTS = {lua_host.literal(parts)}", *calls], silent=1)
    assert [one.code == 0 for one in told] == [False, True, True, True]
    assert "name the partition" in told[0].told[0]


@pytest.mark.parametrize(("more", "good"), [({}, False), ({"partition": "cpu"}, True)])
def test_with_a_reservation_a_ticket_names_the_partition(tmp_path: Path, more: dict[str, str], good: bool):
    """Without one the job came into the reservation's partition: 64 CPUs and 128G for a ticket of one CPU and 2G."""
    (tmp_path / "key").write_bytes(b"k" * 64)
    allowed = replace(ALLOWED, expires=int(time.time()) + 60, reservation="ra", partitions=tuple(more.values()))
    made = tickets.new_ticket(allowed, b"#!/bin/sh\n")
    word = submission_ticket.comment_word(submission_ticket.signed(made, b"k" * 64))
    whole = {"whole": {"name": "whole", "max_share": 0, "total_cpus": 64, "total_nodes": 2, "flag_default": 0}}
    parts = whole | {"cpu": {"name": "cpu", "max_share": 1, "total_cpus": 64, "total_nodes": 2, "flag_default": 1}}
    call = submission(USER, **SMALL, **more, reservation="ra", script="#!/bin/sh\n", comment=word)
    source = TicketSource.parse(f"hmac:{tmp_path}/key")
    (found,) = lua_host.ask(plugin(source), [f"PARTS = {lua_host.literal(parts)}", call], silent=1)
    assert (found.code == 0) is good, found.told


@pytest.mark.parametrize(
    ("fields", "nodes"),
    [
        ({"cpus_per_tres": "gres:gpu:8"}, 1),
        ({}, 4294967294),  # by a program of its own alone
    ],
)  # fmt: skip
def test_cpus_that_gpus_bring_take_no_more_nodes_than_were_counted(fields: dict[str, object], nodes: int):
    text = job_submit_lua(load(shipped()), Site())
    job = SMALL | {"user_id": USER, "user_name": "ada", "tres_per_node": "gres:gpu:2", "min_cpus": 16, **fields}
    call = f"local job = blank({lua_host.literal(job)}) print(slurm_job_submit(job, PARTS, {USER}), job.max_nodes)"
    (told,) = lua_host.lines(text, [call])
    assert told.split() == ["0" if nodes == 1 else "2050", str(nodes)]
