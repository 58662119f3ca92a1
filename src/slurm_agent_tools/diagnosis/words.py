"""Words that reports share: how a job ended, durations and sizes, and `not measured` where there is no figure."""

from __future__ import annotations

from slurm_agent_tools.model import Job
from slurm_agent_tools.units import format_duration, human_memory

NOT_MEASURED = "not measured"


def outcome(job: Job) -> str:
    """State, and exit code or signal, and who cancelled it."""
    told = job.state
    if job.signal and job.state != "OUT_OF_MEMORY":  # Slurm's 0:125 there is no signal
        told += f" (signal {job.signal})"
    elif job.exit_code is not None and job.state != "OUT_OF_MEMORY":
        told += f" (exit code {job.exit_code})"
    return f"{told} by {job.cancelled_by}" if job.cancelled_by else told


def queued(job: Job) -> int | None:
    """Seconds from submission to start."""
    if job.submitted is None or job.started is None:
        return None
    return max(0, round((job.started - job.submitted).total_seconds()))


def duration(seconds: float | None) -> str:
    """HH:MM:SS."""
    return NOT_MEASURED if seconds is None else format_duration(round(seconds))


def size(number: int | None) -> str:
    """Bytes for people."""
    return NOT_MEASURED if number is None else human_memory(number)


def percent(share: float | None) -> str:
    """A share 0..1 for people."""
    return NOT_MEASURED if share is None else f"{100 * share:.0f} %"


def flat(text: str) -> str:
    """Text from a job on one line, without signs that end a line or a code span."""
    return "".join(c if c.isprintable() else " " for c in text).replace("`", "'")
