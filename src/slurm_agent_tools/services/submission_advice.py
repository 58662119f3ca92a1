"""What to know before submitting: when it will start, whether it asks for too much, and whether it ends in time.

Nothing here refuses a job or keeps it waiting: where the accounting is slow, its part is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

from slurm_agent_tools.errors import SlurmError, UnknownJob
from slurm_agent_tools.insights import measured_waits
from slurm_agent_tools.insights.measured_waits import MeasuredWaits
from slurm_agent_tools.insights.run_sizes import size_from_runs
from slurm_agent_tools.insights.script_size import budget_seconds
from slurm_agent_tools.insights.sizing import ENOUGH
from slurm_agent_tools.models.advice import Advised, Budget, ExpectedWait, SizeFigure, Sizing
from slurm_agent_tools.models.job import PastWaits
from slurm_agent_tools.models.job_sizing import JobSizing, SizingFigure
from slurm_agent_tools.models.remembered_job import JobRecord, merged
from slurm_agent_tools.policy import slots
from slurm_agent_tools.services import present
from slurm_agent_tools.services.accounting_history import is_answered
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.services.queue_history import period, recent_waits, shown
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
    for base in sorted(slots.named(dependency)):
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

_AT_ONCE = 10  # seconds: until then the scheduler has looked


@dataclass(frozen=True, slots=True)
class _Wait:
    """What is known of the wait: Slurm's estimate in seconds, and what was measured."""

    slurm: int | None
    measured: MeasuredWaits
    note: str


async def give(
    context: ClusterContext, case: SubmissionRequest, trial: TestOnly, *, ask: bool = True
) -> SubmissionRequest:
    """The case with all that is known of its wait, its size and its time.

    `ask` False: the accounting is not asked, and what is known without it has to do.
    """
    past = await recent_waits(context, ask=ask, otherwise="a dry run asks it")
    runs = size_from_runs(
        await records(context, case.name, case.reading.sha256, ask=ask), case.resources, _pinned(case)
    )
    awaits = await awaited_jobs(context, case.request.dependency)
    start = trial.start if awaits is None else None  # the trial knows of no dependency
    wait = _wait(past, case, _seconds(start, context.clock.now()))
    advised = Advised(
        estimated_start=start,
        expected_wait=_expected(wait),
        sizing=_sizing(runs) if runs.basis or runs.warnings or runs.recommended else None,
        budget=_budget(case, wait, runs, awaits),
        awaits=awaits,
    )
    return replace(case, advised=advised)


def _pinned(case: SubmissionRequest) -> frozenset[str]:
    """Figures that the guard wrote: nobody asked for them."""
    signs = {"--mem": "memory", "--time": "time", "--cpus": "cpus"}
    return frozenset(what for pin in case.pinned for sign, what in signs.items() if pin.option.startswith(sign))


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
    kept = {record.job_id: record for record in [*named, *same]}
    return merged(kept.values(), await is_answered(context, name) if ask else [])


def starts(wait: ExpectedWait | None) -> str:
    """When Slurm expects the start, as a sentence; empty where it does not tell."""
    seconds = None if wait is None else wait.from_slurm_seconds
    if seconds is None:
        return ""
    return f" Slurm expects it to start {'at once' if seconds < _AT_ONCE else f'in {format_duration(seconds)}'}."


def _seconds(start: datetime | None, now: datetime) -> int | None:
    return None if start is None else max(0, round((start - now).total_seconds()))


# --- the wait ------------------------------------------------------------------------------------------------------


def _wait(past: PastWaits, case: SubmissionRequest, slurm: int | None) -> _Wait:
    measured = measured_waits.measure_waits(measured_waits.same_shape(past.waits, case.resources))
    return _Wait(slurm, measured, past.note or _rests_on(past, measured))


def _rests_on(past: PastWaits, measured: MeasuredWaits) -> str:
    whose = " of yours" if past.own else ""
    jobs = f"{measured.jobs} {'job' if measured.jobs == 1 else 'jobs'}{whose}"
    ran = f"{jobs} of about this size ran on this partition in the last {period(past.hours)}"
    return ran if measured.median is not None else f"No estimate from earlier jobs: {ran}, {ENOUGH} are needed"


def _expected(wait: _Wait) -> ExpectedWait:
    return ExpectedWait(
        from_slurm_seconds=wait.slurm,
        from_history_seconds=shown(wait.measured),
        jobs=wait.measured.jobs,
        note=f"{wait.note[:1].upper()}{wait.note[1:]}.",
    )


# --- the size ------------------------------------------------------------------------------------------------------


def _sizing(advice: JobSizing) -> Sizing:
    """Figures, over-request and recommendation as they are shown."""
    return Sizing(
        runs=advice.basis,
        summary=advice.summary,
        memory=_figure(advice.memory),
        time=_figure(advice.time),
        cpus=_figure(advice.cpus),
        recommended=None if advice.recommended is None else present.resources(advice.recommended),
        warnings=list(advice.warnings),
    )


def _figure(figure: SizingFigure) -> SizeFigure:
    return SizeFigure(
        requested=figure.requested,
        used=None if figure.used is None else round(figure.used, 2),
        most_used=None if figure.most is None else round(figure.most, 2),
        over_request_percent=figure.over_percent,
        recommended=figure.recommended,
        runs=figure.runs,
    )


# --- the time ------------------------------------------------------------------------------------------------------


def _budget(case: SubmissionRequest, wait: _Wait, runs: JobSizing, awaits: str | None) -> Budget | None:
    if case.ask.time_budget is None:
        return None
    wanted = budget_seconds(case.ask.time_budget)
    used = runs.time.used if runs.enough else None
    limit = case.resources.time_limit_seconds
    waits_for = measured_waits.wait_seconds(wait.slurm, wait.measured.p95, wait.measured.jobs)
    if awaits is not None:
        waits_for = None, f"{awaits[:1].lower()}{awaits[1:].rstrip('.')}"
    need = measured_waits.TimeNeeded(*waits_for, *measured_waits.run_seconds(used, runs.time.runs, limit))
    judged = measured_waits.judge_budget(wanted, need)
    return Budget(fits=judged.fits, budget_seconds=wanted, wait_seconds=need.wait, run_seconds=need.run, why=judged.why)
