"""What a person should see of a job while it waits, runs and ends: facts in, alerts out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from slurm_agent_tools.diagnosis.alert_types import KINDS, WAITS_FOR_OTHERS, AlertFacts, alert, crowded
from slurm_agent_tools.diagnosis.cannot_start import CannotStart, cannot_start
from slurm_agent_tools.diagnosis.job_parts import bad
from slurm_agent_tools.diagnosis.phrases import flat, listed, named, outcome, percent, span
from slurm_agent_tools.insights.sizing import percentile
from slurm_agent_tools.models.job import Job, JobRecord
from slurm_agent_tools.models.node import Node, Reservation
from slurm_agent_tools.models.shapes import Alert
from slurm_agent_tools.units import format_duration, human_memory

_CLOSED = ("DOWN", "INACTIVE")

_DRAINS = "DRAIN"


def node_trouble(facts: AlertFacts) -> Iterator[Alert]:
    """A node that failed under it, or one of its own that is down, failing or silent."""
    told, taken = [], _taken(facts)
    lost = [part for part in facts.parts if part.state in {"NODE_FAIL", "BOOT_FAIL"}]
    if lost:
        told.append(f"A node failed under job {facts.job.job_id}: {listed(part.nodes or 'unknown' for part in lost)}.")
    bad = [node for node in facts.nodes or () if node.name in taken and node.troubled]
    if bad:
        told.append(f"Job {facts.job.job_id} runs on a node in trouble: {_states(bad)}.")
    if told:
        yield alert("node-trouble", " ".join(told), facts.job)


def _taken(facts: AlertFacts) -> frozenset[str]:
    """The nodes that its active parts hold."""
    pairs = zip(facts.parts, facts.hosts, strict=False)
    return frozenset[str]().union(*(hosts for part, hosts in pairs if part.active))


def out_of_reach(facts: AlertFacts, part: Job) -> CannotStart | None:
    """Nodes without which a waiting part does not start, and that take no job now.

    Slurm's reason alone proves neither: it names nodes that are only busy, and it is gone as soon as another job of
    the partition waits as well (both measured).
    """
    if part.reason in WAITS_FOR_OTHERS:
        return None
    needed = facts.needed.get(part.job_id, frozenset())
    gone = [node for node in facts.nodes or () if node.name in needed and (node.troubled or node.drained)]
    if not gone or (part.required_nodes is None and len(gone) < len(needed)):
        return None
    which = "a node that it named takes" if part.required_nodes else "the nodes that could run it take"
    why = "" if part.reason is None else f" ({flat(part.reason)})"
    told = f"{named(part)} cannot start: {which} no jobs, {_states(gone)}{why}."
    return CannotStart(f"{told} An administrator has to bring back what it needs, or the job has to do without.")


def _states(nodes: Sequence[Node]) -> str:
    return listed(f"{node.name} is {node.state}" + (f" ({flat(node.reason)})" if node.reason else "") for node in nodes)


def partition_down(facts: AlertFacts) -> Iterator[Alert]:
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


def maintenance(facts: AlertFacts) -> Iterator[Alert]:
    """The first reservation for maintenance that it meets."""
    kept = [one for one in facts.reservations or () if one.maintenance and one.end > facts.now]
    for one in sorted(kept, key=lambda found: found.start):
        text = _meets(facts, one)
        if text is not None:
            when = f"{one.start:%Y-%m-%d %H:%M} to {one.end:%Y-%m-%d %H:%M} UTC"
            yield alert("maintenance", f"Maintenance {one.name}, {when}: {text}", facts.job)
            return


def _meets(facts: AlertFacts, one: Reservation) -> str | None:
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


def _able(facts: AlertFacts, part: Job) -> frozenset[str]:
    """The nodes of the partitions that a waiting part named."""
    names = set((part.partition or "").split(","))
    return frozenset(node.name for node in facts.nodes or () if names & set(node.partitions))


# --- What a person should see of a job while it waits, runs and ends: facts in, alerts out ----------------------------


MEMORY_SHARE = 0.95

TIME_LEFT = 300

LEAST_LEFT = 0.2
"""Of the limit: a short job has little time from its start on."""

AT_ONCE = 60
"""Seconds below which nobody can be told in time but at once."""

PATIENCE = 30
"""Seconds that a job may wait in any case: an estimate of a second says nothing."""

ENOUGH_RUNS = 3

SLOWER = 2.0

SLACK = 10
"""Seconds beyond its like before it that a run may take in any case."""


def alerts(facts: AlertFacts) -> list[Alert]:
    """All that hold, the gravest first."""
    found = [alert for condition in _CONDITIONS for alert in condition(facts)]
    order = {name: number for number, name in enumerate(KINDS)}
    return sorted(found, key=lambda alert: (alert.severity != "critical", order[alert.code]))


# --- what ended --------------------------------------------------------------------------------------------------


def _failed(facts: AlertFacts) -> Iterator[Alert]:
    whole, gone = facts.job, [part for part in facts.parts if bad(part)]
    if gone and gone[0].job_id == whole.job_id:
        told = outcome(replace(whole, cancelled_by=None))
        yield alert("job-failed", f"{named(whole)} ended in {told}.", whole)
    elif gone:
        kind = "component" if gone[0].job_id.component is not None else "task"
        many = f"{len(gone)} {kind}{'' if len(gone) == 1 else 's'}"
        told = listed(f"{part.job_id} {outcome(replace(part, cancelled_by=None))}" for part in gone)
        rest = " The others go on." if whole.active else ""
        yield alert("job-failed", f"{named(whole)}: {many} failed: {told}.{rest}", whole)


def _preempted(facts: AlertFacts) -> Iterator[Alert]:
    gone = [part for part in facts.parts if part.state == "PREEMPTED"]
    if gone:
        told = listed(str(part.job_id) for part in gone)
        text = f"Ended to make room for a job that goes before it: {told}. Nothing is sent again by itself."
        yield alert("preempted", text, facts.job)


def _requeued(facts: AlertFacts) -> Iterator[Alert]:
    again = [part for part in facts.parts if part.restarts and part.active]
    if again:
        times = max(part.restarts or 0 for part in again)
        waits = all(part.state == "PENDING" for part in again)
        told = f"put job {facts.job.job_id} back into the queue" if waits else f"started job {facts.job.job_id} again"
        yield alert("requeued", f"Slurm {told} (restarts so far: {times}).", facts.job)


# --- what runs ---------------------------------------------------------------------------------------------------


def _memory(facts: AlertFacts) -> Iterator[Alert]:
    using = facts.using
    if using is None or using.share is None or using.share <= MEMORY_SHARE:
        return
    size, limit = using.nearest
    used = f"{using.share:.1%} of its memory: {human_memory(size)} of {human_memory(limit)}"
    yield alert("memory-high", f"Job {using.part.job_id} has {used}. Above it Slurm ends the job.", using.part)


def _time(facts: AlertFacts) -> Iterator[Alert]:
    known = [(left, part) for part in facts.running if (left := time_left(part, facts.now)) is not None]
    short = [(left, part) for left, part in known if left < min(TIME_LEFT, LEAST_LEFT * _limit(part))]
    late = late_note(facts)
    if short:
        left, part = min(short, key=lambda pair: pair[0])
        end = facts.now + timedelta(seconds=left)
        text = f"{named(part)} has {span(left)} of its {format_duration(_limit(part))} left, until {end:%H:%M:%S} UTC."
        yield alert("time-left", _and(text, late), part, "critical" if left < AT_ONCE else None)
    elif late is not None and facts.using is not None:
        yield alert("time-left", f"{named(facts.using.part)}: {late}", facts.using.part)


def late_note(facts: AlertFacts) -> str | None:
    """That a job will not be done in time, by its log; None where it will, or where nobody knows."""
    using = facts.using
    whole = None if using is None else using.missed(facts.now)
    if using is None or using.progress is None or whole is None:
        return None
    limit = format_duration(_limit(using.part))
    return (
        f"By its log {percent(using.progress)} is done; at this pace the whole run takes"
        f" {format_duration(round(whole))}, its limit is {limit}: it will not be done in time."
    )


def _and(text: str, more: str | None) -> str:
    return text if more is None else f"{text} {more}"


def _limit(part: Job) -> int:
    return part.resources.time_limit_seconds or 0


def time_left(job: Job, now: datetime) -> int | None:
    """Seconds until the time limit ends a running job; None where there is no limit or it does not run."""
    limit = job.resources.time_limit_seconds
    if job.state != "RUNNING" or limit is None or limit < 0 or job.started is None:
        return None
    return max(0, round(limit - (now - job.started).total_seconds()))


def _slow(facts: AlertFacts) -> Iterator[Alert]:
    usual = typical(facts.like)
    if usual is None or not facts.running:
        return
    part = max(facts.running, key=lambda one: one.elapsed_seconds or 0)
    passed = _passed(part, facts.now)
    whole = (None if facts.using is None else facts.using.whole(facts.now)) or passed
    if whole > max(SLOWER * usual, usual + SLACK):
        so_far = f"runs for {span(passed)}" if whole == passed else f"will take about {span(whole)} by its progress"
        others = f"95 % of {len(_finished(facts.like))} like runs took {span(usual)} at most"
        yield alert("slow-run", f"Job {part.job_id} {so_far}; {others}.", part)


def typical(like: Iterable[JobRecord]) -> int | None:
    """Seconds within which 95 % of the completed runs ended (nearest rank); None where there are too few."""
    seconds = _finished(like)
    most = percentile([(value, 1) for value in seconds]) if len(seconds) >= ENOUGH_RUNS else None
    return None if most is None else round(most)


def _finished(like: Iterable[JobRecord]) -> list[int]:
    told = [(record, None if record.usage is None else record.usage.elapsed_seconds) for record in like]
    return [seconds for record, seconds in told if record.state == "COMPLETED" and seconds is not None]


def _passed(part: Job, now: datetime) -> float:
    return (now - part.started).total_seconds() if part.started is not None else float(part.elapsed_seconds or 0)


# --- what waits --------------------------------------------------------------------------------------------------


def _cannot_start(facts: AlertFacts) -> Iterator[Alert]:
    for part in facts.waiting:
        found = cannot_start(part) or out_of_reach(facts, part)
        if found is not None and found.request:
            yield alert("cannot-start", found.told, part)
            return


def _long_wait(facts: AlertFacts) -> Iterator[Alert]:
    estimate = facts.estimate
    part = next((one for one in facts.waiting if one.reason not in WAITS_FOR_OTHERS), None)
    if part is None or estimate is None or len(facts.waiting) < len(facts.parts):
        return
    since = max((moment for moment in (part.submitted, part.eligible) if moment is not None), default=None)
    waited = 0.0 if since is None else (facts.now - since).total_seconds()
    if waited > max(2 * estimate.seconds, PATIENCE):
        then = (
            ""
            if part.expected_start is None
            else f" Now it is expected to start at {part.expected_start:%Y-%m-%d %H:%M} UTC."
        )
        text = f"Job {part.job_id} waits for {span(waited)}; expected were {span(estimate.seconds)} ({estimate.source})"
        yield alert("long-wait", f"{text}.{then}", part)


def _queue(facts: AlertFacts) -> Iterator[Alert]:
    if facts.pending is not None:
        yield from crowded(facts.pending)


_CONDITIONS: tuple[Callable[[AlertFacts], Iterator[Alert]], ...] = (
    _failed, _preempted, _requeued, node_trouble, partition_down, maintenance, _memory, _time, _slow, _cannot_start,
    _long_wait, _queue,
)  # fmt: skip
