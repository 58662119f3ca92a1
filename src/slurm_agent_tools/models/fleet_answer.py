"""What get_fleet answers. Memory in bytes, shares 0..1; None is not known, and `not_measured` says why."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.shapes import Alert, Reply, SectionError, Shape, no_items, no_values


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


class IdleShown(Shape):
    """GPUs that one job holds and does not use. `user`: whose, where it is not the caller's.

    `kind`: never used since it has them, used before, or not known, as the measuring began later. `source`: who
    measured it; `cpu_time`: its processes take no CPU, so that none can use a GPU.
    """

    job_id: str
    user: str | None = None
    gpus: int
    since: datetime
    source: Literal["prometheus", "gpuutil", "nvidia_smi", "cpu_time"]
    kind: Literal["held-empty", "idle-after-activity", "idle"]


class UseBeside(Shape):
    """What a running job has, and the share of it that its steps use; memory now, CPU since its start."""

    job_id: str
    cpus: int | None = None
    cpu_share: float | None = None
    memory_bytes: int | None = None
    memory_share: float | None = None


class EndingShown(Shape):
    """A running job whose time limit comes soon."""

    job_id: str
    limit_ends: datetime
    left_seconds: int


class WaitingShown(Shape):
    """A pending job. Its start is expected between `start_from` and `start_to`, by `basis`; `never`: not by waiting."""

    job_id: str
    partition: str | None = None
    why: str
    never: bool = False
    waited_seconds: int
    start_from: datetime | None = None
    start_to: datetime | None = None
    basis: str | None = None
    slurm_says: datetime | None = None


class QueueOfPartition(Shape):
    """Jobs of all users in one partition."""

    partition: str
    pending: int = 0
    running: int = 0


class WaitsSection(Shape):
    """Who waits: the caller's jobs one by one, all others by partition."""

    jobs: list[WaitingShown] = Field(default_factory=no_items)
    jobs_not_shown: int = 0
    queue: list[QueueOfPartition] = Field(default_factory=no_items)
    queue_not_shown: int = 0


class Spent(Shape):
    """Hours that jobs held, and their price; `note` says why there is none."""

    what: str | None = None
    gpu_hours: float | None = None
    cpu_hours: float | None = None
    amount: float | None = None
    note: str | None = None


class CostSection(Shape):
    """What the caller's jobs cost. `running_at_most`: what runs, if all of it takes its whole time limit."""

    currency: str | None = None
    today: Spent
    week: Spent
    campaigns: list[Spent] = Field(default_factory=no_items)
    campaigns_not_shown: int = 0
    results: list[Spent] = Field(default_factory=no_items)
    results_not_shown: int = 0
    running_at_most: Spent
    partition_gpu_hour: dict[str, float] = Field(default_factory=no_values)
    gpu_hour: dict[str, float] = Field(default_factory=no_values)
    cpu_hour: float | None = None


class ShareShown(Shape):
    """One quota today, in GPU hours. `starved`: it waits with less than its part, while another has more."""

    quota: str
    share: float
    hours: float | None = None
    used: float | None = None
    left: float | None = None
    waiting: int = 0
    starved: bool = False


class SharesSection(Shape):
    """The quotas over a day's GPU hours; `capped_by`: what cuts these below what the GPUs could give."""

    day_gpu_hours: float | None = None
    capped_by: str | None = None
    quotas: list[ShareShown] = Field(default_factory=no_items)
    quotas_not_shown: int = 0


class FleetReply(Reply):
    """Answer of get_fleet; a section that was not asked for is None, one that failed holds an error."""

    written_by_others: ClassVar[tuple[str, ...]] = ("inventory", "waits", "cost", "shares", "alerts")

    status: Literal["ok", "partial"]
    inventory: InventorySection | SectionError | None = None
    free: FreeSection | SectionError | None = None
    match: MatchSection | SectionError | None = None
    idle: list[IdleShown] | SectionError | None = None
    use: list[UseBeside] | SectionError | None = None
    ends_soon: list[EndingShown] | SectionError | None = None
    waits: WaitsSection | SectionError | None = None
    cost: CostSection | SectionError | None = None
    shares: SharesSection | SectionError | None = None
    alerts: list[Alert] | SectionError | None = None
    alerts_not_shown: int = 0
    not_measured: list[NotMeasured] = Field(default_factory=no_items)
    not_measured_not_shown: int = 0
    idle_not_shown: int = 0
    use_not_shown: int = 0
    ends_soon_not_shown: int = 0
