"""dependency, duplicate, status-first: what is known of other jobs before one more is submitted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta

from slurm_agent_tools.models.request import Directive
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import LiveFacts, PlannedRequest
from slurm_agent_tools.policy.rules import remedies
from slurm_agent_tools.policy.rules.examples import NOW, asks, live, past
from slurm_agent_tools.policy.rules.examples import live as facts
from slurm_agent_tools.policy.rules.remedies import note, replace, ways
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    SUBMIT,
    Example,
    Judgement,
    Rule,
    facts_of,
    not_evaluated,
    passed,
    proof,
    reason_for,
    request_of,
)

# --- dependency: what a job waits for can be read and exists ----------------------------------------------------------

_WHY = "Slurm 22.05 runs a job at once when the job that it should wait for is unknown."

_GONE = "There is nothing left to wait for."

_HOPELESS = "Such a job waits for ever, or starts at once where Slurm has forgotten the other one."

_OTHER = "#SBATCH --dependency=afterok:<id of a job that get_status shows>"

_GOOD = "COMPLETED"

_WANTED = {"afterok": True, "aftercorr": True, "afternotok": False}  # whether the other job has to end well

_TYPES = ("after", "afterok", "afterany", "afternotok", "aftercorr", "afterburstbuffer")

_JOB = re.compile(r"([1-9]\d{0,9})(?:_(?:\d{1,9}|\*))?(\+\d{1,6})?")


def named_jobs(dependency: str) -> tuple[str, ...]:
    """Base ids of the jobs in an sbatch --dependency value; ValueError where it cannot be read (sbatch(1))."""
    text = dependency.strip()
    if "," in text and "?" in text:
        raise ValueError("`,` (all of them) and `?` (any of them) cannot be mixed")
    ids: list[str] = []
    for item in re.split(r"[,?]", text):
        kind, *jobs = item.strip().split(":")
        if kind.lower() == "singleton" and not jobs:
            continue
        if kind.lower() not in _TYPES:
            raise ValueError(f"{kind or 'nothing'!r} is no kind of dependency")
        if not jobs:
            raise ValueError(f"{kind} names no job")
        ids += [_base(kind, job) for job in jobs]
    return tuple(dict.fromkeys(ids))


def _base(kind: str, job: str) -> str:
    match = _JOB.fullmatch(job)
    if match is None:
        raise ValueError(f"{job!r} is no job id")
    if match[2] and kind.lower() != "after":
        raise ValueError(f"a delay in minutes ({match[2]}) belongs to `after` only")
    return match[1]


def _judge_dependency(plan: PlannedRequest, _: Policy) -> Judgement:
    request = request_of(plan)
    if request.dependency is None:
        return passed("The job waits for no other job.")
    stated = request.find("dependency")
    try:
        ids = named_jobs(request.dependency)
    except ValueError as error:
        message = (
            f"The dependency cannot be read: {error}. A job that waits for the wrong thing runs at the wrong time."
        )
        remedy = _remedy(stated)
        return Judgement("deny", message, request.dependency, None, remedy, proof(stated))
    if not ids:
        return passed("The job waits for jobs of its own name only.", request.dependency)
    return _judged(request.dependency, ids, stated, plan.live)


def _judged(dependency: str, ids: Sequence[str], stated: Sequence[Directive], live: LiveFacts | None) -> Judgement:
    """What the queue and the accounting say of the jobs that are waited for."""
    if live is None:
        return not_evaluated(f"Needs the queue to tell whether job {', '.join(ids)} exists.")
    never = _never(dependency, live.ended_jobs)
    if never:
        return _hopeless(dependency, never, live.ended_jobs, stated)
    known = {job.partition("_")[0] for job in live.known_jobs}
    unknown = [job for job in ids if job not in known]
    if not unknown:
        return passed(f"The job waits for {', '.join(ids)}.", dependency)
    ended = {job: live.ended_jobs[job] for job in unknown if job in live.ended_jobs}
    message = f"{_forgotten(unknown, ended)}. {_GONE if len(ended) == len(unknown) else _WHY}"
    return Judgement("deny", message, dependency, None, _remedy(stated), proof(stated))


def _forgotten(unknown: Sequence[str], ended: Mapping[str, str]) -> str:
    told = [f"job {job} is over ({state}) and Slurm has forgotten it" for job, state in ended.items()]
    others = [job for job in unknown if job not in ended]
    told += [f"Slurm does not know job {', '.join(others)}"] if others else []
    text = "; ".join(told)
    return f"{text[:1].upper()}{text[1:]}"


def _never(dependency: str, ended: Mapping[str, str]) -> dict[str, str]:
    """Jobs whose end was not the one that is waited for, with what waits for them. Of `?` any one may do."""
    found: dict[str, str] = {}
    for item in [] if "?" in dependency else dependency.split(","):
        kind, *jobs = item.strip().split(":")
        wanted = _WANTED.get(kind.lower())
        for job in jobs:
            state = ended.get(job)
            if wanted is not None and state is not None and (state == _GOOD) is not wanted:
                found[job] = f"{kind}:{job}"
    return found


def _hopeless(
    dependency: str, never: Mapping[str, str], ended: Mapping[str, str], stated: Sequence[Directive]
) -> Judgement:
    what = "; ".join(f"job {job} ended {ended[job]}, so {item} can never be met" for job, item in never.items())
    failed = [job for job in never if ended[job] != _GOOD]
    looks = [f'Call analyze_log with job_id="{job}".' for job in failed]
    advice = [note("mend and submit what failed again, and wait for the new job.")] if failed else []
    other = "\n".join([*looks, replace(stated, _OTHER), *advice])
    ends = ", ".join(f"{job} {ended[job]}" for job in never)
    remedy = ways(other, (f"run it although job {ends}", replace(stated)))
    return Judgement("deny", f"{what[:1].upper()}{what[1:]}. {_HOPELESS}", dependency, None, remedy, proof(stated))


def _remedy(stated: Sequence[Directive]) -> str:
    """Wait for nothing, or for a job that is there."""
    return ways(replace(stated), ("wait for another job", replace(stated, _OTHER)))


def _after(dependency: str, state: str) -> PlannedRequest:
    """A job that waits for job 18, which is over and no longer in the queue."""
    known = facts(ended_jobs={"18": state}, history=(past("18", script_path="scripts/prepare.sh"),))
    return asks(f"#SBATCH --dependency={dependency}", dependency=dependency, live=known)


DEPENDENCY = Rule(
    id="dependency",
    what="A dependency can be read, names only jobs that Slurm knows, and can still be met.",
    why=_WHY,
    levels=("deny",),
    tools=SCRIPTS,
    judge=_judge_dependency,
    passing=(
        Example(
            "after a job in the queue",
            asks("#SBATCH --dependency=afterok:11", dependency="afterok:11", live=facts(known_jobs=frozenset({"11"}))),
            "pass",
        ),
        Example("one at a time by name", asks("#SBATCH --dependency=singleton", dependency="singleton"), "pass"),
    ),
    failing=(
        Example(
            "after a job that does not exist",
            asks("#SBATCH --dependency=afterok:99", dependency="afterok:99", live=facts()),
            "deny",
        ),
        Example("after the success of a job that failed", _after("afterok:18", "FAILED"), "deny"),
        Example("after a job that is over and forgotten", _after("afterany:18", "COMPLETED"), "deny"),
        Example(
            "a kind that does not exist",
            asks("#SBATCH --dependency=afterwards:11", dependency="afterwards:11"),
            "deny",
        ),
    ),
)


# --- duplicate: the same request is not sent twice by accident --------------------------------------------------------

_WHY_ONCE = "The same work done twice is wasted, and both jobs may write the same files."

_SHA = "2" * 64


def _judge_duplicate(plan: PlannedRequest, policy: Policy) -> Judgement:
    if plan.request_sha256 is None:
        return not_evaluated("The request has no hash to compare.")
    same = [run for run in facts_of(plan).history if run.active and run.request_sha256 == plan.request_sha256]
    if not same:
        return passed("No active job runs the same request.")
    ids = ", ".join(run.job_id for run in same)
    reason = reason_for(plan, policy, directive=False)
    if reason is not None:
        return passed(f"The same request is already active as job {ids}, justified by: {reason}", ids)
    message = f"The same script with the same arguments is already active as job {ids}. {_WHY_ONCE}"
    remedy = remedies.ways(
        "\n".join(f'wait_for_job with job_id="{run.job_id}" until it has ended, then submit again.' for run in same),
        ("say why it runs twice", remedies.call_again("justification", remedies.WHY_TWICE)),
    )
    return Judgement("justify", message, ids, None, remedy)


def _twice(justification: str | None = None) -> PlannedRequest:
    history = (past("51", request_sha256=_SHA, active=True),)
    return asks(
        "python train.py", request_sha256=_SHA, live=live(active_jobs=1, history=history), justification=justification
    )


DUPLICATE = Rule(
    id="duplicate",
    what="A request that is already queued or running (same script, arguments and options) needs a written reason.",
    why=_WHY_ONCE,
    levels=("justify",),
    tools=SUBMIT,
    judge=_judge_duplicate,
    passing=(
        Example("nothing like it is active", asks("python train.py", request_sha256=_SHA, live=live()), "pass"),
        Example("twice with a reason", _twice(justification="measures the run to run noise"), "pass"),
    ),
    failing=(Example("twice", _twice(), "justify"),),
    live=True,
)


# --- status-first: look at the cluster, then submit -------------------------------------------------------------------

_WHY_LOOK = "Who has not looked at the queue cannot know whether now is the time."

_LOOK = "Call get_status, follow its recommendation, then submit again."


def _judge_look(plan: PlannedRequest, policy: Policy) -> Judgement:
    facts, most = facts_of(plan), policy.status_max_age_seconds
    if facts.status_read is None:
        message = f"get_status was not called in the {most} s before this submission. {_WHY_LOOK}"
        return Judgement("deny", message, None, most, _LOOK)
    age = round((facts.now - facts.status_read).total_seconds())
    if age > most:
        message = f"get_status was last called {age} s ago, longer than {most} s. {_WHY_LOOK}"
        return Judgement("deny", message, age, most, _LOOK)
    return passed(f"get_status was called {max(age, 0)} s ago.", max(age, 0), most)


STATUS_FIRST = Rule(
    id="status-first",
    what="The same caller has called get_status shortly before it submits.",
    why=_WHY_LOOK,
    levels=("deny",),
    tools=SUBMIT,
    judge=_judge_look,
    passing=(Example("a look a minute ago", asks("python train.py", live=live()), "pass"),),
    failing=(
        Example("no look", asks("python train.py", live=live(status_read=None)), "deny"),
        Example("a look an hour ago", asks("python train.py", live=live(status_read=NOW - timedelta(hours=1))), "deny"),
    ),
    live=True,
)
