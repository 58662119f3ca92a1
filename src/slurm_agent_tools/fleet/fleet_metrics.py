"""What monitoring is told of the cluster and of the guard: families of samples, of which no more than so many. Pure.

What was not measured has no sample: it is never 0. Names that others wrote (partitions, campaigns) are shown without
hidden signs, cut, and only the largest of them one by one; the rest is the label `other`. No sample names a job or a
user, because every one of these would be a series for ever: `get_fleet` tells which job it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from slurm_agent_tools.fleet import gpu_tiers
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.fleet.sections import fleet_alerts, free_now, idle_use, quota_shares, spending
from slurm_agent_tools.models.fleet_answer import Spent
from slurm_agent_tools.models.job import HELD_UP, Job
from slurm_agent_tools.text import sanitize

PREFIX = "slurm_agent_"

SOURCES = frozenset({"nodes", "partitions", "reservations", "queue", "use", "past", "ran", "alerts", "prices"})
"""What is read of the cluster for it."""

OTHER = "other"

MOST, LONGEST = 30, 64
"""Values of one label, and signs of one."""

_FRESH = timedelta(minutes=5)

_HOUR = 3600.0

_WINDOWS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}

MetricKind = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One number. `labels` by name; of a histogram `steps` has each bound with how many lie at or below it."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """All samples of one name, which is without the prefix, and of a counter without `_total`."""

    name: str
    kind: MetricKind
    told: str
    samples: tuple[MetricSample, ...]


@dataclass(frozen=True, slots=True)
class GuardCounts:
    """What the guard itself counts.

    Since monitoring first asked: `decisions` by verdict, `rules` by rule and outcome. `campaigns` by status. Of Slurm's
    commands by kind: `seconds` in all, and in `steps` how many took at most one of `bounds` and not the one before.
    """

    decisions: Mapping[str, int] = field(default_factory=dict)
    rules: Mapping[tuple[str, str], int] = field(default_factory=dict)
    campaigns: Mapping[str, int] | None = None
    bounds: tuple[float, ...] = (float("inf"),)
    steps: Mapping[tuple[str, float], int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


def metrics(facts: FleetFacts, missing: Collection[str], guard: GuardCounts) -> list[MetricFamily]:
    """Every family of which there is a sample. `missing`: the sources that could not be read."""
    read = {name: float(name not in missing) for name in sorted(SOURCES)}
    found = [_family("source_up", "1 where the source could be read at the last look", _by("source", read))]
    makers = {"nodes": _nodes, "queue": _queue, "ran": _ran, "past": _past}
    for source, make in makers.items():
        found += make(facts) if source not in missing else ()
    if not {"queue", "use"} & set(missing):
        found += _use(facts)
    found += _cost(facts) if not {"ran", "prices"} & set(missing) else ()
    found += _alerts(facts) if "queue" not in missing else ()
    return [one for one in (*found, *_guard(guard)) if one.samples]


# --- The cluster ------------------------------------------------------------------------------------------------------


def _nodes(facts: FleetFacts) -> Iterator[MetricFamily]:
    states = Counter(node.state for node in facts.nodes)
    yield _family("nodes", "Nodes by state", _by("state", _bounded(states)))
    tiers = gpu_tiers.by_tier(facts.nodes, facts.settings)
    total = {name: sum(node.gpus for node in nodes) for name, nodes in tiers.items()}
    given = {name: [node.gpus_used for node in nodes if node.gpus] for name, nodes in tiers.items()}
    known = {name: sum(filter(None, used)) for name, used in given.items() if used and None not in used}
    free = {one.tier: one.gpus for one in free_now.section(facts).tiers if one.gpus is not None and total[one.tier]}
    yield _family("gpus", "GPUs of all nodes by tier", _by("tier", {name: n for name, n in total.items() if n}))
    yield _family("gpus_allocated", "GPUs that jobs of all users hold, by tier", _by("tier", known))
    yield _family("gpus_free", "GPUs that are free on nodes that start jobs, by tier", _by("tier", free))


def _queue(facts: FleetFacts) -> Iterator[MetricFamily]:
    by_partition: Counter[str] = Counter()
    for (partition, _), number in facts.queue.items():
        by_partition[partition] += number
    kept = _bounded(by_partition)
    jobs: Counter[tuple[str, str]] = Counter()
    for (partition, state), number in facts.queue.items():
        shown = _label(partition)
        jobs[shown if shown in kept else OTHER, _label(state)] += number
    yield _family("jobs", "Active jobs of all users by partition and state", _pairs("partition", "state", jobs))
    yield _one("own_pending_jobs", "Jobs of this user that wait", facts.mine_waiting)
    if not facts.mine_not_asked:
        running = sum(job.state == "RUNNING" for job in facts.mine)
        yield _one("own_running_jobs", "Jobs of this user that run", running)
    waits = [facts.now - job.submitted for job in facts.mine if job.state in HELD_UP and job.submitted is not None]
    if waits:
        longest = max(waits).total_seconds()
        yield _one("own_longest_wait_seconds", "How long the oldest waiting job of this user waits", longest)


def _past(facts: FleetFacts) -> Iterator[MetricFamily]:
    waits = sorted(one.seconds for one in (facts.past.waits if facts.past is not None else ()))
    if waits:
        found = {str(share): float(waits[min(len(waits) - 1, int(share * len(waits)))]) for share in (0.5, 0.9)}
        told = "What jobs waited that started lately, by quantile"
        yield _family("recent_wait_seconds", told, _by("quantile", found))


def _use(facts: FleetFacts) -> Iterator[MetricFamily]:
    holding = [job for job in facts.mine if job.state == "RUNNING" and job.resources.gpus != 0]
    if not facts.mine_not_asked and all(job.resources.gpus is not None for job in holding):
        yield _one("own_gpus", "GPUs that jobs of this user hold", sum(job.resources.gpus or 0 for job in holding))
    seen = [job for job in holding if _number(job) in facts.gpu_series or (facts.use or {}).get(_number(job))]
    if seen or not (holding or facts.mine_not_asked):
        unused = sum(one.gpus for one in idle_use.idle(facts))
        yield _one("own_gpus_unused", "GPUs that jobs of this user hold and do not use", unused)
    measured = [(one, job.resources.gpus) for job in holding if (one := _gpu_use(job, facts)) is not None]
    weights = [(use, gpus) for use, gpus in measured if gpus]
    if weights:
        gpus = sum(count for _, count in weights)
        mean = sum(use * count for use, count in weights) / gpus
        yield _one("own_gpus_measured", "GPUs of this user whose use is measured", gpus)
        yield _one("own_gpu_use_ratio", "How much the measured GPUs of this user are in use, 0 to 1", mean)


def _number(job: Job) -> int:
    return job.raw_id if job.raw_id is not None else job.job_id.base


def _gpu_use(job: Job, facts: FleetFacts) -> float | None:
    """The mean of its GPUs now: by their series, else by what Slurm sampled last; None where neither is there."""
    series = facts.gpu_series.get(_number(job), ())
    late = [points[-1][1] for points in series if points and facts.now - points[-1][0] <= _FRESH]
    if late:
        return sum(late) / len(late)
    sampled = [step.gpu_percent for step in (facts.use or {}).get(_number(job), ()) if step.gpu_percent is not None]
    gpus = job.resources.gpus or 1
    return min(1.0, sum(sampled) / 100 / gpus) if sampled else None


def _ran(facts: FleetFacts) -> Iterator[MetricFamily]:
    ended = [job for job in facts.ran or () if job.ended is not None and not job.active]
    counts: Counter[tuple[str, str]] = Counter()
    for window, length in _WINDOWS.items():
        counts[window, "COMPLETED"] = 0
        for job in ended:
            if job.ended is not None and facts.now - job.ended <= length:
                counts[window, _label(job.state)] += 1
    told = "Jobs of this user that ended in the last hour, day and week, by state"
    yield _family("own_jobs_ended", told, _pairs("window", "state", counts))
    shares = quota_shares.section(facts).quotas if facts.settings.quotas else []
    shown = {_label(one.quota): one for one in shares[:MOST]}
    used = {name: one.used * _HOUR for name, one in shown.items() if one.used is not None}
    yield _family(
        "share_ratio", "Share of a day's GPU hours, 0 to 1", _by("quota", {n: s.share for n, s in shown.items()})
    )
    yield _family("share_used_gpu_seconds", "Seconds of one GPU that a share used today", _by("quota", used))
    starved = {name: float(one.starved) for name, one in shown.items()}
    yield _family("share_starved", "1 where jobs wait with less than their share", _by("quota", starved))


def _cost(facts: FleetFacts) -> Iterator[MetricFamily]:
    made = spending.section(facts)
    windows = {"today": made.today, "week": made.week, "running_at_most": made.running_at_most}
    yield _family(
        "own_gpu_seconds", "Seconds of one GPU that jobs of this user held, and hold at most", _hours("window", windows)
    )
    yield _family("own_cost", "The price of the same, in the currency of the rates", _paid("window", windows))
    campaigns = {_label(one.what or ""): one for one in made.campaigns[:MOST]}
    yield _family(
        "campaign_gpu_seconds", "Seconds of one GPU that campaigns held in seven days", _hours("campaign", campaigns)
    )
    yield _family("campaign_cost", "The price of campaigns in seven days", _paid("campaign", campaigns))


def _hours(label: str, spent: Mapping[str, Spent]) -> list[MetricSample]:
    return _by(label, {name: one.gpu_hours * _HOUR for name, one in spent.items() if one.gpu_hours is not None})


def _paid(label: str, spent: Mapping[str, Spent]) -> list[MetricSample]:
    return _by(label, {name: one.amount for name, one in spent.items() if one.amount is not None})


def _alerts(facts: FleetFacts) -> Iterator[MetricFamily]:
    found: Counter[tuple[str, str]] = Counter((one.code, one.severity) for one in fleet_alerts.section(facts))
    yield _family("alerts", "Alerts of get_fleet by code and severity", _pairs("code", "severity", found))


# --- The guard --------------------------------------------------------------------------------------------------------


def _guard(guard: GuardCounts) -> Iterator[MetricFamily]:
    verdicts = dict.fromkeys(("allow", "justify", "approve", "deny"), 0) | dict(guard.decisions)
    yield _family("decisions", "Decisions of the policy by verdict", _by("verdict", _bounded(verdicts)), "counter")
    rules: Counter[tuple[str, str]] = Counter()
    for (rule, how), n in sorted(guard.rules.items(), key=lambda pair: (-pair[1], pair[0])):
        pair = (_label(rule), _label(how))
        rules[pair if pair in rules or len(rules) < MOST * 4 else (OTHER, OTHER)] += n
    told = "Rules that did not simply pass, by outcome"
    yield _family("rule_outcomes", told, _pairs("rule", "outcome", rules), "counter")
    if guard.campaigns is not None:
        yield _family("campaigns", "Campaigns of this project by status", _by("status", guard.campaigns))
    commands = [_times(kind, guard) for kind in sorted(guard.seconds)[:MOST]]
    yield _family("slurm_call_seconds", "How long our own calls of Slurm's commands took", commands, "histogram")


def _times(kind: str, guard: GuardCounts) -> MetricSample:
    """All calls of one command; each step counts those before it as well."""
    steps, so_far = [], 0
    for bound in guard.bounds:
        so_far += guard.steps.get((kind, bound), 0)
        steps.append((bound, so_far))
    return MetricSample(guard.seconds[kind], {"command": _label(kind)}, tuple(steps))


# --- Families of samples ----------------------------------------------------------------------------------------------


def _family(name: str, told: str, samples: Iterable[MetricSample], kind: MetricKind = "gauge") -> MetricFamily:
    return MetricFamily(PREFIX + name, kind, told, tuple(samples))


def _one(name: str, told: str, value: float) -> MetricFamily:
    return _family(name, told, [MetricSample(value)])


def _by(label: str, values: Mapping[str, float]) -> list[MetricSample]:
    return [MetricSample(value, {label: name}) for name, value in values.items()]


def _pairs(first: str, second: str, values: Mapping[tuple[str, str], float]) -> list[MetricSample]:
    return [MetricSample(value, {first: one, second: other}) for (one, other), value in values.items()]


def _label(name: str) -> str:
    """A name as the value of a label: no sign that is not seen, and not longer than LONGEST."""
    return sanitize.shown(sanitize.line(name))[:LONGEST]


def _bounded(counts: Mapping[str, float]) -> dict[str, float]:
    """By name the largest, and all others together."""
    ranked: Sequence[tuple[str, float]] = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    found: dict[str, float] = {}
    for place, (name, value) in enumerate(ranked):
        shown = _label(name) if place < MOST else OTHER
        found[shown] = found.get(shown, 0) + value
    return found
