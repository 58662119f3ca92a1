"""One pass of the fake scheduler: who may start, in the order of priority, and why the others wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from slurm_agent_tools.devcluster.fake import waiting_on
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob, Share
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition
from slurm_agent_tools.devcluster.fake.placement import place, possible

if TYPE_CHECKING:
    from slurm_agent_tools.devcluster.fake.controller import Controller


_BASE = 11010

_QOS = {"high": 5000, "normal": 0, "scavenger": -1000, "short": 100}

QOS = frozenset(_QOS)


def priority(job: FakeJob, partitions: Mapping[str, FakePartition]) -> int:
    """A number that only its order matters of."""
    tier = max((partitions[name].tier for name in job.partition.split(",") if name in partitions), default=1)
    return max(1, _BASE + (tier - 1) * 5 + _QOS.get(job.request.qos, 0) - job.request.nice)


def look(slurm: Controller) -> None:
    """Start what can start. No backfill: a job that has to wait holds up all behind it in its partition."""
    blocked: set[str] = set()
    for job in sorted(_waiting(slurm), key=lambda job: (-job.priority, job.number)):
        if job.offset or not _ready(slurm, job):
            continue
        if job.array is not None and job.task is None:
            _tasks(slurm, job, blocked)
        else:
            _try(slurm, job, blocked)


def _waiting(slurm: Controller) -> Iterable[FakeJob]:
    return [job for job in slurm.known() if job.state == "PENDING"]


def _ready(slurm: Controller, job: FakeJob) -> bool:
    """Whether only nodes are missing; else why it waits is written down."""
    now = slurm.now
    if job.request.deadline is not None and _late(slurm, job):
        return False
    if job.held is not None:
        return False
    conditions = slurm.conditions.get(job.number, waiting_on.Conditions())
    alike: list[FakeJob] = []
    if any(item.kind == "singleton" for item in conditions.items):
        alike = [one for one in slurm.known() if (one.user, one.request.name) == (job.user, job.request.name)]
    verdict, rest = waiting_on.judge(job, conditions, slurm.parts, now, alike)
    slurm.conditions[job.number] = rest
    job.dependency = rest.text
    if job.begin is not None and job.begin > now:
        return _waits(slurm, job, "BeginTime")
    if verdict != "met":
        reason = "Dependency" if verdict == "waits" else "DependencyNeverSatisfied"
        if verdict == "waits" and any(item.delay for item in rest.items):
            slurm.soon(60)
        return _waits(slurm, job, reason)
    if job.eligible is None:
        job.eligible = now if job.reason != "None" or job.array is not None else job.submitted
        slurm.accounting.note(job, now)
    limit = _limit(slurm, job)
    return limit is None or _waits(slurm, job, limit)


def _late(slurm: Controller, job: FakeJob) -> bool:
    """A job that cannot end before its deadline any more is over."""
    left = job.submitted + (job.request.deadline or 0) - slurm.now
    if left >= job.time_limit:
        slurm.soon(left - job.time_limit + 1)
        return False
    job.state, job.reason, job.start, job.end = "DEADLINE", "DeadLine", slurm.now, slurm.now
    job.code, job.signal = 0, 1
    slurm.accounting.note(job, slurm.now)
    return True


def _waits(slurm: Controller, job: FakeJob, reason: str) -> bool:
    if job.reason != reason:
        job.reason = reason
        if not slurm.modern:
            job.told_reason = reason
        slurm.accounting.note(job, slurm.now)
    return False


def _limit(slurm: Controller, job: FakeJob) -> str | None:
    """A limit of the partition that it is over, in Slurm's word."""
    parts = [slurm.partitions[name] for name in job.partition.split(",")]
    reasons = [over_limit(job, part) or ("PartitionDown" if not part.up else None) for part in parts]
    return None if None in reasons else reasons[0]


def over_limit(job: FakeJob, part: FakePartition) -> str | None:
    """Why a partition never takes it, as it is."""
    least = job.request.nodes_min or 1
    if least > min(part.max_nodes or least, len(part.nodes)):
        return "PartitionNodeLimit"
    if part.max_time is not None and (job.time_limit < 0 or job.time_limit > part.max_time):
        return "PartitionTimeLimit"
    return None


def _tasks(slurm: Controller, rest: FakeJob, blocked: set[str]) -> None:
    """Waiting tasks of an array, as many as its limit lets run at once."""
    for task in rest.waiting:
        running = sum(one.state == "RUNNING" for one in slurm.parts(rest.base))
        if rest.request.throttle and running >= rest.request.throttle:
            _waits(slurm, rest, "JobArrayTaskLimit")
            return
        found = _found(slurm, rest, blocked)
        if found is None:
            return
        if len(rest.waiting) == 1:
            rest.become(task)
            slurm.start(rest, *found)
        else:
            one = rest.split(task, slurm.take_number())
            slurm.jobs[one.number] = one
            slurm.start(one, *found)


def _try(slurm: Controller, job: FakeJob, blocked: set[str]) -> None:
    components = [job]
    if job.het is not None:
        components = [one for one in slurm.known() if one.het == job.het]
    places: list[tuple[str, list[Share]]] = []
    for one in components:
        found = _found(slurm, one, blocked, taken=[share for _, shares in places for share in shares])
        if found is None:
            return
        places.append(found)
    for one, found in reversed(list(zip(components, places, strict=True))):
        slurm.start(one, *found)


def _found(
    slurm: Controller, job: FakeJob, blocked: set[str], taken: Iterable[Share] = ()
) -> tuple[str, list[Share]] | None:
    """A partition and the nodes there; where there are none, the reason is written down."""
    names = job.partition.split(",")
    busy = {share.node for share in taken}
    for name in names:
        part = slurm.partitions[name]
        nodes = {key: node for key, node in slurm.nodes.items() if key not in busy}
        usable = replace(part, nodes=tuple(one for one in part.nodes if one not in busy))
        if name in blocked or over_limit(job, part) or not part.up or not usable.nodes:
            continue
        shares = place(job, usable, nodes, modern=slurm.modern)
        if shares is not None:
            return name, shares
    if all(name in blocked for name in names):
        _waits(slurm, job, "Priority")
        return None
    if not any(possible(job.request, slurm.partitions[name], slurm.nodes, modern=slurm.modern) for name in names):
        job.held, job.priority = "bad", 0
        _waits(slurm, job, "BadConstraints")
        return None
    blocked.update(names)
    _waits(slurm, job, _why_not(slurm, job))
    if job.request.qos == _STRONG and job.reason == "Resources":
        _make_room(slurm, names)
    return None


_STRONG, _WEAK = "high", "scavenger"  # as on the devcluster: the one preempts the other


def _make_room(slurm: Controller, names: Iterable[str]) -> None:
    weak = [one for one in slurm.known() if one.state == "RUNNING" and one.request.qos == _WEAK]
    for one in weak:
        if one.partition in names:
            slurm.preempt(one)


def _why_not(slurm: Controller, job: FakeJob) -> str:
    away = [name for name in job.request.nodelist if not slurm.nodes[name].usable]
    if away:
        return f"ReqNodeNotAvail, UnavailableNodes:{','.join(away)}"
    parts = [slurm.partitions[name] for name in job.partition.split(",")]
    if not any(possible(job.request, part, _usable(slurm.nodes, part), modern=slurm.modern) for part in parts):
        return _DOWN
    return "Resources"


_DOWN = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"


def _usable(nodes: Mapping[str, FakeNode], part: FakePartition) -> Mapping[str, FakeNode]:
    gone = FakeNode("", 0, 0)
    return {name: nodes[name] if nodes[name].usable else gone for name in part.nodes}
