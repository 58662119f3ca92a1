"""sbatch and scancel: the script on standard input, its arguments behind it, every option by name.

`/dev/stdin` stands as the script's name because sbatch takes arguments only behind a name; the bytes that Slurm keeps
are the bytes that were sent, and the job's name is always given, so the stand-in never shows (tried on 22.05).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from slurm_agent_tools.errors import SlurmRefused, SlurmUncertain, SlurmUnreachable
from slurm_agent_tools.slurm import fields, opinion
from slurm_agent_tools.slurm.runner import Completed
from slurm_agent_tools.units import JobId

_LOST = (
    "timed out", "zero bytes", "temporarily unable to accept", "resource temporarily unavailable", "send failure",
    "receive failure", "shutdown failure", "unexpected message received",
)  # fmt: skip
"""The request went out, as far as sbatch knows; it says `Unable to contact slurm controller (...)` of some of these."""
_NOT_SENT = ("connect failure", "Connection refused", "Unable to resolve")


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job id, and what sbatch said beside it."""

    job_id: int
    message: str


@dataclass(frozen=True, slots=True)
class TestOnly:
    """Slurm's opinion without a job. `start` is its coarse estimate.

    `shown`: the options that sbatch read, for each component; empty where it gave up on them, None where what it
    printed cannot be read.
    """

    accepted: bool
    message: str
    start: datetime | None
    shown: opinion.Shown | None = None


def argv(options: Sequence[str], args: Sequence[str]) -> list[str]:
    """The one argument vector of a submission."""
    return ["sbatch", "--parsable", *options, "/dev/stdin", *args]


def trial_argv(options: Sequence[str], args: Sequence[str]) -> list[str]:
    """The same, as a question; sbatch also prints every option that it read."""
    return ["sbatch", "--verbose", "--test-only", *options, "/dev/stdin", *args]


def parse(done: Completed) -> Submitted:
    """Raises SlurmUnreachable only when nothing was sent, SlurmUncertain when it may have been, else SlurmRefused."""
    found = re.fullmatch(r"(\d+)(?:;[^\n]*)?\n?", fields.text(done.stdout))
    if found is not None:  # an id counts, whatever else was said
        return Submitted(int(found[1]), fields.message(done))
    said = fields.message(done)
    cut = done.exit_code is None or done.exit_code <= 0  # by the time limit, or by a signal; 0 without an id is neither
    if cut or not said or any(sign in said.lower() for sign in _LOST):
        raise SlurmUncertain(f"sbatch gave no job id: {said or 'no answer in time'}")
    if any(sign in said for sign in _NOT_SENT):
        raise SlurmUnreachable(f"Slurm does not answer: {said}", hint="Try `scontrol ping`.")
    if fields.silent(done):
        raise SlurmUncertain(f"sbatch gave no job id: {said}")
    raise SlurmRefused(f"Slurm refused the job: {said}", hint="Correct the request.")


def parse_trial(done: Completed) -> TestOnly:
    """Raises SlurmUnreachable."""
    shown, rest = opinion.split(fields.text(done.stderr))
    said = replace(done, stderr=rest.encode("utf-8"))  # names and paths among the options are no word of Slurm's
    message = fields.message(said)
    if said.timed_out or fields.silent(said):
        raise SlurmUnreachable(f"Slurm does not answer: {message or 'no answer in time'}", hint="Try `scontrol ping`.")
    when = re.search(r"^(?:sbatch: )?Job \d+ to start at (\S+)", rest, re.MULTILINE)
    start = _moment(when[1]) if when is not None else None
    return TestOnly(said.exit_code == 0, message, start, None if done.truncated else shown)


def _moment(text: str) -> datetime:
    """Seconds where SLURM_TIME_FORMAT counts, else the local time that some versions print all the same."""
    return datetime.fromtimestamp(int(text), UTC) if text.isdigit() else datetime.fromisoformat(text).astimezone(UTC)


def cancel_argv(job_id: JobId) -> list[str]:
    """End one job; scancel ends with 0 also for a job that it does not know."""
    return ["scancel", str(job_id)]
