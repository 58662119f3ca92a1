"""Idle nodes beside a full queue: of other partitions, in reservations; and jobs that no node could ever take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.models.accounted import AccountedJob, ClusterRecord, NodeSpan
from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.planning.findings.finding import LEAST, ClusterFinding, FindingCost, level_of, listed, rounded
from slurm_agent_tools.planning.findings.occupancy import Moment, is_barred, moments, need_of, waited, whole
from slurm_agent_tools.units import UNLIMITED, format_duration

EMPTY = 0.8
"""The share of a reservation's node time that has to be idle: one that is used for four fifths serves its purpose."""

BARRED_HIGH, BARRED_MEDIUM = 0.25, 0.10
"""Shares of all waiting hours that were waited behind a limit."""

_FEWEST_HOURS = 24.0


@dataclass(slots=True)
class _Idle:
    """What stood idle while jobs waited that it would have taken."""

    node_hours: float = 0.0
    core_hours: float = 0.0
    gpu_hours: float = 0.0
    waiting_hours: float = 0.0
    why: Counter[str] = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)
    longest: int = 0

    def add(self, nodes: Sequence[Node], job: AccountedJob, count: int, hours: float) -> None:
        """Nodes that were idle for so many hours beside jobs of one shape."""
        self.node_hours += len(nodes) * hours
        self.core_hours += sum(node.cpus for node in nodes) * hours
        self.gpu_hours += sum(node.gpus for node in nodes) * hours
        self.waiting_hours += count * hours
        self.users[job.user] += count
        self.longest = max(self.longest, job.limit or 0)

    def share(self, record: ClusterRecord) -> float:
        """Of the cluster's core or GPU hours, whichever is more."""
        cpus = sum(node.cpus for node in record.nodes.values()) * record.hours
        gpus = sum(node.gpus for node in record.nodes.values()) * record.hours
        return max(self.core_hours / cpus if cpus else 0.0, self.gpu_hours / gpus if gpus else 0.0)

    @property
    def cost(self) -> FindingCost:
        gpus = rounded(self.gpu_hours) if self.gpu_hours else None
        return FindingCost(rounded(self.core_hours), gpus, rounded(self.waiting_hours))


def _takes(node: Node, job: AccountedJob) -> bool:
    """Whether a job would run on an empty node of this kind; GPU nodes are for jobs with GPUs."""
    if bool(job.gpus) != bool(node.gpus) or (job.gpu_types and not job.gpu_types.intersection(node.gpu_types)):
        return False
    return whole(node).holds(need_of(job))


# --- Partitions -------------------------------------------------------------------------------------------------------


def idle_beside_queue(record: ClusterRecord) -> Iterator[ClusterFinding]:
    """Nodes of one partition that stood empty while jobs waited in another that they would have taken."""
    found: defaultdict[tuple[str, str], _Idle] = defaultdict(_Idle)
    for moment in moments(record):
        _beside(moment, found)
    for (idle, full), cost in found.items():
        share = cost.share(record)
        if share >= LEAST:
            yield _beside_told(record, (idle, full), cost, share)


def _beside(moment: Moment, found: defaultdict[tuple[str, str], _Idle]) -> None:
    gone, taken = moment.away | moment.kept, set[str]()
    empty = [node for node in moment.record.nodes.values() if node.name not in gone and not moment.held(node.name)]
    for job, count in moment.shapes():
        others = [
            node for node in empty
            if node.name not in taken and not set(node.partitions) & set(job.partitions) and _takes(node, job)
        ]  # fmt: skip
        wanted = others[: count * job.node_count]
        if len(wanted) < job.node_count or moment.starts_now(job):
            continue
        taken.update(node.name for node in wanted)
        name = wanted[0].partitions[0]
        cost = found[name, job.partitions[0] if job.partitions else ""]
        cost.add(wanted, job, count, moment.hours)
        cost.why[_barrier(moment.record.partitions.get(name), job)] += count


def _barrier(partition: Partition | None, job: AccountedJob) -> str:
    """The limit of a partition that keeps a job out."""
    if partition is None or partition.state != "UP":
        return "State"
    most = partition.max_time_seconds
    if most is not None and most != UNLIMITED and (job.limit is None or job.limit == UNLIMITED or job.limit > most):
        return "MaxTime"
    return "MaxNodes" if partition.max_nodes is not None and job.node_count > partition.max_nodes else "not asked for"


def _beside_told(record: ClusterRecord, names: tuple[str, str], cost: _Idle, share: float) -> ClusterFinding:
    idle, full = (listed([name]) for name in names)
    why = cost.why.most_common(1)[0][0]
    limits = {
        "MaxTime": f"its MaxTime is shorter than the {format_duration(cost.longest)} that they ask for",
        "MaxNodes": "its MaxNodes is less than they ask for",
        "State": "it is not UP",
        "not asked for": "they did not name it, or it is not open to them",
    }
    change = {
        "MaxTime": f"MaxTime={format_duration(cost.longest)} of partition {idle} (slurm.conf)",
        "MaxNodes": f"MaxNodes of partition {idle} (slurm.conf)",
        "State": f"State=UP of partition {idle}, if nothing speaks against it",
        "not asked for": f"AllowAccounts and AllowQos of partition {idle} (slurm.conf), if they keep these users out",
    }
    known = record.partitions.get(names[0])
    most = None if known is None else known.max_time_seconds
    time = f"#SBATCH --time={format_duration(most or 0)}"
    shorter = (time, "with a checkpoint, where a run takes longer") if why == "MaxTime" and most else ()
    return ClusterFinding(
        id="idle-beside-queue",
        level=level_of(share),
        title=f"Nodes of partition {idle} stood idle while jobs waited in {full} that fit there: {limits[why]}.",
        share=share,
        cost=cost.cost,
        evidence={"idle_node_hours": rounded(cost.node_hours), "idle": idle, "full": full, "why": why},
        who=tuple(user for user, _ in cost.users.most_common()),
        for_users=(f"#SBATCH --partition={full},{idle}", *shorter),
        for_administrators=(change[why],),
        risk="Whoever the partition is kept for waits longer once others run there, the more so behind long jobs.",
    )  # fmt: skip


# --- Reservations -----------------------------------------------------------------------------------------------------


def empty_reservations(record: ClusterRecord) -> Iterator[ClusterFinding]:
    """Reservations whose nodes stood idle while jobs waited that would have run there; those for work on nodes not."""
    kept = [span for span in record.kept or () if not span.maintenance and span.end > record.begin]
    found = {span: _Idle() for span in kept}
    used: Counter[NodeSpan] = Counter()
    whole_time: Counter[NodeSpan] = Counter()
    for moment in moments(record) if kept else ():
        for span in kept:
            if span.start <= moment.at < span.end:
                nodes = [record.nodes[name] for name in sorted(span.nodes - moment.away) if name in record.nodes]
                whole_time[span] += len(nodes)
                used[span] += sum(bool(moment.held(node.name)) for node in nodes)
                _kept_idle(moment, nodes, found[span])
    for span, cost in found.items():
        idle = 1 - used[span] / whole_time[span] if whole_time[span] else 0.0
        share = cost.share(record)
        if idle >= EMPTY and share >= LEAST:
            yield _reservation_told(span, cost, idle, share)


def _kept_idle(moment: Moment, nodes: Sequence[Node], cost: _Idle) -> None:
    left = [node for node in nodes if not moment.held(node.name)]
    for job, count in moment.shapes():
        fitting = [node for node in left if set(node.partitions) & set(job.partitions) and _takes(node, job)]
        wanted = fitting[: count * job.node_count]
        if wanted and not moment.starts_now(job):
            left = [node for node in left if node not in wanted]
            cost.add(wanted, job, count, moment.hours)


def _reservation_told(span: NodeSpan, cost: _Idle, idle: float, share: float) -> ClusterFinding:
    return ClusterFinding(
        id="empty-reservation",
        level=level_of(share),
        title=f"The reservation {listed([span.name])} was empty for {idle:.0%} of its time"
        " while jobs waited that would have run there.",
        share=share,
        cost=cost.cost,
        evidence={"idle_share": round(idle, 3), "nodes": len(span.nodes), "idle_node_hours": rounded(cost.node_hours)},
        for_administrators=(
            "scontrol create reservation ... Flags=PURGE_COMP=00:30:00: it ends when nobody used it so long",
            "or a shorter one, or MaxStartDelay so that jobs may run until it is used",
        ),
        risk="Who comes later than PURGE_COMP finds the reservation gone.",
    )  # fmt: skip


# --- Jobs that cannot start -------------------------------------------------------------------------------------------


def cannot_start(record: ClusterRecord) -> Iterator[ClusterFinding]:
    """Jobs that waited behind a limit of their partition, or ask for more than any of its nodes has."""
    every = sum(waited(job, record) for job in record.jobs) / 3600
    stuck: defaultdict[str, list[AccountedJob]] = defaultdict(list)
    for job in record.jobs:
        why = (job.reason or "") if is_barred(job) else _too_large(job, record)
        if why and waited(job, record):
            stuck[why].append(job)
    for why, jobs in stuck.items():
        hours = sum(waited(job, record) for job in jobs) / 3600
        if hours < _FEWEST_HOURS:
            continue
        partitions = list(dict.fromkeys(name for job in jobs for name in job.partitions))
        yield ClusterFinding(
            id="cannot-start",
            level=level_of(hours / every, BARRED_HIGH, BARRED_MEDIUM),
            title=f"{len(jobs)} jobs waited in {listed(partitions)} that no free node would start: {listed([why])}.",
            share=hours / every,
            cost=FindingCost(waiting_hours=rounded(hours)),
            evidence={"jobs": len(jobs), "reason": listed([why]), "share_of_waiting_hours": round(hours / every, 3)},
            who=tuple(dict.fromkeys(job.user for job in jobs)),
            for_users=tuple(_within(record, partitions)),
            for_administrators=("EnforcePartLimits=ALL (slurm.conf): such jobs are refused when they are submitted",),
            risk="Scripts that count on a later change of the limits are refused as well.",
        )


def _too_large(job: AccountedJob, record: ClusterRecord) -> str:
    """What of a job is larger than any node of its partitions; nothing for one that ran, or where none is known."""
    if job.start is not None:
        return ""
    nodes = [node for node in record.nodes.values() if set(node.partitions) & set(job.partitions)]
    if not nodes or any(whole(node).holds(need_of(job)) for node in nodes):
        return ""
    return "more on one node than any of them has"


def _within(record: ClusterRecord, partitions: Sequence[str]) -> Iterator[str]:
    for name in partitions:
        known = record.partitions.get(name)
        if known is not None and known.max_time_seconds not in {None, UNLIMITED}:
            yield f"#SBATCH --time={format_duration(known.max_time_seconds or 0)}"
        if known is not None and known.max_nodes is not None:
            yield f"#SBATCH --nodes={known.max_nodes}"
