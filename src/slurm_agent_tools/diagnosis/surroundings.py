"""Alerts about where a job is: its nodes, its partitions, and what they are kept for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from slurm_agent_tools.diagnosis.kinds import WAITS_FOR_OTHERS, Facts, alert, called
from slurm_agent_tools.diagnosis.nodes import drained, troubled
from slurm_agent_tools.diagnosis.stuck import Stuck
from slurm_agent_tools.diagnosis.words import flat, listed
from slurm_agent_tools.model import Job, Node, Reservation
from slurm_agent_tools.replies import Alert

_CLOSED = ("DOWN", "INACTIVE")
_DRAINS = "DRAIN"


def node_trouble(facts: Facts) -> Iterator[Alert]:
    """A node that failed under it, or one of its own that is down, failing or silent."""
    told, taken = [], _taken(facts)
    lost = [part for part in facts.parts if part.state in {"NODE_FAIL", "BOOT_FAIL"}]
    if lost:
        told.append(f"A node failed under job {facts.job.job_id}: {listed(part.nodes or 'unknown' for part in lost)}.")
    bad = [node for node in facts.nodes or () if node.name in taken and troubled(node)]
    if bad:
        told.append(f"Job {facts.job.job_id} runs on a node in trouble: {_states(bad)}.")
    if told:
        yield alert("node-trouble", " ".join(told), facts.job)


def _taken(facts: Facts) -> frozenset[str]:
    """The nodes that its active parts hold."""
    pairs = zip(facts.parts, facts.hosts, strict=False)
    return frozenset[str]().union(*(hosts for part, hosts in pairs if part.active))


def out_of_reach(facts: Facts, part: Job) -> Stuck | None:
    """Nodes without which a waiting part does not start, and that take no job now.

    Slurm's reason alone proves neither: it names nodes that are only busy, and it is gone as soon as another job of
    the partition waits as well (both measured).
    """
    if part.reason in WAITS_FOR_OTHERS:
        return None
    needed = facts.needed.get(part.job_id, frozenset())
    gone = [node for node in facts.nodes or () if node.name in needed and (troubled(node) or drained(node))]
    if not gone or (part.required_nodes is None and len(gone) < len(needed)):
        return None
    which = "a node that it named takes" if part.required_nodes else "the nodes that could run it take"
    why = "" if part.reason is None else f" ({flat(part.reason)})"
    told = f"{called(part)} cannot start: {which} no jobs, {_states(gone)}{why}."
    return Stuck(f"{told} An administrator has to bring back what it needs, or the job has to do without.")


def _states(nodes: Sequence[Node]) -> str:
    return listed(f"{node.name} is {node.state}" + (f" ({flat(node.reason)})" if node.reason else "") for node in nodes)


def partition_down(facts: Facts) -> Iterator[Alert]:
    """A partition of it that starts nothing, or takes nothing new (scontrol(1), State of a partition)."""
    names = dict.fromkeys(
        name for part in facts.parts if part.active for name in (part.partition or "").split(",") if name
    )
    known = facts.partitions or {}
    bad = [known[name] for name in names if name in known and known[name].state.upper().startswith((*_CLOSED, _DRAINS))]
    if bad:
        told = listed(f"{part.name} is {part.state}" for part in bad)
        drains = all(part.state.upper().startswith(_DRAINS) for part in bad)
        waits = "What waits there may start, nothing new is taken." if drains else "What waits there does not start."
        what = waits if facts.waiting else "What runs there goes on."
        yield alert("partition-down", f"A partition of job {facts.job.job_id}: {told}. {what}", facts.job)


def maintenance(facts: Facts) -> Iterator[Alert]:
    """The first reservation for maintenance that it meets."""
    kept = [one for one in facts.reservations or () if one.maintenance and one.end > facts.now]
    for one in sorted(kept, key=lambda found: found.start):
        text = _meets(facts, one)
        if text is not None:
            when = f"{one.start:%Y-%m-%d %H:%M} to {one.end:%Y-%m-%d %H:%M} UTC"
            yield alert("maintenance", f"Maintenance {one.name}, {when}: {text}", facts.job)
            return


def _meets(facts: Facts, one: Reservation) -> str | None:
    """How a reservation meets the job: its nodes are kept before it has to be over."""
    for part, hosts in zip(facts.parts, facts.hosts, strict=False):
        if part.state == "RUNNING" and hosts & one.nodes and one.start < _over(part, facts.now):
            return f"job {part.job_id} runs on {listed(sorted(hosts & one.nodes))} and may go on until then."
    for part in facts.waiting:
        able = _able(facts, part)
        if able and able <= one.nodes and one.start < _end(facts.now, part):
            return f"job {part.job_id} would not be over before it, on any node of {part.partition}."
        if able & one.nodes and "maintenance" in (part.reason or "").lower():
            return f"job {part.job_id} waits for its end, as Slurm says."
    return None


def _over(part: Job, now: datetime) -> datetime:
    """When a running part is over at the latest."""
    return _end(part.started or now, part)


def _end(start: datetime, part: Job) -> datetime:
    limit = part.resources.time_limit_seconds
    return datetime.max.replace(tzinfo=start.tzinfo) if limit is None or limit < 0 else start + timedelta(seconds=limit)


def _able(facts: Facts, part: Job) -> frozenset[str]:
    """The nodes of the partitions that a waiting part named."""
    names = set((part.partition or "").split(","))
    return frozenset(node.name for node in facts.nodes or () if names & set(node.partitions))
