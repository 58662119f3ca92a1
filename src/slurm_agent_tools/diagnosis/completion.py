"""The completion report: what a finished job was, used and cost, as data and as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.diagnosis import phrases
from slurm_agent_tools.diagnosis.job_facts import UNKNOWN, failed, peak
from slurm_agent_tools.diagnosis.job_parts import by_state
from slurm_agent_tools.diagnosis.next_request import EfficiencyTargets, RunEnding, recommend, shares
from slurm_agent_tools.diagnosis.phrases import code, duration, inert, percent, size
from slurm_agent_tools.insights.usage import GPUS, GpuUse, gpu_kinds, measured, memory, ran, seconds, total, usage
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import Job, Step, Usage
from slurm_agent_tools.models.report import CompletionReport, Cost, GpuUseShown, QueueSeen, StepShown, UsageShown
from slurm_agent_tools.models.shapes import ResourcesShown
from slurm_agent_tools.settings import RateSettings
from slurm_agent_tools.units import how_many, human_memory

_HOUR = 3600

_OTHER = "other"


def cost(parts: Sequence[Job], rates: RateSettings) -> Cost:
    """Allocated hours of all parts that ran, and their price where every kind of them has a rate."""
    cpus = total(seconds(part, "cpu") for part in parts)
    gpus = total(seconds(part, GPUS) for part in parts)
    kinds: dict[str, float] = {}
    for part in parts:
        for kind, count in gpu_kinds(part).items():
            kinds[kind or _OTHER] = kinds.get(kind or _OTHER, 0.0) + count * (part.elapsed_seconds or 0) / _HOUR
    hours = None if cpus is None else cpus / _HOUR
    amount, note = price(hours, kinds, rates) if gpus is not None else (None, "the GPUs of this job are not known")
    return Cost(
        cpu_hours=_rounded(hours),
        gpu_hours=None if gpus is None else _rounded(gpus / _HOUR),
        gpu_hours_by_type={kind: round(value, 4) for kind, value in kinds.items()},
        amount=None if amount is None else round(amount, 4),
        currency=rates.currency,
        note=note,
    )


def price(cpu_hours: float | None, kinds: dict[str, float], rates: RateSettings) -> tuple[float | None, str | None]:
    """The price, or why there is none. Without a rate for CPUs a job with GPUs is priced by its GPUs alone."""
    if rates.cpu_hour is None and not rates.gpu_hour:
        return None, "no rates are set"
    prices = {kind: rates.gpu_hour.get(kind, rates.gpu_hour.get(_OTHER)) for kind in kinds}
    missing = [kind for kind, price in prices.items() if price is None]
    if missing:
        return None, f"no rate is set for GPUs of type {', '.join(missing)}"
    amount = sum(hours * (prices[kind] or 0.0) for kind, hours in kinds.items())
    if rates.cpu_hour is None:
        return (amount, "GPUs alone: no rate is set for CPUs") if kinds else (None, "no rate is set for CPUs")
    if cpu_hours is None:
        return None, "the CPU time is not known"
    return amount + cpu_hours * rates.cpu_hour, None


def _rounded(hours: float | None) -> float | None:
    return None if hours is None else round(hours, 4)


# --- The completion report as Markdown: five sections, always the same, one line a fact -------------------------------


_RETRY = "Retry? no: a person or the orchestrator decides"


def text(report: CompletionReport, job: Job, tasks: Sequence[Job], ending: RunEnding | None) -> str:
    """The whole report; `ending` is of a job that failed."""
    sections = {
        "JOB SUBMISSION SUMMARY": _summary(report, job, tasks),
        "QUEUE ANALYSIS": _queue(report),
        "MONITORING": _monitoring(report, job),
        "COMPLETION METRICS": _completion(report),
        "ERROR HANDLING": _errors(job, ending),
    }
    return "\n\n".join(f"## {title}\n" + "\n".join(f"- {line}" for line in lines) for title, lines in sections.items())


def _summary(report: CompletionReport, job: Job, tasks: Sequence[Job]) -> list[str]:
    asked = report.requested
    amounts = [
        f"{number} {name if number == 1 else f'{name}s'}"
        for number, name in ((asked.gpus, "GPU"), (asked.cpus, "CPU"))
        if number
    ]
    amounts += [f"{asked.memory} memory"] if asked.memory is not None else []
    lines = [
        f"Job ID: {job.job_id}",
        f"Job name: {inert(job.name)}",
        f"Status: {job.state}",
        f"Partition: {inert(asked.partition or job.partition or 'not known')}",
        f"Resources: {', '.join(amounts) or 'not known'}",
        f"Time limit: {asked.time_limit or 'not known'}",
    ]
    return [*lines, f"Array tasks: {_count(tasks)}"] if tasks else lines


def _count(tasks: Sequence[Job]) -> str:
    return ", ".join(f"{number} {state}" for state, number in by_state(tasks).items())


def _queue(report: CompletionReport) -> list[str]:
    seen = report.queue
    return [
        f"Time in the queue: {duration(report.queue_seconds)}",
        f"Estimated wait at submission: {duration(seen.estimated_wait_seconds)}",
        f"Queue depth now: {'not measured' if seen.depth is None else how_many(seen.depth, 'pending job')}",
        f"Cluster utilization now: {percent(seen.utilization)}",
    ]


def _monitoring(report: CompletionReport, job: Job) -> list[str]:
    got = report.efficiency
    lines = [
        f"Elapsed time: {duration(report.run_seconds)}",
        f"Job state: {job.state}" + (f" by {job.cancelled_by}" if job.cancelled_by else ""),
        f"Exit code: {code(job)}",
        f"Resource utilization: GPU {_gpu(report.gpu)}, memory {percent(got.memory)}, CPU {percent(got.cpu)}",
        f"Peak memory of one task: {size(report.max_rss_bytes)}",
    ]
    if job.nodes:
        lines.append(f"Nodes: {inert(job.nodes)}")
    return [*lines, f"Restarts: {job.restarts}, only the last run is counted"] if job.restarts else lines


def _gpu(gpu: GpuUseShown) -> str:
    if gpu.utilization is None:
        return percent(None) + (f" ({inert(gpu.note)})" if gpu.note else "")
    memory = "" if gpu.memory is None else f", {gpu.memory} of its memory"
    return f"{percent(gpu.utilization)}{memory} (by {gpu.source})"


def _completion(report: CompletionReport) -> list[str]:
    used, got = report.usage, report.efficiency
    time = f"{duration(used.cpu_seconds)} of {duration(used.cpu_allocated_seconds)} CPU time"
    held = f"{size(used.memory_peak_bytes)} of {size(used.memory_allocated_bytes)}"
    lines = [
        f"Total runtime: {duration(report.run_seconds)} ({percent(got.time)} of the time limit)",
        f"CPU efficiency: {percent(got.cpu)}" + (f" ({time})" if got.cpu is not None else ""),
        f"Memory efficiency: {percent(got.memory)}" + (f" ({held})" if got.memory is not None else ""),
        f"GPU efficiency: {_gpu(report.gpu)}",
        f"Estimated cost: {_markdown_price(report.cost)}",
    ]
    if len(report.steps) > 1:
        lines += [_markdown_step(step) for step in report.steps]
        lines += [f"Steps not shown here: {report.steps_not_shown}"] if report.steps_not_shown else []
    advice = report.recommendation
    if advice is not None:
        lines.append(f"Recommendation: {advice.verdict}. {advice.text.removeprefix('EFFICIENT: ')}")
        lines += [
            f"Proposed, not sent: `{change.directive}` ({inert(change.why)})"
            + (f", saves {change.saves}" if change.saves else "")
            for change in advice.changes
        ]
    return lines


def _markdown_price(cost: Cost) -> str:
    taken = f"{_hours(cost.gpu_hours)} GPU-hours, {_hours(cost.cpu_hours)} CPU-hours"
    if cost.amount is None:
        return f"{cost.note or 'not known'} ({taken})"
    return f"{cost.amount:.2f} {cost.currency} ({taken}{f'; {cost.note}' if cost.note else ''})"


def _hours(hours: float | None) -> str:
    return "unknown" if hours is None else f"{hours:.4g}"


def _markdown_step(step: StepShown) -> str:
    memory = f"{size(step.memory_bytes)} of {size(step.memory_allocated_bytes)}"
    return f"Step {step.step_id} ({inert(step.name)}): CPU {percent(step.cpu_efficiency)}, memory {memory}"


def _errors(job: Job, ending: RunEnding | None) -> list[str]:
    if ending is None:
        return ["Error type: none", "Suggested fix: none is needed", _RETRY]
    found = ending.diagnosis
    told, fix = found.explanation, f"analyze_log on {job.job_id} reads the log; then decide"
    if ending.read:
        kind = f"{found.category} (from analyze_log)"
        fix = found.suggestions[0] if found.suggestions else "decide by what analyze_log told"
    elif found.category == UNKNOWN:
        kind = "not known yet: the log was not read for this report"
        told = ending.cause or f"The job ended {job.state}."
    else:
        kind = f"{found.category} (from Slurm's records; the log was not read for this report)"
    return [f"Error type: {kind}", f"Explanation: {inert(told)}", f"Suggested fix: {inert(fix)}", _RETRY]


# --- The completion report: what a finished job was, used and cost, as data and as Markdown ---------------------------


_MOST_STEPS = 10

_GOOD = frozenset({"COMPLETED", "RUNNING", "PENDING", "CANCELLED"})


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What the records do not hold: the request, the settings, who else measured the GPUs, the queue.

    `found`: what analyze_log found; None where it did not look at the job. `cause`: one sentence on its end.
    """

    requested: ResourcesShown = field(default_factory=ResourcesShown)
    wanted: EfficiencyTargets = field(default_factory=EfficiencyTargets)
    gpus: GpuUse | None = None
    queue: QueueSeen = field(default_factory=QueueSeen)
    found: Diagnosis | None = None
    cause: str | None = None


def _ending(job: Job, tasks: Sequence[Job], environment: ReportContext) -> RunEnding:
    """How a run failed that did."""
    from slurm_agent_tools.diagnosis.classify import diagnose  # noqa: PLC0415 - megabytes, for what failed alone

    found = environment.found or diagnose(job, tasks, ())
    return RunEnding(found, environment.found is not None, environment.cause)


def report(job: Job, tasks: Sequence[Job], environment: ReportContext) -> CompletionReport:
    """The report. A figure that nobody measured is None, and `not measured` in the text."""
    parts, used, largest = ran(job, tasks), usage(job, tasks), peak([job, *tasks])
    bad = any(failed(part) for part in (job, *tasks))
    ending = _ending(job, tasks, environment) if bad else None
    steps = _chosen(list(_steps(parts)))
    count = sum(len(part.steps) for part in parts)
    plain = CompletionReport(
        job_id=str(job.job_id),
        outcome=phrases.outcome(job),
        queue_seconds=phrases.queued(job),
        run_seconds=used.elapsed_seconds if tasks else job.elapsed_seconds,
        max_rss_bytes=largest,
        max_rss=None if largest is None else human_memory(largest),
        requested=environment.requested,
        text="",
        efficiency=shares(used),
        usage=_used(used),
        gpu=_gpus(parts, environment.gpus),
        steps=steps,
        steps_not_shown=count - len(steps),
        cost=cost(parts, environment.wanted.rates),
        recommendation=recommend(job, tasks, used, ending, environment.wanted),
        queue=environment.queue,
    )
    return plain.model_copy(update={"text": text(plain, job, tasks, ending)})


def _used(used: Usage) -> UsageShown:
    return UsageShown(
        cpu_seconds=used.cpu_seconds,
        cpu_allocated_seconds=used.cpu_allocated_seconds,
        gpu_allocated_seconds=used.gpu_allocated_seconds,
        memory_peak_bytes=used.memory_peak_bytes,
        memory_peak=_size(used.memory_peak_bytes),
        memory_allocated_bytes=used.memory_allocated_bytes,
        memory_allocated=_size(used.memory_allocated_bytes),
        memory_node_bytes=used.memory_node_bytes,
    )


def _gpus(parts: Sequence[Job], elsewhere: GpuUse | None) -> GpuUseShown:
    """What the accounting holds counts first, then what somebody else was asked for."""
    found = measured(parts)
    if found.utilization is None and elsewhere is not None:
        found = elsewhere
    return GpuUseShown(
        utilization=None if found.utilization is None else round(found.utilization, 4),
        memory_bytes=found.memory_bytes,
        memory=_size(found.memory_bytes),
        source=found.source,
        note=found.note,
    )


def _steps(parts: Sequence[Job]) -> Iterator[StepShown]:
    for part in parts:
        for step in part.steps:
            yield _step(part, step)


def _chosen(steps: list[StepShown]) -> list[StepShown]:
    """All where they are few, else those that failed before the others."""
    if len(steps) <= _MOST_STEPS:
        return steps
    return sorted(steps, key=lambda step: step.state in _GOOD)[:_MOST_STEPS]


def _step(part: Job, step: Step) -> StepShown:
    cpus, had, took = step.allocated.get("cpu"), step.allocated.get("mem"), memory(step)
    held = cpus * step.elapsed_seconds if cpus and step.elapsed_seconds else None
    return StepShown(
        step_id=f"{part.job_id}.{step.step_id}",
        name=step.name,
        state=step.state,
        run_seconds=step.elapsed_seconds,
        tasks=step.tasks,
        cpus=cpus,
        cpu_seconds=step.cpu_seconds,
        cpu_efficiency=round(step.cpu_seconds / held, 4) if held and step.cpu_seconds is not None else None,
        memory_bytes=took,
        memory=_size(took),
        memory_allocated_bytes=had,
        memory_efficiency=round(took / had, 4) if took is not None and had else None,
    )


def _size(size: int | None) -> str | None:
    return None if size is None else human_memory(size)
