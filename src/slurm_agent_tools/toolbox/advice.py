"""What to know before submitting: when it will start, whether it asks for too much, and whether it ends in time.

Nothing here refuses a job or keeps it waiting: where the accounting is slow, its part is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from slurm_agent_tools.history import budget, waits
from slurm_agent_tools.history.records import JobRecord, merged
from slurm_agent_tools.history.sizing import ENOUGH, Advice, Figure, advise
from slurm_agent_tools.history.waits import Measured, Past
from slurm_agent_tools.replies import Advised, Budget, ExpectedWait, SizeFigure, Sizing, SubmitReply
from slurm_agent_tools.sizing import budget_seconds
from slurm_agent_tools.slurm.client import TestOnly
from slurm_agent_tools.toolbox import awaiting, show
from slurm_agent_tools.toolbox.case import Case
from slurm_agent_tools.toolbox.desk import Desk
from slurm_agent_tools.toolbox.lately import lately, period, shown
from slurm_agent_tools.toolbox.past import heard
from slurm_agent_tools.units import format_duration

_RUNS = 200
_AT_ONCE = 10  # seconds: until then the scheduler has looked


@dataclass(frozen=True, slots=True)
class _Wait:
    """What is known of the wait: Slurm's estimate in seconds, and what was measured."""

    slurm: int | None
    measured: Measured
    note: str


async def give(desk: Desk, case: Case, trial: TestOnly) -> Case:
    """The case with all that is known of its wait, its size and its time."""
    past = await lately(desk)
    runs = advise(await records(desk, case.name, case.reading.sha256), case.resources, _pinned(case))
    awaits = await awaiting.others(desk, case.request.dependency)
    start = trial.start if awaits is None else None  # the trial knows of no dependency
    wait = _wait(past, case, _seconds(start, desk.clock.now()))
    advised = Advised(
        estimated_start=start,
        expected_wait=_expected(wait),
        sizing=sizing(runs) if runs.basis or runs.warnings or runs.recommended else None,
        budget=_budget(case, wait, runs, awaits),
        awaits=awaits,
    )
    return replace(case, advised=advised)


def _pinned(case: Case) -> frozenset[str]:
    """Figures that the guard wrote: nobody asked for them."""
    signs = {"--mem": "memory", "--time": "time", "--cpus": "cpus"}
    return frozenset(what for pin in case.pinned for sign, what in signs.items() if pin.option.startswith(sign))


async def records(desk: Desk, name: str, sha256: str | None = None) -> list[JobRecord]:
    """What is known of this caller's jobs of this name, and remembered of this script under other names."""
    named = await desk.db(desk.store.history, desk.owner, name=name, limit=_RUNS)
    same = [] if sha256 is None else await desk.db(desk.store.history, desk.owner, script_sha256=sha256, limit=_RUNS)
    kept = {record.job_id: record for record in [*named, *same]}
    return merged(kept.values(), await heard(desk, name))


def at(answer: SubmitReply, start: datetime, now: datetime) -> SubmitReply:
    """The same with the start that the scheduler itself expects."""
    wait = answer.expected_wait or ExpectedWait()
    wait = wait.model_copy(update={"from_slurm_seconds": _seconds(start, now)})
    return answer.model_copy(update={"estimated_start": start, "expected_wait": wait})


def starts(wait: ExpectedWait | None) -> str:
    """When Slurm expects the start, as a sentence; empty where it does not tell."""
    seconds = None if wait is None else wait.from_slurm_seconds
    if seconds is None:
        return ""
    return f" Slurm expects it to start {'at once' if seconds < _AT_ONCE else f'in {format_duration(seconds)}'}."


def _seconds(start: datetime | None, now: datetime) -> int | None:
    return None if start is None else max(0, round((start - now).total_seconds()))


# --- the wait ------------------------------------------------------------------------------------------------------


def _wait(past: Past, case: Case, slurm: int | None) -> _Wait:
    measured = waits.measure(waits.alike(past.waits, case.resources))
    return _Wait(slurm, measured, past.note or _rests_on(past, measured))


def _rests_on(past: Past, measured: Measured) -> str:
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


def sizing(advice: Advice) -> Sizing:
    """Figures, over-request and recommendation as they are shown."""
    return Sizing(
        runs=advice.basis,
        summary=advice.summary,
        memory=_figure(advice.memory),
        time=_figure(advice.time),
        cpus=_figure(advice.cpus),
        recommended=None if advice.recommended is None else show.resources(advice.recommended),
        warnings=list(advice.warnings),
    )


def _figure(figure: Figure) -> SizeFigure:
    return SizeFigure(
        requested=figure.requested,
        used=None if figure.used is None else round(figure.used, 2),
        most_used=None if figure.most is None else round(figure.most, 2),
        over_request_percent=figure.over_percent,
        recommended=figure.recommended,
        runs=figure.runs,
    )


# --- the time ------------------------------------------------------------------------------------------------------


def _budget(case: Case, wait: _Wait, runs: Advice, awaits: str | None) -> Budget | None:
    if case.ask.time_budget is None:
        return None
    wanted = budget_seconds(case.ask.time_budget)
    used = runs.time.used if runs.enough else None
    limit = case.resources.time_limit_seconds
    waits_for = budget.wait_seconds(wait.slurm, wait.measured.p95, wait.measured.jobs)
    if awaits is not None:
        waits_for = None, f"{awaits[:1].lower()}{awaits[1:].rstrip('.')}"
    need = budget.Need(*waits_for, *budget.run_seconds(used, runs.time.runs, limit))
    judged = budget.judge(wanted, need)
    return Budget(fits=judged.fits, budget_seconds=wanted, wait_seconds=need.wait, run_seconds=need.run, why=judged.why)
