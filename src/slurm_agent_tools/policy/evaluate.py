"""The one evaluation: what a script asks for, with what the policy adds to it, under all rules. Pure.

Whoever wants to know what the policy says of a script comes here: submitting, checking, generating, comparing a held
job with what was allowed, and watching jobs for drift.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from slurm_agent_tools.models.decision import Consent, Decision
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest, Pin, Resources, ScriptReading
from slurm_agent_tools.policy.decide import decide
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.policy.pins import pins
from slurm_agent_tools.policy.plan import LiveFacts, PlannedRequest
from slurm_agent_tools.scripts.effective_request import effective, pins_to_directives
from slurm_agent_tools.scripts.resources_asked import resolve


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """Everything beside the script that a decision rests on.

    `live` None: no facts of the moment are known, and rules that need them do not count; with them, a rule that still
    lacks a fact denies. `partitions` where no more than that was asked. `numbers` and `pinned`: what Slurm made of the
    request, and what was added to it before; None: both follow from the script. `path` to `size` are of a file that the
    tool writes, `problem` says why the script could not be read. `decision_id` None: the same for the same script.
    """

    policy: LoadedPolicy
    project: str
    tool: str = "submit_job"
    decision_id: str | None = None
    live: LiveFacts | None = None
    partitions: Mapping[str, Partition] | None = None
    user: str | None = None
    today: date | None = None
    grant: Consent | None = None
    justification: str | None = None
    priority: str | None = None
    request_sha256: str | None = None
    numbers: Resources | None = None
    pinned: tuple[Pin, ...] | None = None
    problem: str | None = None
    path: str | None = None
    path_exists: bool = False
    adds: bool = False
    size: int | None = None

    @property
    def offered(self) -> Mapping[str, Partition] | None:
        """What the cluster offers, where that is known."""
        return self.partitions if self.live is None else self.live.partitions


def evaluate(script: ScriptReading | None, context: EvaluationContext) -> Decision:
    """The decision on a script, or on a file that is written without one. Raises InputError for a priority.

    The same script and context have the same decision.
    """
    offered = context.offered
    pinned, request, numbers = context.pinned or (), JobRequest(), context.numbers
    if script is not None:
        if context.pinned is None:
            pinned = pins(script.request, context.policy.policy, offered, context.priority)
        request = with_pins(script.request, pinned)
        script = replace(script, request=request)
        numbers = resolve(request, offered) if numbers is None else numbers
    plan = PlannedRequest(
        tool=context.tool, project=context.project, reading=script, resources=numbers or Resources(),
        request_sha256=context.request_sha256, justification=context.justification, live=context.live,
        partitions=context.partitions, path=context.path, path_exists=context.path_exists, adds=context.adds,
        size=context.size, problem=context.problem, user=context.user, today=context.today,
    )  # fmt: skip
    made = decide(plan, context.policy, complete=context.live is not None, grant=context.grant)
    about = script.sha256 if script is not None else str(context.problem)
    return replace(
        made,
        id=context.decision_id or _same_id(context.policy, about),
        pinned=pinned,
        request=request,
        resources=plan.resources,
    )


def with_pins(request: JobRequest, pinned: Sequence[Pin]) -> JobRequest:
    """The request with what was added to it."""
    if not pinned:
        return request
    return replace(
        effective([*request.directives, *pins_to_directives(pinned)]),
        problems=request.problems,
        components=request.components,
        interpreter=request.interpreter,
        justification=request.justification,
    )


def _same_id(policy: LoadedPolicy, about: str) -> str:
    """An id for a decision that nobody remembers."""
    return f"check-{hashlib.sha256(f'{policy.sha256} {about}'.encode()).hexdigest()[:12]}"
