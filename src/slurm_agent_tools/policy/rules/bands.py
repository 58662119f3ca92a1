"""The judgement that memory, GPUs and time share: free, with a written reason, or by a person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from slurm_agent_tools.models.request import Directive
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.remedies import WHY_NEEDED, call_again, replace, ways, with_reason
from slurm_agent_tools.policy.rules.rule import Judgement, proof, reason_for


class Bands(Protocol):
    """Up to `free` passes, up to `justify` needs a written reason, beyond needs a person."""

    @property
    def free(self) -> int:
        """Largest value that passes."""

    @property
    def justify(self) -> int:
        """Largest value that a written reason allows."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of the request: `line` writes it as a directive, `show` for people, `why` is the limit's reason."""

    thing: str
    value: int
    bands: Bands
    directives: tuple[Directive, ...]
    line: Callable[[int], str]
    show: Callable[[int], str]
    why: str


def judge(measure: Measure, plan: PlannedRequest, policy: Policy) -> Judgement:
    """Pass, justify or approve, with the exact lines that pass."""
    shown, free, most = (measure.show(n) for n in (measure.value, measure.bands.free, measure.bands.justify))
    if measure.value <= measure.bands.free:
        return Judgement("pass", f"{measure.thing}: {shown}, up to {free} is free.", shown, free)
    evidence = proof(measure.directives)
    reason = reason_for(plan, policy)
    lower = replace(measure.directives, measure.line(measure.bands.free))
    if measure.value > measure.bands.justify:
        message = f"{measure.thing}: {shown} is more than {most}, and beyond that a person decides. {measure.why}"
        return Judgement("approve", message, shown, most, _or_reason(lower, measure, measure.bands.justify), evidence)
    if reason is not None:
        message = f"{measure.thing}: {shown}, above the free {free}, justified by: {reason}"
        return Judgement("pass", message, shown, free, None, evidence)
    message = f"{measure.thing}: {shown} is more than the free {free} and needs a written reason. {measure.why}"
    return Judgement("justify", message, shown, free, _or_reason(lower, measure, measure.value), evidence)


def unknown(thing: str, free: str, directives: tuple[Directive, ...], line: str) -> Judgement:
    """A number that cannot be told from the request: refused, never guessed. `line` states one that is free."""
    message = f"{thing}: cannot be told from this request, and {free} is free. What cannot be counted is not submitted."
    return Judgement("deny", message, "unknown", free, replace(directives, line), proof(directives))


def _or_reason(lower: str, measure: Measure, size: int) -> str:
    """Lower it; or keep `size`, with a written reason on the line or in the call."""
    others = [("give your reason on the line", with_reason(measure.directives, measure.line(size)))]
    if size == measure.value:
        others.append(("give your reason in the call", call_again("justification", WHY_NEEDED)))
    return ways(lower, *others)
