"""The judgement of rules about what a script does: its reading has found it or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slurm_agent_tools.model import Evidence, Finding, Plan
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.rules.base import Verdict, passed, reading_of
from slurm_agent_tools.replies import Outcome

_SEVERITY: tuple[Outcome, ...] = ("warn", "approve", "deny")


def judge(rule: str, *, clean: str, why: str, remedy: str) -> Callable[[Plan, Policy], Verdict]:
    """A judgement over the findings for `rule`. `remedy` follows the lines to delete or change."""

    def verdict(plan: Plan, _: Policy) -> Verdict:
        found = [finding for finding in reading_of(plan).findings if finding.rule == rule]
        return speak(found, why, remedy) if found else passed(clean)

    return verdict


def speak(found: Sequence[Finding], why: str, remedy: str) -> Verdict:
    """What is said about these findings: the most severe of their levels decides."""
    worst: Outcome = max((finding.level for finding in found), key=_SEVERITY.index)
    what = "; ".join(dict.fromkeys(_sentence(finding) for finding in found))
    lines = [finding.evidence for finding in found]
    return Verdict(worst, f"{what}. {why}", len(found), 0, f"{_places(lines)} {remedy}", lines)


def _sentence(finding: Finding) -> str:
    text = finding.what.strip().rstrip(".")
    return text[:1].upper() + text[1:]


def _places(lines: Sequence[Evidence]) -> str:
    named = dict.fromkeys(f"{line.file} line {line.line} (`{line.text.strip()}`)" for line in lines)
    return f"Change {', '.join(named)}:"
