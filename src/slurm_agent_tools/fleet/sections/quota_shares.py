"""Shares of a day's GPU hours: what each quota gives, what was used today, what is left, and who is starved. Pure.

The hours of a day are what all GPUs can give, or the policy's cap where that is less: a quota never goes beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from slurm_agent_tools.diagnosis.phrases import listed
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.fleet.sections.spending import campaign_of, counts_gpus, gpu_hours, within
from slurm_agent_tools.insights.job_search import tags
from slurm_agent_tools.models.fleet_answer import NotMeasured, ShareShown, SharesSection
from slurm_agent_tools.models.job import HELD_UP, Job

_DAY = 24.0


def section(facts: FleetFacts) -> SharesSection:
    """One entry a quota, the starved first."""
    if not facts.settings.quotas:
        return SharesSection()
    base, capped_by = _base(facts)
    midnight = facts.now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = _today(facts)
    passed = (facts.now - midnight).total_seconds() / (_DAY * 3600)
    made = [_share(key, quota, base, today, facts) for key, quota in facts.settings.quotas.items()]
    over = any(one.used is not None and one.hours is not None and one.used > one.hours * passed for one in made)
    judged = [one.model_copy(update={"starved": _starved(one, passed, over=over)}) for one in made]
    return SharesSection(
        day_gpu_hours=None if base is None else round(base, 2),
        capped_by=capped_by,
        quotas=sorted(judged, key=lambda one: (not one.starved, one.quota)),
    )


def sentence(made: SharesSection) -> str:
    """Who is starved, and whose share is used up."""
    starved = [one.quota for one in made.quotas if one.starved]
    spent = [one.quota for one in used_up(made)]
    told = [f"Starved of their share: {listed(starved)}."] if starved else []
    told += [f"Used up for today: {listed(spent)}."] if spent else []
    return " ".join(told)


def used_up(made: SharesSection) -> list[ShareShown]:
    """Those that have nothing left today."""
    return [one for one in made.quotas if one.left is not None and one.left <= 0 and one.used]


def hours_today(facts: FleetFacts) -> float | None:
    """GPU hours that the caller's jobs held since midnight; None where the accounting does not tell."""
    if facts.ran is None or not counts_gpus(facts):
        return None
    return gpu_hours(_today(facts))


def _today(facts: FleetFacts) -> list[Job]:
    midnight = facts.now.replace(hour=0, minute=0, second=0, microsecond=0)
    return within(facts.ran or (), midnight, facts.now)


def unknown(facts: FleetFacts) -> list[NotMeasured]:
    """Other users' hours are not looked at."""
    others = [key for key in facts.settings.quotas if key.startswith("user:") and key != f"user:{facts.user}"]
    return (
        [NotMeasured(what=f"use of {listed(others, most=3)}", why="only your own jobs are looked at")] if others else []
    )


def _of_another(key: str, facts: FleetFacts) -> bool:
    kind, _, name = key.partition(":")
    return kind == "user" and not fnmatchcase(facts.user, name)


def _base(facts: FleetFacts) -> tuple[float | None, str | None]:
    """GPU hours of one day, and what cuts them below what the GPUs give."""
    there = sum(node.gpus for node in facts.nodes) * _DAY if facts.nodes else None
    cap = facts.day_cap
    if cap is None or (there is not None and there <= cap):
        return there, None
    return cap, "the policy's cap"


def _share(key: str, quota: float, base: float | None, today: Sequence[Job], facts: FleetFacts) -> ShareShown:
    hours = None if base is None else quota * base
    used = None
    if facts.ran is not None and counts_gpus(facts) and not _of_another(key, facts):
        used = gpu_hours(part for part in today if _matches(key, part, facts))
    return ShareShown(
        quota=key,
        share=quota,
        hours=None if hours is None else round(hours, 2),
        used=None if used is None else round(used, 2),
        left=None if hours is None or used is None else round(max(0.0, hours - used), 2),
        waiting=sum(job.state in HELD_UP and _matches(key, job, facts) for job in facts.mine),
    )


def _matches(key: str, part: Job, facts: FleetFacts) -> bool:
    kind, _, pattern = key.partition(":")
    if kind == "user":
        return fnmatchcase(part.user or facts.user, pattern)
    if kind == "campaign":
        return fnmatchcase(campaign_of(part, facts) or "", pattern)
    record = facts.runs.get(part.job_id.base)
    named = (part.name, *(tags(record) if record is not None else ()))
    return any(fnmatchcase(one, pattern) for one in named)


def _starved(one: ShareShown, passed: float, *, over: bool) -> bool:
    """It waits, and has less than its share of the hours that have passed, while another has more than its own."""
    if not one.waiting or one.used is None or one.hours is None:
        return False
    return over and one.used < one.hours * passed
