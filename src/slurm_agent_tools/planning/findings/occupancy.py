"""Who held which node, and who waited, at moments of the time that is looked at.

Moments stand for equal stretches of time: what lasts much shorter than one is seen by chance only, and weighs little.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from slurm_agent_tools.models.accounted import AccountedJob, ClusterRecord, NodeSpan
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.planning.findings.finding import PATIENCE

MOMENTS = 336
"""Of a week: one every half hour."""

_FEWEST_SECONDS = 300.0

_OWN_LIMITS = ("QOS", "Assoc", "JobHeld", "JobArrayTaskLimit", "Licenses", "Dependency", "BeginTime", "Cleaning")
"""Reasons by which a job waited for its own limits or wishes, however much was free."""

_BARRED = ("PartitionTimeLimit", "PartitionNodeLimit", "PartitionDown", "PartitionInactive", "BadConstraints")
"""Reasons by which it would never have started as it is."""


@dataclass(frozen=True, slots=True)
class Room:
    """What is free on one node, or what a job needs of each of its nodes. Memory in bytes."""

    cpus: float
    memory: float
    gpus: float

    def holds(self, need: Room) -> bool:
        """Whether a job that needs so much of one node fits."""
        return need.cpus <= self.cpus and need.memory <= self.memory and need.gpus <= self.gpus

    def plus(self, other: Room) -> Room:
        """Both together."""
        return Room(self.cpus + other.cpus, self.memory + other.memory, self.gpus + other.gpus)


def need_of(job: AccountedJob) -> Room:
    """What a job needs of each of its nodes; what is not known is none."""
    nodes = max(1, len(job.nodes) or job.node_count)
    return Room(math.ceil((job.cpus or 0) / nodes), (job.memory or 0) / nodes, math.ceil(job.gpus / nodes))


def whole(node: Node) -> Room:
    """All of a node."""
    return Room(node.cpus, node.memory_bytes, node.gpus)


def share_of(need: Room, node: Node) -> float:
    """The largest share of any resource of a node that a need takes, 0..1: nobody else can use so much of it."""
    parts = ((need.cpus, node.cpus), (need.memory, node.memory_bytes), (need.gpus, node.gpus))
    return min(1.0, max(taken / there if there else 0.0 for taken, there in parts))


def for_resources(job: AccountedJob) -> bool:
    """Whether it waits for what others have, and not for limits of its own."""
    return not (job.reason or "").startswith(_OWN_LIMITS)


def is_barred(job: AccountedJob) -> bool:
    """Whether it waits behind a limit of its partition, which no free node changes."""
    return (job.reason or "").startswith(_BARRED)


def waited(job: AccountedJob, record: ClusterRecord) -> float:
    """Seconds that it waited inside the time that is looked at; of one that waits still, until its end."""
    if job.ready is None:
        return 0.0
    until = next((moment for moment in (job.start, job.end) if moment is not None), record.end)
    return max(0.0, min(until, record.end) - max(job.ready, record.begin))


@dataclass(slots=True)
class Moment:
    """One moment: `seconds` is how long it stands for. It holds until the next one is asked for.

    `waiting`: of those who have been waiting for resources longer than PATIENCE one of each kind, and how many are
    alike, in the order in which the kinds began to wait. `away`: nodes that were down or drained,
    `kept`: those in a reservation.
    """

    at: float
    seconds: float
    record: ClusterRecord
    holders: dict[str, dict[int, AccountedJob]] = field(default_factory=dict)
    waiting: Mapping[AccountedJob, int] = field(default_factory=dict)
    away: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    _left: dict[str, Room] = field(default_factory=dict)
    _there: dict[tuple[str, ...], list[Node]] = field(default_factory=dict)

    @property
    def hours(self) -> float:
        """How long it stands for."""
        return self.seconds / 3600

    def held(self, node: str) -> tuple[AccountedJob, ...]:
        """Who has something of a node."""
        return tuple(self.holders.get(node, {}).values())

    def free(self, node: Node) -> Room:
        """What is left of a node."""
        left = self._left.get(node.name)
        if left is None:
            left = whole(node)
            for job in self.held(node.name):
                need = need_of(job)
                left = Room(left.cpus - need.cpus, left.memory - need.memory, left.gpus - need.gpus)
            self._left[node.name] = left
        return left

    def nodes(self, partitions: tuple[str, ...]) -> list[Node]:
        """The nodes of partitions that were there for everybody."""
        found = self._there.get(partitions)
        if found is None:
            wanted, gone = set(partitions), self.away | self.kept
            every = self.record.nodes.values()
            found = [node for node in every if node.name not in gone and wanted.intersection(node.partitions)]
            self._there[partitions] = found
        return found

    def shapes(self) -> list[tuple[AccountedJob, int]]:
        """Those who wait, alike ones counted: one of each, and how many."""
        return list(islice(self.waiting.items(), _SHAPES))

    def starts_now(self, job: AccountedJob) -> bool:
        """Whether enough nodes of its own partitions have room for it: something else kept it waiting."""
        need, fitting = need_of(job), 0
        for node in self.nodes(job.partitions):
            fitting += self.free(node).holds(need)
            if fitting >= job.node_count:
                return True
        return False


_SHAPES = 30  # kinds of waiting jobs at one moment; more say nothing else

_PLAIN = AccountedJob("", "", (), "PENDING", None, None, None, None, None, 0, 1)


def moments(record: ClusterRecord) -> Iterator[Moment]:
    """The moments of a record, in the middle of equal stretches."""
    span = record.end - record.begin
    count = max(1, min(MOMENTS, math.floor(span / _FEWEST_SECONDS)))
    step = span / count
    running = _Running(record)
    away = frozenset(node.name for node in record.nodes.values() if node.troubled or node.drained)
    queue = _Waiting(record)
    for index in range(count):
        at = record.begin + (index + 0.5) * step
        gone = away if record.outages is None else _covered(record.outages, at)
        yield Moment(at, step, record, running.at(at), queue.at(at), gone, _covered(record.kept, at))


def _covered(spans: tuple[NodeSpan, ...] | None, at: float) -> frozenset[str]:
    return frozenset().union(*(span.nodes for span in spans or () if span.start <= at < span.end))


class _Running:
    """Who runs, moment after moment."""

    def __init__(self, record: ClusterRecord) -> None:
        ran = [job for job in record.jobs if job.start is not None and job.nodes]
        self._starts = sorted(ran, key=lambda job: job.start or 0.0)
        self._next = 0
        self._now: dict[int, AccountedJob] = {}
        self._holders: dict[str, dict[int, AccountedJob]] = {}

    def at(self, at: float) -> dict[str, dict[int, AccountedJob]]:
        for number in [number for number, job in self._now.items() if job.end is not None and job.end <= at]:
            for node in self._now.pop(number).nodes:
                self._holders[node].pop(number, None)
        while self._next < len(self._starts) and (self._starts[self._next].start or 0.0) <= at:
            job = self._starts[self._next]
            if job.end is None or job.end > at:
                self._now[self._next] = job
                for node in job.nodes:
                    self._holders.setdefault(node, {})[self._next] = job
            self._next += 1
        return self._holders


class _Waiting:
    """Who has been waiting for long, moment after moment: by what they ask for, so that a long queue costs little."""

    def __init__(self, record: ClusterRecord) -> None:
        asked = [job for job in record.jobs if job.ready is not None and for_resources(job) and not is_barred(job)]
        long = [(job, _alike(job)) for job in asked if waited(job, record) > PATIENCE]
        self._since = sorted((((job.ready or 0.0) + PATIENCE, kind) for job, kind in long), key=_when)
        ends = [(job.start if job.start is not None else job.end, kind) for job, kind in long]
        self._until = sorted(((end, kind) for end, kind in ends if end is not None), key=_when)
        self._come = self._gone = 0
        self._now: dict[AccountedJob, int] = {}

    def at(self, at: float) -> Mapping[AccountedJob, int]:
        while self._come < len(self._since) and self._since[self._come][0] <= at:
            kind = self._since[self._come][1]
            self._now[kind] = self._now.get(kind, 0) + 1
            self._come += 1
        while self._gone < len(self._until) and self._until[self._gone][0] <= at:  # nobody goes before they have come
            kind = self._until[self._gone][1]
            self._now[kind] -= 1
            if not self._now[kind]:
                del self._now[kind]
            self._gone += 1
        return self._now


def _when(event: tuple[float, AccountedJob]) -> float:
    return event[0]


def _alike(job: AccountedJob) -> AccountedJob:
    """What a job has in common with others that ask for the same."""
    return replace(
        _PLAIN, user=job.user, partitions=job.partitions, cpus=job.cpus, memory=job.memory, gpus=job.gpus,
        node_count=job.node_count, gpu_types=job.gpu_types, limit=job.limit,
    )  # fmt: skip
