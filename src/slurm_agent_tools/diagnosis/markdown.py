"""The completion report as Markdown: five sections, always the same, one line a fact."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.diagnosis.advice import Ending
from slurm_agent_tools.diagnosis.classify import UNKNOWN
from slurm_agent_tools.diagnosis.parts import by_state
from slurm_agent_tools.diagnosis.words import code, duration, inert, percent, size
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies.report import CompletionReport, Cost, GpuUseShown, StepShown

_RETRY = "Retry? no: a person or the orchestrator decides"


def text(report: CompletionReport, job: Job, tasks: Sequence[Job], ending: Ending | None) -> str:
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
        f"Queue depth now: {'not measured' if seen.depth is None else f'{seen.depth} pending jobs'}",
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
        f"Estimated cost: {_price(report.cost)}",
    ]
    if len(report.steps) > 1:
        lines += [_step(step) for step in report.steps]
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


def _price(cost: Cost) -> str:
    taken = f"{_hours(cost.gpu_hours)} GPU-hours, {_hours(cost.cpu_hours)} CPU-hours"
    if cost.amount is None:
        return f"{cost.note or 'not known'} ({taken})"
    return f"{cost.amount:.2f} {cost.currency} ({taken}{f'; {cost.note}' if cost.note else ''})"


def _hours(hours: float | None) -> str:
    return "unknown" if hours is None else f"{hours:.4g}"


def _step(step: StepShown) -> str:
    memory = f"{size(step.memory_bytes)} of {size(step.memory_allocated_bytes)}"
    return f"Step {step.step_id} ({inert(step.name)}): CPU {percent(step.cpu_efficiency)}, memory {memory}"


def _errors(job: Job, ending: Ending | None) -> list[str]:
    if ending is None:
        return ["Error type: none", "Suggested fix: none is needed", _RETRY]
    found = ending.found
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
