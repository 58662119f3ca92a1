"""What waited and ran here lately, as far as the accounting tells it, and what that says of a request.

For the waits nobody is kept waiting long; all that ran is asked for by whoever wants to play it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import anyio

from slurm_agent_tools.errors import AccountingUnreachable, InputError, SlurmError
from slurm_agent_tools.insights import measured_waits
from slurm_agent_tools.insights.accounting_history import JobSources
from slurm_agent_tools.insights.measured_waits import MeasuredWaits, period, shown
from slurm_agent_tools.insights.run_sizes import size_from_runs
from slurm_agent_tools.insights.script_size import budget_seconds
from slurm_agent_tools.insights.sizing import ENOUGH
from slurm_agent_tools.insights.usage import GPUS, amount, at_once, gpus_in, measured, memory
from slurm_agent_tools.models.accounted import AccountedJob, ClusterRecord, NodeSpan
from slurm_agent_tools.models.job import Job, JobRecord, PastWaits
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.job_sizing import JobSizing, SizingFigure
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.models.request import Pin
from slurm_agent_tools.models.shapes import ResourcesShown
from slurm_agent_tools.models.submission_answer import Advised, Budget, ExpectedWait, SizeFigure, Sizing
from slurm_agent_tools.slurm import node_list
from slurm_agent_tools.units import how_many

_PATIENCE = 3.0  # seconds


async def recent_waits(
    context: JobSources,
    *,
    ask: bool = True,
    fresh: bool = False,
    otherwise: str = "ask for the section queue by its name",
) -> PastWaits:
    """What ran here lately; empty with a note where it was not asked or the accounting does not answer in time.

    `fresh`: not from what is kept. `otherwise`: who asks it, for the note.
    """
    with anyio.move_on_after(_PATIENCE):
        try:
            found = await context.slurm.past(ask=ask, fresh=fresh)
        except SlurmError as error:
            return PastWaits(note=f"the accounting could not be asked: {error.message}")
        if found is not None:
            return found
        why = "Slurm is slow, or it gave no answer a moment ago" if ask else otherwise
        return PastWaits(note=f"the accounting was not asked: {why}")
    return PastWaits(note=f"the accounting did not answer within {_PATIENCE:.0f} s")


async def maintenance(context: JobSources) -> datetime | None:
    """When the next maintenance begins, as far as the reservations tell in time."""
    kept = None
    with contextlib.suppress(SlurmError), anyio.move_on_after(_PATIENCE):
        kept = await context.slurm.running.reservations()
    now = context.clock.now()
    return min((one.start for one in kept or () if one.maintenance and one.start > now), default=None)


# --- What earlier jobs tell of a request ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Wait:
    """What is known of the wait: Slurm's estimate in seconds, and what was measured."""

    slurm: int | None
    measured: MeasuredWaits
    note: str


@dataclass(frozen=True, slots=True)
class EstimatedJob:
    """What is asked for, what of that the guard wrote, and in which time it has to be done, as the caller wrote it."""

    resources: Resources
    pinned: Sequence[Pin] = ()
    time_budget: str | None = None


def estimate(
    request: EstimatedJob, past: PastWaits, known: list[JobRecord], begins: int | None, awaits: str | None
) -> Advised:
    """What earlier jobs tell. `begins`: Slurm's estimate in seconds, `awaits`: what it waits for, as a sentence.

    How long such jobs waited, whether it asks for too much or ends too late.
    """
    runs = size_from_runs(known, request.resources, _pinned(request))
    wait = _wait(past, request, begins)
    return Advised(
        expected_wait=_expected(wait),
        sizing=_sizing(runs) if runs.basis or runs.warnings or runs.recommended else None,
        budget=_budget(request, wait, runs, awaits),
        awaits=awaits,
    )


def _pinned(request: EstimatedJob) -> frozenset[str]:
    """Figures that the guard wrote: nobody asked for them."""
    signs = {"--mem": "memory", "--time": "time", "--cpus": "cpus"}
    return frozenset(what for pin in request.pinned for sign, what in signs.items() if pin.option.startswith(sign))


# --- the wait ------------------------------------------------------------------------------------------------------


def _wait(past: PastWaits, request: EstimatedJob, slurm: int | None) -> _Wait:
    measured = measured_waits.measure_waits(measured_waits.same_shape(past.waits, request.resources))
    return _Wait(slurm, measured, past.note or _rests_on(past, measured))


def _rests_on(past: PastWaits, measured: MeasuredWaits) -> str:
    whose = " of yours" if past.own else ""
    jobs = f"{how_many(measured.jobs, 'job')}{whose}"
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


def _budget(request: EstimatedJob, wait: _Wait, runs: JobSizing, awaits: str | None) -> Budget | None:
    if request.time_budget is None:
        return None
    wanted = budget_seconds(request.time_budget)
    used = runs.time.used if runs.enough else None
    limit = request.resources.time_limit_seconds
    waits_for = measured_waits.wait_seconds(wait.slurm, wait.measured.p95, wait.measured.jobs)
    if awaits is not None:
        waits_for = None, f"{awaits[:1].lower()}{awaits[1:].rstrip('.')}"
    need = measured_waits.TimeNeeded(*waits_for, *measured_waits.run_seconds(used, runs.time.runs, limit))
    judged = measured_waits.judge_budget(wanted, need)
    return Budget(fits=judged.fits, budget_seconds=wanted, wait_seconds=need.wait, run_seconds=need.run, why=judged.why)


# --- All that ran, and what there was to run it on --------------------------------------------------------------------

MOST_DAYS = 366


@dataclass(frozen=True, slots=True)
class ClusterPast:
    """Jobs and array tasks of the last `days`, and the nodes that they could have, each once.

    `own`: only this user's jobs were to be seen, or there were no others. `configuration`: slurm.conf, as the
    controller tells it.
    """

    cluster: str
    days: int
    jobs: tuple[Job, ...]
    own: bool
    nodes: tuple[Node, ...]
    configuration: Mapping[str, str]

    @property
    def sizes(self) -> dict[str, int]:
        """How many CPUs, GPUs and nodes there are."""
        return {
            "cpus": sum(node.cpus for node in self.nodes),
            "gpus": sum(node.gpus for node in self.nodes),
            "nodes": len(self.nodes),
        }


async def cluster_past(context: JobSources, *, days: int, partition: str | None = None) -> ClusterPast:
    """What the accounting tells of all users' jobs. `partition`: only jobs that ran in it, and its nodes alone.

    Raises InputError, SlurmError, and AccountingUnreachable on a cluster without accounting.
    """
    name = await _accounted(context, days, hint="Give a trace in the Standard Workload Format instead.")
    known = await context.slurm.partitions()
    if partition is not None and partition not in known:
        raise InputError("partition", partition, "is not known here", hint=f"Known: {', '.join(sorted(known))}.")
    nodes = [node for node in await context.slurm.nodes() if partition is None or partition in node.partitions]
    jobs = await context.slurm.accounting.everyone(context.clock.now() - timedelta(days=days))
    wanted = [job for job in jobs if partition is None or job.partition == partition]
    return ClusterPast(
        cluster=name,
        days=days,
        jobs=tuple(_each_task(wanted)),
        own={job.user for job in jobs} <= {context.slurm.user},
        nodes=tuple(nodes),
        configuration=await context.slurm.configuration(),
    )


async def _accounted(context: JobSources, days: int, *, hint: str) -> str:
    """The cluster's name, where it keeps accounts. Raises InputError, AccountingUnreachable and SlurmError."""
    if not 1 <= days <= MOST_DAYS:
        raise InputError("days", days, "is out of range", hint=f"Give a number from 1 to {MOST_DAYS}.")
    info = await context.slurm.info()
    if not info.accounting:
        raise AccountingUnreachable("This cluster keeps no accounting (slurmdbd), so its past is not known.", hint=hint)
    return info.name


def _each_task(records: Sequence[Job]) -> Sequence[Job]:
    """Without the row that stands for the tasks of an array that have not started: each that has is a row by itself."""
    return [job for job in records if job.job_id.tasks is None]


# --- The same with what was used, what waits, and which nodes were not there for everybody ----------------------------


async def cluster_record(context: JobSources, *, days: int) -> ClusterRecord:
    """What the accounting tells of the last days. Raises InputError, AccountingUnreachable and SlurmError."""
    name = await _accounted(context, days, hint="Ask an administrator for slurmdbd.")
    now = context.clock.now()
    since, asked = now - timedelta(days=days), context.slurm.accounting
    jobs = await asked.weeks(since)  # tasks that have not started are one row, which waits as one job
    accounted = [_accounted_job(job) for job in jobs]
    return ClusterRecord(
        cluster=name,
        begin=since.timestamp(),
        end=now.timestamp(),
        jobs=tuple(sorted(accounted, key=lambda job: (job.ready or 0.0, job.start or 0.0))),
        nodes={node.name: node for node in await context.slurm.nodes()},
        partitions=await context.slurm.partitions(),
        own={job.user for job in jobs} <= {context.slurm.user},
        kept=await _told(asked.kept(since)),
        outages=await _told(asked.outages(since)),
    )


async def _told(question: Awaitable[tuple[NodeSpan, ...]]) -> tuple[NodeSpan, ...] | None:
    """None where the accounting does not tell it to this user."""
    with contextlib.suppress(SlurmError):
        return await question
    return None


def _accounted_job(job: Job) -> AccountedJob:
    ready = job.eligible if job.submitted is None or job.eligible is None else max(job.eligible, job.submitted)
    had = (job.allocated if job.started is not None else None) or job.requested or {}
    wanted = job.requested or {}
    return AccountedJob(
        user=job.user or "",
        name=job.name,
        partitions=tuple((job.partition or "").split(",")) if job.partition else (),
        state=job.state,
        ready=_seconds(ready),
        start=_seconds(job.started),
        end=_seconds(job.ended),
        cpus=had.get("cpu"),
        memory=had.get("mem"),
        gpus=gpus_in(had),
        node_count=max(1, had.get("node", 1)),
        nodes=node_list.named(job.nodes),
        gpu_types=frozenset(kind.rpartition(":")[2] for kind in wanted if kind.startswith(f"{GPUS}:")),
        limit=job.resources.time_limit_seconds,
        memory_used=at_once(job.steps, memory),
        gpu_busy=measured([job]).utilization if amount(job, GPUS) else None,
        account=job.account,
        qos=job.qos,
        reservation=job.reservation,
        reason=job.waited_for,
    )


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
