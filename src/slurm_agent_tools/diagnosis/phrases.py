"""Words that reports share: a job's name and end, durations and sizes, and `not measured` where there is no figure."""

from __future__ import annotations

from collections.abc import Iterable

from slurm_agent_tools.models.job import NOT_SET_UP, Job
from slurm_agent_tools.units import format_duration, human_memory

NOT_MEASURED = "not measured"

_LONGEST = 40  # of a name within a sentence

QUOTED = 200  # characters of a log within a sentence


def named(job: Job) -> str:
    """`Job 7 (train)`, to begin a sentence about a job."""
    name = flat(job.name)
    shown = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
    return f"Job {job.job_id} ({shown})" if shown else f"Job {job.job_id}"


def within(sentence: str) -> str:
    """A sentence behind a colon."""
    return sentence if sentence.startswith("Slurm") else f"{sentence[0].lower()}{sentence[1:]}"


def span(seconds: float) -> str:
    """A length of time for people."""
    return f"{seconds:.0f} s" if seconds < 120 else format_duration(round(seconds))


def outcome(job: Job) -> str:
    """State, exit code or signal where they tell more than the state, and who cancelled it."""
    told = job.state
    if (job.exit_code, job.signal) == NOT_SET_UP:
        told += " (could not be set up)"
    elif job.state == "FAILED" and job.signal:
        told += f" (signal {job.signal})"
    elif job.exit_code is not None and _meant(job):
        other = "" if job.doubted_code is None else f" or {job.doubted_code}"
        told += f" (exit code {job.exit_code}{other})"
    return f"{told} by {job.cancelled_by}" if job.cancelled_by else told


def _meant(job: Job) -> bool:
    """False for a code that its script did not end with: 0 looks like a success, and DEADLINE has a mark of Slurm's."""
    return job.state == "COMPLETED" or (bool(job.exit_code) and job.state != "DEADLINE")


def code(job: Job) -> str:
    """Exit code; where there is a signal both, as Slurm writes them."""
    if job.exit_code is None:
        return "not known"
    if not job.signal:
        return job.code_text if job.exit_code or job.state == "COMPLETED" else f"0, but it ended {job.state}"
    mark = "Slurm's mark for out of memory" if job.state == "OUT_OF_MEMORY" else f"ended by signal {job.signal}"
    return f"{job.exit_code}:{job.signal} ({mark})"


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


_LITTLE = 0.005  # what would be rounded to 0 %


def percent(share: float | None) -> str:
    """A share 0..1 for people; a little is never told as nothing."""
    if share is None:
        return NOT_MEASURED
    return "less than 1 %" if 0 < share < _LITTLE else f"{100 * share:.0f} %"


def flat(text: str) -> str:
    """Text from a job on one line, without signs that end a line or a code span."""
    return "".join(c if c.isprintable() else " " for c in text).replace("`", "'")


def listed(words: Iterable[str], between: str = ", ", most: int = 5) -> str:
    """The first ones, each once, and how many more there are."""
    found = list(dict.fromkeys(words))
    return between.join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")


def inert(text: str) -> str:
    """As `flat`, for a page of Markdown: no link, no picture, no HTML."""
    return flat(text).replace("](", "]\\(").replace("<", "&lt;")


def quoted(text: str) -> str:
    """Text of a log as part of a sentence: one line, bounded."""
    flat = " ".join(text.split())
    return flat if len(flat) <= QUOTED else flat[: QUOTED - 3] + "..."
