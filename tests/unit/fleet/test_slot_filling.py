"""Whose turn a free slot is, and where a run goes: pure, against answers worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.fleet.slot_filling import Contender, RunNeed, next_one, partition_for, shares_of, starved
from slurm_agent_tools.models.node import GpuGroup, Node, Partition
from slurm_agent_tools.settings import FleetSettings

NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)
GIB = 2**30


def test_slots_of_equal_runs_come_round_as_the_shares_say():
    had = {"a": 0.0, "b": 0.0, "c": 0.0}
    shares = {"a": 0.6, "b": 0.3, "c": 0.1}
    order = ""
    for _ in range(100):
        turn = next_one([Contender(name, shares[name], used=had[name], wants=True) for name in had])
        assert turn is not None
        had[turn.name] += 1.0
        order += turn.name
    assert had == {"a": 60.0, "b": 30.0, "c": 10.0}
    assert order[:10].count("a") == 6


def test_what_runs_will_still_take_counts_so_that_not_all_slots_go_to_one():
    busy = Contender("a", 0.6, used=0, ahead=3600, wants=True)
    assert next_one([busy, Contender("b", 0.3, wants=True)]).name == "b"  # type: ignore[union-attr]


def test_who_has_no_work_gets_no_turn_and_a_share_of_nothing_comes_last():
    idle, zero = Contender("a", 0.9), Contender("z", 0.0, wants=True)
    assert next_one([idle]) is None
    assert next_one([idle, zero]) is zero
    assert next_one([zero, Contender("b", 0.1, used=1e6, wants=True)]).name == "b"  # type: ignore[union-attr]


def test_one_is_starved_that_has_work_and_less_than_its_share():
    assert starved(Contender("a", 0.6, used=10, wants=True), 100, 1.0)
    assert not starved(Contender("a", 0.6, used=70, wants=True), 100, 1.0)
    assert not starved(Contender("a", 0.6, used=10), 100, 1.0)


@pytest.mark.parametrize(
    ("stated", "quotas", "working", "shares"),
    [
        ({"a": None, "b": None}, {}, "ab", {"a": 0.5, "b": 0.5}),
        ({"a": 0.6, "b": 0.3, "c": None}, {}, "abc", {"a": 0.6, "b": 0.3, "c": 0.1}),
        ({"a": 0.6, "b": 0.4, "c": None}, {}, "abc", {"a": 0.6, "b": 0.4, "c": 0.0}),
        ({"a": 0.9}, {"campaign:a": 0.2, "user:a": 0.7}, "a", {"a": 0.2}),
        ({"hex8-1": None, "hex8-2": None, "x": None}, {"campaign:hex8-*": 0.2}, ["hex8-1", "hex8-2", "x"],
         {"hex8-1": 0.1, "hex8-2": 0.1, "x": 0.8}),
        ({"hex8-1": None, "hex8-2": None}, {"campaign:hex8-*": 0.2}, ["hex8-2"], {"hex8-1": 0.2, "hex8-2": 0.2}),
    ],
)  # fmt: skip
def test_shares_are_those_of_the_settings_then_of_the_files_then_what_is_left(stated, quotas, working, shares):
    assert shares_of(stated, quotas, working) == pytest.approx(shares)


def node(name: str, partitions: str, kind: str = "", gpus: int = 0, used: int = 0, state: str = "idle") -> Node:
    return Node(
        name, state, tuple(partitions.split()), 32, 0, 64 * GIB, 64 * GIB, gpus, used, (kind,) if kind else (),
        memory_used_bytes=0, gpu_groups=(GpuGroup(kind, gpus, used),) if gpus else (),
    )  # fmt: skip


def partition(name: str, *, default: bool = False, state: str = "UP", longest: int | None = None) -> Partition:
    return Partition(name, state, default, 2, longest, None)


def cluster(*, default: str = "cpu", may_vanish: tuple[str, ...] = ("spot",)) -> FleetFacts:
    nodes = (
        node("c1", "cpu"), node("c2", "cpu"), node("t1", "small", "t4", 4), node("s1", "spot", "t4", 4),
        node("a1", "mid", "l40s", 4), node("h1", "big", "h100", 8), node("h2", "big", "h100", 8),
    )  # fmt: skip
    names = ("cpu", "small", "spot", "mid", "big")
    partitions = {name: partition(name, default=name == default) for name in names}
    return FleetFacts(NOW, FleetSettings(may_vanish=may_vanish), nodes, partitions)


@pytest.mark.parametrize(
    ("need", "goes"),
    [
        (RunNeed(3600), "cpu"),
        (RunNeed(7200, gpus=1, gpu_memory=10), "small"),
        (RunNeed(600, gpus=1, gpu_memory=10), "spot"),
        (RunNeed(600, gpus=1, gpu_memory=20), "mid"),
        (RunNeed(600, gpus=1, gpu_memory=60), "big"),
        (RunNeed(600, gpus=6, gpu_memory=10), "big"),
        (RunNeed(7200, gpus=1, nodes=2, gpu_memory=10), "big"),
        (RunNeed(600, gpus=1, gpu_memory=200), None),
        (RunNeed(600, cpus=64), None),
    ],
)
def test_a_run_goes_to_the_smallest_tier_that_fits_and_short_work_where_nodes_may_vanish(need, goes):
    assert partition_for(need, cluster()) == goes


def test_without_a_word_about_its_memory_no_gpu_is_smaller_than_what_the_run_would_have_had():
    assert partition_for(RunNeed(600, gpus=1), cluster(default="mid")) == "mid"
    assert partition_for(RunNeed(600, gpus=1), cluster(default="cpu")) == "spot"


def test_no_run_is_sent_by_itself_where_only_some_accounts_may_go():
    facts = cluster()
    limited = {**facts.partitions, "small": replace(facts.partitions["small"], limited_to=("AllowAccounts=physics",))}
    there = FleetFacts(NOW, facts.settings, facts.nodes, limited)
    assert partition_for(RunNeed(7200, gpus=1, gpu_memory=10), there) == "mid"


def test_a_partition_that_is_closed_too_short_or_mixed_is_passed_over():
    facts = cluster()
    closed = {**facts.partitions, "small": partition("small", state="DOWN")}
    short = {**facts.partitions, "small": partition("small", longest=60)}
    for partitions in (closed, short):
        moved = FleetFacts(NOW, facts.settings, facts.nodes, partitions)
        assert partition_for(RunNeed(7200, gpus=1, gpu_memory=10), moved) == "mid"
    mixed = (*facts.nodes, node("x1", "mid", "t4", 4))
    assert (
        partition_for(RunNeed(600, gpus=1, gpu_memory=20), FleetFacts(NOW, facts.settings, mixed, facts.partitions))
        == "big"
    )
