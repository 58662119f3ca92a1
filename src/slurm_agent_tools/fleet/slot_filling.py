"""Whose turn a free slot is, and which partition the run goes to that gets it. Pure.

By shares of used time: the one that is furthest behind its share goes first. What is shared is GPU time; a run without
GPUs counts as one with one GPU, as it takes a slot as well. What a run that is under way will still take counts
already: else all free slots would go to the same one.

The partition: the smallest GPUs that fit, and short work where nodes may vanish. Within a partition Slurm chooses the
node: so it counts by the largest tier in which the run could end up there, and fits only where every such node has what
the run needs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from slurm_agent_tools.fleet import gpu_tiers
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.fleet.sections import free_now
from slurm_agent_tools.insights.capacity import usable
from slurm_agent_tools.models.node import Node, Partition


@dataclass(frozen=True, slots=True)
class Contender:
    """One that shares the slots; `wants`: whether it has a run to send.

    Times in GPU seconds: `used` in the window, `ahead` what its active runs may yet take.
    """

    name: str
    share: float
    used: float = 0.0
    ahead: float = 0.0
    wants: bool = False


def shares_of(
    stated: Mapping[str, float | None], quotas: Mapping[str, float], working: Iterable[str]
) -> dict[str, float]:
    """The share of each campaign, 0..1. `stated`: what its file says; `quotas`: the setting fleet.quotas.

    The first quota that names a campaign goes before its file, and those that are `working` under one quota have equal
    parts of it. Whoever has no share gets an equal part of what the others leave; where that is nothing, 0: then it has
    its turn when no other has work.
    """
    at_work = set(working)
    quota_of = {name: _quota(name, quotas) for name in stated}
    members = Counter(quota for name, quota in quota_of.items() if name in at_work and quota is not None)
    found: dict[str, float] = {}
    for name, said in stated.items():
        quota = quota_of[name]
        share = said if quota is None else quotas[quota] / max(1, members[quota])
        if share is not None:
            found[name] = share
    without = [name for name in stated if name not in found]
    left = max(0.0, 1.0 - sum(share for name, share in found.items() if name in at_work))
    hungry = sum(name in at_work for name in without)
    return found | {name: left / max(1, hungry) for name in without}


def _quota(name: str, quotas: Mapping[str, float]) -> str | None:
    matching = (key for key in quotas if key.startswith("campaign:") and fnmatchcase(name, key.partition(":")[2]))
    return next(matching, None)


def next_one(contenders: Sequence[Contender]) -> Contender | None:
    """Whose turn it is; None where nobody has work.

    The one that has least of its share, its active runs counted to their end; of equals the larger share, then the
    name. What the next run may take does not count: before the first has ended nobody knows more than its time limit.
    """
    waiting = [one for one in contenders if one.wants]
    return min(waiting, key=_turn, default=None)


def _turn(one: Contender) -> tuple[float, float, str]:
    had = one.used + one.ahead
    return (had / one.share if one.share > 0 else math.inf, had if one.share <= 0 else -one.share, one.name)


def parts(used: Mapping[str, float]) -> dict[str, float]:
    """Each one's part of all that was used, 0..1; all 0 where nothing was."""
    total = sum(used.values())
    return {name: (one / total if total else 0.0) for name, one in used.items()}


def starved(one: Contender, all_used: float, all_shares: float) -> bool:
    """Whether it has work, and less than its share of what was used."""
    return one.wants and all_shares > 0 and one.used < all_used * one.share / all_shares


# --- Where a run goes -------------------------------------------------------------------------------------------------

SHORT = 1800
"""Seconds: a run with at most this time limit is worth a try on nodes that may vanish; a longer one stays away."""


@dataclass(frozen=True, slots=True)
class RunNeed:
    """What each of `nodes` nodes has to have; `gpu_memory` of one GPU in GB, None: not said."""

    seconds: int
    gpus: int = 0
    cpus: int = 1
    memory_bytes: int = 0
    nodes: int = 1
    gpu_memory: float | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    partition: Partition
    rank: float
    vanishes: bool
    room: bool


def partition_for(need: RunNeed, facts: FleetFacts) -> str | None:
    """The partition; None where none is known to fit: then Slurm and the guard say what they make of it.

    Where the need names no GPU memory, no GPU is smaller than those of the default partition, where it has any.
    """
    floor = _floor(need, facts)
    found = [
        candidate
        for partition in facts.partitions.values()
        if (candidate := _candidate(need, partition, floor, facts)) is not None
    ]
    best = min(found, key=lambda one: _order(one, need), default=None)
    return None if best is None else best.partition.name


def _order(one: _Candidate, need: RunNeed) -> tuple[float, bool, bool, bool, str]:
    short = need.seconds <= SHORT
    return one.rank, short != one.vanishes, not one.room, not one.partition.default, one.partition.name


def _candidate(need: RunNeed, partition: Partition, floor: float | None, facts: FleetFacts) -> _Candidate | None:
    most = partition.max_time_seconds
    if partition.state != "UP" or (most is not None and need.seconds > most):
        return None
    if partition.limited_to and not partition.default:  # whether this user is among those is not known here
        return None
    vanishes = facts.may_vanish(partition) is not None
    if need.nodes > (partition.max_nodes or need.nodes) or (vanishes and need.seconds > SHORT):
        return None
    able = [node for node in facts.nodes if partition.name in node.partitions and _holds(need, node)]
    if len(able) < need.nodes or not all(_suits(need, node, facts) for node in able):
        return None
    ranks = [_rank(need, node, facts) for node in able]
    if floor is not None and min(ranks) < floor:
        return None
    names = {node.name for node in able}
    room = sum(_starts(need, one) for one in free_now.rooms(facts) if one.node.name in names) >= need.nodes
    return _Candidate(partition, max(ranks), vanishes, room)


def _holds(need: RunNeed, node: Node) -> bool:
    """Whether a node that starts jobs could ever take its part."""
    return usable(node) and need.gpus <= node.gpus and need.cpus <= node.cpus and need.memory_bytes <= node.memory_bytes


def _suits(need: RunNeed, node: Node, facts: FleetFacts) -> bool:
    """Whether each GPU of a node has the memory that is needed."""
    if need.gpu_memory is None or not need.gpus:
        return True
    return all(size is not None and size >= need.gpu_memory for size in _sizes(node, facts))


def _sizes(node: Node, facts: FleetFacts) -> Iterator[float | None]:
    return (gpu_tiers.gpu_memory(kind, facts.settings.gpu_memory).size for kind in gpu_tiers.kinds(node))


def _rank(need: RunNeed, node: Node, facts: FleetFacts) -> float:
    """The place of a node's tier; a run without GPUs wastes all that a node has."""
    tier = gpu_tiers.rank(gpu_tiers.tier_of_node(node, facts.settings), facts.settings)
    return tier if need.gpus or not node.gpus else max(tier, 0.0)


def _floor(need: RunNeed, facts: FleetFacts) -> float | None:
    """The smallest tier that a run with GPUs could have without being placed; None where nothing says so."""
    if not need.gpus or need.gpu_memory is not None:
        return None
    usual = [one.name for one in facts.partitions.values() if one.default]
    nodes: Sequence[Node] = [node for node in facts.nodes if node.gpus and not {*usual}.isdisjoint(node.partitions)]
    return min((_rank(need, node, facts) for node in nodes), default=None)


def _starts(need: RunNeed, room: free_now.NodeRoom) -> bool:
    """Whether a node takes its part now."""
    return room.gpus >= need.gpus and room.cpus >= need.cpus and room.memory >= max(1, need.memory_bytes)
