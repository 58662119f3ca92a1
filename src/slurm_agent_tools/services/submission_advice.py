"""What to know before submitting: when it will start, whether it asks for too much, and whether it ends in time.

Nothing here refuses a job or keeps it waiting: where the accounting is slow, its part is left out.
"""

from __future__ import annotations

import re
from dataclasses import replace

from slurm_agent_tools.errors import SlurmError, UnknownJob
from slurm_agent_tools.models.decision import Advised, ExpectedWait
from slurm_agent_tools.models.job import JobRecord, merged
from slurm_agent_tools.policy import plan
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.services.submission_request import SubmissionRequest
from slurm_agent_tools.slurm.commands.sbatch import TestOnly
from slurm_agent_tools.units import JobId, format_duration

_ONE = re.compile(r"(afterok|afterany|afternotok|after|aftercorr):(\d+)")

_ENDS = {
    "afterok": "ends well",
    "afterany": "ends",
    "afternotok": "fails",
    "after": "has begun",
    "aftercorr": "ends well, task by task",
}


async def awaited_jobs(context: ClusterContext, dependency: str | None) -> str | None:
    """A sentence on what it waits for; None where nothing keeps it. `sbatch --test-only` tells nothing of this."""
    if not dependency or not await _going(context, dependency):
        return None
    one = _ONE.fullmatch(dependency)
    if one is None:
        return f"It starts once its dependency {dependency} holds."
    return f"It starts after job {one[2]} {_ENDS[one[1]]}."


async def _going(context: ClusterContext, dependency: str) -> bool:
    """Whether a job that it names is not over, or cannot be asked for. A singleton names none, but waits."""
    if "singleton" in dependency:
        return True
    for base in sorted(plan.named(dependency)):
        try:
            view = await context.slurm.job(JobId(base))
        except UnknownJob:
            continue
        except SlurmError:
            return True
        begun = re.fullmatch(rf"after:{base}", dependency) is not None and view.job.started is not None
        if not view.over and not begun:
            return True
    return False


# --- What to know before submitting: when it will start, whether it asks for too much, and whether it ends in time ----


_RUNS = 200

_ASKS = "a dry run asks it"

_FAR, _MINUTE = 10, 60
"""So many times what jobs really waited Slurm's estimate says little: it takes every job to the end of its limit."""

_AT_ONCE = 10  # seconds: until then the scheduler has looked


async def give(
    context: ClusterContext, request: SubmissionRequest, trial: TestOnly, *, ask: bool = True
) -> SubmissionRequest:
    """The request with all that is known of its wait, its size and its time.

    `ask` False: the accounting is not asked, and what is known without it has to do.
    """
    known = await records(context, request.name, request.reading.sha256, ask=ask)
    awaits = await awaited_jobs(context, request.effective.dependency) if request.effective.dependency else None
    start = trial.start if awaits is None else None  # the trial knows of no dependency
    begins = None if start is None else max(0, round((start - context.clock.now()).total_seconds()))
    if known or ask or context.slurm.lookback.kept:
        from slurm_agent_tools.services import queue_history, run_estimates  # noqa: PLC0415 - loaded where there is something to tell

        past = await queue_history.recent_waits(context, ask=ask, otherwise=_ASKS)
        advised = run_estimates.estimate(request, past, known, begins, awaits)
    else:
        note = f"The accounting was not asked: {_ASKS}."
        advised = Advised(expected_wait=ExpectedWait(from_slurm_seconds=begins, jobs=0, note=note), awaits=awaits)
    return replace(request, advised=advised.model_copy(update={"estimated_start": start}))


async def records(
    context: ClusterContext, name: str, sha256: str | None = None, *, ask: bool = True
) -> list[JobRecord]:
    """What is known of this caller's jobs of this name, and remembered of this script under other names."""
    named = await context.db(context.store.history, context.owner, name=name, limit=_RUNS)
    same = (
        []
        if sha256 is None
        else await context.db(context.store.history, context.owner, script_sha256=sha256, limit=_RUNS)
    )
    remembered = {record.job_id: record for record in [*named, *same]}
    if not ask:
        return sorted(remembered.values(), key=lambda record: (record.submitted, record.job_id), reverse=True)
    from slurm_agent_tools.services.accounting_history import is_answered  # noqa: PLC0415 - few calls ask for it

    return merged(remembered.values(), await is_answered(context, name))


def starts(wait: ExpectedWait | None) -> str:
    """When Slurm expects the start, as a sentence; empty where it does not tell."""
    seconds = None if wait is None else wait.from_slurm_seconds
    if seconds is None:
        return ""
    if seconds < _AT_ONCE:
        return " Slurm expects it to start at once."
    lately = None if wait is None else wait.from_history_seconds
    if lately is not None and seconds > _FAR * max(lately.p95, _MINUTE):
        median, p95 = format_duration(round(lately.median)), format_duration(round(lately.p95))
        measured = f"Jobs like it waited {median} here lately, 95 % of them at most {p95}"
        return f" {measured}; by the time limits of the jobs that run now it starts within {format_duration(seconds)}."
    return f" Slurm expects it to start in {format_duration(seconds)}."
