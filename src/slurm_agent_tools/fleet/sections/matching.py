"""Which tiers a job fits, the smallest first, and why not the others. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.fleet import gpu_tiers
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.fleet.sections import free_now
from slurm_agent_tools.fleet.sections.free_now import NodeRoom
from slurm_agent_tools.insights.capacity import usable
from slurm_agent_tools.models.fleet_answer import MatchSection, NotMeasured, TierMatch
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.models.toolset_arguments import FleetNeed
from slurm_agent_tools.units import human_memory, parse_memory


def section(facts: FleetFacts) -> MatchSection:
    """The tiers for `facts.need`. Raises InputError for a size that cannot be read."""
    need = facts.need or FleetNeed()
    wanted = _Wanted(need)
    free = free_now.rooms(facts)
    tiers = gpu_tiers.by_tier(facts.nodes, facts.settings)
    judged = [_judged(name, tiers[name], free, wanted, facts) for name in reversed(tiers)]
    fitting = [one for one in judged if one.fits]
    return MatchSection(
        need=wanted.words,
        best=fitting[0].tier if fitting else None,
        tiers=[*fitting, *(one for one in judged if not one.fits)],
    )


def sentence(made: MatchSection) -> str:
    """Where it goes."""
    if made.best is None:
        return f"No tier has {made.need}."
    now = made.tiers[0].startable
    when = "" if now is None else f", where {now} such jobs could start now" if now else ", where none could start now"
    return f"{made.need} fits {made.best}{when}."


def unknown(facts: FleetFacts) -> list[NotMeasured]:
    """What a match leaves open: who may use a partition, beside what is free."""
    limited = [
        NotMeasured(
            what=f"whether you may use partition {name}", why=f"it is limited: {', '.join(one.limited_to)}"[:200]
        )
        for name, one in facts.partitions.items()
        if one.limited_to and one.state == "UP"
    ]
    return [*limited, *free_now.unknown(facts)]


class _Wanted:
    """What is needed, in numbers. `gpu_memory` in GB."""

    def __init__(self, need: FleetNeed) -> None:
        if need.gpus < 0:
            raise InputError("match.gpus", need.gpus, "is below 0", hint="Give the number of GPUs, 0 for none.")
        self.gpus = need.gpus
        self.memory = _size("match.memory", need.memory)
        each = _size("match.gpu_memory", need.gpu_memory)
        self.gpu_memory = None if each is None else each / 2**30
        parts = [f"{self.gpus} {'GPU' if self.gpus == 1 else 'GPUs'}"]
        if self.gpus and self.gpu_memory is not None:
            parts[0] += f" of {self.gpu_memory:g}G"
        self.words = " and ".join([*parts, *([human_memory(self.memory)] if self.memory is not None else [])])


def _size(field: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_memory(text)
    except ValueError:
        raise InputError(field, text, "is no size", hint="Write a number with its unit, such as 40G.") from None


def _judged(
    tier: str, nodes: Sequence[Node], free: Sequence[NodeRoom], wanted: _Wanted, facts: FleetFacts
) -> TierMatch:
    """One tier. A job goes on one node; what no node has alone is told with what all have together."""
    good = [node for node in nodes if usable(node) and facts.opens(node)]
    why = _why_not(good, wanted, facts)
    if why is not None:
        return TierMatch(tier=tier, fits=False, why_not=why)
    fitting = {node.name: node for node in good if _fits(node, wanted, facts)}
    now = [room for room in free if room.node.name in fitting]
    told = sorted({name for node in fitting.values() for name in node.partitions})
    return TierMatch(
        tier=tier,
        fits=True,
        partitions=[name for name in told if _takes(name, wanted, facts)],
        nodes=len(fitting),
        startable=None if any(_untold(room.node) for room in now) else sum(_times(room, wanted, facts) for room in now),
    )


def _untold(node: Node) -> bool:
    return node.cpus_used is None or node.memory_used_bytes is None or (node.gpus > 0 and node.gpus_used is None)


def _why_not(good: Sequence[Node], wanted: _Wanted, facts: FleetFacts) -> str | None:
    """Why no node of a tier takes it; None where one does."""
    if not good:
        return "no node of it starts jobs now"
    near = {name for node in good if _has(node, wanted, facts) for name in node.partitions}
    if any(_fits(node, wanted, facts) for node in good):
        return None
    return _limited(near, facts) if near else _too_small(good, wanted, facts)


def _limited(near: Collection[str], facts: FleetFacts) -> str:
    """Of partitions of which none takes the job: each that is up has a limit."""
    limits = [_memory_limit(name, facts) or 0 for name in near if facts.partitions[name].state == "UP"]
    return f"its partitions give a job {human_memory(max(limits))} a node at most"


def _too_small(good: Sequence[Node], wanted: _Wanted, facts: FleetFacts) -> str:
    """What no node of a tier has."""
    if wanted.gpus and not any(node.gpus for node in good):
        return "its nodes have no GPUs"
    large = [node for node in good if _enough(node, wanted, facts)]
    if wanted.gpus and not large:
        sizes = {_memory(kind, facts) for node in good for kind in gpu_tiers.kinds(node)}
        known = [size for size in sizes if size is not None]
        return f"its GPUs have {max(known):g}G at most" if known else "nothing says how much memory its GPUs have"
    most = max((_usable_gpus(node, wanted, facts) for node in large), default=0)
    if wanted.gpus > most:
        every = sum(_usable_gpus(node, wanted, facts) for node in large)
        return f"a node has {most} such GPUs at most (all together {every})"
    return f"a node that has the GPUs has {human_memory(max(node.memory_bytes for node in large or good))} at most"


def _memory(kind: str, facts: FleetFacts) -> float | None:
    return gpu_tiers.gpu_memory(kind, facts.settings.gpu_memory).size


def _suits(kind: str, wanted: _Wanted, facts: FleetFacts) -> bool:
    size = _memory(kind, facts)
    return wanted.gpu_memory is None or (size is not None and size >= wanted.gpu_memory)


def _enough(node: Node, wanted: _Wanted, facts: FleetFacts) -> bool:
    return any(_suits(kind, wanted, facts) for kind in gpu_tiers.kinds(node))


def _usable_gpus(node: Node, wanted: _Wanted, facts: FleetFacts) -> int:
    return sum(number for kind, number in gpu_tiers.kinds(node).items() if _suits(kind, wanted, facts))


def _fits(node: Node, wanted: _Wanted, facts: FleetFacts) -> bool:
    """Whether it has what is needed, and one of its partitions gives it."""
    return _has(node, wanted, facts) and (
        not node.partitions or any(_takes(name, wanted, facts) for name in node.partitions)
    )


def _takes(name: str, wanted: _Wanted, facts: FleetFacts) -> bool:
    """Whether a partition starts jobs and gives one so much memory on a node, as far as is known."""
    limit, known = _memory_limit(name, facts), facts.partitions.get(name)
    return (known is None or known.state == "UP") and (limit is None or limit >= (wanted.memory or 0))


def _memory_limit(name: str, facts: FleetFacts) -> int | None:
    known = facts.partitions.get(name)
    return None if known is None else known.max_mem_per_node or None


def _has(node: Node, wanted: _Wanted, facts: FleetFacts) -> bool:
    return (wanted.memory or 0) <= node.memory_bytes and wanted.gpus <= _usable_gpus(node, wanted, facts)


def _times(room: NodeRoom, wanted: _Wanted, facts: FleetFacts) -> int:
    """How many such jobs a node takes now, each with one CPU at least."""
    counts = [room.cpus]
    if wanted.gpus:
        groups = room.node.gpu_groups
        told = [one for one in groups if _suits(one.kind, wanted, facts)]
        free = sum(one.total - (one.used or 0) for one in told) if groups else room.gpus
        counts.append(free // wanted.gpus)
    if wanted.memory:
        counts.append(room.memory // wanted.memory)
    return min(counts) if room.memory else 0
