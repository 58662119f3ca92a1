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

_LADDER = "smoke-first"

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


def smoke_reason(name: str, reply: SubmitReply, job_id: str | None) -> str | None:
    """The written reason that smoke-first asks for: the campaign's own smoke run. None where it is another rule."""
    against = severe(reply)
    if reply.status != "blocked" or job_id is None or not against:
        return None
    if any(rule.id != _LADDER or rule.outcome != "justify" for rule in against):
        return None
    return f"Campaign {name}: the smoke run of this stage, job {job_id}, passed with the same code."


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
