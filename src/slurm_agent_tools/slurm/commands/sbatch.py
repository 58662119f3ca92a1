"""sbatch and scancel: the script on standard input, its arguments behind it, every option by name.

`/dev/stdin` stands as the script's name because sbatch takes arguments only behind a name; the bytes that Slurm keeps
are the bytes that were sent, and the job's name is always given, so the stand-in never shows (tried on 22.05).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from slurm_agent_tools.errors import SlurmRefused, SlurmUncertain, SlurmUnreachable
from slurm_agent_tools.slurm.commands import columns
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import JobId

_BEGIN, _END = "sbatch: defined options", "sbatch: end of defined options"

_RULE = f"sbatch: {'-' * 20} {'-' * 20}"

_OPTION = re.compile(r"sbatch: ([a-z][a-z0-9-]*)( *): (.*)", re.DOTALL)

_PADDED = 20

_PLUGIN = re.compile(r"sbatch: [\w/]+: (?:common_)?init: .* loaded\b.*")

Shown = tuple[Mapping[str, str], ...]


def split(text: str) -> tuple[Shown | None, str]:
    """(options of each component, everything else that sbatch said); None where a block cannot be read.

    An sbatch that gave up before it had read all options shows no block: an empty tuple.
    """
    blocks: list[dict[str, str] | None] = []
    rest: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        if line == _BEGIN:
            blocks.append(_block(lines))
        elif not _PLUGIN.fullmatch(line):
            rest.append(line)
    shown = tuple(block for block in blocks if block is not None)
    return (shown if len(shown) == len(blocks) else None), "\n".join(rest)


def _block(lines: Iterator[str]) -> dict[str, str] | None:
    """Options up to the end mark. What does not fit is swallowed with the block, so that nobody takes it for a word."""
    found: dict[str, str] = {}
    fits = next(lines, "") == _RULE
    for line in lines:
        if line == _RULE:
            return found if fits and next(lines, "") == _END else None
        option = _OPTION.fullmatch(line)
        if option is None or len(option[1] + option[2]) != max(_PADDED, len(option[1])) or option[1] in found:
            fits = False
        else:
            found[option[1]] = option[3]
    return None


# --- sbatch and scancel: the script on standard input, its arguments behind it, every option by name ------------------


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
    shown: Shown | None = None


def argv(options: Sequence[str], args: Sequence[str], *, trial: bool = False) -> list[str]:
    """The one argument vector of a submission; a `trial` is a question, and prints every option that sbatch read."""
    asked = ("--verbose", "--test-only") if trial else ("--parsable",)
    return ["sbatch", *asked, *options, "/dev/stdin", *args]


def parse(done: Completed) -> Submitted:
    """Raises SlurmUnreachable only when nothing was sent, SlurmUncertain when it may have been, else SlurmRefused."""
    job_id = re.fullmatch(r"(\d+)(?:;[^\n]*)?\n?", columns.text(done.stdout))
    if job_id is not None:  # an id counts, whatever else was said
        return Submitted(int(job_id[1]), columns.message(done))
    said = columns.message(done)
    cut = done.exit_code is None or done.exit_code <= 0  # by the time limit, or by a signal; 0 without an id is neither
    if cut or not said or any(sign in said.lower() for sign in _LOST):
        raise SlurmUncertain(f"sbatch gave no job id: {said or 'no answer in time'}")
    if any(sign in said for sign in _NOT_SENT):
        raise SlurmUnreachable(f"Slurm does not answer: {said}", hint="Try `scontrol ping`.")
    if columns.silent(done):
        raise SlurmUncertain(f"sbatch gave no job id: {said}")
    raise SlurmRefused(f"Slurm refused the job: {said}", hint="Correct the request.")


def parse_trial(done: Completed) -> TestOnly:
    """Raises SlurmUnreachable."""
    shown, rest = split(columns.text(done.stderr))
    said = replace(done, stderr=rest.encode("utf-8"))  # names and paths among the options are no word of Slurm's
    message = columns.message(said)
    if said.timed_out or columns.silent(said):
        raise SlurmUnreachable(f"Slurm does not answer: {message or 'no answer in time'}", hint="Try `scontrol ping`.")
    when = re.search(r"^(?:sbatch: )?Job \d+ to start at (\S+)", rest, re.MULTILINE)
    start = None
    if when is not None and when[1].isdigit():
        start = datetime.fromtimestamp(int(when[1]), UTC)
    elif when is not None:  # some versions print the local time all the same, where SLURM_TIME_FORMAT counts
        start = datetime.fromisoformat(when[1]).astimezone(UTC)
    return TestOnly(said.exit_code == 0, message, start, None if done.truncated else shown)


def cancel_argv(job_id: JobId) -> list[str]:
    """End one job; scancel ends with 0 also for a job that it does not know."""
    return ["scancel", str(job_id)]
