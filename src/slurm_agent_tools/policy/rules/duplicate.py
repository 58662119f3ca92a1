"""duplicate: the same request is not sent twice by accident."""

from __future__ import annotations

from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules import remedies
from slurm_agent_tools.policy.rules.examples import asks, live, past
from slurm_agent_tools.policy.rules.rule import (
    SUBMIT,
    Example,
    Judgement,
    Rule,
    facts_of,
    not_evaluated,
    passed,
    reason_for,
)

_WHY = "The same work done twice is wasted, and both jobs may write the same files."

_SHA = "2" * 64


def _judge(plan: PlannedRequest, policy: Policy) -> Judgement:
    if plan.request_sha256 is None:
        return not_evaluated("The request has no hash to compare.")
    same = [run for run in facts_of(plan).history if run.active and run.request_sha256 == plan.request_sha256]
    if not same:
        return passed("No active job runs the same request.")
    ids = ", ".join(run.job_id for run in same)
    reason = reason_for(plan, policy, directive=False)
    if reason is not None:
        return passed(f"The same request is already active as job {ids}, justified by: {reason}", ids)
    message = f"The same script with the same arguments is already active as job {ids}. {_WHY}"
    remedy = remedies.ways(
        "\n".join(f'wait_for_job with job_id="{run.job_id}" until it has ended, then submit again.' for run in same),
        ("say why it runs twice", remedies.call_again("justification", remedies.WHY_TWICE)),
    )
    return Judgement("justify", message, ids, None, remedy)


def _twice(justification: str | None = None) -> PlannedRequest:
    history = (past("51", request_sha256=_SHA, active=True),)
    return asks(
        "python train.py", request_sha256=_SHA, live=live(active_jobs=1, history=history), justification=justification
    )


RULE = Rule(
    id="duplicate",
    what="A request that is already queued or running (same script, arguments and options) needs a written reason.",
    why=_WHY,
    levels=("justify",),
    tools=SUBMIT,
    judge=_judge,
    passing=(
        Example("nothing like it is active", asks("python train.py", request_sha256=_SHA, live=live()), "pass"),
        Example("twice with a reason", _twice(justification="measures the run to run noise"), "pass"),
    ),
    failing=(Example("twice", _twice(), "justify"),),
    live=True,
)
