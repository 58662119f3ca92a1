"""Records into the shapes that are shown."""

from __future__ import annotations

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.shapes import BriefShown, ErrorInfo, JobShown, SectionError
from slurm_agent_tools.slurm.merge import cause
from slurm_agent_tools.text.sanitize import line

_SHARED = frozenset({"partition", "user", "submitted", "time_limit_seconds", "managed", "sources"})


def job(record: Job, *, managed: bool | None = None, why: str | None = None) -> JobShown:
    """One job as Slurm tells it; `why`: the cause of its end, where more is known of it than Slurm tells."""
    from slurm_agent_tools.diagnosis.phrases import queued  # noqa: PLC0415 - a submission shows no job

    return JobShown(
        job_id=str(record.job_id),
        name=line(record.name),
        state=record.state,
        partition=record.partition,
        user=record.user,
        reason=None if record.reason is None else line(record.reason),
        exit_code=record.exit_code,
        signal=record.signal,
        derived_exit_code=record.derived_exit_code,
        derived_signal=record.derived_signal,
        cancelled_by=record.cancelled_by,
        submitted=record.submitted,
        started=record.started,
        ended=record.ended,
        queue_seconds=queued(record),
        run_seconds=record.elapsed_seconds,
        time_limit_seconds=record.resources.time_limit_seconds,
        nodes=record.nodes,
        restarts=record.restarts,
        dependency=record.dependency,
        managed=managed,
        cause=why or cause(record),
        estimated_start=record.expected_start if record.state == "PENDING" else None,
        sources=list(record.sources),
    )


def brief_job(record: Job, *, managed: bool | None = None) -> BriefShown:
    """One job of several."""
    return BriefShown(**dict(job(record, managed=managed)))


def part(record: Job, whole: JobShown, *, why: str | None = None) -> BriefShown:
    """A task or component of a job that is shown with it: what both share is shown once."""
    shown = dict(job(record, managed=whole.managed, why=why))
    return BriefShown(
        **{name: shown[name] for name in shown if name not in _SHARED or shown[name] != getattr(whole, name)}
    )


def error(problem: AgentToolsError) -> ErrorInfo:
    """A failure as callers see it."""
    return ErrorInfo(code=problem.code, message=problem.message, hint=problem.hint)


def section_error(problem: AgentToolsError) -> SectionError:
    """Stands in place of a section that could not be read."""
    return SectionError(error=error(problem))


def in_summary(kind: type[AgentToolsError]) -> SectionError:
    """The same for an error of this kind that the answer's summary tells whole."""
    return section_error(kind("As `summary` says."))
