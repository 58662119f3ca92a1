"""What there is: nodes and GPUs in tiers, states with reasons, partitions, reservations, what may vanish. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from slurm_agent_tools.diagnosis.phrases import flat, listed
from slurm_agent_tools.fleet import gpu_tiers
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.insights.capacity import usable
from slurm_agent_tools.models.fleet_answer import (
    InventorySection,
    NodesInState,
    NotMeasured,
    PartitionInFleet,
    ReservationShown,
    TierShown,
)
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.units import UNLIMITED, human_memory

_NAMED = 3

_LONGEST = 80  # of a reason


def section(facts: FleetFacts) -> InventorySection:
    """The inventory, each node once."""
    nodes = facts.nodes
    memory = sum(node.memory_bytes for node in nodes)
    tiers = gpu_tiers.by_tier(nodes, facts.settings)
    partitions = _partitions(facts, tiers)
    return InventorySection(
        nodes=len(nodes),
        cpus=sum(node.cpus for node in nodes),
        gpus=sum(node.gpus for node in nodes),
        memory=human_memory(memory),
        memory_bytes=memory,
        tiers=[_tier(name, members, facts) for name, members in tiers.items()],
        states=dict(Counter(node.state for node in nodes).most_common()),
        troubled=_troubled(nodes),
        partitions=partitions,
        may_vanish=[one.name for one in partitions if one.may_vanish is not None],
        reservations=_reservations(facts),
        cloud_nodes=sum("CLOUD" in node.flags for node in nodes),
    )


def sentence(made: InventorySection) -> str:
    """The whole in one sentence."""
    away = sum(one.nodes for one in made.troubled)
    rest = f", {away} of which start nothing" if away else ""
    return f"{made.nodes} nodes{rest}, {made.gpus} GPUs."


def unknown(facts: FleetFacts) -> list[NotMeasured]:
    """GPUs whose memory nothing says, and those of which it is assumed."""
    found = {kind for node in facts.nodes for kind in gpu_tiers.kinds(node)}
    sizes = {kind: gpu_tiers.gpu_memory(kind, facts.settings.gpu_memory) for kind in sorted(found)}
    told = [
        NotMeasured(
            what=f"memory of GPUs of type {flat(kind) or '(none)'}",
            why="no setting and no known model says it; set fleet.gpu_memory",
        )
        for kind, size in sizes.items()
        if size.size is None
    ]
    assumed = [f"{flat(kind)} as {size.size:g}G" for kind, size in sizes.items() if size.assumed]
    if facts.reservations is None:
        told.append(NotMeasured(what="reserved nodes", why="the reservations could not be read"))
    if facts.preemption is None:
        told.append(NotMeasured(what="preemption", why="the configuration could not be read"))
    if facts.preemption == "qos":
        why = "which QOS ends jobs of which other is not read, so any job may lose its nodes"
        told.append(NotMeasured(what="preemption", why=why))
    if assumed:
        why = "it is sold with more, too; the least is counted; set fleet.gpu_memory"
        told.append(NotMeasured(what=f"memory of GPUs ({listed(assumed)})", why=why))
    return told


def _tier(name: str, members: Sequence[Node], facts: FleetFacts) -> TierShown:
    models: Counter[str] = Counter()
    for node in members:
        models.update(gpu_tiers.kinds(node))
    sizes = {gpu_tiers.gpu_memory(kind, facts.settings.gpu_memory).size for kind in models}
    known = sorted(size for size in sizes if size is not None)
    told = "" if not known else f"{known[0]:g}G" if len(known) == 1 else f"{known[0]:g}G to {known[-1]:g}G"
    return TierShown(
        tier=name,
        nodes=len(members),
        gpus=sum(node.gpus for node in members),
        models={kind or "(no type)": count for kind, count in models.items()},
        gpu_memory=told or None,
    )


def _troubled(nodes: Iterable[Node]) -> list[NodesInState]:
    """Those that start nothing, by state and reason, most first."""
    groups: dict[tuple[str, str | None], list[Node]] = {}
    for node in nodes:
        if not usable(node):
            groups.setdefault((node.state, node.reason), []).append(node)
    return [
        NodesInState(
            state=state,
            nodes=len(members),
            names=listed((node.name for node in members), most=_NAMED),
            reason=None if reason is None else flat(reason)[:_LONGEST],
            since=min((node.since for node in members if node.since is not None), default=None),
        )
        for (state, reason), members in sorted(groups.items(), key=lambda pair: -len(pair[1]))
    ]


def _partitions(facts: FleetFacts, tiers: Mapping[str, Sequence[Node]]) -> list[PartitionInFleet]:
    members: dict[str, list[Node]] = {name: [] for name in facts.partitions}
    inside: dict[str, dict[str, None]] = {name: {} for name in facts.partitions}
    for tier, nodes in tiers.items():
        for node in nodes:
            for name in node.partitions:
                members.setdefault(name, []).append(node)
                inside.setdefault(name, {})[tier] = None
    return [
        PartitionInFleet(
            name=name,
            state=partition.state,
            nodes=len(members[name]),
            gpus=sum(node.gpus for node in members[name]),
            tiers=list(inside[name]),
            max_time_seconds=None if partition.max_time_seconds == UNLIMITED else partition.max_time_seconds,
            may_vanish=facts.may_vanish(partition),
        )
        for name, partition in facts.partitions.items()
    ]


def _reservations(facts: FleetFacts) -> list[ReservationShown]:
    return [
        ReservationShown(
            name=flat(one.name)[:_LONGEST],
            nodes=len(one.nodes),
            start=one.start,
            end=one.end,
            maintenance=one.maintenance,
            now=one.start <= facts.now < one.end,
        )
        for one in sorted(facts.reservations or (), key=lambda one: one.start)
        if one.end > facts.now
    ]
