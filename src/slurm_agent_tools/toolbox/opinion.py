"""The second opinion: where the cluster's own sbatch reads a request differently from the guard, nothing is sent."""

from __future__ import annotations

from dataclasses import replace

from slurm_agent_tools.jobscript import opinion
from slurm_agent_tools.jobscript.request import effective, words_to_directives
from slurm_agent_tools.model import JobRequest
from slurm_agent_tools.replies import DecisionShown, RuleResult, SubmitReply
from slurm_agent_tools.slurm.client import TestOnly
from slurm_agent_tools.toolbox import dispatch
from slurm_agent_tools.toolbox.case import Case, blocked, log_decision
from slurm_agent_tools.toolbox.desk import Desk

_RULE = "directives"
_REMEDY = (
    "Write each named option plainly on a line of its own, like `#SBATCH --mem=16G`. If it stays, show this to a"
    " person: a plugin of this site's Slurm may add or change options (cli_filter, SPANK)."
)


async def differing(desk: Desk, case: Case, trial: TestOnly) -> SubmitReply | None:
    """The refusal of a request that sbatch reads otherwise, in the decision log first; None where both agree."""
    if not trial.accepted and trial.shown == ():
        return None  # sbatch refused an option before it could show any
    found = opinion.differences(request(case), trial.shown)
    if "\n" in desk.there.root:
        found.append("the project folder's name holds a line break")
    if not found:
        return None
    case = replace(case, decision=_denied(case.verdict, found))
    await log_decision(desk, case, "disagreed", differences=found)
    return blocked(desk, case, "policy", human=False)


def request(case: Case) -> JobRequest:
    """Our reading of exactly what sbatch was asked: the script's options and the whole command line."""
    script = [made for made in case.reading.request.directives if made.source == "script"]
    read = effective([*script, *words_to_directives(dispatch.options(case), "argument")])
    return replace(read, components=case.request.components)


def _denied(decision: DecisionShown, found: list[str]) -> DecisionShown:
    """The decision with rule `directives` against the request."""
    message = f"This cluster's sbatch reads the options differently from the guard: {'; '.join(found)}."
    denied = RuleResult(id=_RULE, outcome="deny", message=message, observed=len(found), limit=0, remedy=_REMEDY)
    rules = [denied if rule.id == _RULE else rule for rule in decision.rules]
    return decision.model_copy(update={"verdict": "deny", "rules": rules})
