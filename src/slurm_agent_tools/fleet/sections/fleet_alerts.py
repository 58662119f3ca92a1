"""What somebody should look at: the alerts of get_status, and thresholds over the whole. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from slurm_agent_tools.diagnosis.alert_types import crowded, nodes_down
from slurm_agent_tools.diagnosis.phrases import listed
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.fleet.sections import idle_use, quota_shares
from slurm_agent_tools.models.fleet_answer import NotMeasured
from slurm_agent_tools.models.job import HELD_UP
from slurm_agent_tools.models.shapes import Alert

LOW, LOW_FOR = 0.5, timedelta(minutes=30)
"""GPU use below this share for so long is told."""

_ORDER = ("critical", "high", "medium")


def section(facts: FleetFacts) -> list[Alert]:
    """All of them, the gravest first."""
    found = [*(facts.alerts or ()), *_idle(facts), *_low(facts), *_shares(facts)]
    found += crowded(max(facts.mine_waiting, sum(job.state in HELD_UP for job in facts.mine)))
    found += nodes_down(facts.nodes)
    return sorted(found, key=lambda one: _ORDER.index(one.severity))


def sentence(made: Sequence[Alert]) -> str:
    """How many."""
    if not made:
        return ""
    return "1 alert." if len(made) == 1 else f"{len(made)} alerts."


def unknown(facts: FleetFacts) -> list[NotMeasured]:
    """What was not looked at: that nothing is told of it does not say that all is well."""
    told = [] if facts.nodes else [NotMeasured(what="nodes that are down", why="the nodes could not be read")]
    if facts.alerts is None:
        told.append(NotMeasured(what="alerts of your jobs", why="what they rest on could not be read"))
    return told


def _idle(facts: FleetFacts) -> list[Alert]:
    return [
        Alert(
            severity="high",
            code="gpus-idle",
            message=f"Job {one.job_id} holds {one.gpus} GPUs that do nothing since {one.since:%Y-%m-%d %H:%M} UTC.",
            job_id=one.job_id,
        )
        for one in idle_use.idle(facts)
    ]


def _low(facts: FleetFacts) -> list[Alert]:
    """Jobs whose GPUs were in use, but less than half of them, for half an hour; by their series alone."""
    found = []
    for job in facts.mine:
        series = facts.gpu_series.get(job.raw_id or job.job_id.base, ())
        if not series or job.started is None or facts.now - job.started < LOW_FOR:
            continue
        late = [use for points in series for at, use in points if facts.now - at <= LOW_FOR]
        covered = all(points and facts.now - points[0][0] >= LOW_FOR for points in series)
        mean = sum(late) / len(late) if late and covered else None
        if mean is not None and 0 < mean < LOW:
            told = f"The GPUs of job {job.job_id} were in use for {mean:.0%} of the last half hour."
            found.append(Alert(severity="medium", code="gpu-use-low", message=told, job_id=str(job.job_id)))
    return found


def _shares(facts: FleetFacts) -> list[Alert]:
    """Who gets less than its share, and what is used up of today's GPU hours: shares, and the policy's cap."""
    if facts.ran is None:
        return []
    made = quota_shares.section(facts)
    starved = listed(one.quota for one in made.quotas if one.starved)
    told = []
    if starved:
        told.append(("share-starved", f"Less than their share of GPU hours, and jobs that wait: {starved}."))
    spent = [f"{one.quota} ({one.used:g} of {one.hours:g})" for one in quota_shares.used_up(made)]
    today = quota_shares.hours_today(facts)
    if facts.day_cap is not None and today is not None and today >= facts.day_cap > 0:
        spent.append(f"what the policy allows ({today:.2f} of {facts.day_cap:g})")
    if spent:
        told.append(("budget-used", f"Today's GPU hours are used up: {listed(spent)}."))
    return [Alert(severity="medium", code=code, message=text) for code, text in told]
