"""What is free: by tier, the largest job that could start now in each partition, and what is free but of no use. Pure.

Free is what Slurm has not given away, on nodes that start jobs and are not reserved: jobs that wait may have a claim on
it all the same, and Slurm decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from slurm_agent_tools.fleet import gpu_tiers
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.models.fleet_answer import FreeInTier, FreeSection, LargestStart, NotMeasured
from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.units import human_memory

_CLAIMED = "Jobs that wait may go before a new one."


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What is free on one node. Memory in bytes."""

    node: Node
    gpus: int
    cpus: int
    memory: int

    @property
    def blocked(self) -> bool:
        """True where GPUs are free beside which no CPU or no memory is left."""
        return self.gpus > 0 and (self.cpus <= 0 or self.memory <= 0)

    @property
    def whole(self) -> bool:
        """True where nothing of the node is given away."""
        return self.gpus == self.node.gpus and self.cpus == self.node.cpus


def rooms(facts: FleetFacts) -> list[NodeRoom]:
    """What is free on each node that starts jobs and is not reserved; those whose use Slurm does not tell have none."""
    return list(map(_room, _open(facts, facts.nodes)))


def _open(facts: FleetFacts, nodes: Sequence[Node]) -> list[Node]:
    reserved = facts.reserved
    return [node for node in facts.starting(nodes) if node.name not in reserved]


def _room(node: Node) -> NodeRoom:
    gpus = 0 if node.gpus_used is None else node.gpus - node.gpus_used
    cpus = 0 if node.cpus_used is None else node.cpus - node.cpus_used
    memory = 0 if node.memory_used_bytes is None else node.memory_bytes - node.memory_used_bytes
    return NodeRoom(node, max(0, gpus), max(0, cpus), max(0, memory))


def section(facts: FleetFacts) -> FreeSection:
    """What is free now; a figure that one node does not tell is not known for all of them."""
    found = rooms(facts)
    good = [room.node for room in found]
    by_name = {room.node.name: room for room in found}
    by_tier = {
        name: [by_name[node.name] for node in members]
        for name, members in gpu_tiers.by_tier(good, facts.settings).items()
    }
    memory = _sum(found, (node.memory_used_bytes for node in good), "memory")
    tiers = [_tier(name, members) for name, members in by_tier.items()]
    starts = _largest(facts, by_tier)
    return FreeSection(
        gpus=_sum(found, (node.gpus_used for node in good), "gpus"),
        gpus_used=_total(node.gpus_used for node in good),
        cpus=_sum(found, (node.cpus_used for node in good), "cpus"),
        cpus_used=_total(node.cpus_used for node in good),
        memory=None if memory is None else human_memory(memory),
        memory_bytes=memory,
        memory_used_bytes=_total(node.memory_used_bytes for node in good),
        tiers=tiers,
        largest_start_now=starts,
        fragmentation=_fragmentation(tiers, starts),
        note=_CLAIMED,
    )


def sentence(made: FreeSection) -> str:
    """What is free, and the largest job with GPUs, or without where there are none."""
    if made.gpus is None or made.cpus is None:
        return "Slurm does not tell what is free."
    best = max(made.largest_start_now, key=lambda one: (one.gpus, one.cpus), default=None)
    told = f"{made.gpus} GPUs and {made.cpus} CPUs free"
    if best is None:
        return f"{told}; no job can start now."
    what = f"{best.gpus} GPUs" if best.gpus else f"{best.cpus} CPUs"
    one = f", {best.gpus_one_node or best.cpus_one_node} of them on one node" if best.nodes > 1 else ""
    return f"{told}; most at once: {what} in {best.partition}{one}."


def unknown(facts: FleetFacts) -> list[NotMeasured]:
    """Why something of it is not known."""
    off = _open(facts, [node for node in facts.nodes if node.state.endswith("~")])
    booting = []
    if off:
        why = "they are free and powered off: a job there waits until they are started, and some may not come up"
        booting = [NotMeasured(what=f"start of {len(off)} nodes", why=why)]
    return [*booting, *_reserved(facts)]


def _reserved(facts: FleetFacts) -> list[NotMeasured]:
    if facts.reservations is None:
        why = "the reservations could not be read, so nodes that are kept for others may be counted as free"
        return [NotMeasured(what="reserved nodes", why=why)]
    return []


def _total(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value or 0 for value in known)


def _sum(found: Sequence[NodeRoom], used: Iterable[int | None], what: Literal["gpus", "cpus", "memory"]) -> int | None:
    """The free amounts together, unless one is not told."""
    if any(value is None for value in used):
        return None
    return sum({"gpus": room.gpus, "cpus": room.cpus, "memory": room.memory}[what] for room in found)


def _tier(name: str, here: Sequence[NodeRoom]) -> FreeInTier:
    memory = _sum(here, (room.node.memory_used_bytes for room in here), "memory")
    gpus = _sum(here, (room.node.gpus_used for room in here), "gpus")
    return FreeInTier(
        tier=name,
        gpus=gpus,
        gpus_blocked=None if gpus is None else sum(room.gpus for room in here if room.blocked),
        cpus=_sum(here, (room.node.cpus_used for room in here), "cpus"),
        memory=None if memory is None else human_memory(memory),
        memory_bytes=memory,
        whole_nodes=sum(room.whole for room in here),
    )


def _largest(facts: FleetFacts, by_tier: Mapping[str, Sequence[NodeRoom]]) -> list[LargestStart]:
    """For each tier the partition in which the largest job could start, tiers in their order."""
    best: list[LargestStart] = []
    for tier, rooms_of_tier in by_tier.items():
        inside: dict[str, list[NodeRoom]] = {name: [] for name in facts.partitions}
        for room in rooms_of_tier:
            for name in room.node.partitions if room.cpus and room.memory else ():
                inside.setdefault(name, []).append(room)
        starts = [_start(tier, one, inside[one.name]) for one in facts.partitions.values() if one.state == "UP"]
        best += sorted((one for one in starts if one is not None), key=_size, reverse=True)[:1]
    return best


def _size(start: LargestStart) -> tuple[int, int, int]:
    return start.gpus, start.cpus, start.memory_bytes


def _start(tier: str, partition: Partition, here: Sequence[NodeRoom]) -> LargestStart | None:
    """The nodes with most free, as many as one job may have; of a tier with GPUs only those with a free one."""
    having = [room for room in here if not room.node.gpus or room.gpus]
    if partition.exclusive:
        having = [room for room in having if room.whole]
    if not having:
        return None
    ranked = sorted(having, key=lambda room: (room.gpus, room.cpus, room.memory), reverse=True)
    chosen = ranked if partition.max_nodes is None else ranked[: partition.max_nodes]
    if not chosen:
        return None
    memory = sum(room.memory for room in chosen)
    return LargestStart(
        tier=tier,
        partition=partition.name,
        nodes=len(chosen),
        gpus=sum(room.gpus for room in chosen),
        cpus=sum(room.cpus for room in chosen),
        memory=human_memory(memory),
        memory_bytes=memory,
        gpus_one_node=chosen[0].gpus,
        cpus_one_node=chosen[0].cpus,
        memory_one_node=human_memory(chosen[0].memory),
    )


def _fragmentation(tiers: Sequence[FreeInTier], starts: Sequence[LargestStart]) -> str | None:
    """What is free in pieces: the share of free GPUs that one node has, and those that no job can have."""
    blocked = sum(one.gpus_blocked or 0 for one in tiers)
    told = [
        f"{one.gpus} free GPUs of {one.tier}, at most {one.gpus_one_node} on one node"
        for one in starts
        if one.gpus > one.gpus_one_node
    ]
    if blocked:
        told.append(f"{blocked} free GPUs have no free CPU or memory beside them")
    return "; ".join(told) or None
