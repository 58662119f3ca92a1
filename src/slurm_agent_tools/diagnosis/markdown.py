"""The completion report as Markdown: five sections, always the same, one line a fact."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.diagnosis.words import duration, flat, outcome, percent, size
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies import Diagnosis
from slurm_agent_tools.replies.report import CompletionReport, Cost, GpuUseShown, StepShown

_RETRY = "Retry? no: a person or the orchestrator decides"
_STEPS = 8


def text(report: CompletionReport, job: Job, tasks: Sequence[Job], found: Diagnosis | None) -> str:
    """The whole report; `found` is the diagnosis of a job that failed."""
    sections = {
        "JOB SUBMISSION SUMMARY": _summary(report, job, tasks),
        "QUEUE ANALYSIS": _queue(report),
        "MONITORING": _monitoring(report, job),
        "COMPLETION METRICS": _completion(report),
        "ERROR HANDLING": _errors(job, found),
    }
    return "\n\n".join(f"## {title}\n" + "\n".join(f"- {line}" for line in lines) for title, lines in sections.items())


def _summary(report: CompletionReport, job: Job, tasks: Sequence[Job]) -> list[str]:
    asked = report.requested
    amounts = [
        f"{number} {name}"
        for number, name in ((asked.gpus, "GPUs"), (asked.cpus, "CPUs"), (asked.memory, "memory"))
        if number is not None
    ]
    lines = [
        f"Job ID: {job.job_id}",
        f"Job name: {flat(job.name)}",
        f"Status: {job.state}",
        f"Partition: {flat(asked.partition or job.partition or 'not known')}",
        f"Resources: {', '.join(amounts) or 'not known'}",
        f"Time limit: {asked.time_limit or 'not known'}",
    ]
    return [*lines, f"Array tasks: {_count(tasks)}"] if tasks else lines


def _count(tasks: Sequence[Job]) -> str:
    states: dict[str, int] = {}
    for task in tasks:
        states[task.state] = states.get(task.state, 0) + 1
    return ", ".join(f"{number} {state}" for state, number in states.items())


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
        f"Job state: {outcome(job)}",
        f"Exit code: {'not known' if job.exit_code is None else job.exit_code}",
        f"Resource utilization: GPU {_gpu(report.gpu)}, memory {percent(got.memory)}, CPU {percent(got.cpu)}",
        f"Peak memory of one task: {size(report.max_rss_bytes)}",
    ]
    if job.nodes:
        lines.append(f"Nodes: {flat(job.nodes)}")
    return [*lines, f"Restarts: {job.restarts}, only the last run is counted"] if job.restarts else lines


def _gpu(gpu: GpuUseShown) -> str:
    if gpu.utilization is None:
        return percent(None) + (f" ({flat(gpu.note)})" if gpu.note else "")
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
        lines += [_step(step) for step in report.steps[:_STEPS]]
        left = len(report.steps) - _STEPS + report.steps_not_shown
        lines += [f"Steps not shown here: {left}"] if left > 0 else []
    advice = report.recommendation
    if advice is not None:
        lines.append(f"Recommendation: {advice.verdict}. {advice.text.removeprefix('EFFICIENT: ')}")
        lines += [
            f"Proposed, not sent: `{change.directive}` ({flat(change.why)})"
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
    return f"Step {step.step_id} ({flat(step.name)}): CPU {percent(step.cpu_efficiency)}, memory {memory}"


def _errors(job: Job, found: Diagnosis | None) -> list[str]:
    if found is None:
        return ["Error type: none", "Suggested fix: none is needed", _RETRY]
    lines = [
        f"Error type: {found.category}, from Slurm's records alone",
        f"Explanation: {flat(found.explanation)}",
        f"Suggested fix: run analyze_log on {job.job_id}, then decide. Nothing is retried by itself.",
    ]
    return [*lines, _RETRY]
