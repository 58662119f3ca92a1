"""What get_fleet answers. Memory in bytes, shares 0..1; None is not known, and `not_measured` says why."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.shapes import Reply, SectionError, Shape, no_items


class NotMeasured(Shape):
    """Something that is not known, and why."""

    what: str
    why: str


class TierShown(Shape):
    """Nodes by the memory of their GPUs. `models`: GPUs by Slurm's word for their type."""

    tier: str
    nodes: int
    gpus: int
    models: dict[str, int]
    gpu_memory: str | None = None


class NodesInState(Shape):
    """Nodes that start nothing now: the same state, for the same reason. `since`: the first of them."""

    state: str
    nodes: int
    names: str
    reason: str | None = None
    since: datetime | None = None


class PartitionInFleet(Shape):
    """One partition. `may_vanish` says why its jobs can lose their nodes."""

    name: str
    state: str
    nodes: int
    gpus: int
    tiers: list[str]
    max_time_seconds: int | None = None
    may_vanish: str | None = None


class ReservationShown(Shape):
    """Nodes that are kept for somebody; `now`: they are so already."""

    name: str
    nodes: int
    start: datetime
    end: datetime
    maintenance: bool = False
    now: bool = False


class InventorySection(Shape):
    """What there is. `states`: nodes by Slurm's compact word; `may_vanish`: partitions whose jobs can lose nodes."""

    nodes: int
    cpus: int
    gpus: int
    memory: str
    memory_bytes: int
    tiers: list[TierShown]
    states: dict[str, int]
    troubled: list[NodesInState] = Field(default_factory=no_items)
    troubled_not_shown: int = 0
    partitions: list[PartitionInFleet] = Field(default_factory=no_items)
    may_vanish: list[str] = Field(default_factory=no_items)
    reservations: list[ReservationShown] = Field(default_factory=no_items)
    cloud_nodes: int = 0


class LargestStart(Shape):
    """The largest job that could start now in a partition, on nodes of one tier; `_one_node`: what one of them has."""

    tier: str
    partition: str
    nodes: int
    gpus: int
    cpus: int
    memory: str
    memory_bytes: int
    gpus_one_node: int
    cpus_one_node: int
    memory_one_node: str


class FreeInTier(Shape):
    """What is free on usable nodes. `gpus_blocked`: free GPUs beside which no CPU or memory is left."""

    tier: str
    gpus: int | None
    gpus_blocked: int | None = None
    cpus: int | None
    memory: str | None = None
    memory_bytes: int | None = None
    whole_nodes: int = 0


class FreeSection(Shape):
    """What is free now. `fragmentation` says in a sentence what of it one job cannot have together."""

    gpus: int | None
    gpus_used: int | None
    cpus: int | None
    cpus_used: int | None
    memory: str | None
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    tiers: list[FreeInTier]
    largest_start_now: list[LargestStart]
    largest_not_shown: int = 0
    fragmentation: str | None = None
    note: str | None = None


class TierMatch(Shape):
    """Whether a tier has what is needed. `startable`: how many such jobs could start there now."""

    tier: str
    fits: bool
    partitions: list[str] = Field(default_factory=no_items)
    nodes: int | None = None
    startable: int | None = None
    why_not: str | None = None


class MatchSection(Shape):
    """Tiers for one job, those that fit first, and of these the smallest first."""

    need: str
    best: str | None
    tiers: list[TierMatch]


class FleetReply(Reply):
    """Answer of get_fleet; a section that was not asked for is None, one that failed holds an error."""

    written_by_others: ClassVar[tuple[str, ...]] = ("inventory",)

    status: Literal["ok", "partial"]
    inventory: InventorySection | SectionError | None = None
    free: FreeSection | SectionError | None = None
    match: MatchSection | SectionError | None = None
    not_measured: list[NotMeasured] = Field(default_factory=no_items)
    not_measured_not_shown: int = 0
