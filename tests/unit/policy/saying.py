"""What one rule of the shipped policy says of a plan, with other limits where a test states them."""

from __future__ import annotations

from collections.abc import Mapping

from slurm_agent_tools.api.rule_examples import GIB, HOUR
from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.policy.evaluate import RULES
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.policy.plan import PlannedRequest

POLICY = load(shipped()).policy
BY_ID = {rule.id: rule for rule in RULES}
ONE = Resources(gpus=1, nodes=1, cpus=2, memory_per_gpu_bytes=16 * GIB, time_limit_seconds=HOUR)


def says(rule: str, plan: PlannedRequest, fields: Mapping[str, object] | None = None, **limits: object) -> RuleDecision:
    """What a rule of the shipped policy says, with other limits where a test states them."""
    changed = POLICY.model_copy(update={"limits": POLICY.limits.model_copy(update=limits), **(fields or {})})
    return BY_ID[rule].check(plan, changed)


def lines(result: RuleDecision) -> list[int]:
    return [evidence.line for evidence in result.evidence]
