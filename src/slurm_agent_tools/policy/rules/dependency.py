"""dependency: what a job waits for can be read and exists."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slurm_agent_tools.model import Directive, Plan
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.rules.base import (
    SCRIPTS,
    Example,
    Rule,
    Verdict,
    not_evaluated,
    passed,
    proof,
    request_of,
)
from slurm_agent_tools.policy.rules.examples import asks, live
from slurm_agent_tools.policy.rules.remedies import replace, ways

_WHY = "Slurm 22.05 runs a job at once when the job that it should wait for is unknown."
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


def _judge(plan: Plan, _: Policy) -> Verdict:
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
        return Verdict("deny", message, request.dependency, None, remedy, proof(stated))
    if not ids:
        return passed("The job waits for jobs of its own name only.", request.dependency)
    if plan.live is None:
        return not_evaluated(f"Needs the queue to tell whether job {', '.join(ids)} exists.")
    known = {job.partition("_")[0] for job in plan.live.known_jobs}
    unknown = [job for job in ids if job not in known]
    if not unknown:
        return passed(f"The job waits for {', '.join(ids)}.", request.dependency)
    message = f"Slurm does not know job {', '.join(unknown)}. {_WHY}"
    return Verdict("deny", message, request.dependency, None, _remedy(stated), proof(stated))


def _remedy(stated: Sequence[Directive]) -> str:
    """Wait for nothing, or for a job that is there."""
    other = replace(stated, "#SBATCH --dependency=afterok:<id of a job that get_status shows>")
    return ways(replace(stated), ("wait for another job", other))


RULE = Rule(
    id="dependency",
    what="A dependency can be read and names only jobs that Slurm knows.",
    why=_WHY,
    levels=("deny",),
    tools=SCRIPTS,
    judge=_judge,
    passing=(
        Example(
            "after a job in the queue",
            asks("#SBATCH --dependency=afterok:11", dependency="afterok:11", live=live(known_jobs=frozenset({"11"}))),
            "pass",
        ),
        Example("one at a time by name", asks("#SBATCH --dependency=singleton", dependency="singleton"), "pass"),
    ),
    failing=(
        Example(
            "after a job that does not exist",
            asks("#SBATCH --dependency=afterok:99", dependency="afterok:99", live=live()),
            "deny",
        ),
        Example(
            "a kind that does not exist",
            asks("#SBATCH --dependency=afterwards:11", dependency="afterwards:11"),
            "deny",
        ),
    ),
)
