"""What jobs waited here lately, as far as the accounting tells it in time. Nobody waits long for it."""

from __future__ import annotations

import contextlib
from datetime import datetime

import anyio

from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.insights import measured_waits
from slurm_agent_tools.insights.measured_waits import MeasuredWaits
from slurm_agent_tools.models.job import PastWaits
from slurm_agent_tools.models.shapes import QueueWaits, WaitMeasured
from slurm_agent_tools.services.context import ClusterContext

_PATIENCE = 3.0  # seconds


async def recent_waits(
    context: ClusterContext,
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


async def maintenance(context: ClusterContext) -> datetime | None:
    """When the next maintenance begins, as far as the reservations tell in time."""
    kept = None
    with contextlib.suppress(SlurmError), anyio.move_on_after(_PATIENCE):
        kept = await context.slurm.running.reservations()
    now = context.clock.now()
    return min((one.start for one in kept or () if one.maintenance and one.start > now), default=None)


def shown(measured: MeasuredWaits) -> WaitMeasured | None:
    """None where too few jobs were seen."""
    if measured.median is None or measured.p95 is None:
        return None
    return WaitMeasured(median=measured.median, p95=measured.p95, jobs=measured.jobs)


def period(hours: int) -> str:
    """7 days, 24 hours."""
    days = hours // 24
    return f"{days} days" if days > 1 and not hours % 24 else f"{hours} hours"


def of_queue(past: PastWaits, age: float | None = None) -> QueueWaits:
    """What all jobs waited, whatever their size. `age`: seconds since the accounting was asked."""
    every = measured_waits.measure_waits(past.waits)
    found = {name: shown(one) for name, one in measured_waits.by_partition(past.waits).items()}
    note = past.note or f"{_ran(every.jobs, own=past.own)} in the last {period(past.hours)}{_old(age)}"
    return QueueWaits(
        measured=shown(every), partitions={name: one for name, one in found.items() if one is not None}, note=note
    )


def _ran(jobs: int, *, own: bool) -> str:
    """How many ran. Where there was none, nobody's can be told from anybody's."""
    if jobs == 0:
        return "the accounting shows no job that ran"
    return f"{jobs} {'job' if jobs == 1 else 'jobs'}{' of your own' if own else ''} ran"


def _old(age: float | None) -> str:
    minutes = 0 if age is None else int(age // 60)
    return f", asked {minutes} min ago (refresh asks again)" if minutes else ""
