"""Questions that are asked seldom: what running jobs use, which nodes are kept, and what jobs waited lately."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import anyio

from slurm_agent_tools.models.job import StepUse
from slurm_agent_tools.models.node import Reservation
from slurm_agent_tools.slurm.answer_cache import SharedAnswer, SharedAnswers
from slurm_agent_tools.slurm.command_runner import CommandRunner
from slurm_agent_tools.transport.base import Clock
from slurm_agent_tools.units import JobId

if TYPE_CHECKING:
    from slurm_agent_tools.models.job import PastWaits


USE_AGE = 10.0

RESERVATIONS_AGE = 60.0

Use = Mapping[int, tuple[StepUse, ...]]


class RunningJobs:
    """The part of the client that looks at running jobs; answers are shared as all others are."""

    def __init__(self, asker: CommandRunner, clock: Clock) -> None:
        self._asker = asker
        self._use = SharedAnswers(clock, self._ask_use)
        self._reservations = SharedAnswer(clock, self._ask_reservations)

    async def use(self, bases: Iterable[int]) -> Use:
        """Running steps by Slurm's own number of their job, those of these jobs among them. Raises SlurmError."""
        found: dict[int, tuple[StepUse, ...]] = {}
        for told in (await self._use.get(sorted(bases), USE_AGE)).values():
            found |= told
        return found

    async def reservations(self) -> tuple[Reservation, ...]:
        """All of them, at most a minute old. Raises SlurmError."""
        return await self._reservations.get(RESERVATIONS_AGE)

    async def _ask_use(self, bases: frozenset[int], _: float) -> dict[int, Use]:
        """Everything that one command tells, for each: which task has which number only the queue knows."""
        from slurm_agent_tools.slurm.commands import sstat  # noqa: PLC0415 - only for jobs that run

        told = sstat.parse(await self._asker.run(sstat.argv([JobId(base) for base in sorted(bases)])))
        found: dict[int, tuple[StepUse, ...]] = {}
        for step in told:
            found[step.raw_id] = (*found.get(step.raw_id, ()), step)
        return dict.fromkeys(bases, found)

    async def _ask_reservations(self) -> tuple[Reservation, ...]:
        from slurm_agent_tools.slurm.commands import scontrol_reservations  # noqa: PLC0415 - only for alerts

        return scontrol_reservations.parse(await self._asker.run(scontrol_reservations.argv()))


# --- The question what jobs waited lately: asked seldom, in bounded windows, and not of a cluster that is slow --------


AGE = 600.0

PAUSE = 60.0
"""Seconds in which an accounting that gave no answer is not asked again."""

_WIDE = 1.5
"""Seconds for the wider window; what ran in the short one is told where that is too little."""


class WaitHistory:
    """The part of the client that looks at what all users' jobs waited. `may` says whether it may be asked now."""

    def __init__(
        self,
        asker: CommandRunner,
        clock: Clock,
        *,
        user: str,
        mark: Callable[[], str],
        accounting: Callable[[], Awaitable[bool]],
        may: Callable[[], bool],
    ) -> None:
        self._asker, self._user, self._mark = asker, user, mark
        self._accounting, self._may = accounting, may
        self._kept = SharedAnswer(clock, self._ask)
        self._clock = clock
        self._failed: datetime | None = None

    @property
    def kept(self) -> bool:
        """Whether there is an answer that is at most 10 minutes old."""
        return self._kept.age is not None and self._kept.age <= AGE

    async def past(self, *, ask: bool = True) -> PastWaits | None:
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

    async def _ask(self) -> PastWaits:
        """A short window first: how many ran in it says how long a window may be without asking for too many."""
        from slurm_agent_tools.models.job import PastWaits  # noqa: PLC0415 - few calls ask for what is past
        from slurm_agent_tools.slurm.commands import sacct_waits  # noqa: PLC0415

        if not await self._accounting():
            return PastWaits(note="this cluster keeps no accounting")
        first = await self._window(sacct_waits.FEW)
        if first is None:
            return PastWaits(note=f"too many jobs ran in the last {sacct_waits.FEW} hours to look at them all")
        hours = sacct_waits.wider(len(first.waits))
        if hours is None:
            return first
        more = None
        with anyio.move_on_after(_WIDE):
            more = await self._window(hours)
        return more or first

    async def _window(self, hours: int) -> PastWaits | None:
        """What ran in the last hours; None where that is more than is looked at."""
        from slurm_agent_tools.models.job import PastWaits  # noqa: PLC0415 - as above
        from slurm_agent_tools.slurm.commands import sacct_waits  # noqa: PLC0415

        done = await self._asker.run(sacct_waits.argv(hours, self._mark()), max_output=sacct_waits.OUTPUT)
        if done.truncated:
            return None
        waits, users = sacct_waits.parse(done)
        return PastWaits(waits, hours, own=users <= {self._user})
