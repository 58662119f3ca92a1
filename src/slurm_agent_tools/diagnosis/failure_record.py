"""The record of a failure, as Markdown, and its line among the project's failure modes, which people edit. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from slurm_agent_tools.diagnosis.job_facts import evidence, peak
from slurm_agent_tools.diagnosis.phrases import duration, flat, inert, outcome, size
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import Job


def failure_name(job: Job, diagnosis: Diagnosis, now: datetime) -> str:
    """YYYY-MM-DD_JOBID_CATEGORY.md, by the day (UTC) that the job ended, so that a job has one record."""
    day = (job.ended or now).astimezone(UTC)
    return f"{day:%Y-%m-%d}_{str(job.job_id).replace('+', '_')}_{diagnosis.category}.md"


def failure_record(
    job: Job,
    diagnosis: Diagnosis,
    *,
    now: datetime,
    before: Sequence[str] = (),
    script: str | None = None,
    run_id: str | None = None,
) -> str:
    """Markdown: what ran, how it ended, the evidence, the diagnosis, the proposal. Log lines are quoted as data.

    `before`: the files of earlier records of the same category, newest first. `script`: the file that was sent, which
    Slurm itself does not know: it got its text.
    """
    parts = [
        f"# Job {job.job_id}: {diagnosis.category}",
        "\n".join(f"- {line}" for line in _ran(job, now, script, run_id)),
        "## Diagnosis",
        f"{inert(diagnosis.explanation)}\n\nConfidence {diagnosis.confidence:.2f}, escalation {diagnosis.escalation}.",
        "## Evidence",
        "\n".join(f"    {flat(line)}" for line in _evidence(job, diagnosis)),
        "## Proposal",
        "\n".join(f"- {inert(line)}" for line in diagnosis.suggestions) or "- None.",
        _proposed(diagnosis),
        "Nothing was retried. A person or the orchestrator decides.",
        "## The same before",
        "\n".join(f"- [{name}]({name})" for name in before) or "Not in this project's records.",
    ]
    return "\n\n".join(parts) + "\n"


def _ran(job: Job, now: datetime, script: str | None, run_id: str | None) -> list[str]:
    lines = [
        f"Name: {inert(job.name)}",
        f"Script: {inert(script or job.command or 'not known')}",
        f"State: {outcome(job)}",
        f"Partition: {inert(job.partition or 'not known')}, nodes: {job.nodes or 'not known'}",
        f"Submitted: {_time(job.submitted)}, started: {_time(job.started)}, ended: {_time(job.ended)}",
        f"Run time: {duration(job.elapsed_seconds)}, peak memory of one task: {size(peak([job]))}",
        f"Written: {_time(now)}",
    ]
    return [*lines, f"Run: {inert(run_id)}"] if run_id else lines


def _evidence(job: Job, diagnosis: Diagnosis) -> list[str]:
    shown = diagnosis.evidence or evidence(job)
    return [f"{line.file}:{line.line}: {line.text}" if line.line else f"{line.file}: {line.text}" for line in shown]


def _proposed(diagnosis: Diagnosis) -> str:
    if diagnosis.proposed_change is None:
        return "No change of the request is proposed."
    return f"Proposed, not sent:\n\n    {diagnosis.proposed_change}"


def _time(value: datetime | None) -> str:
    return "not known" if value is None else value.astimezone(UTC).isoformat(timespec="seconds")


# --- The project's failure modes: one line for each failure record, written by us, kept and edited by people ----------


FOLDER = "documents/issues"

FILE = "documents/failure-modes.md"

HEAD = """# Failure modes

What failed in this project, newest last. `save_result` adds a line for each failure record; all else here is yours.

"""

_RECORD = re.compile(r"(\d{4}-\d\d-\d\d)_(\d+(?:_\d+)?)_([a-z][a-z0-9-]*)\.md")

_SHOWN = 10


def entry(record: str, explanation: str, proposed: str | None) -> str:
    """The line of one record, named by its file. Raises ValueError for a name that is no record's."""
    found = _RECORD.fullmatch(record)
    if found is None:
        raise ValueError(f"{record!r} is not the name of a failure record")
    day, job, category = found.groups()
    change = f" Next: `{' '.join(flat(proposed).split())}`." if proposed else ""
    why = " ".join(inert(explanation).split()).partition(" Proposed: ")[0]
    return f"- {day} · **{category}** · job {job} · {why}{change} [Record](issues/{record})\n"


def listed(text: str, record: str) -> bool:
    """True where the record has its line already."""
    return f"](issues/{record})" in text


def of_same_job(names: Sequence[str], record: str) -> str | None:
    """The first record of the same job and day among the names of files, whatever its category."""
    job = record.rpartition("_")[0]
    return next((name for name in sorted(names) if _RECORD.fullmatch(name) and name.rpartition("_")[0] == job), None)


def same(names: Sequence[str], record: str) -> list[str]:
    """Earlier records of the same category among the names of files, newest first, at most ten."""
    found = _RECORD.fullmatch(record)
    category = found[3] if found is not None else ""
    known = [name for name in names if (other := _RECORD.fullmatch(name)) and other[3] == category and name != record]
    return sorted(known, reverse=True)[:_SHOWN]
