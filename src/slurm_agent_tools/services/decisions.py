"""The decision log: who asked what, what was decided by which policy, and what came of it."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict

from slurm_agent_tools.models.decision import Decision, RuleDecision, Verdict
from slurm_agent_tools.policy.evaluate import policy_used
from slurm_agent_tools.services.context import Caller, ClusterContext, new_id
from slurm_agent_tools.text import sanitize

_QUIET = {"pass", "not_evaluated"}


async def log(
    context: ClusterContext, caller: Caller, decision: Decision, tool: str, event: str, **facts: object
) -> None:
    """Append one line; on disk before this returns."""
    approval = decision.approval
    entry = {
        "at": context.clock.now().isoformat(),
        "event": event,
        "decision": decision.id,
        "tool": tool,
        "verdict": decision.verdict,
        "policy": asdict(decision.policy),
        "rules": [
            {"id": rule.id, "outcome": rule.outcome, "message": rule.message}
            for rule in decision.rules
            if rule.outcome not in _QUIET
        ],
        "user": context.owner.user,
        "project": context.project,
        "cluster": context.owner.cluster,
        "host": platform.node(),
        "process": os.getpid(),
        "client": caller.client,
        "client_version": caller.version,
        "face": caller.face,
        "principal": caller.principal or None,
        "approval": None if approval is None else asdict(approval) | {"at": approval.at.isoformat()},
    }
    await context.db(context.store.log_decision, sanitize.document(entry | facts))


def single(context: ClusterContext, verdict: Verdict, rules: Sequence[RuleDecision] = ()) -> Decision:
    """A decision that a tool takes by itself, in the policy's name."""
    return Decision(
        id=new_id(),
        verdict=verdict,
        policy=policy_used(context.policy),
        rules=tuple(rules),
    )
