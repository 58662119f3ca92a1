"""What there is, what is free, and which tier a job fits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.fleet.looks import NOW, G, facts, node, partition

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.fleet.sections import free_now, inventory, matching
from slurm_agent_tools.fleet.sections.section_list import SECTIONS
from slurm_agent_tools.models.accounted import Association
from slurm_agent_tools.models.node import Reservation
from slurm_agent_tools.models.toolset_arguments import FleetNeed
from slurm_agent_tools.settings import FleetSettings

MIXED = [
    node("h1", "h100", 8, 5), node("h2", "h100", 8, 6), node("a1", "a100", 4), node("t1", "t4", 4, 4),
    node("c1"), node("c2", state="down*", reason="fan\x1b[31m broke", since=NOW - timedelta(days=2), cpus_used=0),
]  # fmt: skip


def reservation(*names: str, begins: float = -1, ends: float = 1) -> Reservation:
    hour = timedelta(hours=1)
    return Reservation("upgrade", NOW + begins * hour, NOW + ends * hour, frozenset(names), None, frozenset({"MAINT"}))


def test_every_node_is_counted_once_in_its_tier():
    made = inventory.section(facts(MIXED))
    assert [(one.tier, one.nodes, one.gpus) for one in made.tiers] == [
        ("80G and more", 2, 16), ("32G to 79G", 1, 4), ("8G to 31G", 1, 4), ("CPU only", 2, 0),
    ]  # fmt: skip
    assert (made.nodes, made.cpus, made.gpus, made.memory_bytes) == (6, 192, 24, 6 * 256 * G)
    assert made.tiers[0].models == {"h100": 16}


def test_nodes_that_start_nothing_are_told_with_reason_and_since_when():
    made = inventory.section(facts([*MIXED, node("c3", state="down*", reason="fan\x1b[31m broke", since=NOW)]))
    (bad,) = made.troubled
    assert (bad.state, bad.nodes, bad.names, bad.since) == ("down*", 2, "c2, c3", NOW - timedelta(days=2))
    assert "\x1b" not in (bad.reason or "")
    assert "2 of which start nothing" in inventory.sentence(made)


def test_partitions_reservations_and_what_may_vanish_are_told():
    nodes = [
        node("a1", "a100", 4, partitions=("low", "high")),
        node("c1", partitions=("spare",), flags=frozenset({"CLOUD"})),
    ]
    parts = [partition("low", tier=1, preempt_mode="REQUEUE"), partition("high", tier=5), partition("spare")]
    soon = reservation("a1", begins=1, ends=2)
    look = facts(
        nodes, *parts, preemption="partition_prio", reservations=(soon,), settings=FleetSettings(may_vanish=("spare",))
    )
    made = inventory.section(look)
    assert made.may_vanish == ["low", "spare"]
    assert made.cloud_nodes == 1
    assert [(one.name, one.now, one.maintenance) for one in made.reservations] == [("upgrade", False, True)]
    assert inventory.section(facts(nodes, *parts)).may_vanish == []


def test_gpus_of_which_nothing_says_the_memory_are_told_so():
    told = inventory.unknown(facts([node("x", "odd", 2), node("a", "a100", 1)]))
    assert ["odd" in told[0].what, "a100 as 40G" in told[1].what] == [True, True]
    assert any("QOS" in one.why for one in inventory.unknown(facts([node("c")], preemption="qos")))


def test_free_is_what_usable_nodes_have_left():
    made = free_now.section(facts(MIXED))
    assert (made.gpus, made.gpus_used) == (24 - 15, 15)
    assert made.cpus == 5 * 32 - 15
    assert made.memory_bytes == (5 * 256 - 15 * 8) * G


def test_the_largest_job_is_told_over_nodes_and_on_one():
    made = free_now.section(facts(MIXED))
    best = made.largest_start_now[0]
    assert (best.tier, best.nodes, best.gpus, best.gpus_one_node) == ("80G and more", 2, 5, 3)
    assert "5 free GPUs of 80G and more, at most 3 on one node" in (made.fragmentation or "")
    assert "most at once: 5 GPUs in main, 3 of them on one node" in free_now.sentence(made)


def test_a_partition_with_one_node_a_job_starts_no_larger_one():
    (best, *_) = free_now.section(facts(MIXED, partition(max_nodes=1))).largest_start_now
    assert (best.nodes, best.gpus) == (1, 3)


@pytest.mark.parametrize("away", [{"state": "DRAIN"}, {"state": "DOWN"}])
def test_a_partition_that_is_not_up_starts_nothing(away):
    made = free_now.section(facts(MIXED, partition(**away)))
    assert made.largest_start_now == []
    assert "no job can start now" in free_now.sentence(made)


def test_nodes_of_which_no_partition_is_up_are_not_free_and_match_nothing():
    closed = facts(MIXED, partition(state="DOWN"), need=FleetNeed(gpus=1))
    assert (free_now.section(closed).gpus, free_now.section(closed).cpus) == (0, 0)
    made = matching.section(closed)
    assert (made.best, {one.startable for one in made.tiers}) == (None, {None})
    assert "no node of it starts jobs now" in {one.why_not for one in made.tiers}


def test_nodes_whose_flags_say_reserved_are_not_free_where_the_reservations_are_silent():
    kept = replace(MIXED[0], flags=frozenset({"RESERVED"}))
    assert free_now.section(facts([kept, *MIXED[1:]], reservations=None)).gpus == 6


def test_what_was_not_read_of_reservations_and_preemption_is_said():
    silent = facts(MIXED, reservations=None, preemption=None)
    assert {"reserved nodes", "preemption"} <= {one.what for one in inventory.unknown(silent)}
    assert [one.what for one in SECTIONS["match"].unknown(silent)] == ["reserved nodes"]


def test_a_free_gpu_without_a_free_cpu_is_told_as_blocked_and_starts_nothing():
    made = free_now.section(facts([node("a1", "a100", 4, 2, cpus_used=32)]))
    assert (made.gpus, made.tiers[0].gpus_blocked, made.largest_start_now) == (2, 2, [])
    assert "2 free GPUs have no free CPU" in (made.fragmentation or "")


def test_reserved_nodes_are_not_free_and_a_later_reservation_takes_none():
    held = free_now.section(facts(MIXED, reservations=(reservation("a1"),)))
    later = free_now.section(facts(MIXED, reservations=(reservation("a1", begins=2, ends=3),)))
    assert (held.gpus, later.gpus) == (5, 9)
    assert free_now.unknown(facts(MIXED, reservations=None))


def test_an_exclusive_partition_starts_on_whole_nodes_alone():
    made = free_now.section(facts(MIXED, partition(exclusive=True)))
    assert [(one.tier, one.gpus) for one in made.largest_start_now] == [("32G to 79G", 4), ("CPU only", 0)]


def test_what_slurm_does_not_tell_is_not_known_and_never_zero():
    made = free_now.section(facts([replace(node("a1", "a100", 4), gpus_used=None)]))
    assert (made.gpus, made.gpus_used, made.cpus) == (None, None, 32)


def matched(nodes, **need):
    return matching.section(facts(nodes, need=FleetNeed(**need)))


def test_a_job_is_matched_to_the_smallest_tier_that_has_what_it_needs():
    made = matched(MIXED, gpus=2, gpu_memory="20G")
    assert made.best == "32G to 79G"
    assert [one.tier for one in made.tiers if one.fits] == ["32G to 79G", "80G and more"]
    assert {one.tier: one.why_not for one in made.tiers if not one.fits} == {
        "8G to 31G": "its GPUs have 16G at most", "CPU only": "its nodes have no GPUs",
    }  # fmt: skip
    assert [one.startable for one in made.tiers if one.fits] == [2, 2]


@pytest.mark.parametrize(
    ("need", "words"),
    [
        ({"gpus": 16}, "a node has 8 such GPUs at most (all together 16)"),
        ({"gpus": 1, "memory": "300G"}, "a node that has the GPUs has 256G at most"),
    ],
)
def test_why_no_tier_fits_is_told(need, words):
    made = matched(MIXED, **need)
    assert made.best is None
    assert words in {one.why_not for one in made.tiers}
    assert "No tier has" in matching.sentence(made)


def test_a_job_without_gpus_goes_to_nodes_without_any():
    assert matched(MIXED, gpus=0, memory="8G").best == "CPU only"


def test_a_tier_of_which_no_node_works_is_told_so():
    made = matched([node("c1", state="down")], gpus=0)
    assert made.tiers[0].why_not == "no node of it starts jobs now"


def test_gpus_of_unknown_memory_fit_no_need_that_names_one():
    assert "nothing says how much memory" in (matched([node("x", "odd", 4)], gpu_memory="8G").tiers[0].why_not or "")
    assert matched([node("x", "odd", 4)], gpus=2).best == "GPU memory not known"


@pytest.mark.proves("bad-input-names-the-field")
@pytest.mark.parametrize(("field", "need"), [("gpu_memory", {"gpu_memory": "much"}), ("gpus", {"gpus": -1})])
def test_a_need_that_cannot_be_read_names_its_field(field, need):
    with pytest.raises(InputError, match=f"match.{field}"):
        matched(MIXED, **need)


def test_a_node_that_is_being_powered_off_takes_no_job_and_one_that_is_off_has_to_boot():
    nodes = [node("n1", "a100", 4, state="idle~"), node("n2", "a100", 4, state="idle%"), node("n3", "a100", 4)]
    look = facts([*nodes, node("n4", "a100", 4, state="mix!")])
    assert free_now.section(look).gpus == 8
    (told,) = free_now.unknown(look)
    assert (told.what, "powered off" in told.why) == ("start of 1 nodes", True)


def test_a_match_says_which_partitions_are_not_for_everybody():
    look = facts([node("n1", "a100", 4)], partition(limited_to=("AllowAccounts=physics", "DenyQos=low")))
    (told,) = matching.unknown(look)
    assert told.what == "whether you may use partition main"
    assert told.why == "it is limited: AllowAccounts=physics, DenyQos=low"


PHYSICS = Association("physics", frozenset({"normal", "high"}))
LIMITS = ("AllowAccounts=physics,maths", "DenyQos=low")


@pytest.mark.parametrize(
    ("limits", "mine", "version", "closed", "unknown"),
    [
        (LIMITS, (PHYSICS,), "22.05.8", None, None),
        (LIMITS, (replace(PHYSICS, account="chemistry"),), "22.05.8", "your accounts are chemistry", None),
        (LIMITS, (replace(PHYSICS, account="chemistry"),), "24.11.5", None, "those above them may count"),
        (LIMITS, (replace(PHYSICS, qos=frozenset({"low"})),), "24.11.5", "your QOS are low", None),
        (LIMITS, (replace(PHYSICS, partition="other"),), "22.05.8", "your QOS are none", None),
        (("AllowQos=urgent",), (PHYSICS,), "24.11.5", "your QOS are high, normal", None),
        (("AllowQos=urgent,high",), (PHYSICS,), "24.11.5", None, None),
        (("DenyAccounts=physics",), (PHYSICS,), "22.05.8", "your accounts are physics", None),
        (("DenyAccounts=maths",), (PHYSICS,), "22.05.8", None, None),
        (("DenyAccounts=maths",), (PHYSICS,), "24.11.5", None, "DenyAccounts=maths"),
        (("RootOnly=YES",), (PHYSICS,), "24.11.5", "for root alone", None),
        (("AllowGroups=staff",), (PHYSICS,), "24.11.5", None, "AllowGroups=staff"),
        (LIMITS, None, "22.05.8", None, "AllowAccounts=physics"),
    ],
)
def test_a_match_compares_who_may_use_a_partition_and_says_what_it_does_not_know(
    limits, mine, version, closed, unknown
):
    look = facts(
        [node("n1", "a100", 4)], partition(limited_to=limits), need=FleetNeed(), associations=mine, version=version
    )
    (tier,) = matching.section(look).tiers
    assert (tier.fits, closed is None or closed in (tier.why_not or "")) == (closed is None, True)
    told = [one.why for one in matching.unknown(look)]
    assert (told == []) == (unknown is None)
    assert unknown is None or unknown in told[0]


FEATURED = [
    node("n1", "a100", 4, features=frozenset({"a100", "ib"})), node("n2", "h100", 4, features=frozenset({"h100"})),
]  # fmt: skip


@pytest.mark.parametrize(
    ("constraint", "tiers"),
    [
        ("ib", ["32G to 79G"]), ("a100&ib", ["32G to 79G"]), ("a100,ib", ["32G to 79G"]), ("h100&ib", []),
        ("[a100|h100]", ["32G to 79G", "80G and more"]), ("nvlink|h100", ["80G and more"]),
    ],
)  # fmt: skip
def test_features_that_a_job_names_are_compared_node_by_node(constraint, tiers):
    made = matched(FEATURED, constraint=constraint)
    assert [one.tier for one in made.tiers if one.fits] == tiers
    assert f"features {constraint}" in made.need


def test_why_no_node_has_the_features_is_told():
    made = matched(FEATURED, constraint="avx512")
    assert {one.why_not for one in made.tiers} == {
        "its nodes have other features: " + one for one in ("a100, ib", "h100")
    }


@pytest.mark.proves("bad-input-names-the-field")
@pytest.mark.parametrize("constraint", ["a&b|c", "a*2", "!a", "[a*2&b*2]", "a b", "&"])
def test_a_constraint_that_is_not_compared_names_its_field(constraint):
    with pytest.raises(InputError, match=r"match\.constraint"):
        matched(FEATURED, constraint=constraint)


def test_the_time_limits_of_partitions_are_compared():
    known = (partition(), partition("short", max_time_seconds=3600), partition("endless", max_time_seconds=None))
    nodes = [node("n1", "a100", 4, partitions=("main", "short")), node("n2", "h100", 4, partitions=("short",))]
    fits, other = matching.section(facts(nodes, *known, need=FleetNeed(time_limit="2:00:00"))).tiers
    assert (fits.tier, fits.partitions) == ("32G to 79G", ["main"])
    assert other.why_not == "short: it gives a job 01:00:00 at most"
    endless = [node("n3", "a100", 4, partitions=("main", "endless"))]
    (made,) = matching.section(facts(endless, *known, need=FleetNeed(time_limit="UNLIMITED"))).tiers
    assert made.partitions == ["endless"]
    with pytest.raises(InputError, match=r"match\.time_limit"):
        matched(nodes, time_limit="soon")


def test_a_partition_that_gives_too_little_memory_on_a_node_takes_no_such_job():
    nodes = [node("n1", "a100", 4, partitions=("main", "small")), node("n2", "v100", 4, partitions=("small",))]
    known = (partition(), partition("small", max_mem_per_node=8 * G))
    made = matching.section(facts(nodes, *known, need=FleetNeed(gpus=1, memory="16G")))
    (fits, other) = made.tiers
    assert (fits.fits, fits.partitions, fits.nodes) == (True, ["main"], 1)
    assert (other.fits, other.why_not) == (False, "its partitions give a job 8G a node at most")
    little = matching.section(facts(nodes, *known, need=FleetNeed(gpus=1, memory="8G")))
    assert [one.partitions for one in little.tiers] == [["small"], ["main", "small"]]
