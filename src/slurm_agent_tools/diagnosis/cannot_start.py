"""Pending jobs that no waiting starts: Slurm's reasons for it, and who has to change what. Pure.

The meanings are Slurm's (squeue(1), JOB REASON CODES; scontrol(1), State of a partition). A reason that is not here may
pass by itself. Slurm shows one reason where there may be several, so one of a partition says nothing of a job that
named more than one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from slurm_agent_tools.diagnosis.phrases import flat, named
from slurm_agent_tools.models.job import HELD_UP, Job
from slurm_agent_tools.units import format_duration

_DEPENDENCY = "DependencyNeverSatisfied"

_UNAVAILABLE = re.compile(r"ReqNodeNotAvail,[\s_]*UnavailableNodes:(\S+)")

_LESS = "Ask for less with submit_job, or have an administrator raise the limit."

_RELEASE = "`scontrol release {job}` lets it go."


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a reason means, and what has to happen. `request`: what the job asks for is at fault.

    `partition`: the reason speaks of one partition only.
    """

    reason: str
    means: str
    mend: str
    request: bool = True
    partition: bool = False


_RULES = (
    _Rule("JobHeldUser", "its user holds it", _RELEASE, request=False),
    _Rule("JobHeldAdmin", "an administrator holds it", "Only an administrator can release it.", request=False),
    _Rule("(?i:requeued in held state)", "it was requeued and is held", _RELEASE, request=False),
    _Rule("JobHoldMaxRequeue", "it was requeued as often as Slurm allows and is held", _RELEASE),
    _Rule(
        "(?i:requeued held)|JobLaunchFailure",
        "Slurm could not launch it and holds it",
        f"Have an administrator look at its node; then {_RELEASE}",
    ),
    _Rule(
        "PartitionDown|PartitionInactive",
        "partition {partition} starts nothing",
        "An administrator has to set it up again.",
        request=False,
        partition=True,
    ),
    _Rule(
        "PartitionTimeLimit",
        "its time limit{limit} is more than partition {partition} allows",
        _LESS,
        partition=True,
    ),
    _Rule(
        "PartitionNodeLimit",
        "partition {partition} does not allow its number of nodes, or nodes that it needs are down",
        "Ask for another number with submit_job, or tell an administrator.",
        partition=True,
    ),
    _Rule(
        "PartitionConfig",
        "partition {partition} does not take it (a limit, or who may use it)",
        "Ask for less or name another partition with submit_job, or ask an administrator.",
        partition=True,
    ),
    _Rule(
        "BadConstraints",
        "no node has what it asks for (features, GPUs, named nodes)",
        "Ask for something else with submit_job.",
    ),
    _Rule(
        "AccountNotAllowed|account not permitted to use this partition",
        "its account may not use partition {partition}",
        "Name another account or partition, or have an administrator allow it.",
        partition=True,
    ),
    _Rule(
        "QOSNotAllowed|QOS not permitted to use this partition",
        "its QOS is not allowed there",
        "Name another QOS or partition, or have an administrator allow it.",
        partition=True,
    ),
    _Rule("Invalid(?:Account|QOS)", "its account or QOS is not valid", "Name another one, or ask an administrator."),
    _Rule("MaxMemPerLimit", "it asks for more memory per CPU or node than is allowed", _LESS, partition=True),
    _Rule(r"(?:Assoc|QOS)Max\w*(?:PerJob|PerNode)", "it asks for more than one job may have", _LESS, partition=True),
    _Rule("(?:Assoc|QOS)Min", "it asks for less than a job has to", "Ask for more with submit_job.", partition=True),
    _Rule("ReservationDeleted", "its reservation is gone", "Submit it again without one."),
)


@dataclass(frozen=True, slots=True)
class CannotStart:
    """Why nothing starts it and what has to change, in sentences. `request`: what it asks for cannot be had."""

    told: str
    request: bool = True


def cannot_start(part: Job) -> CannotStart | None:
    """Why it does not start however long somebody waits; None where it may, and for what does not wait."""
    if part.state not in HELD_UP or not part.reason:
        return None
    if part.reason == _DEPENDENCY:
        return CannotStart(_never(part))
    reason = part.reason.replace("_", " ")  # scontrol prints its words with underscores
    several = "," in (part.partition or "")
    rule = next((one for one in _RULES if re.search(one.reason, reason) and not (several and one.partition)), None)
    if rule is None:
        return None
    limit = part.resources.time_limit_seconds
    words = {
        "job": part.job_id.base if part.job_id.task is None else part.job_id,
        "partition": part.partition,
        "limit": "" if limit is None else f" of {format_duration(limit)}",
    }
    told = f"{named(part)} cannot start: {rule.means.format_map(words)} ({flat(part.reason)})."
    return CannotStart(f"{told} {rule.mend.format_map(words)}", rule.request)


def _never(part: Job) -> str:
    awaited = f"it waits for {flat(part.dependency)}, which" if part.dependency else "what it waits for"
    return f"{named(part)} can never start: {awaited} can no longer come true ({part.reason})."


def unavailable(part: Job) -> str | None:
    """The nodes that Slurm says a pending job waits for; it lists nodes that are only busy as well, as measured."""
    found = _UNAVAILABLE.search(part.reason or "") if part.state == "PENDING" else None
    return None if found is None else found[1]
