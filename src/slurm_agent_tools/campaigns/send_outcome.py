"""A batch as submit_job takes it, and what its answer means for the campaign: sent, wait, refused, not known. Pure."""

from __future__ import annotations

from slurm_agent_tools.campaigns.batch import Batch
from slurm_agent_tools.campaigns.ports import (
    BatchHasToWait,
    BatchIsRefused,
    BatchIsSent,
    BatchIsUnconfirmed,
    SendOutcome,
)
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.campaign import TrialEnd
from slurm_agent_tools.models.campaign_file import CampaignFile, SmokeRound
from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.models.submission_answer import SubmitReply

_SEVERE = frozenset({"justify", "approve", "deny"})

_AGAIN_SECONDS = 30.0

_WAITS = ("wait_for_job with job_id=", "Call get_status until")
"""How the remedy of a rule begins that only wants another job to end."""

_LADDER, _FAILED_BEFORE = "smoke-first", "auto-retry"

_REASON = 2000

_CROWDED = "concurrent jobs"


def submission(file: CampaignFile, batch: Batch, smoke_seconds: int) -> SubmitJob:
    """The call of submit_job for a batch. `smoke_seconds`: the longest limit that the policy takes for a smoke run."""
    number = batch.trials[0].round
    limits = [stage.smoke.time_limit or stage.resources.time_limit for stage in file.stages]
    smoke = number < len(file.rounds) and isinstance(file.rounds[number], SmokeRound) and batch.task_ids is None
    stage = "smoke" if smoke and max(limits) <= smoke_seconds else None
    return SubmitJob.model_validate({**batch.arguments, "stage": stage})


def severe(reply: SubmitReply) -> list[RuleDecision]:
    """The rules that stand against it."""
    rules = reply.decision.rules if reply.decision is not None else []
    return [rule for rule in rules if rule.outcome in _SEVERE]


def written_reason(name: str, batch: Batch, reply: SubmitReply, smoke_job: str | None) -> str | None:
    """The reason that the guard asks for where the campaign has one by its own rules; None where it has none.

    A smoke run of the stage that passed opens the stage. What failed is never sent again unchanged: a script that
    failed with other values runs with these.
    """
    against = severe(reply)
    if reply.status != "blocked" or not against or any(rule.outcome != "justify" for rule in against):
        return None
    reasons = []
    for rule in against:
        if rule.id == _LADDER and smoke_job is not None:
            reasons.append(f"The smoke run of this stage, job {smoke_job}, passed with the same code.")
        elif rule.id == _FAILED_BEFORE:
            values = batch.arguments.get("args")
            told = ", ".join(map(str, values)) if isinstance(values, list) else "those of its table"
            reasons.append(f"It runs with other values than what failed: {told}.")
        else:
            return None
    return f"Campaign {name}: {' '.join(reasons)}"[:_REASON]


def outcome(reply: SubmitReply) -> SendOutcome:
    """What submit_job's answer means."""
    if reply.status == "submitted" and reply.job_id is not None:
        return BatchIsSent(int(reply.job_id))
    reason = reply.reason or reply.summary
    if reply.status == "unconfirmed":
        return BatchIsUnconfirmed(reason)
    against = severe(reply)
    waits = all((rule.remedy or "").startswith(_WAITS) for rule in against) if against else _CROWDED in reason
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
