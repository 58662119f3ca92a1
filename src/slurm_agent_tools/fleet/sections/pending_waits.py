"""Who waits: each of the caller's pending jobs with its reason in a sentence and an interval for its start. Pure.

The interval rests on what jobs of about the same size waited here lately and longer than this one has by now: from the
10 % of them that started first to the 90 % mark. Slurm's own estimate stands beside it and is not mixed in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from slurm_agent_tools.diagnosis.cannot_start import cannot_start
from slurm_agent_tools.diagnosis.phrases import flat, listed
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.insights.measured_waits import same_shape
from slurm_agent_tools.insights.sizing import ENOUGH
from slurm_agent_tools.models.fleet_answer import NotMeasured, QueueOfPartition, WaitingShown, WaitsSection
from slurm_agent_tools.models.job import HELD_UP, Job
from slurm_agent_tools.units import how_many

_MOST = 50

_LONGEST = 120

_NOT_YET = ("Dependency", "BeginTime")

_PHRASES: tuple[tuple[str, str], ...] = (
    (r"Priority", "jobs with a higher priority go before it"),
    (r"Resources", "it is next in its turn and waits until enough is free"),
    (r"Dependency", "it waits for {dependency}"),
    (r"BeginTime", "it may not begin before the time that was asked for"),
    (r"ReqNodeNotAvail", "nodes that it could use are busy, reserved or not working"),
    (r"Reserv", "it waits for its reservation, or nodes are kept for one"),
    (r"JobArrayTaskLimit", "its array runs as many tasks at once as it asked for"),
    (r"Licenses", "licenses that it asked for are all in use"),
    (r"(?:QOS|Assoc)\w*(?:Jobs|Submit)", "as many jobs run as its account or QOS may have"),
    (r"(?:QOS|Assoc)\w*(?:Gres|GRES|Cpu|CPU|Mem|Node|Billing)\w*", "what its account or QOS may hold is in use"),
    (r"(?:QOS|Assoc)\w*(?:Minutes|RunMin|Time|Usage)\w*", "the hours of its account or QOS are used up for now"),
    (r"Nodes_required|NodeDown|DOWN", "nodes that it needs are down, drained or kept for others"),
    (r"Cleaning|Prolog|Boot|Power", "its nodes are being made ready"),
    (r"^None$", "Slurm has not looked at it yet"),
    (r"", "Slurm says why in a word of its own"),
)  # fmt: skip


def section(facts: FleetFacts) -> WaitsSection:
    """The caller's pending jobs, those that wait longest first, and how many jobs wait in each partition."""
    waiting = sorted((job for job in facts.mine if job.state in HELD_UP), key=lambda job: _since(job, facts))
    shown = [_shown(job, facts) for job in waiting[:_MOST]]
    queues = {name: QueueOfPartition(partition=name) for name, _ in facts.queue}
    for (name, state), number in facts.queue.items():
        field = "pending" if state in HELD_UP else "running"
        one = queues[name]
        queues[name] = one.model_copy(update={field: getattr(one, field) + number})
    return WaitsSection(
        jobs=shown,
        jobs_not_shown=max(len(waiting), facts.mine_waiting) - len(shown),
        queue=sorted(queues.values(), key=lambda one: (-one.pending, -one.running, one.partition)),
    )


def sentence(made: WaitsSection) -> str:
    """How many wait."""
    every = sum(one.pending for one in made.queue)
    mine = len(made.jobs) + made.jobs_not_shown
    stuck = [one.job_id for one in made.jobs if one.never]
    waits = f"{how_many(every, 'job')} {'waits' if every == 1 else 'wait'}"
    told = f"{waits}, {mine} of them yours" if every else "No job waits"
    return f"{told}; no waiting starts {listed(stuck, most=3)}." if stuck else f"{told}."


def unknown(facts: FleetFacts) -> list[NotMeasured]:
    """Why starts are not told, and whose jobs are not seen."""
    return [*hidden(facts), *_starts(facts)]


def hidden(facts: FleetFacts) -> list[NotMeasured]:
    """The jobs of others where the site hides them: what they hold is not free, and nobody counts them as waiting."""
    if not facts.hidden_jobs:
        return []
    held = facts.held_unseen
    told = "" if held is None else f"; {held[0]} CPUs and {held[1]} GPUs are held by jobs that you cannot see"
    return [NotMeasured(what="jobs of others", why=f"this site hides them (PrivateData){told}")]


def _starts(facts: FleetFacts) -> list[NotMeasured]:
    if facts.past is None or (facts.past.waits or not any(job.state in HELD_UP for job in facts.mine)):
        return []
    return [NotMeasured(what="starts of waiting jobs", why=facts.past.note or "no job ran here lately")]


def reason_sentence(job: Job) -> str:
    """Slurm's reason for a wait, in plain words with its own word behind."""
    stuck = cannot_start(job)
    if stuck is not None:
        return stuck.told
    raw = job.reason or "None"
    words = next(words for sign, words in _PHRASES if re.search(sign, raw))
    awaited = flat(job.dependency)[:_LONGEST] if job.dependency else "other jobs"
    return f"{words.format(dependency=awaited)} ({flat(raw)[:_LONGEST]})"


def _since(job: Job, facts: FleetFacts) -> float:
    return (job.submitted or facts.now).timestamp()


def _shown(job: Job, facts: FleetFacts) -> WaitingShown:
    low, high, basis = _interval(job, facts)
    return WaitingShown(
        job_id=str(job.job_id),
        partition=job.partition,
        why=reason_sentence(job),
        never=cannot_start(job) is not None,
        waited_seconds=max(0, round(facts.now.timestamp() - _since(job, facts))),
        start_from=None if low is None else facts.now + timedelta(seconds=low),
        start_to=None if high is None else facts.now + timedelta(seconds=high),
        basis=basis,
        slurm_says=job.expected_start if job.expected_start is not None and job.expected_start > facts.now else None,
    )


def _interval(job: Job, facts: FleetFacts) -> tuple[float | None, float | None, str | None]:
    """Seconds from now, 10 % to 90 %, and what they rest on; None where it is too little."""
    if facts.past is None or job.submitted is None or job.held or cannot_start(job) is not None:
        return None, None, None
    ready = job.submitted if job.eligible is None else max(job.submitted, job.eligible)
    if ready > facts.now or (job.reason or "").startswith(_NOT_YET):
        return None, None, "it may not start yet, whatever is free"
    by_now = (facts.now - ready).total_seconds()
    alike = {one.job: one.seconds for one in same_shape(facts.past.waits, job.resources) if one.seconds >= by_now}
    left = sorted(seconds - by_now for seconds in alike.values())
    if len(left) < ENOUGH:
        return None, None, f"{how_many(len(left), 'job')} like it waited as long lately, {ENOUGH} are needed"
    return _quantile(left, 0.1), _quantile(left, 0.9), f"{len(left)} jobs like it of the last {facts.past.hours} h"


def _quantile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]
