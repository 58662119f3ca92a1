"""The question what jobs waited lately: asked seldom, in bounded windows, and not of a cluster that is slow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING

import anyio

from slurm_agent_tools.slurm.asking import Asker
from slurm_agent_tools.slurm.runner import Clock
from slurm_agent_tools.slurm.shared import Shared

if TYPE_CHECKING:
    from slurm_agent_tools.history.waits import Past

AGE = 600.0
PAUSE = 60.0
"""Seconds in which an accounting that gave no answer is not asked again."""

_WIDE = 1.5
"""Seconds for the wider window; what ran in the short one is told where that is too little."""


class Lookback:
    """The part of the client that looks at what all users' jobs waited. `may` says whether it may be asked now."""

    def __init__(
        self,
        asker: Asker,
        clock: Clock,
        *,
        user: str,
        mark: Callable[[], str],
        accounting: Callable[[], Awaitable[bool]],
        may: Callable[[], bool],
    ) -> None:
        self._asker, self._user, self._mark = asker, user, mark
        self._accounting, self._may = accounting, may
        self._kept = Shared(clock, self._ask)
        self._clock = clock
        self._failed: datetime | None = None

    @property
    def kept(self) -> bool:
        """Whether there is an answer that is at most 10 minutes old."""
        return self._kept.age is not None and self._kept.age <= AGE

    async def past(self, *, ask: bool = True) -> Past | None:
        """What jobs that ran lately waited, as far as this user may see them. Raises SlurmError.

        None where nothing is kept and it may not be asked: `ask` is False, the controller is slow, or there was no
        answer a moment ago.
        """
        if not (self.kept or (ask and self._may() and not self._paused)):
            return None
        answered = False
        try:
            found = await self._kept.get(AGE)
            answered = True
        finally:  # an error, or nobody waited for it any longer
            self._failed = None if answered else self._clock.now()
        return found

    @property
    def _paused(self) -> bool:
        return self._failed is not None and (self._clock.now() - self._failed).total_seconds() < PAUSE

    async def _ask(self) -> Past:
        """A short window first: how many ran in it says how long a window may be without asking for too many."""
        from slurm_agent_tools.history.waits import Past  # noqa: PLC0415 - few calls ask for what is past
        from slurm_agent_tools.slurm import past  # noqa: PLC0415

        if not await self._accounting():
            return Past(note="this cluster keeps no accounting")
        first = await self._window(past.FEW)
        if first is None:
            return Past(note=f"too many jobs ran in the last {past.FEW} hours to look at them all")
        hours = past.wider(len(first.waits))
        if hours is None:
            return first
        more = None
        with anyio.move_on_after(_WIDE):
            more = await self._window(hours)
        return more or first

    async def _window(self, hours: int) -> Past | None:
        """What ran in the last hours; None where that is more than is looked at."""
        from slurm_agent_tools.history.waits import Past  # noqa: PLC0415 - as above
        from slurm_agent_tools.slurm import past  # noqa: PLC0415

        done = await self._asker.run(past.argv(hours, self._mark()), max_output=past.OUTPUT)
        if done.truncated:
            return None
        waits, users = past.parse(done)
        return Past(waits, hours, own=users <= {self._user})
