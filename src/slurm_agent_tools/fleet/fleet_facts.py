"""What the sections of get_fleet rest on, as it was read at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from slurm_agent_tools.insights.capacity import usable
from slurm_agent_tools.models.accounted import Association
from slurm_agent_tools.models.job import Job, JobRecord, PastWaits, StepUse
from slurm_agent_tools.models.node import Node, Partition, Reservation
from slurm_agent_tools.models.shapes import Alert
from slurm_agent_tools.models.toolset_arguments import FleetNeed
from slurm_agent_tools.settings import FleetSettings, RateSettings

GpuPoints = tuple[tuple[tuple[datetime, float], ...], ...]
"""A series for each GPU: moments and shares 0..1."""

_KEPT = frozenset({"RESERVED", "MAINTENANCE", "MAINT"})


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """One look at the cluster. None: not asked, or no answer.

    `mine`: the caller's active jobs and their parts, `mine_not_asked` those beyond the ones that were looked at one
    by one, `mine_waiting`: how many of all of them wait; `queue`: how many jobs are in each partition and state. By
    Slurm's own number of a job: `use` of its steps, `quiet_since` when its steps last took CPU time by earlier
    looks, `gpu_series`, and by nvidia-smi `gpu_steps`, with why it told nothing. `preemption`: how the cluster
    chooses which jobs end for others (PreemptType), such as `partition_prio` or `none`. `ran`: what the accounting
    has of the caller's jobs of a week, `runs` what the ledger has of them by their number; `day_cap`: the most GPU
    hours a day that the policy lets a caller ask for.
    `partition_prices`: of a GPU hour; None where that is in another currency than `rates`.
    `associations`: the accounts that the caller may submit under; `version` of Slurm, empty where it is not known.
    `hidden_jobs`: the site shows a user no jobs of others (PrivateData).
    """

    now: datetime
    settings: FleetSettings
    nodes: tuple[Node, ...] = ()
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    reservations: Sequence[Reservation] | None = None
    preemption: str | None = None
    hidden_jobs: bool = False
    version: str = ""
    associations: tuple[Association, ...] | None = None
    need: FleetNeed | None = None
    mine: tuple[Job, ...] = ()
    mine_not_asked: int = 0
    mine_waiting: int = 0
    queue: Mapping[tuple[str, str], int] = field(default_factory=dict)
    use: Mapping[int, tuple[StepUse, ...]] | None = None
    quiet_since: Mapping[int, datetime] = field(default_factory=dict)
    gpu_series: Mapping[int, GpuPoints] = field(default_factory=dict)
    gpu_steps: Mapping[int, GpuPoints] = field(default_factory=dict)
    gpu_step_notes: Mapping[int, str] = field(default_factory=dict)
    series_note: str | None = None
    past: PastWaits | None = None
    user: str = ""
    ran: tuple[Job, ...] | None = None
    runs: Mapping[int, JobRecord] = field(default_factory=dict)
    rates: RateSettings = field(default_factory=RateSettings)
    partition_prices: Mapping[str, float | None] = field(default_factory=dict)
    day_cap: float | None = None
    alerts: tuple[Alert, ...] | None = ()

    @property
    def reserved(self) -> frozenset[str]:
        """Nodes that are kept for somebody at this moment; by their flags where the reservations were not read."""
        if self.reservations is None:
            return frozenset(node.name for node in self.nodes if not node.flags.isdisjoint(_KEPT))
        held = [one.nodes for one in self.reservations if one.start <= self.now < one.end]
        return frozenset[str]().union(*held)

    def starting(self, nodes: Sequence[Node]) -> list[Node]:
        """Those that start jobs, in a partition that takes them as far as is known."""
        opens = {names: self._opens(names) for names in {node.partitions for node in nodes}}
        return [node for node in nodes if opens[node.partitions] and usable(node)]

    def _opens(self, names: Sequence[str]) -> bool:
        known = [self.partitions[name].state == "UP" for name in names if name in self.partitions]
        return not known or any(known)

    @property
    def held_unseen(self) -> tuple[int, int] | None:
        """CPUs and GPUs that jobs hold which the caller cannot see; None where all are seen, or it is not told."""
        cpus, gpus = [node.cpus_used for node in self.nodes], [node.gpus_used for node in self.nodes]
        if not self.hidden_jobs or not self.nodes or None in cpus or None in gpus or self.mine_not_asked:
            return None
        running = [job.resources for job in self.mine if job.state == "RUNNING"]
        seen_cpus, seen_gpus = sum(one.cpus or 0 for one in running), sum(one.gpus or 0 for one in running)
        return max(0, sum(one or 0 for one in cpus) - seen_cpus), max(0, sum(one or 0 for one in gpus) - seen_gpus)

    def may_vanish(self, partition: Partition) -> str | None:
        """Why a job of this partition can lose its nodes; None where nothing says so."""
        if partition.name in self.settings.may_vanish:
            return "the settings say so"
        if self.preemption != "partition_prio" or partition.preempt_mode in {"OFF", ""}:
            return None
        mine = {node.name for node in self.nodes if partition.name in node.partitions}
        above = {name for name, other in self.partitions.items() if other.tier > partition.tier}
        if any(node.name in mine and above.intersection(node.partitions) for node in self.nodes):
            return f"jobs of a higher partition end its own (PreemptMode {partition.preempt_mode})"
        return None
