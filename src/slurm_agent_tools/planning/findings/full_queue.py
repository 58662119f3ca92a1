"""What the queue waits for, and whether one user has filled it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from slurm_agent_tools.models.accounted import AccountedJob, ClusterRecord
from slurm_agent_tools.planning.findings.finding import (
    ClusterFinding,
    FindingCost,
    level_of,
    listed,
    rounded,
    shown_name,
)
from slurm_agent_tools.planning.findings.occupancy import Moment, Room, moments, need_of

MOST_OF_IT = 0.6
"""The share of what a partition has from which on one user has filled it; of three, each would have a third."""

STARVED = 3
"""Other users who wait: with fewer it is a race between two, and no queue."""

FILLED_HIGH, FILLED_MEDIUM, FILLED_LOW = 0.25, 0.10, 0.02
"""Shares of the time in which that was so. A tenth of a week are two working days."""

_BLOCK = 6  # hours of the day


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What jobs that waited over an hour lacked in a partition: `hours` of waiting, `share` of the partition's.

    `when`: the six hours of the day (UTC) in which most of it was waited.
    """

    partition: str
    resource: str
    hours: float
    share: float
    when: str


def filled_by_one(record: ClusterRecord) -> Iterator[ClusterFinding]:
    """One user who has most of a partition while several others wait there."""
    filled: Counter[tuple[str, str]] = Counter()
    waiting: defaultdict[tuple[str, str], float] = defaultdict(float)
    count = 0
    for moment in moments(record):
        count += 1
        for name in record.partitions:
            queue = {job: number for job, number in moment.waiting.items() if name in job.partitions}
            user = _holder(moment, name, queue) if queue else None
            others = {job: number for job, number in queue.items() if job.user != user}
            if user is not None and len({job.user for job in others}) >= STARVED:
                filled[name, user] += 1
                waiting[name, user] += sum(others.values()) * moment.hours
    for (name, user), times in filled.items():
        share = times / count
        if share >= FILLED_LOW:
            yield _filled_told(name, user, share, waiting[name, user])


def _holder(moment: Moment, partition: str, queue: Iterable[AccountedJob]) -> str | None:
    """Who has more than MOST_OF_IT of the GPUs of a partition, or of its cores where nobody waits for GPUs."""
    nodes = moment.nodes((partition,))
    gpus = any(job.gpus for job in queue)
    there = sum(node.gpus if gpus else node.cpus for node in nodes)
    held: defaultdict[str, float] = defaultdict(float)
    for node in nodes:
        for job in moment.held(node.name):
            held[job.user] += need_of(job).gpus if gpus else need_of(job).cpus
    most = max(held.items(), key=lambda item: item[1], default=None)
    return most[0] if most is not None and most[1] > MOST_OF_IT * there else None


def _filled_told(partition: str, user: str, share: float, hours: float) -> ClusterFinding:
    return ClusterFinding(
        id="filled-by-one-user",
        level=level_of(share, FILLED_HIGH, FILLED_MEDIUM),
        title=f"{shown_name(user)} had most of partition {listed([partition])} for {share:.0%} of the time while"
        f" {STARVED} others or more waited over an hour.",
        share=share,
        cost=FindingCost(waiting_hours=rounded(hours)),
        evidence={"share_of_time": round(share, 3), "others_waiting_hours": rounded(hours)},
        who=(user,),
        for_users=("#SBATCH --array=...%N with a small N, so that others run between",),
        for_administrators=(
            "PriorityWeightFairshare above PriorityWeightAge and PriorityWeightJobSize (slurm.conf)",
            "sacctmgr modify qos NAME set MaxTRESPerUser=gres/gpu=N,cpu=N",
        ),
        risk="A limit per user leaves nodes idle when nobody else is there; weights change the order of all who wait.",
    )  # fmt: skip


# --- Which resource binds when ----------------------------------------------------------------------------------------


def bottlenecks(record: ClusterRecord) -> list[Bottleneck]:
    """What those lack who wait for over an hour, by partition; the most first."""
    hours: defaultdict[tuple[str, str], float] = defaultdict(float)
    blocks: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for moment in moments(record):
        block = int(moment.at // 3600 % 24) // _BLOCK
        lacks: dict[tuple[tuple[str, ...], Room], str] = {}
        for job, count in moment.waiting.items():
            alike = job.partitions, need_of(job)  # users and limits tell apart many that need the same
            if alike not in lacks:
                lacks[alike] = _lacks(moment, job)
            key = (job.partitions[0] if job.partitions else "", lacks[alike])
            hours[key] += count * moment.hours
            blocks[key][block] += count
    totals: Counter[str] = Counter()
    for (name, _), value in hours.items():
        totals[name] += round(value * 1000)
    found = [
        Bottleneck(name, resource, value, value * 1000 / max(1, totals[name]), _when(blocks[name, resource]))
        for (name, resource), value in hours.items()
    ]
    return sorted(found, key=lambda one: -one.hours)


def _when(blocks: Counter[int]) -> str:
    first = blocks.most_common(1)[0][0] * _BLOCK
    return f"{first:02d}:00-{first + _BLOCK:02d}:00"


def _lacks(moment: Moment, job: AccountedJob) -> str:
    """What most nodes of its partitions lack for it."""
    need, missing = need_of(job), Counter[str]()
    nodes = moment.nodes(job.partitions)
    for node in nodes:
        free = moment.free(node)
        missing["GPUs"] += need.gpus > free.gpus
        missing["cores"] += need.cpus > free.cpus
        missing["memory"] += need.memory > free.memory
    if not nodes:
        return "nodes: all are down, drained or reserved"
    what, times = max(missing.items(), key=lambda item: item[1])
    return what if times else "an order: nodes are kept for larger jobs"
