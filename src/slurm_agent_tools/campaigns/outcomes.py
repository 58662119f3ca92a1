"""What came of a batch that was sent, and of a trial that ended, as the campaign takes it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from slurm_agent_tools.campaigns.batch import Batch
from slurm_agent_tools.campaigns.ports import (
    BatchHasToWait,
    BatchIsRefused,
    BatchIsSent,
    BatchIsUnconfirmed,
    SendOutcome,
)
from slurm_agent_tools.campaigns.trial_metrics import passed
from slurm_agent_tools.diagnosis import completion
from slurm_agent_tools.diagnosis.phrases import queued
from slurm_agent_tools.insights.usage import usage
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.campaign import TrialEnd
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage
from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.submission_answer import SubmitReply
from slurm_agent_tools.settings import RateSettings
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.units import parse_memory, parse_time_limit

SEVERE = frozenset({"justify", "approve", "deny"})

_AGAIN_SECONDS = 30.0

_WAITS = ("wait_for_job with job_id=", "Call get_status until")
"""How the remedy of a rule begins that only wants another job to end."""

_SLOTS = "concurrent-jobs"

_LADDER, _FAILED_BEFORE = "smoke-first", "auto-retry"

_REASON = 2000

_CROWDED = "concurrent jobs"


def submission(file: CampaignFile, batch: Batch, smoke_seconds: int) -> SubmitJob:
    """The call of submit_job for a batch. `smoke_seconds`: the longest limit that the policy takes for a smoke run."""
    limits = [stage.smoke.time_limit or stage.resources.time_limit for stage in file.stages]
    smoke = file.is_smoke_round(batch.trials[0].round) and batch.task_ids is None
    stage = "smoke" if smoke and max(limits) <= smoke_seconds else None
    return SubmitJob.model_validate({**batch.arguments, "stage": stage})


def severe(reply: SubmitReply) -> list[RuleDecision]:
    """The rules that stand against it."""
    rules = reply.decision.rules if reply.decision is not None else []
    return [rule for rule in rules if rule.outcome in SEVERE]


def written_reason(
    name: str, batch: Batch, reply: SubmitReply, smoke_job: str | None, failed: Collection[str] = ()
) -> str | None:
    """The reason that the guard asks for where the campaign has one by its own rules; None where it has none.

    A smoke run of the stage that passed opens the stage. What failed is never sent again unchanged: a script that
    failed with other values runs with these, and one that failed with these runs other code or data now. `failed`:
    the run_key of each failed trial.
    """
    against = [rule for rule in severe(reply) if not _only_waits(rule, batch.width)]
    if reply.status != "blocked" or not against or any(rule.outcome != "justify" for rule in against):
        return None
    reasons = []
    for rule in against:
        if rule.id == _LADDER and smoke_job is not None:
            reasons.append(f"The smoke run of this stage, job {smoke_job}, passed with the same code.")
        elif rule.id == _FAILED_BEFORE:
            reasons.append(_since_it_failed(batch, failed))
        else:
            return None
    return f"Campaign {name}: {' '.join(reasons)}"[:_REASON]


def _since_it_failed(batch: Batch, failed: Collection[str]) -> str:
    """What is different from the run that failed; nothing is sent whose code, data and values failed before."""
    if not batch.runs.isdisjoint(failed):
        return "The same values failed before; what the stage runs or reads, or how it is measured, was changed since."
    values = batch.arguments.get("args")
    told = ", ".join(map(str, values)) if isinstance(values, list) else "those of its table"
    return f"It runs with other values than what failed: {told}."


def _only_waits(rule: RuleDecision, width: int) -> bool:
    """Whether it stands against a batch only until other jobs have ended: by itself the batch is not too wide."""
    fits = rule.id == _SLOTS and rule.outcome == "deny" and isinstance(rule.limit, int) and width <= rule.limit
    return fits or (rule.remedy or "").startswith(_WAITS)


def outcome(reply: SubmitReply, width: int = 1) -> SendOutcome:
    """What submit_job's answer means. `width`: how many runs of the batch may be active together."""
    if reply.status == "submitted" and reply.job_id is not None:
        return BatchIsSent(int(reply.job_id))
    reason = reply.reason or reply.summary
    if reply.status == "unconfirmed":
        return BatchIsUnconfirmed(reason)
    against = severe(reply)
    waits = all(_only_waits(rule, width) for rule in against) if against else _CROWDED in reason
    if reply.blocker == "policy" and waits:
        return BatchHasToWait(_AGAIN_SECONDS, against[0].message if against else reason)
    return BatchIsRefused(
        reason,
        person=bool(reply.human_action_required) or any(rule.outcome == "approve" for rule in against),
        rules=tuple(rule.id for rule in against),
        artifacts=tuple(reply.artifacts),
        manual_commands=tuple(reply.manual_commands),
    )


def figures(end: TrialEnd) -> dict[str, object]:
    """What a saved result of a trial holds: its metrics, and what it took."""
    taken = {
        "queue_seconds": end.queue_seconds,
        "run_seconds": end.run_seconds,
        "cpu_hours": end.cpu_hours,
        "gpu_hours": end.gpu_hours,
        "cost": end.cost,
        "memory_peak_bytes": end.memory_peak_bytes,
    }
    return {**{name: value for name, value in taken.items() if value is not None}, **end.metrics}


_HOUR = 3600

_LONG = 300

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")

_PROPOSED = re.compile(r"--(mem|time)=(\S+)")


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """What was found of an ended trial beside Slurm's record.

    `unread`: why its metrics could not be read.
    `files_there`: those of the stage's `passes.files` that count. `uncounted`: why one of the others does not.
    """

    metrics: Mapping[str, float] = field(default_factory=dict)
    unread: str | None = None
    files_there: Collection[str] = ()
    uncounted: str | None = None
    diagnosis: Diagnosis | None = None


def trial_end(
    file: CampaignFile, stage: CampaignStage, job: Job, facts: TrialFacts, rates: RateSettings, *, smoke: bool
) -> TrialEnd:
    """The end of a trial whose job, or task of an array, is over.

    `smoke`: figures that depend on how long it runs are not asked of it.
    """
    end = replace(_as_slurm_tells(job, rates), metrics=dict(facts.metrics))
    if job.state != "COMPLETED":
        return _failed(end, facts.diagnosis)
    unmet = _demanded(file, stage, facts, smoke=smoke)
    if unmet is None:
        return end
    category, problem = unmet
    return replace(
        end, passed=False, problem=problem, category=category, cause=cause_of(category, problem), explanation=problem
    )


def cancelled(job_id: str) -> TrialEnd:
    """The end of a job that these tools cancelled, and of which Slurm has no record."""
    text = "It was cancelled, and Slurm has no record of it."
    return TrialEnd(
        job_id, "CANCELLED", passed=False, problem=text, category="no-record", cause="no-record", explanation=text
    )


LOST_AFTER = timedelta(days=1)
"""How long both have to answer that they do not have a run before it is lost: the controller, and the accounting.

As long as that the accounting may lag behind, or be told of former jobs after it was away. A silent one proves nothing.
"""

ASKED_AFTER = timedelta(hours=1)
"""How long nobody may tell of a run before a person is asked, who can look whether it still runs."""


def lost(job_id: str, *, by_word: bool = False) -> TrialEnd:
    """The end of a run of which nobody tells how it ended; what it asked for stays counted. `by_word`: of a person."""
    hours = round(LOST_AFTER.total_seconds() / 3600)
    text = f"For {hours} hours controller and accounting answered that they do not have it: nobody tells how it ended."
    if by_word:
        text = "A person said that it is over: nobody tells how it ended."
    return TrialEnd(
        job_id, "UNKNOWN", passed=False, problem=text, category="no-record", cause="no-record", explanation=text
    )


def _as_slurm_tells(job: Job, rates: RateSettings) -> TrialEnd:
    """Times, use and price; what Slurm did not measure is None."""
    used, price = usage(job), completion.cost([job] if job.started is not None else [], rates)
    never = job.started is None or not job.elapsed_seconds
    cpus, gpus = used.cpu_allocated_seconds, used.gpu_allocated_seconds
    return TrialEnd(
        job_id=str(job.job_id),
        state=job.state,
        passed=True,
        exit_code=job.exit_code,
        queue_seconds=queued(job),
        run_seconds=job.elapsed_seconds,
        restarts=job.restarts,
        started=job.started,
        ended=job.ended,
        cpu_hours=0.0 if never else None if cpus is None else cpus / _HOUR,
        gpu_hours=0.0 if never else None if gpus is None else gpus / _HOUR,
        cost=price.amount,
        currency=price.currency if price.amount is not None else None,
        memory_peak_bytes=used.memory_peak_bytes,
        memory_allocated_bytes=used.memory_allocated_bytes,
        cpu_used=_share(used.cpu_seconds, cpus),
        gpu_used=used.gpu_utilization,
    )


def _share(used: float | None, had: float | None) -> float | None:
    return None if used is None or not had else min(1.0, used / had)


def _failed(end: TrialEnd, found: Diagnosis | None) -> TrialEnd:
    """The end of a job that Slurm calls no success, with its cause by the diagnosis."""
    state = f"{end.state}{'' if not end.exit_code else f', exit code {end.exit_code}'}"
    if found is None or found.category == "none":
        category, line, why = end.state.lower().replace("_", "-"), "", None
    else:
        category, why = found.category, _one_line(found.explanation)
        line = next((one.text for one in found.evidence if one.line), "") or found.explanation
    memory, seconds = _proposed(found)
    return replace(
        end,
        passed=False,
        problem=f"it ended {state}",
        category=category,
        cause=cause_of(category, line),
        explanation=why or f"It ended {state}.",
        proposed_memory_bytes=memory,
        proposed_time_seconds=seconds,
    )


def cause_of(category: str, telling: str) -> str:
    """The category and the line that tells most, without the numbers in it: these differ from run to run."""
    line = _NUMBER.sub("#", sanitize.line(telling)).strip()
    return f"{category}: {line[:_LONG]}" if line else category


def _one_line(text: str) -> str:
    return sanitize.line(sanitize.shown(text))[:_LONG]


def _proposed(found: Diagnosis | None) -> tuple[int | None, int | None]:
    """Memory in bytes and time in seconds that the diagnosis proposes to ask for."""
    memory = seconds = None
    for option, value in _PROPOSED.findall((found.proposed_change if found is not None else None) or ""):
        try:
            memory, seconds = (parse_memory(value), seconds) if option == "mem" else (memory, parse_time_limit(value))
        except ValueError:
            continue
    return memory, seconds


_CATEGORIES = {"it told no": "metric-missing", "it did not write": "output-missing"}


def _demanded(file: CampaignFile, stage: CampaignStage, facts: TrialFacts, *, smoke: bool) -> tuple[str, str] | None:
    """What does not hold of a run that Slurm calls a success: its category and a sentence; None where all holds."""
    problem = passed(stage, smoke, facts.metrics, facts.files_there, objective=_objective(file, stage))
    if problem is None:
        return None
    category = next((name for head, name in _CATEGORIES.items() if problem.startswith(head)), "below-demand")
    why = facts.uncounted if category == "output-missing" else facts.unread
    return category, problem if why is None else f"{problem}: {why}"


def _objective(file: CampaignFile, stage: CampaignStage) -> str | None:
    """The objective's metric, where this stage has to tell it: the last, or one whose log is searched for it."""
    metric = file.objective.metric
    searched = stage.metrics is not None and metric in (stage.metrics.pattern or ())
    return metric if metric is not None and (searched or stage == file.stages[-1]) else None
