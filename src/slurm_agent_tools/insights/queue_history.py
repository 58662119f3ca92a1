"""What jobs waited here lately, as far as the accounting tells it in time. Nobody waits long for it."""

from __future__ import annotations

import contextlib
from datetime import datetime

import anyio

from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.insights.accounting_history import JobSources
from slurm_agent_tools.models.job import PastWaits

_PATIENCE = 3.0  # seconds


async def recent_waits(
    context: JobSources,
    *,
    ask: bool = True,
    fresh: bool = False,
    otherwise: str = "ask for the section queue by its name",
) -> PastWaits:
    """What ran here lately; empty with a note where it was not asked or the accounting does not answer in time.

    `fresh`: not from what is kept. `otherwise`: who asks it, for the note.
    """
    with anyio.move_on_after(_PATIENCE):
        try:
            found = await context.slurm.past(ask=ask, fresh=fresh)
        except SlurmError as error:
            return PastWaits(note=f"the accounting could not be asked: {error.message}")
        if found is not None:
            return found
        why = "Slurm is slow, or it gave no answer a moment ago" if ask else otherwise
        return PastWaits(note=f"the accounting was not asked: {why}")
    return PastWaits(note=f"the accounting did not answer within {_PATIENCE:.0f} s")


async def maintenance(context: JobSources) -> datetime | None:
    """When the next maintenance begins, as far as the reservations tell in time."""
    kept = None
    with contextlib.suppress(SlurmError), anyio.move_on_after(_PATIENCE):
        kept = await context.slurm.running.reservations()
    now = context.clock.now()
    return min((one.start for one in kept or () if one.maintenance and one.start > now), default=None)
