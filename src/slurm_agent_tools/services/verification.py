"""What was checked is what runs: Slurm's own numbers of a job are compared with those that were allowed."""

from __future__ import annotations

from dataclasses import replace

from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.request import grown_since
from slurm_agent_tools.policy.evaluate import evaluate
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.services.submission_request import SubmissionRequest, context_of

_NUMBERS = ("memory-per-gpu", "gpus", "time-limit")

_SEVERITY = ("pass", "warn", "not_evaluated", "justify", "approve", "deny")


def differences(context: ClusterContext, request: SubmissionRequest, granted: Job, script: bytes) -> list[str]:
    """Everything in which Slurm's resolved request is not what the policy allowed; empty when all is well."""
    differing, counted = [], request.resources
    if request.effective.find("exclusive"):
        granted = _with_all_gpus(request, granted)
    if script != request.data:
        differing.append("the script that Slurm holds is not the script that was checked")
    if granted.name != request.name:
        differing.append(f"the name is {granted.name!r}, asked was {request.name!r}")
    if granted.requeue:
        differing.append("Slurm would requeue the job by itself")
    if request.arguments.priority is not None:
        differing += priority(request, granted)
    if request.effective.find("ntasks-per-node") and counted.memory_per_node_bytes and counted.nodes:
        # a site's floor asks for the memory of each node in place of that of each CPU: so much, with fewer tasks too
        every = counted.memory_per_node_bytes * counted.nodes
        counted = replace(counted, memory_bytes=max(counted.memory_bytes or 0, every))
    differing += [change.what for change in grown_since([counted], granted.resources, started=False)]
    return differing + _harsher(context, request, granted)


def _with_all_gpus(request: SubmissionRequest, granted: Job) -> Job:
    """Until a job has started, Slurm shows of the GPUs of whole nodes only those that were named: count them all."""
    counted, shown = request.resources, granted.resources
    if (shown.gpus or 0) >= (counted.gpus or 0):
        return granted
    share = None if shown.memory_bytes is None or not counted.gpus else -(-shown.memory_bytes // counted.gpus)
    return replace(granted, resources=replace(shown, gpus=counted.gpus, memory_per_gpu_bytes=share))


def priority(request: SubmissionRequest, granted: Job) -> list[str]:
    """A priority that was asked for and did not come. What the script alone asks for is its site's business."""
    if request.arguments.priority == "low":
        asked = int(request.effective.find("nice")[-1].value or 0)
        if granted.nice is not None and granted.nice < asked:
            return [f"the nice value is {granted.nice}, asked was {asked}"]
    if request.arguments.priority == "high" and granted.qos != request.effective.qos:
        return [f"the QOS is {granted.qos}, asked was {request.effective.qos}"]
    return []


def _harsher(context: ClusterContext, request: SubmissionRequest, granted: Job) -> list[str]:
    """Rules about numbers that judge what Slurm resolved more severely than what was asked."""
    evaluation = context_of(
        context, request, numbers=granted.resources, pinned=request.pinned, grant=request.verdict.approval,
        decision_id=request.verdict.id,
    )  # fmt: skip
    before = {rule.id: rule.outcome for rule in request.verdict.rules}
    after = evaluate(request.reading, evaluation).rules
    return [
        rule.message
        for rule in after
        if rule.id in _NUMBERS and _SEVERITY.index(rule.outcome) > max(2, _SEVERITY.index(before[rule.id]))
    ]
