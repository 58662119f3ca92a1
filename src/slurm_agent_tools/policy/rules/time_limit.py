"""time-limit: how long one job may run."""

from __future__ import annotations

from slurm_agent_tools.models.request import Resources
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.examples import HOUR, asks
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    Example,
    Judgement,
    Measure,
    Rule,
    judge_measure,
    request_of,
    uncountable,
)
from slurm_agent_tools.units import UNLIMITED, format_duration

_WHY = "A long job blocks its nodes for everybody, and a mistake in it is found late."

_ENDLESS = 10**9


def _judge(plan: PlannedRequest, policy: Policy) -> Judgement:
    request = request_of(plan)
    directives = request.find("time", "time-min")
    limit = request.time_limit if plan.resources.time_limit_seconds is None else plan.resources.time_limit_seconds
    if limit is None:
        line = _line(policy.defaults.time_limit)
        return uncountable("Time limit", _show(policy.limits.time_limit.free), directives, line)
    value = _ENDLESS if limit == UNLIMITED else limit
    measure = Measure("Time limit", value, policy.limits.time_limit, directives, _line, _show, _WHY)
    return judge_measure(measure, plan, policy)


def _line(seconds: int) -> str:
    return f"#SBATCH --time={format_duration(seconds)}"


def _show(seconds: int) -> str:
    return format_duration(UNLIMITED if seconds == _ENDLESS else seconds)


RULE = Rule(
    id="time-limit",
    what="A time limit is free up to a length, needs a written reason above it, and a person beyond a second one.",
    why=_WHY,
    levels=("justify", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge,
    passing=(
        Example(
            "one day",
            asks("#SBATCH --time=24:00:00", time_limit=24 * HOUR, resources=Resources(time_limit_seconds=24 * HOUR)),
            "pass",
        ),
        Example(
            "two days with a reason",
            asks(
                "#SBATCH --time=2-00:00:00  # JUSTIFIED: 40 epochs at 65 minutes each",
                time_limit=48 * HOUR,
                reason="40 epochs at 65 minutes each",
                resources=Resources(time_limit_seconds=48 * HOUR),
            ),
            "pass",
        ),
    ),
    failing=(
        Example(
            "two days without a reason",
            asks("#SBATCH --time=2-00:00:00", time_limit=48 * HOUR, resources=Resources(time_limit_seconds=48 * HOUR)),
            "justify",
        ),
        Example(
            "seven days",
            asks("#SBATCH --time=7-00", time_limit=168 * HOUR, resources=Resources(time_limit_seconds=168 * HOUR)),
            "approve",
        ),
        Example(
            "no limit at all",
            asks("#SBATCH --time=UNLIMITED", time_limit=-1, resources=Resources(time_limit_seconds=-1)),
            "approve",
        ),
        Example("a time that nobody stated", asks("python train.py"), "deny", counted=False),
    ),
)
