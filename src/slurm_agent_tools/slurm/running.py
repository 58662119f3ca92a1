"""Questions about what goes on: what running jobs use, and which nodes are kept for something else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from slurm_agent_tools.model import Reservation, StepUse
from slurm_agent_tools.slurm import reservations, sstat
from slurm_agent_tools.slurm.asking import Asker
from slurm_agent_tools.slurm.runner import Clock
from slurm_agent_tools.slurm.shared import Batch, Shared
from slurm_agent_tools.units import JobId

USE_AGE = 10.0
RESERVATIONS_AGE = 60.0

Use = Mapping[int, tuple[StepUse, ...]]


class Running:
    """The part of the client that looks at running jobs; answers are shared as all others are."""

    def __init__(self, asker: Asker, clock: Clock) -> None:
        self._asker = asker
        self._use = Batch(clock, self._ask_use)
        self._reservations = Shared(clock, self._ask_reservations)

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
        told = sstat.parse(await self._asker.run(sstat.argv([JobId(base) for base in sorted(bases)])))
        found: dict[int, tuple[StepUse, ...]] = {}
        for step in told:
            found[step.raw_id] = (*found.get(step.raw_id, ()), step)
        return dict.fromkeys(bases, found)

    async def _ask_reservations(self) -> tuple[Reservation, ...]:
        return reservations.parse(await self._asker.run(reservations.argv()))
