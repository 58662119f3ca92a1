"""sacct: of all jobs that ran lately, what they asked for and how long they waited; few columns, no steps."""

from __future__ import annotations

from slurm_agent_tools.models.job import PastWait
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.slurm.commands import columns, sacct
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import parse_job_id, parse_time, parse_tres, tres_memory

# The first and the last column hold no text of a user's.
COLUMNS = ("JobID", "User", "Partition", "Submit", "Eligible", "Start", "Timelimit", "ReqTRES")

FEW, MOST = 2, 5000
"""The hours of the first question, and so many rows at most are expected of the second."""

WINDOWS = (7 * 24, 24)

OUTPUT = 2**20
"""Bytes of an answer; a longer one is not used."""


def argv(hours: int, mark: str = "") -> list[str]:
    """All users' jobs that were running at some moment of the last hours, those that are over included (sacct(1), -s).

    `mark`: hexadecimal, new in every call.
    """
    return [
        "sacct", "--allusers", "--allocations", "--noheader", "--parsable2",
        f"--delimiter={columns.SEPARATOR}{mark}", f"--format={','.join(COLUMNS)}",
        "--state=RUNNING", f"--starttime=now-{hours}hours", "--endtime=now",
    ]  # fmt: skip


def wider(rows: int) -> int | None:
    """The longest window in hours of which no more than MOST rows are to be expected; None: the first is enough."""
    return next((hours for hours in WINDOWS if rows * hours <= MOST * FEW), None)


def parse(done: Completed) -> tuple[tuple[PastWait, ...], frozenset[str]]:
    """The waits of those that started, and whose jobs they were. Raises AccountingUnreachable and SlurmGarbled."""
    sacct.check(done)
    rows = columns.table(done, COLUMNS, _row)
    return tuple(wait for _, wait in rows if wait is not None), frozenset(user for user, _ in rows)


def _row(cell: dict[str, str]) -> tuple[str, PastWait | None]:
    started = parse_time(cell["Start"])
    ready = parse_time(cell["Eligible"]) or parse_time(cell["Submit"])
    if started is None or ready is None:
        return cell["User"], None
    tres = parse_tres(cell["ReqTRES"])
    asked = Resources(
        partition=cell["Partition"],
        nodes=int(tres["node"]) if "node" in tres else None,
        cpus=int(tres["cpu"]) if "cpu" in tres else None,
        gpus=int(tres.get("gres/gpu", "0")),
        memory_bytes=tres_memory(tres["mem"]) if "mem" in tres else None,
        time_limit_seconds=columns.time_limit(cell["Timelimit"]),
    )
    seconds = max(0, round((started - ready).total_seconds()))
    user, base = cell["User"], parse_job_id(cell["JobID"]).base
    return user, PastWait(base, cell["Partition"], seconds, asked, user, ready)
