"""Telling a memory server of jobs, beside the calls: no answer waits for it, and none fails with it.

What is due stands in the ledger: a job that was submitted, and again when its end is known. It stays due until the
server took it or says that it has it already, for some days at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import anyio

from slurm_agent_tools.errors import AgentToolsError, MemoryUnreachable
from slurm_agent_tools.insights import memory_server
from slurm_agent_tools.insights.accounting_history import JobSources
from slurm_agent_tools.models.job import JobRecord
from slurm_agent_tools.settings import MemorySettings
from slurm_agent_tools.text import log_events

DAYS = 7

ROUND = 50

_DOUBLE = "duplicate"  # how a server says that it has this already

_log = log_events.get_logger()


class MemorySync:
    """Hands over what is due in the projects and clusters that were used since the server began."""

    def __init__(self, settings: MemorySettings) -> None:
        self._settings = settings
        self._contexts: dict[str, JobSources] = {}
        self._wake = anyio.Event()

    def note(self, context: JobSources) -> None:
        """Something may be due there."""
        self._contexts[context.cluster] = context
        self._wake.set()

    async def run(self) -> None:
        """Hand over whenever something may be due, until cancelled; a failure is logged, then there is a pause."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            registry, self._contexts = self._contexts, {}
            for context in registry.values():
                try:
                    await self.hand_over(context)
                except Exception as error:  # noqa: BLE001 - no tool depends on this
                    self._failed(context, error)
                    await anyio.sleep(self._settings.pause)

    async def hand_over(self, context: JobSources) -> int:
        """Tell the server what is due, at most so many records at once; returns how many it has now.

        Raises MemoryUnreachable, also where it refused some, and StorageError.
        """
        since = context.clock.now() - timedelta(days=DAYS)
        due = await context.db(context.store.untold, context.owner, since=since, limit=ROUND)
        if not due:
            return 0
        seconds = self._settings.timeout
        try:
            with anyio.fail_after(seconds):
                refused = await self._told(context, due)
        except TimeoutError as error:
            raise MemoryUnreachable(f"the memory server did not take all within {seconds:g} s") from error
        if refused:
            raise MemoryUnreachable(f"the memory server refused {len(refused)} of {len(due)} records: {refused[0]}")
        if len(due) == ROUND:
            self.note(context)
        return len(due)

    async def _told(self, context: JobSources, due: Sequence[tuple[str, JobRecord]]) -> list[str]:
        """Tell the server all of these; returns what it said of those that it refused."""
        refusals: list[str] = []
        async with memory_server.connected(self._settings) as keeper:
            for token, record in due:
                refused = await keeper.store(memory_server.memory(record))
                if refused is None or _DOUBLE in refused.lower():
                    await context.db(context.store.told, token, record.state)
                else:
                    refusals.append(refused)
        return refusals

    def _failed(self, context: JobSources, error: Exception) -> None:
        self._contexts.setdefault(context.cluster, context)  # still due: the next call wakes it
        if isinstance(error, AgentToolsError):
            _log.warning("jobs were not remembered", code=error.code, message=error.message)
        else:
            _log.error("jobs were not remembered", exc_info=error)
