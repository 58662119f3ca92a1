"""What all parsers of Slurm's tables share: separators that no name can know, rows that fit or are an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from slurm_agent_tools.errors import SlurmGarbled, SlurmUnreachable
from slurm_agent_tools.models.job import ACTIVE_STATES, end_reason
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import parse_time_limit

SEPARATOR = "\x1f"

T = TypeVar("T")

_HINT = "Try `scontrol ping`, or run `slurm-agent-tools doctor`. Nothing was changed."

_SILENT = (
    "Unable to contact slurm", "Socket timed out", "Connection refused", "Connection timed out", "Connection reset",
    "Zero Bytes were transmitted", "slurm_persist_conn_open", "slurmdbd: Sending PersistInit", "Transport endpoint",
    "Protocol authentication error", "Could not establish a configuration source", "Communication connection failure",
    "Message connect failure", "Unable to establish", "Resource temporarily unavailable", "No route to host",
)  # fmt: skip


def text(data: bytes) -> str:
    """Output as text; bytes that are not UTF-8 stay visible as escapes."""
    return data.decode("utf-8", "backslashreplace")


def separator(argv: Sequence[str]) -> str:
    """The separator that a command is asked to use: a control character and a mark of its own.

    A job's name may hold any byte but NUL. The mark is new in every call, so that no name can hold or forge it.
    """
    asked = re.search(f"{SEPARATOR}[0-9a-f]*", " ".join(argv))
    return SEPARATOR if asked is None else asked[0]


def table(done: Completed, columns: Sequence[str], make: Callable[[dict[str, str]], T]) -> tuple[T, ...]:
    """Records from a table whose first and last columns never hold a newline, though others may.

    Raises SlurmGarbled with the row that does not fit.
    """
    if done.truncated:
        raise garbled(done, "the answer is longer than can be read")
    whole = text(done.stdout).removesuffix("\n")
    if not whole:
        return ()
    cells, width = whole.split(separator(done.argv)), len(columns) - 1
    if len(cells) == 1 or (len(cells) - 1) % width:
        raise garbled(done, whole[-300:])
    records = []
    for start in range(0, len(cells) - 1, width):
        row = cells[start : start + width + 1]
        if start:
            row[0] = row[0].rpartition("\n")[2]
        if start + width < len(cells) - 1:
            row[-1] = row[-1].rpartition("\n")[0]
        records.append(_record(done, row, columns, make))
    return tuple(records)


def _record(done: Completed, row: list[str], columns: Sequence[str], make: Callable[[dict[str, str]], T]) -> T:
    try:
        return make(dict(zip(columns, row, strict=True)))
    except (ValueError, KeyError) as error:
        raise garbled(done, f"{'|'.join(row)} ({error})") from error


def garbled(done: Completed, row: str) -> SlurmGarbled:
    """The error for an answer that is not what was asked for."""
    return SlurmGarbled(f"{done.argv[0]} answered what cannot be read: {row[:300]!r}", hint=_HINT)


def check(done: Completed) -> None:
    """Raise for a command that ended badly: SlurmUnreachable where Slurm is silent, else SlurmGarbled."""
    if done.timed_out:
        raise SlurmUnreachable(f"{done.argv[0]} did not answer within {done.seconds:.0f} s.", hint=_HINT)
    if done.exit_code == 0:
        return
    said = message(done)
    if silent(done):
        raise SlurmUnreachable(f"Slurm does not answer: {said}", hint=_HINT)
    raise SlurmGarbled(f"{done.argv[0]} failed with exit code {done.exit_code}: {said or 'no message'}", hint=_HINT)


def silent(done: Completed) -> bool:
    """True when Slurm itself was not reached."""
    said = text(done.stderr)
    return any(sign in said for sign in _SILENT)


def message(done: Completed) -> str:
    """What the command said on standard error, in one line."""
    return " ".join(text(done.stderr).split())[:500]


def state_word(raw: str) -> str:
    """The base state: `CANCELLED by 1001` and `CANCELLED+` are CANCELLED."""
    return raw.split(" ", maxsplit=1)[0].rstrip("+") if raw else "UNKNOWN"


def reason(raw: str, state: str, *, started: bool) -> str | None:
    """Why it waits or ended. One that ran keeps the last reason for waiting, which is no word about its end."""
    if raw in {"", "None"}:
        return None
    return raw if state in ACTIVE_STATES or not started or end_reason(raw) else None


def never_ran(state: str, nodes: str | None, elapsed: float | None) -> bool:
    """Whether it is over and had no nodes: Slurm tells the time of its end as its start, too (measured)."""
    return state not in ACTIVE_STATES and not nodes and not elapsed


def stated(raw: str) -> str | None:
    """A text of Slurm's; None for what it shows where there is none."""
    return None if raw in {"", "(null)"} else raw


def exit_status(raw: str) -> tuple[int | None, int | None]:
    """`7:0` as (exit code, signal or None); an empty value is (None, None)."""
    if not raw or raw in {"N/A", "(null)"}:
        return None, None
    code, _, signal = raw.partition(":")
    return int(code), int(signal or 0) or None


def time_limit(raw: str) -> int | None:
    """Seconds, UNLIMITED, or None where Slurm has none to tell."""
    return None if raw in {"", "NOT_SET", "INVALID", "N/A", "Partition_Limit"} else parse_time_limit(raw)
