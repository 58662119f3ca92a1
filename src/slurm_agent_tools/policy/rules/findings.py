"""The judgement over what a script was found to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slurm_agent_tools.model import Finding, ScriptReading
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import Plan
from slurm_agent_tools.policy.rules import mending, remedies
from slurm_agent_tools.policy.rules.base import Verdict, passed, reading_of
from slurm_agent_tools.replies import Outcome

_SEVERITY: tuple[Outcome, ...] = ("warn", "approve", "deny")


def judge(rule: str, *, clean: str, why: str, mend: mending.Mend, advice: str) -> Callable[[Plan, Policy], Verdict]:
    """A judgement over the findings for `rule`. `mend` makes the lines of the remedy, `advice` explains them."""

    def verdict(plan: Plan, _: Policy) -> Verdict:
        reading = reading_of(plan)
        found = [finding for finding in reading.findings if finding.rule == rule]
        return speak(reading, found, why, mend, advice) if found else passed(clean)

    return verdict


def speak(reading: ScriptReading, found: Sequence[Finding], why: str, mend: mending.Mend, advice: str) -> Verdict:
    """What is said about these findings: the most severe of their levels decides."""
    worst: Outcome = max((finding.level for finding in found), key=_SEVERITY.index)
    what = sentence([finding.what for finding in found])
    remedy = f"{mending.steps(reading, found, mend)}\n{remedies.note(advice)}"
    return Verdict(worst, f"{what} {why}", len(found), 0, remedy, [finding.evidence for finding in found])


def sentence(whats: Sequence[str]) -> str:
    """What was found, each thing once."""
    text = "; ".join(dict.fromkeys(what.strip().rstrip(".") for what in whats))
    return f"{text[:1].upper()}{text[1:]}."
