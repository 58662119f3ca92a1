"""The rules, one a file, in the order in which they are reported."""

from __future__ import annotations

from slurm_agent_tools.policy.rules import (
    auto_retry,
    budget,
    concurrent_jobs,
    cuda_visible_devices,
    dependency,
    device_index,
    direct_submission,
    directives,
    duplicate,
    gpus,
    interactive,
    memory_per_gpu,
    opaque_code,
    partition,
    path,
    script_exists,
    status_first,
    time_limit,
)
from slurm_agent_tools.policy.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    memory_per_gpu.RULE,
    gpus.RULE,
    time_limit.RULE,
    concurrent_jobs.RULE,
    budget.RULE,
    cuda_visible_devices.RULE,
    device_index.RULE,
    auto_retry.RULE,
    duplicate.RULE,
    direct_submission.RULE,
    interactive.RULE,
    partition.RULE,
    dependency.RULE,
    script_exists.RULE,
    status_first.RULE,
    path.RULE,
    directives.RULE,
    opaque_code.RULE,
)
