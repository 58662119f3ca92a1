"""Telling a memory server of jobs, beside the calls: no answer waits for it, and none fails with it.

What is due stands in the ledger: a job that was submitted, and again when its end is known. It stays due until the
server took it or says that it has it already, for some days at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import anyio

from slurm_agent_tools import logs
from slurm_agent_tools.config import MemorySettings
from slurm_agent_tools.errors import AgentToolsError, MemoryUnreachable
from slurm_agent_tools.history import export
from slurm_agent_tools.history.records import JobRecord
from slurm_agent_tools.toolbox.desk import Desk

DAYS = 7
ROUND = 50
_DOUBLE = "duplicate"  # how a server says that it has this already
_log = logs.get_logger()


class Remembering:
    """Hands over what is due in the projects and clusters that were used since the server began."""

    def __init__(self, settings: MemorySettings) -> None:
        self._settings = settings
        self._desks: dict[str, Desk] = {}
        self._wake = anyio.Event()

    def note(self, desk: Desk) -> None:
        """Something may be due there."""
        self._desks[desk.cluster] = desk
        self._wake.set()

    async def run(self) -> None:
        """Hand over whenever something may be due, until cancelled; a failure is logged, then there is a pause."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            desks, self._desks = self._desks, {}
            for desk in desks.values():
                try:
                    await self.hand_over(desk)
                except Exception as error:  # noqa: BLE001 - no tool depends on this
                    self._failed(desk, error)
                    await anyio.sleep(self._settings.pause)

    async def hand_over(self, desk: Desk) -> int:
        """Tell the server what is due, at most so many records at once; returns how many it has now.

        Raises MemoryUnreachable, also where it refused some, and StorageError.
        """
        since = desk.clock.now() - timedelta(days=DAYS)
        due = await desk.db(desk.store.untold, desk.owner, since=since, limit=ROUND)
        if not due:
            return 0
        seconds = self._settings.timeout
        try:
            with anyio.fail_after(seconds):
                refused = await self._told(desk, due)
        except TimeoutError as error:
            raise MemoryUnreachable(f"the memory server did not take all within {seconds:g} s") from error
        if refused:
            raise MemoryUnreachable(f"the memory server refused {len(refused)} of {len(due)} records: {refused[0]}")
        if len(due) == ROUND:
            self.note(desk)
        return len(due)

    async def _told(self, desk: Desk, due: Sequence[tuple[str, JobRecord]]) -> list[str]:
        """Tell the server all of these; returns what it said of those that it refused."""
        refusals: list[str] = []
        async with export.connected(self._settings) as keeper:
            for token, record in due:
                refused = await keeper.store(export.memory(record))
                if refused is None or _DOUBLE in refused.lower():
                    await desk.db(desk.store.told, token, record.state)
                else:
                    refusals.append(refused)
        return refusals

    def _failed(self, desk: Desk, error: Exception) -> None:
        self._desks.setdefault(desk.cluster, desk)  # still due: the next call wakes it
        if isinstance(error, AgentToolsError):
            _log.warning("jobs were not remembered", code=error.code, message=error.message)
        else:
            _log.error("jobs were not remembered", exc_info=error)
