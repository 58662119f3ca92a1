"""What earlier jobs tell of a request: how long such jobs waited, whether it asks for too much or ends too late.

Loaded for a request of which something is known, or where somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass

from slurm_agent_tools.insights import measured_waits
from slurm_agent_tools.insights.measured_waits import MeasuredWaits, period, shown
from slurm_agent_tools.insights.run_sizes import size_from_runs
from slurm_agent_tools.insights.script_size import budget_seconds
from slurm_agent_tools.insights.sizing import ENOUGH
from slurm_agent_tools.models.decision import Advised, Budget, ExpectedWait, SizeFigure, Sizing
from slurm_agent_tools.models.job import JobRecord, PastWaits
from slurm_agent_tools.models.job_sizing import JobSizing, SizingFigure
from slurm_agent_tools.models.shapes import ResourcesShown
from slurm_agent_tools.services.submission_request import SubmissionRequest


@dataclass(frozen=True, slots=True)
class _Wait:
    """What is known of the wait: Slurm's estimate in seconds, and what was measured."""

    slurm: int | None
    measured: MeasuredWaits
    note: str


def estimate(
    request: SubmissionRequest, past: PastWaits, known: list[JobRecord], begins: int | None, awaits: str | None
) -> Advised:
    """What these jobs tell. `begins`: Slurm's estimate in seconds, `awaits`: what it waits for, as a sentence."""
    runs = size_from_runs(known, request.resources, _pinned(request))
    wait = _wait(past, request, begins)
    return Advised(
        expected_wait=_expected(wait),
        sizing=_sizing(runs) if runs.basis or runs.warnings or runs.recommended else None,
        budget=_budget(request, wait, runs, awaits),
        awaits=awaits,
    )


def _pinned(request: SubmissionRequest) -> frozenset[str]:
    """Figures that the guard wrote: nobody asked for them."""
    signs = {"--mem": "memory", "--time": "time", "--cpus": "cpus"}
    return frozenset(what for pin in request.pinned for sign, what in signs.items() if pin.option.startswith(sign))


# --- the wait ------------------------------------------------------------------------------------------------------


def _wait(past: PastWaits, request: SubmissionRequest, slurm: int | None) -> _Wait:
    measured = measured_waits.measure_waits(measured_waits.same_shape(past.waits, request.resources))
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
        recommended=None if advice.recommended is None else ResourcesShown.of(advice.recommended),
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


def _budget(request: SubmissionRequest, wait: _Wait, runs: JobSizing, awaits: str | None) -> Budget | None:
    if request.arguments.time_budget is None:
        return None
    wanted = budget_seconds(request.arguments.time_budget)
    used = runs.time.used if runs.enough else None
    limit = request.resources.time_limit_seconds
    waits_for = measured_waits.wait_seconds(wait.slurm, wait.measured.p95, wait.measured.jobs)
    if awaits is not None:
        waits_for = None, f"{awaits[:1].lower()}{awaits[1:].rstrip('.')}"
    need = measured_waits.TimeNeeded(*waits_for, *measured_waits.run_seconds(used, runs.time.runs, limit))
    judged = measured_waits.judge_budget(wanted, need)
    return Budget(fits=judged.fits, budget_seconds=wanted, wait_seconds=need.wait, run_seconds=need.run, why=judged.why)
