"""Requests and changes for which some Slurm gives more than their words show: refused, or counted as it gives them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.policy import lua_host
from tests.unit.policy.lua_host import change, submission
from tests.unit.policy.test_lua_attacks import ALLOWED, SCRIPT, SMALL, USER, admitted, plugin
from tests.unit.policy.test_lua_counts import _COUNT, run

from slurm_agent_tools.models import submission_ticket
from slurm_agent_tools.models.submission_ticket import SubmissionTicket
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.policy.for_others import Site, TicketSource

TICKET = SubmissionTicket("ab" * 16, replace(ALLOWED, gpus=4), None)
HELD = {"min_mem_per_node": 1024, "min_nodes": 1, "max_nodes": 1}
BY_CPU = {"time_limit": 5, "pn_min_memory": 1024, "environment": {}}


def with_ticket(folder: Path, **fields: object) -> bool:
    """Whether a job with a ticket for four GPUs is let in."""
    (folder / "key").write_bytes(b"k" * 64)
    made = tickets.new_ticket(replace(ALLOWED, gpus=4, expires=int(time.time()) + 60), SCRIPT.encode())
    word = submission_ticket.comment_word(submission_ticket.signed(made, b"k" * 64))
    source = TicketSource.parse(f"hmac:{folder}/key")
    return admitted(plugin(source), submission(USER, **{**SMALL, **fields}, script=SCRIPT, comment=word)) == [True]


def test_gpus_bound_to_cpus_are_refused_as_they_bring_all_cpus_of_the_node(tmp_path: Path):
    assert admitted(plugin(), submission(USER, **SMALL, bitflags=2), submission(USER, **SMALL, bitflags=16)) == [
        True,
        False,
    ]
    assert with_ticket(tmp_path, bitflags=2)
    assert not with_ticket(tmp_path, bitflags=16)


def test_gpus_of_each_socket_are_in_no_ticket(tmp_path: Path):
    assert with_ticket(tmp_path, tres_per_node="gres:gpu:1", sockets_per_node=1)
    assert not with_ticket(tmp_path, tres_per_socket="gres:gpu:1", sockets_per_node=1)


def test_of_more_nodes_in_a_list_than_are_asked_for_one_may_hold_all_tasks():
    asked = BY_CPU | {"num_tasks": 4, "min_cpus": 4, "req_nodes": "a[1-4]", "min_mem_per_cpu": 8192}
    many, one = {"min_nodes": 4}, {"min_nodes": 1, "max_nodes": 1}
    assert admitted(plugin(), submission(USER, **asked, **many), submission(USER, **asked, **one)) == [True, False]
    record = {"num_tasks": 2, "min_cpus": 2, "min_nodes": 1, "min_mem_per_cpu": 4096}
    assert admitted(plugin(), *(change(USER, record, req_nodes=names) for names in ("a1", "a1,a2"))) == [True, False]


def of(sign: str, text: str) -> str:
    """The plugin in a Slurm that writes `gres:gpu`, as 22.05 does, or `gres/gpu` as 24.11."""
    return text if sign == ":" else f"{lua_host.LATER}{text}"


@pytest.mark.parametrize("sign", [":", "/"])
def test_gpus_in_a_change_are_written_as_this_slurm_writes_them(sign: str):
    other = ":/".replace(sign, "")
    words = [f"gres{sign}gpu:1", f"gres{other}gpu:1", "gpu:1", f"GRES{sign}gpu:1", "gres/nvme:1"]
    for mark in ({}, {"admin_comment": TICKET.admin_comment}):
        record = HELD | {"tres_per_job": f"gres{sign}gpu:1"} | mark
        calls = [change(USER, record, tres_per_job=word) for word in words]
        assert admitted(of(sign, plugin()), *calls)[:4] == [True, False, False, False]
    assert admitted(of(sign, plugin(None)), change(USER, HELD, tres_per_job=words[0])) == [False]


def test_a_word_for_gpus_in_large_letters_is_none_to_slurm():
    words = ["gres/gpu:1", "GRES/gpu:1", "Gres/gpu=1"]
    calls = [submission(USER, **SMALL, tres_per_task=word) for word in words]
    assert admitted(of("/", plugin()), *calls) == [True, False, False]


def counted(*asked: dict[str, object]) -> list[tuple[int, int, int]]:
    """GPUs, CPUs and nodes of each."""
    calls = [f"COUNT(blank({lua_host.literal(one)}))" for one in asked]
    rows = [line.split() for line in run(Site(), _COUNT, calls)]
    return [(int(gpus), int(cpus), int(nodes)) for gpus, cpus, nodes, _ in rows]


def test_a_range_of_nodes_gives_gpus_for_all_tasks_that_each_may_have():
    asked = {"num_tasks": 7, "ntasks_per_node": 3, "tres_per_task": "gres:gpu:1", "min_mem_per_cpu": 1024}
    ranged, fixed = {"min_nodes": 1, "max_nodes": 3}, {"min_nodes": 3, "max_nodes": 3}
    assert counted(asked | ranged, asked | fixed) == [(9, 9, 3), (9, 9, 3)]


def test_cpus_come_with_the_gpus_of_all_nodes_that_a_job_may_have():
    asked = {"num_tasks": 2, "min_cpus": 2, "tres_per_node": "gres:gpu:2", "cpus_per_tres": "gres:gpu:4"}
    one, two = {"min_nodes": 1, "max_nodes": 1}, {"min_nodes": 1, "max_nodes": 2}
    assert counted(asked | one | {"min_mem_per_node": 1}, asked | two | {"min_mem_per_node": 1}) == [
        (2, 8, 1),
        (4, 16, 2),
    ]


def test_tasks_by_node_without_their_number_are_on_one_node():
    """As sbatch of 24.11 and 26.05 sends --ntasks-per-node without -n (measured)."""
    (found,) = counted({"ntasks_per_node": 4, "tres_per_node": "gres:gpu:4", "min_mem_per_node": 1024})
    assert found == (4, 4, 1)


def test_a_reservation_may_bring_a_partition_of_whole_nodes():
    parts = {
        "PARTS": {"whole": {"name": "whole", "max_share": 0, "total_cpus": 64, "total_nodes": 2, "flag_default": 0}}
    }
    text = f"PARTS = {lua_host.literal(parts['PARTS'])}"
    job = {name: value for name, value in SMALL.items() if name != "min_mem_per_node"} | {"min_mem_per_cpu": 1024}
    calls = [submission(USER, **job), submission(USER, **job, reservation="night")]
    found = lua_host.ask(plugin(None), [text, *calls], silent=1)
    assert [one.code == 0 for one in found] == [True, False]
