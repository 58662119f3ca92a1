"""What a person should see of a job while it waits, runs and ends: facts in, alerts out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from slurm_agent_tools.diagnosis.kinds import KINDS, WAITS_FOR_OTHERS, Facts, alert, called, crowded, span
from slurm_agent_tools.diagnosis.parts import bad
from slurm_agent_tools.diagnosis.stuck import stuck
from slurm_agent_tools.diagnosis.surroundings import maintenance, node_trouble, out_of_reach, partition_down
from slurm_agent_tools.diagnosis.words import listed, outcome, percent
from slurm_agent_tools.history.records import JobRecord
from slurm_agent_tools.history.sizing import percentile
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies import Alert
from slurm_agent_tools.units import format_duration, human_memory

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


def alerts(facts: Facts) -> list[Alert]:
    """All that hold, the gravest first."""
    found = [alert for condition in _CONDITIONS for alert in condition(facts)]
    order = {name: number for number, name in enumerate(KINDS)}
    return sorted(found, key=lambda alert: (alert.severity != "critical", order[alert.code]))


# --- what ended --------------------------------------------------------------------------------------------------


def _failed(facts: Facts) -> Iterator[Alert]:
    whole, gone = facts.job, [part for part in facts.parts if bad(part)]
    if gone and gone[0].job_id == whole.job_id:
        told = outcome(replace(whole, cancelled_by=None))
        yield alert("job-failed", f"{called(whole)} ended in {told}.", whole)
    elif gone:
        kind = "component" if gone[0].job_id.component is not None else "task"
        many = f"{len(gone)} {kind}{'' if len(gone) == 1 else 's'}"
        told = listed(f"{part.job_id} {outcome(replace(part, cancelled_by=None))}" for part in gone)
        rest = " The others go on." if whole.active else ""
        yield alert("job-failed", f"{called(whole)}: {many} failed: {told}.{rest}", whole)


def _preempted(facts: Facts) -> Iterator[Alert]:
    gone = [part for part in facts.parts if part.state == "PREEMPTED"]
    if gone:
        told = listed(str(part.job_id) for part in gone)
        text = f"Ended to make room for a job that goes before it: {told}. Nothing is sent again by itself."
        yield alert("preempted", text, facts.job)


def _requeued(facts: Facts) -> Iterator[Alert]:
    again = [part for part in facts.parts if part.restarts and part.active]
    if again:
        times = max(part.restarts or 0 for part in again)
        waits = all(part.state == "PENDING" for part in again)
        told = f"put job {facts.job.job_id} back into the queue" if waits else f"started job {facts.job.job_id} again"
        yield alert("requeued", f"Slurm {told} (restarts so far: {times}).", facts.job)


# --- what runs ---------------------------------------------------------------------------------------------------


def _memory(facts: Facts) -> Iterator[Alert]:
    using = facts.using
    if using is None or using.share is None or using.share <= MEMORY_SHARE:
        return
    size, limit = using.nearest
    used = f"{using.share:.1%} of its memory: {human_memory(size)} of {human_memory(limit)}"
    yield alert("memory-high", f"Job {using.part.job_id} has {used}. Above it Slurm ends the job.", using.part)


def _time(facts: Facts) -> Iterator[Alert]:
    known = [(left, part) for part in facts.running if (left := time_left(part, facts.now)) is not None]
    short = [(left, part) for left, part in known if left < min(TIME_LEFT, LEAST_LEFT * _limit(part))]
    late = late_note(facts)
    if short:
        left, part = min(short, key=lambda pair: pair[0])
        end = facts.now + timedelta(seconds=left)
        text = f"{called(part)} has {span(left)} of its {format_duration(_limit(part))} left, until {end:%H:%M:%S} UTC."
        yield alert("time-left", _and(text, late), part, "critical" if left < AT_ONCE else None)
    elif late is not None and facts.using is not None:
        yield alert("time-left", f"{called(facts.using.part)}: {late}", facts.using.part)


def late_note(facts: Facts) -> str | None:
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


def _slow(facts: Facts) -> Iterator[Alert]:
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


def _cannot_start(facts: Facts) -> Iterator[Alert]:
    for part in facts.waiting:
        found = stuck(part) or out_of_reach(facts, part)
        if found is not None and found.request:
            yield alert("cannot-start", found.told, part)
            return


def _long_wait(facts: Facts) -> Iterator[Alert]:
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


def _queue(facts: Facts) -> Iterator[Alert]:
    if facts.pending is not None:
        yield from crowded(facts.pending)


_CONDITIONS: tuple[Callable[[Facts], Iterator[Alert]], ...] = (
    _failed, _preempted, _requeued, node_trouble, partition_down, maintenance, _memory, _time, _slow, _cannot_start,
    _long_wait, _queue,
)  # fmt: skip
