"""What is known here of a job's end beside Slurm's records: who cancelled it and why, and what analyze_log found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.slurm import merge
from slurm_agent_tools.store.submissions import FoundCause, Owner, Submission
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport.base import LoginEnvironment
from slurm_agent_tools.units import JobId

if TYPE_CHECKING:
    from slurm_agent_tools.models.diagnosis_answer import Diagnosis

_UNSEEN = "nobody saw its end while Slurm still told it"

_CODES = 1000


class JobPlace(Protocol):
    """Whose jobs these are, and where they run. Whoever serves a call has it."""

    @property
    def owner(self) -> Owner:
        """Whose jobs."""
        ...

    @property
    def environment(self) -> LoginEnvironment:
        """Where the project is."""
        ...

    @property
    def elsewhere(self) -> ClusterSettings | None:
        """How the cluster is reached, where it is behind an SSH host."""
        ...


def found_cause(job: Job, diagnosis: Diagnosis) -> FoundCause:
    """The diagnosis of a job for the ledger, without its evidence and without secrets of a log."""
    return FoundCause(
        job_id=str(job.job_id),
        category=diagnosis.category,
        confidence=diagnosis.confidence,
        escalation=diagnosis.escalation,
        explanation=sanitize.shown(diagnosis.explanation),
        suggestions=tuple(diagnosis.suggestions),
        proposed_change=diagnosis.proposed_change,
    )


def remembered(run: Submission | None, job: Job) -> Diagnosis | None:
    """What analyze_log found of this very job; None where it did not look at it since it ended."""
    if run is None or run.diagnosis is None or run.analysed is None:
        return None
    found = run.diagnosis
    if found.job_id != str(job.job_id) or (job.ended is not None and job.ended > run.analysed):
        return None
    from slurm_agent_tools.models.diagnosis_answer import Diagnosis  # noqa: PLC0415 - get_status reads this file without it

    return Diagnosis(
        category=found.category,
        confidence=found.confidence,
        escalation=found.escalation,
        explanation=found.explanation,
        suggestions=list(found.suggestions),
        proposed_change=found.proposed_change,
    )


def kept(place: JobPlace, run: Submission) -> Job:
    """A job as the ledger last saw it. `state` is UNKNOWN where nobody saw its end."""
    job_id = JobId(run.job_id or 0)
    state = "CANCELLED" if run.phase == "cancelled" else run.outcome or "UNKNOWN"
    code = (run.codes or {}).get(str(job_id))
    return Job(
        job_id=job_id,
        name=run.job_name,
        state=state,
        sources=("ledger",),
        user=place.owner.user,
        partition=run.partition,
        reason=_UNSEEN if state == "UNKNOWN" else None,
        exit_code=run.exit_code if code is None else code,
        signal=run.signal or None,
        short_code=code is None,
        submitted=run.created,
        started=run.started,
        ended=run.ended,
        elapsed_seconds=run.run_seconds,
        resources=run.granted or run.requested,
        comment=run.token,
        work_dir=place.environment.root,
        stdout=run.stdout,
        stderr=run.stderr,
        raw_id=job_id.base,
    )


def in_full(run: Submission | None, view: JobView) -> JobView:
    """The job with the exit codes that the controller told when it ended, where the accounting cut them short."""
    known = run.codes if run is not None else None
    if not known:
        return view
    whole, *tasks = (merge.coded(part, known.get(str(part.job_id))) for part in (view.job, *view.tasks))
    return replace(view, job=whole, tasks=tuple(tasks))


def codes(view: JobView) -> dict[str, int]:
    """The exit codes of this job and of its parts that are told in full, those of failures alone."""
    parts = (view.job, *view.tasks)[:_CODES]
    return {str(part.job_id): part.exit_code for part in parts if part.exit_code and part.short_code is False}


def reason(run: Submission | None, job: Job) -> str | None:
    """Why cancel_job ended it, or the whole that it is a part of; None where it did not."""
    if run is None or run.cancellation is None or job.state != "CANCELLED":
        return None
    return run.cancellation.get(str(job.job_id), run.cancellation.get(str(job.job_id.whole)))


def cause(place: JobPlace, run: Submission | None, job: Job) -> str | None:
    """As slurm.truth tells it; of a job that was cancelled by whom, and with what words where that was cancel_job."""
    if job.state != "CANCELLED" or job.active:
        return merge.cause(job)
    why = reason(run, job)
    by = _name(place, job.cancelled_by, place.owner.user if why is not None else None)
    with_words = "" if why is None else f" with cancel_job: {why.rstrip('.')}"
    return f"It was cancelled{by}{with_words}."


def explained(place: JobPlace, run: Submission | None, job: Job, diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis; of a job that cancel_job ended with the words given there, and nobody has to ask who did it."""
    told = cause(place, run, job)
    if diagnosis.category != "cancelled" or reason(run, job) is None or told is None:
        return diagnosis
    by = f" by user {job.cancelled_by}" if job.cancelled_by else ""
    rest = diagnosis.explanation.removeprefix(f"The job was cancelled{by}.")
    return diagnosis.model_copy(update={"explanation": told + rest, "suggestions": []})


def _name(place: JobPlace, told: str | None, known: str | None) -> str:
    """` by NAME (UID)`. Slurm tells a number; whose it is on another machine is not known here."""
    if told is None or not told.isdecimal():
        return f" by {told or known}" if told or known else ""
    if known is None and place.elsewhere is None:
        import pwd  # noqa: PLC0415 - not everywhere

        try:
            known = pwd.getpwuid(int(told)).pw_name
        except KeyError:
            known = None
    return f" by {known} ({told})" if known is not None else f" by user {told}"
