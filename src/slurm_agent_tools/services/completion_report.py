"""The completion report of one job: the records once they are complete, the request, the GPUs, the queue."""

from __future__ import annotations

from slurm_agent_tools.diagnosis import completion
from slurm_agent_tools.diagnosis.completion import ReportContext
from slurm_agent_tools.diagnosis.next_request import EfficiencyTargets
from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.insights import capacity, job_outcome, usage
from slurm_agent_tools.insights.usage import GpuUse, measured
from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.report import CompletionReport, QueueSeen, ReportReply
from slurm_agent_tools.models.shapes import ResourcesShown
from slurm_agent_tools.services import jobs, present
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.store.submissions import Submission

LOOKS, _PAUSE = 5, 0.4
"""Looks at a job that ended, and the seconds before each, until the accounting has the figures of its steps."""

_OLD = 60.0

_GOING = frozenset({"RUNNING", "PENDING"})


async def settled(context: ClusterContext, view: JobView) -> JobView:
    """The job with the figures of its steps: the accounting is told them a moment after the end of the job.

    Asked for two seconds at most; figures that do not come by then are not measured.
    """
    for _ in range(LOOKS):
        if not view.over or not lags(view):
            break
        await context.clock.sleep(_PAUSE)
        try:
            view = await context.slurm.job(view.job.job_id, max_age=_PAUSE / 2)  # shared by those who waited with it
        except SlurmError:
            break
    return view


def lags(view: JobView) -> bool:
    """True where the accounting knows of parts that ran but of none of their steps, or calls a step active."""
    parts = [part for part in usage.ran(view.job, view.tasks) if "sacct" in part.sources]
    steps = [step for part in parts for step in part.steps]
    return bool(parts) and (not steps or any(step.state in _GOING for step in steps))


async def report(
    context: ClusterContext, view: JobView, run: Submission | None, *, ask: bool = False
) -> CompletionReport:
    """The report of a job, submitted by `run`, that is over and settled.

    `ask`: also ask Slurm how busy it is, if that is not known.
    """
    environment = ReportContext(
        requested=_requested(view.job, run),
        wanted=EfficiencyTargets(context.settings.efficiency, context.settings.rates),
        gpus=await _elsewhere(context, view),
        queue=await _queue(context, run, ask=ask),
        found=job_outcome.remembered(run, view.job),
        cause=job_outcome.cause(context, run, view.job),
    )
    return completion.report(view.job, view.tasks, environment)


def _requested(job: Job, run: Submission | None) -> ResourcesShown:
    """As it was submitted through the guard, else as Slurm tells."""
    if run is not None:
        return ResourcesShown.of(run.requested)
    asked = job.requested
    if asked is None:
        return ResourcesShown.of(job.resources)
    gpus, memory = asked.get(usage.GPUS), asked.get("mem")
    told = Resources(
        partition=job.partition,
        nodes=asked.get("node"),
        cpus=asked.get("cpu"),
        gpus=gpus,
        memory_bytes=memory,
        memory_per_gpu_bytes=memory // gpus if memory is not None and gpus else None,
        time_limit_seconds=job.resources.time_limit_seconds,
    )
    return ResourcesShown.of(told)


async def _elsewhere(context: ClusterContext, view: JobView) -> GpuUse | None:
    """From the Prometheus of the settings, for a job with GPUs of which the accounting does not tell."""
    parts = usage.ran(view.job, view.tasks)
    wanted = context.settings.gpu_metrics
    if wanted.url is None or not any(usage.amount(part, usage.GPUS) for part in parts):
        return None
    if measured(parts).utilization is not None:
        return None
    from slurm_agent_tools.insights import gpu_metrics  # noqa: PLC0415 - few sites have one, and an HTTP client is large

    return await gpu_metrics.utilization(wanted, parts)


async def _queue(context: ClusterContext, run: Submission | None, *, ask: bool) -> QueueSeen:
    """How busy it is by what is known already, or was asked for here; the expected wait from the ledger."""
    depth = share = None
    try:
        ages = context.slurm.ages
        if ask or ages["queue"] is not None:
            depth = (await context.slurm.queue(max_age=_OLD)).states().get("PENDING", 0)
        if ask or (ages["nodes"] is not None and ages["nodes"] <= _OLD):
            share = capacity.busy(await context.slurm.nodes())
    except SlurmError:
        pass  # the report is about the job; what the controller does not tell now is not measured
    return QueueSeen(depth=depth, utilization=share, estimated_wait_seconds=_expected(run))


def _expected(run: Submission | None) -> int | None:
    """Seconds from the submission to the start that Slurm expected then."""
    if run is None or run.estimated_start is None:
        return None
    return max(0, round((run.estimated_start - run.created).total_seconds()))


async def of_job(context: ClusterContext, text: str) -> ReportReply:
    """The answer of the command `report`. Raises InputError, UnknownJob and SlurmError."""
    view = await settled(context, await jobs.look(context, jobs.parse(text), fresh=True))
    run = await jobs.remember(context, view)
    status = jobs.status(view)
    found = await report(context, view, run, ask=True) if status == "finished" else None
    told = f"Job {view.job.job_id} is {view.job.state}."
    if found is None:
        told += " There is a report once it is over."
    elif found.recommendation is not None:
        told += f" {found.recommendation.text}"
    managed = view.job.job_id.base in await jobs.managed(context)
    shown = present.job(view.job, managed=managed, why=job_outcome.cause(context, run, view.job))
    return ReportReply(status=status, summary=told, as_of=context.clock.now(), job=shown, report=found)
