"""smoke-first, for a job that is large or names a stage: what the earlier stages of its configuration showed."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.backends.stages import FORM, Ladder, StageRun, declared, differing
from slurm_agent_tools.models.arguments import Stage
from slurm_agent_tools.models.request import Evidence
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.rule import (
    WHY_UNTRIED,
    Judgement,
    call_again,
    in_words,
    note,
    passed,
    proof,
    reading_of,
    reason_for,
    request_of,
    ways,
)
from slurm_agent_tools.units import format_duration

Large = Sequence[tuple[float, float, str]]
"""Hours asked for, the hours from which on a smoke run is needed, and of what: GPU or CPU."""

_WHY = "A mistake that a short run shows costs minutes; found in a long one it costs the hours of all its nodes."

_WHY_THERE = "A trial there keeps the larger nodes free."

_BELOW: dict[str, tuple[Stage, ...]] = {"pilot": ("smoke",), "production": ("smoke", "pilot")}


def judge_ladder(plan: PlannedRequest, policy: Policy, ladder: Ladder, large: Large) -> Judgement:
    """What the stages that were tried mean for this one."""
    if ladder.problem is not None:
        return _untold(plan, ladder.problem)
    if plan.stage == "smoke":
        return _smoke(plan, policy, ladder)
    stage = plan.stage or "production"
    for lower in _BELOW[stage]:
        run = ladder.newest(lower)
        if run is not None and run.state != "passed":
            return _closed(run, stage, plan, policy, ladder)
    pilot = ladder.failed_before
    if stage == "production" and pilot is not None and ladder.newest("pilot") is None:
        return _closed(pilot, stage, plan, policy, ladder)
    known = ladder.validated
    if known is not None:
        return passed(f"The same configuration passed as job {known.job_id} ({known.stage}).", known.job_id)
    return _untried(plan, policy, ladder, large) if large else passed("Small enough to need no smoke run.")


def _untold(plan: PlannedRequest, problem: str) -> Judgement:
    """The configuration cannot be told, so nothing is known of it."""
    message = f"Which configuration this job runs cannot be told: {problem}. {_WHY}"
    reading = reading_of(plan)
    lines = enumerate(reading.text.split("\n"), start=1)
    stated = [Evidence(reading.path, number, line[:300]) for number, line in lines if line.startswith("#SMOKE")][:20]
    if declared(reading.text).problem is not None:
        how = f"name numbers only, like `{FORM}`, and files inside the project"
        return Judgement("deny", message, "unknown", None, in_words(stated, how), stated)
    remedy = f"Call get_status, then submit again.\n{note('where that does not help, mend what cannot be read.')}"
    return Judgement("deny", message, "unknown", None, remedy)


def _untried(plan: PlannedRequest, policy: Policy, ladder: Ladder, large: Large) -> Judgement:
    """Above the size, and nothing of this configuration has passed: a smoke run, or a written reason."""
    hours, most, unit = large[0]
    asked = "an unknown number of" if hours == float("inf") else f"{round(hours, 2):g}"
    size = f"It asks for {asked} {unit} hours, more than {most:g}"
    reason = reason_for(plan, policy, directive=False)
    if reason is not None:
        return passed(f"{size}, and no smoke run of this configuration passed, justified by: {reason}", asked, most)
    near, changed = ladder.nearest, ""
    if near is not None:
        parts = differing(near.parts or {}, ladder.parts or {})
        told = ", ".join(parts[:5]) + (f" and {len(parts) - 5} more" if len(parts) > 5 else "")
        changed = f" (since job {near.job_id}, which passed, this changed: {told})"
        written = [part for part in parts if not part.startswith(("the ", "an array", "what "))]
        if written:
            changed += f". A file that the job writes itself is declared in its head: `#SMOKE writes: {written[0]}`"
    message = f"{size}, and no smoke run of this very configuration has passed{changed}. {_WHY}"
    others = ("give your reason in the call", call_again("justification", WHY_UNTRIED))
    remedy = ways(_smoke_run(plan, policy, ladder), others)
    return Judgement("justify", message, asked, most, remedy, proof(request_of(plan).find("time", "array", "gpus")))


def _smoke_run(plan: PlannedRequest, policy: Policy, ladder: Ladder) -> str:
    """The call that makes a smoke run of this configuration."""
    more = list[tuple[str, str]]()
    limit, most = plan.resources.time_limit_seconds, policy.smoke_first.smoke_time_limit
    if limit is None or not 0 <= limit <= most:
        more.append(("time_limit", format_duration(most)))
    more += [("array", first) for first in _first_task(plan)]
    if ladder.smoke_partition is not None and ladder.smoke_partition != plan.resources.partition:
        more.append(("partition", ladder.smoke_partition))
    named = f"shorten {', '.join(ladder.lengths)}"
    if not ladder.lengths:
        named = f"name in the script what makes a run long, an option, a variable or a key, as in `{FORM}`;"
        named += " then shorten it"
    advice = note(f"{named}; change nothing else. Behind a run that passes, make this call again.")
    return "\n".join([call_again("stage", "smoke", *more), advice])


def _first_task(plan: PlannedRequest) -> list[str]:
    """The first task of an array of several."""
    array = request_of(plan).array
    if array is None or array.count == 1:
        return []
    return [str(array.first)]


def _closed(run: StageRun, stage: Stage, plan: PlannedRequest, policy: Policy, ladder: Ladder) -> Judgement:
    """A lower stage that did not pass, or is not known to have: everything above it waits."""
    name = f"The {run.stage} run of this configuration, job {run.job_id},"
    if run.configuration != ladder.configuration:
        name = f"The {run.stage} run of an earlier version of this script, job {run.job_id},"
    how = {
        "active": "has not ended",
        "failed": f"did not pass: {run.why}",
        "unknown": f"is not known to have passed: {run.why}",
    }.get(run.state, "did not pass")
    message = f"{name} {how}, and nothing larger is submitted until a {run.stage} run has passed. {_WHY}"
    if run.state == "active":
        again = f'wait_for_job with job_id="{run.job_id}" until it has ended, then submit again.'
    elif run.stage == "smoke":
        look = f'Call analyze_log with job_id="{run.job_id}".'
        again = "\n".join([look, _smoke_run(plan, policy, ladder)])
    else:
        look = f'Call analyze_log with job_id="{run.job_id}".'
        again = "\n".join([look, call_again("stage", "pilot"), note(f"{stage} follows when the pilot has passed.")])
    return Judgement("deny", message, run.job_id, None, again)


def _smoke(plan: PlannedRequest, policy: Policy, ladder: Ladder) -> Judgement:
    """A smoke run is short, a single task, and the only one of its configuration."""
    going = [run for run in ladder.runs if run.stage == "smoke" and run.state == "active"]
    same = next((run for run in going if run.configuration == ladder.configuration), None)
    if same is not None:
        message = f"A smoke run of this configuration goes on already: job {same.job_id}. One shows what two would."
        again = f'wait_for_job with job_id="{same.job_id}" until it has ended, then submit again.'
        return Judgement("deny", message, same.job_id, None, again)
    limit, most = plan.resources.time_limit_seconds, policy.smoke_first.smoke_time_limit
    if limit is None or not 0 <= limit <= most:
        shown, longest = ("unknown" if limit is None else format_duration(limit)), format_duration(most)
        message = f"The time limit of this smoke run is {shown}, and it may be {longest} at most. {_WHY}"
        stated = proof(request_of(plan).find("time"))
        return Judgement("deny", message, shown, longest, call_again("time_limit", longest), stated)
    for first in _first_task(plan):
        tasks = plan.resources.array_tasks or 0
        message = f"This smoke run is an array of {tasks} tasks, and 1 shows what all would. {_WHY}"
        stated = proof(request_of(plan).find("array"))
        return Judgement("deny", message, tasks, 1, call_again("array", first), stated)
    better = ladder.smoke_partition
    if better is not None and plan.resources.partition not in {None, better}:
        there = plan.resources.partition
        message = f"A smoke run costs least on partition {better}, and this one goes to {there}. {_WHY_THERE}"
        return Judgement("warn", message, there, better, call_again("partition", better))
    return passed("A smoke run: short, a single task, and the only one of its configuration.")
