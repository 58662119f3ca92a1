"""What a finished job was and used, as data and as Markdown; and the record of a failure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.facts import evidence, failed, peak
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies import CompletionReport, Diagnosis, ResourcesShown
from slurm_agent_tools.units import format_duration, human_memory

NOT_MEASURED = "not measured"


def report(job: Job, tasks: Sequence[Job], requested: ResourcesShown) -> CompletionReport:
    """The completion report. A figure that Slurm did not measure is None, and `not measured` in the text."""
    used = peak([job, *tasks])
    return CompletionReport(
        job_id=str(job.job_id),
        outcome=_outcome(job),
        queue_seconds=_queued(job),
        run_seconds=job.elapsed_seconds,
        max_rss_bytes=used,
        max_rss=None if used is None else human_memory(used),
        requested=requested,
        text=_text(job, tasks, requested),
    )


def _queued(job: Job) -> int | None:
    if job.submitted is None or job.started is None:
        return None
    return max(0, round((job.started - job.submitted).total_seconds()))


def _outcome(job: Job) -> str:
    words = job.state
    if job.signal:
        words += f" (signal {job.signal})"
    elif job.exit_code is not None:
        words += f" (exit code {job.exit_code})"
    return f"{words} by {job.cancelled_by}" if job.cancelled_by else words


def _text(job: Job, tasks: Sequence[Job], requested: ResourcesShown) -> str:
    sections = {
        "JOB SUBMISSION SUMMARY": _summary(job, tasks, requested),
        "QUEUE ANALYSIS": [f"Time in the queue: {_duration(_queued(job))}"],
        "MONITORING": _monitoring(job, tasks),
        "COMPLETION METRICS": _completion(job, tasks, requested),
        "ERROR HANDLING": _errors(job, tasks),
    }
    return "\n\n".join(f"## {title}\n" + "\n".join(f"- {line}" for line in lines) for title, lines in sections.items())


def _summary(job: Job, tasks: Sequence[Job], requested: ResourcesShown) -> list[str]:
    amounts = [
        f"{number} {name}"
        for number, name in ((requested.gpus, "GPUs"), (requested.cpus, "CPUs"), (requested.memory, "memory"))
        if number is not None
    ]
    lines = [
        f"Job ID: {job.job_id}",
        f"Job name: {_flat(job.name)}",
        f"Status: {job.state}",
        f"Partition: {_flat(requested.partition or job.partition or 'not known')}",
        f"Resources: {', '.join(amounts) or 'not known'}",
        f"Time limit: {requested.time_limit or 'not known'}",
    ]
    return [*lines, f"Array tasks: {_count(tasks)}"] if tasks else lines


def _monitoring(job: Job, tasks: Sequence[Job]) -> list[str]:
    lines = [f"Elapsed time: {_duration(job.elapsed_seconds)}", f"Job state: {_outcome(job)}"]
    if job.nodes:
        lines.append(f"Nodes: {job.nodes}")
    lines.append(f"Peak memory of one task: {_memory(peak([job, *tasks]))}")
    return [*lines, f"CPU: {_cpu(job)}", f"GPU: {NOT_MEASURED}"]


def _completion(job: Job, tasks: Sequence[Job], requested: ResourcesShown) -> list[str]:
    used, asked = peak([job, *tasks]), requested.memory_bytes
    share = f"{_memory(used)} of {human_memory(asked)} requested" if used is not None and asked else NOT_MEASURED
    return [
        f"Total runtime: {_duration(job.elapsed_seconds)}",
        f"CPU efficiency: {_cpu(job)}",
        f"Memory (largest task): {share}",
        f"Estimated cost: {NOT_MEASURED}",
    ]


def _errors(job: Job, tasks: Sequence[Job]) -> list[str]:
    if not any(failed(part) for part in (job, *tasks)):
        return ["Error type: none"]
    found = diagnose(job, tasks, ())
    lines = [f"Error type: {found.category}, from Slurm's records alone", f"Explanation: {_flat(found.explanation)}"]
    if found.proposed_change is not None:
        lines.append(f"Proposed, not sent: `{found.proposed_change}`")
    return [*lines, f"Suggested fix: run analyze_log on {job.job_id}, then decide. Nothing is retried by itself."]


def _cpu(job: Job) -> str:
    """CPU time of all steps against what was allocated; of one job, not of an array."""
    times = [step.cpu_seconds for step in job.steps]
    known = [seconds for seconds in times if seconds is not None]
    cpus, seconds = job.resources.cpus, job.elapsed_seconds
    if not known or len(known) != len(times) or not cpus or not seconds:
        return NOT_MEASURED
    return f"{100 * sum(known) / (cpus * seconds):.0f} % of {cpus} allocated CPUs"


def _count(tasks: Sequence[Job]) -> str:
    states: dict[str, int] = {}
    for task in tasks:
        states[task.state] = states.get(task.state, 0) + 1
    return ", ".join(f"{number} {state}" for state, number in states.items())


def _duration(seconds: int | None) -> str:
    return NOT_MEASURED if seconds is None else format_duration(seconds)


def _memory(size: int | None) -> str:
    return NOT_MEASURED if size is None else human_memory(size)


def _flat(text: str) -> str:
    """Text from a job on one line, without signs that end a line or a code span."""
    return "".join(c if c.isprintable() else " " for c in text).replace("`", "'")


# --- the record of a failure ---------------------------------------------------------------------------------


def failure_name(job: Job, diagnosis: Diagnosis, now: datetime) -> str:
    """YYYY-MM-DD_JOBID_CATEGORY.md, by the day (UTC) that the job ended, so that a job has one record."""
    day = (job.ended or now).astimezone(UTC)
    return f"{day:%Y-%m-%d}_{str(job.job_id).replace('+', '_')}_{diagnosis.category}.md"


def failure_record(job: Job, diagnosis: Diagnosis, *, now: datetime, before: Sequence[str] = ()) -> str:
    """Markdown: what ran, how it ended, the evidence, the diagnosis, the proposal. Log lines are quoted as data.

    `before`: the files of earlier records of the same category, newest first.
    """
    parts = [
        f"# Job {job.job_id}: {diagnosis.category}",
        "\n".join(f"- {line}" for line in _ran(job, now)),
        "## Diagnosis",
        f"{_flat(diagnosis.explanation)}\n\nConfidence {diagnosis.confidence:.2f}, escalation {diagnosis.escalation}.",
        "## Evidence",
        "\n".join(f"    {_flat(line)}" for line in _evidence(job, diagnosis)),
        "## Proposal",
        "\n".join(f"- {_flat(line)}" for line in diagnosis.suggestions) or "- None.",
        _proposed(diagnosis),
        "Nothing was retried. A person or the orchestrator decides.",
        "## The same before",
        "\n".join(f"- [{name}]({name})" for name in before) or "Not in this project's records.",
    ]
    return "\n\n".join(parts) + "\n"


def _ran(job: Job, now: datetime) -> list[str]:
    return [
        f"Name: {_flat(job.name)}",
        f"Script: {_flat(job.command or 'not known')}",
        f"State: {_outcome(job)}",
        f"Partition: {_flat(job.partition or 'not known')}, nodes: {job.nodes or 'not known'}",
        f"Submitted: {_time(job.submitted)}, started: {_time(job.started)}, ended: {_time(job.ended)}",
        f"Run time: {_duration(job.elapsed_seconds)}, peak memory of one task: {_memory(peak([job]))}",
        f"Written: {_time(now)}",
    ]


def _evidence(job: Job, diagnosis: Diagnosis) -> list[str]:
    shown = diagnosis.evidence or evidence(job)
    return [f"{line.file}:{line.line}: {line.text}" if line.line else f"{line.file}: {line.text}" for line in shown]


def _proposed(diagnosis: Diagnosis) -> str:
    if diagnosis.proposed_change is None:
        return "No change of the request is proposed."
    return f"Proposed, not sent:\n\n    {diagnosis.proposed_change}"


def _time(value: datetime | None) -> str:
    return "not known" if value is None else value.astimezone(UTC).isoformat(timespec="seconds")
