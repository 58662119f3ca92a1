"""GPUs in tiers by their memory: what a type has, which tier that is, which nodes belong to it. Pure.

Sizes are those of the makers' data sheets, in GB as they sell them. A type that was sold in several sizes counts as the
smallest, so that nothing is promised; what is in the name (`a100-80gb`, `1g.5gb` of a MIG) goes before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from slurm_agent_tools.models.node import Node
from slurm_agent_tools.settings import FleetSettings

CPU_ONLY = "CPU only"

NOT_KNOWN = "GPU memory not known"

_SAID = re.compile(r"(?<![\d.])(\d{1,4}) ?gi?b?(?![a-z0-9.])")
"""`80gb` or `32g`; not the `1g.` of a MIG profile, which is a share of the processors."""

_KNOWN: tuple[tuple[str, float], ...] = (
    ("gb300", 288), ("b300", 288), ("gb200", 186), ("b200", 180), ("gh200", 96), ("h200", 141), ("h20", 96),
    ("h100", 80), ("h800", 80), ("a100", 40), ("a800", 40), ("l40s", 48), ("l40", 48), ("l4", 24), ("a40", 48),
    ("a30", 24), ("a16", 16), ("a10g", 24), ("a10", 24), ("a2", 16), ("v100", 16), ("p100", 12), ("p40", 24),
    ("t4", 16), ("k80", 12), ("rtx6000ada", 48), ("rtxa6000", 48), ("a6000", 48), ("a5000", 24), ("a4500", 20),
    ("a4000", 16), ("a2000", 6), ("rtx6000", 24), ("rtx8000", 48), ("5090", 32), ("5080", 16), ("5070", 12),
    ("4090", 24), ("4080", 16), ("4070", 12), ("4060", 8), ("3090", 24), ("3080", 10), ("3070", 8), ("3060", 8),
    ("2080ti", 11), ("2080", 8), ("1080ti", 11), ("1080", 8), ("titanrtx", 24), ("titanv", 12), ("mi355x", 288),
    ("mi325x", 256), ("mi300x", 192), ("mi300a", 128), ("mi250x", 128), ("mi250", 128), ("mi210", 64), ("mi100", 32),
)  # fmt: skip
"""A sign in the name, and GB; longer signs of the same kind stand first."""

_SEVERAL = frozenset({"a100", "a800", "v100", "3080", "3060", "4060", "p100"})
"""Sold with more memory as well."""


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """GB of one GPU, None where nothing says it; `assumed`: the type is also sold with more."""

    size: float | None
    assumed: bool = False


def gpu_memory(kind: str, known: Mapping[str, float]) -> GpuMemory:
    """What a GPU of this type in Slurm has: by the settings, by its name, by its model."""
    return GpuMemory(known[kind]) if kind in known else _by_name(kind)


@lru_cache(maxsize=1024)
def _by_name(kind: str) -> GpuMemory:
    """The same without the settings. Thousands of nodes have a few types."""
    name = kind.lower().replace("_", " ").replace("-", " ")
    said = _SAID.findall(re.sub(r"\b\dg\.", "", name))
    if said:  # `1g 5gb`: the share of the processors is never the larger number
        return GpuMemory(max(map(float, said)))
    joined = name.replace(" ", "")
    sign, size = next(((sign, size) for sign, size in _KNOWN if _holds(joined, sign)), ("", None))
    return GpuMemory(size, assumed=sign in _SEVERAL)


def _holds(name: str, sign: str) -> bool:
    """Whether the sign stands in the name and no digit beside it makes another number of it."""
    return re.search(rf"(?<!\d){sign}(?!\d)", name) is not None


def tier_of_memory(size: float | None, settings: FleetSettings) -> str:
    """The tier of a GPU with so many GB."""
    if size is None:
        return NOT_KNOWN
    fitting = [(least, name) for name, least in settings.tiers.items() if size >= least]
    return max(fitting)[1] if fitting else f"under {min(settings.tiers.values()):g}G"


def tier_of_node(node: Node, settings: FleetSettings) -> str:
    """The tier of a node: that of most of its GPUs."""
    if not node.gpus:
        return CPU_ONLY
    every = kinds(node)
    if len(every) == 1:
        return tier_of_memory(gpu_memory(next(iter(every)), settings.gpu_memory).size, settings)
    counts: Counter[str] = Counter()
    for kind, number in every.items():
        counts[tier_of_memory(gpu_memory(kind, settings.gpu_memory).size, settings)] += number
    return counts.most_common(1)[0][0] if counts else NOT_KNOWN


def kinds(node: Node) -> dict[str, int]:
    """GPUs by type; the empty word for those without one."""
    if node.gpu_groups:
        return {one.kind: one.total for one in node.gpu_groups}
    return {node.gpu_types[0] if node.gpu_types else "": node.gpus} if node.gpus else {}


def by_tier(nodes: Sequence[Node], settings: FleetSettings) -> dict[str, list[Node]]:
    """Nodes by tier, the largest GPUs first, nodes without GPUs last."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        found.setdefault(tier_of_node(node, settings), []).append(node)
    return dict(sorted(found.items(), key=lambda pair: -rank(pair[0], settings)))


def rank(tier: str, settings: FleetSettings) -> float:
    """GB that its GPUs have at least, to put tiers in order."""
    if tier == CPU_ONLY:
        return -2.0
    return -1.0 if tier == NOT_KNOWN else settings.tiers.get(tier, 0.0)
