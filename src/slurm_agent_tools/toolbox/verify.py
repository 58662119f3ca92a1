"""What was checked is what runs: the held job is compared with the allowed request before it is released."""

from __future__ import annotations

from dataclasses import replace

from slurm_agent_tools.model import Plan
from slurm_agent_tools.policy.engine import decide
from slurm_agent_tools.slurm.client import Granted
from slurm_agent_tools.toolbox.case import Case
from slurm_agent_tools.toolbox.desk import Desk

_NUMBERS = ("memory-per-gpu", "gpus", "time-limit")
_SEVERITY = ("pass", "warn", "not_evaluated", "justify", "approve", "deny")


def differences(desk: Desk, case: Case, granted: Granted, script: bytes) -> list[str]:
    """Everything in which Slurm's resolved request is not what the policy allowed; empty when all is well."""
    found = []
    if script != case.data:
        found.append("the script that Slurm holds is not the script that was checked")
    if granted.name != case.name:
        found.append(f"the name is {granted.name!r}, asked was {case.name!r}")
    if granted.requeue:
        found.append("Slurm would requeue the job by itself")
    if case.resources.partition is not None and granted.resources.partition != case.resources.partition:
        found.append(f"partition is {granted.resources.partition}, checked was {case.resources.partition}")
    return found + _harsher(desk, case, granted)


def _harsher(desk: Desk, case: Case, granted: Granted) -> list[str]:
    """Rules about numbers that judge what Slurm resolved more severely than what was asked."""
    plan = Plan(
        tool="submit_job",
        project=desk.project,
        reading=replace(case.reading, request=case.request),
        resources=granted.resources,
        justification=case.ask.justification,
    )
    before = {rule.id: rule.outcome for rule in case.verdict.rules}
    after = decide(plan, desk.policy, decision_id=case.verdict.id).rules
    return [
        rule.message
        for rule in after
        if rule.id in _NUMBERS and _SEVERITY.index(rule.outcome) > max(2, _SEVERITY.index(before[rule.id]))
    ]
