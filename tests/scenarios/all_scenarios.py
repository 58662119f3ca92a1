"""Every scenario, in the order of their modules."""

from __future__ import annotations

from tests.scenarios import (
    array_jobs,
    changed_jobs,
    depending_jobs,
    job_ends,
    queue_states,
    requests_made,
    tool_calls,
)
from tests.scenarios.table import SCENARIOS

MODULES = (job_ends, queue_states, array_jobs, depending_jobs, changed_jobs, requests_made, tool_calls)

__all__ = ["MODULES", "SCENARIOS"]
