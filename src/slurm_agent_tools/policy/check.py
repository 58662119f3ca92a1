"""Judging a script without a cluster, as `policy check` does."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from slurm_agent_tools.model import Pin, Resources, ScriptReading
from slurm_agent_tools.policy.engine import decide
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.policy.plan import Plan
from slurm_agent_tools.replies import DecisionShown


def check_text(
    reading: ScriptReading | None,
    problem: str | None,
    loaded: LoadedPolicy,
    *,
    project: str,
    resources: Resources,
    pinned: Sequence[Pin] = (),
    justification: str | None = None,
) -> DecisionShown:
    """The decision on one script as far as it can be told without a cluster.

    `reading` with the pins in its request, `resources` resolved from it; `problem` where it could not be read.
    The id is the same for the same script and policy, since nothing is remembered.
    """
    plan = Plan(
        tool="submit_job",
        project=project,
        reading=reading,
        resources=resources,
        justification=justification,
        problem=problem,
    )
    about = reading.sha256 if reading is not None else str(problem)
    digest = hashlib.sha256(f"{loaded.sha256} {about}".encode()).hexdigest()
    return decide(plan, loaded, decision_id=f"check-{digest[:12]}", pinned=pinned)
