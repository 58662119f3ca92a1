"""A clock that only moves when somebody sleeps, and Slurm's tables in words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

import anyio
import anyio.lowlevel

from slurm_agent_tools.slurm.commands import columns, squeue

US = columns.SEPARATOR
START = 1_800_000_000
_ROUNDS = 200  # of the event loop, in which all who can go on do so


class FakeClock:
    """Sleepers wake in the order of their time once everybody sleeps; no real time passes."""

    def __init__(self) -> None:
        self.seconds = float(START)
        self._waiting: list[tuple[float, anyio.Event]] = []

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    @property
    def passed(self) -> float:
        return self.seconds - START

    async def sleep(self, seconds: float) -> None:
        event = anyio.Event()
        self._waiting.append((self.seconds + seconds, event))
        await event.wait()

    async def drive(self) -> None:
        """Move on whenever nobody else can; runs until it is cancelled."""
        while True:
            for _ in range(_ROUNDS):
                await anyio.lowlevel.checkpoint()
            if not self._waiting:
                continue
            self.seconds = min(moment for moment, _ in self._waiting)
            due = [event for moment, event in self._waiting if moment <= self.seconds]
            self._waiting = [item for item in self._waiting if item[0] > self.seconds]
            for event in due:
                event.set()

    async def through(self, *works: Callable[[], Awaitable[object]]) -> None:
        """Run all of these together to their end under this clock."""
        async with anyio.create_task_group() as outer:
            outer.start_soon(self.drive)
            async with anyio.create_task_group() as inner:
                for work in works:
                    inner.start_soon(work)
            outer.cancel_scope.cancel()


def queued(job_id: str, state: str = "RUNNING", **changes: object) -> bytes:
    """A row of squeue."""
    base = job_id.partition("_")[0]
    cell = {
        "id": job_id, "raw": base, "user": "alice", "partition": "cpu", "state": state, "reason": "None",
        "submitted": START, "start": START if state != "PENDING" else "N/A", "end": "N/A", "limit": "1-00:00:00",
        "elapsed": "0:01", "nodes": "cpu01", "required_nodes": "", "node_count": 1, "cpus": 2, "dependency": "(null)", "comment": "(null)",
        "name": "train", "again": base,
    }  # fmt: skip
    return squeue_row(cell | changes).encode() + b"\n"


def squeue_row(cell: Mapping[str, object], mark: str = "") -> str:
    """Cells as squeue puts them in a line: the head's, then those that users write, behind marked separators."""
    values = [str(value) for value in cell.values()]
    return f"{US}{mark}".join([squeue.INNER.join(values[:-3]), *values[-3:]])


def accounted(job_id: str, state: str = "COMPLETED", code: str = "0:0", **changes: object) -> bytes:
    """A row of sacct."""
    from slurm_agent_tools.slurm.commands.sacct import COLUMNS  # noqa: PLC0415 - what a submission loads is counted

    cell: dict[str, object] = dict.fromkeys(COLUMNS, "")
    cell |= {
        "JobID": job_id, "User": "alice", "Partition": "cpu", "State": state, "ExitCode": code, "Submit": START,
        "Start": START, "End": START + 60, "ElapsedRaw": 60, "JobName": "train", "JobIDRaw": job_id.partition("_")[0],
    }  # fmt: skip
    return US.join(str(value) for value in (cell | changes).values()).encode() + b"\n"
