"""The judgement over what a script was found to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slurm_agent_tools.models.decision import Outcome
from slurm_agent_tools.models.request import Finding, ScriptReading
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules import remedies, script_mending
from slurm_agent_tools.policy.rules.rule import Judgement, passed, reading_of

_SEVERITY: tuple[Outcome, ...] = ("warn", "approve", "deny")


def judge(
    rule: str, *, clean: str, why: str, mend: script_mending.Mend, advice: str
) -> Callable[[PlannedRequest, Policy], Judgement]:
    """A judgement over the findings for `rule`. `mend` makes the lines of the remedy, `advice` explains them."""

    def verdict(plan: PlannedRequest, _: Policy) -> Judgement:
        reading = reading_of(plan)
        found = [finding for finding in reading.findings if finding.rule == rule]
        return speak(reading, found, why, mend, advice) if found else passed(clean)

    return verdict


def speak(
    reading: ScriptReading, found: Sequence[Finding], why: str, mend: script_mending.Mend, advice: str
) -> Judgement:
    """What is said about these findings: the most severe of their levels decides."""
    worst: Outcome = max((finding.level for finding in found), key=_SEVERITY.index)
    what = sentence([finding.what for finding in found])
    remedy = f"{script_mending.steps(reading, found, mend)}\n{remedies.note(advice)}"
    return Judgement(worst, f"{what} {why}", len(found), 0, remedy, [finding.evidence for finding in found])


def sentence(whats: Sequence[str]) -> str:
    """What was found, each thing once."""
    text = "; ".join(dict.fromkeys(what.strip().rstrip(".") for what in whats))
    return f"{text[:1].upper()}{text[1:]}."
