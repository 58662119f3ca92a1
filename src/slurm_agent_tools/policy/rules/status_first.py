"""status-first: look at the cluster, then submit."""

from __future__ import annotations

from datetime import timedelta

from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.examples import NOW, asks, live
from slurm_agent_tools.policy.rules.rule import SUBMIT, Example, Judgement, Rule, facts_of, passed

_WHY = "Who has not looked at the queue cannot know whether now is the time."

_REMEDY = "Call get_status, follow its recommendation, then submit again."


def _judge(plan: PlannedRequest, policy: Policy) -> Judgement:
    facts, most = facts_of(plan), policy.status_max_age_seconds
    if facts.status_read is None:
        message = f"get_status was not called in the {most} s before this submission. {_WHY}"
        return Judgement("deny", message, None, most, _REMEDY)
    age = round((facts.now - facts.status_read).total_seconds())
    if age > most:
        message = f"get_status was last called {age} s ago, longer than {most} s. {_WHY}"
        return Judgement("deny", message, age, most, _REMEDY)
    return passed(f"get_status was called {max(age, 0)} s ago.", max(age, 0), most)


RULE = Rule(
    id="status-first",
    what="The same caller has called get_status shortly before it submits.",
    why=_WHY,
    levels=("deny",),
    tools=SUBMIT,
    judge=_judge,
    passing=(Example("a look a minute ago", asks("python train.py", live=live()), "pass"),),
    failing=(
        Example("no look", asks("python train.py", live=live(status_read=None)), "deny"),
        Example("a look an hour ago", asks("python train.py", live=live(status_read=NOW - timedelta(hours=1))), "deny"),
    ),
    live=True,
)
