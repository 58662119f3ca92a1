"""One watcher for all waiters: one look at the queue per tick, the accounting only for jobs that left it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

import anyio

from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.slurm.client import JobView, SlurmClient
from slurm_agent_tools.slurm.runner import Clock
from slurm_agent_tools.slurm.truth import newer
from slurm_agent_tools.units import JobId

_PROGRESS_SECONDS = 2.0
_FRESH = 2.0
_LATE = 1.5
_HINT = "Try `scontrol ping`, or call wait_for_job again in a minute."
Progress = Callable[[JobView, float], Awaitable[None]]


def poll_interval(age_seconds: float, time_limit_seconds: int | None, run_seconds: float) -> int:
    """Seconds until the next look: 10 in the first 5 minutes, 30 up to 30 minutes, then 300; 60 in the last tenth."""
    if time_limit_seconds is not None and time_limit_seconds > 0 and run_seconds >= 0.9 * time_limit_seconds:
        return 60 if age_seconds >= 1800 else 10 if age_seconds < 300 else 30
    if age_seconds < 300:
        return 10
    return 30 if age_seconds < 1800 else 300


class Watcher:
    """Waits for jobs. Queries are shared through the client, whatever the number of waiters."""

    def __init__(self, slurm: SlurmClient, clock: Clock) -> None:
        self._slurm, self._clock = slurm, clock

    async def wait(self, job_id: JobId, timeout: float, on_progress: Progress | None = None) -> JobView:  # noqa: ASYNC109
        """The job when it ended, or as it is when the time is up. Raises UnknownJob and SlurmUnreachable.

        A look that Slurm leaves unanswered is given up 1.5 seconds after the asked time.
        """
        start = self._clock.now()
        view = await self._slurm.job(job_id)
        cost = self._passed(start)  # of a look: the last one begins so much before the time is up
        while not view.over:
            passed = self._passed(start)
            if on_progress is not None:
                await on_progress(view, passed)
            left = timeout - passed - cost
            if left <= 0:
                break
            await self._pause(view, min(left, self._to_tick(self._interval(view))), start, on_progress)
            began = self._passed(start)
            view = await self._look(job_id, view, timeout + _LATE - began)
            cost = max(cost, self._passed(start) - began)
        return view

    async def _look(self, job_id: JobId, view: JobView, limit: float) -> JobView:
        with anyio.move_on_after(limit):
            seen = await self._slurm.glance(job_id, max_age=_FRESH)
            return newer(seen, view) if seen is not None else await self._slurm.job(job_id, max_age=_FRESH)
        raise SlurmUnreachable(
            f"Slurm did not answer within {limit:.0f} s while job {job_id} was waited for.", hint=_HINT
        )

    def _to_tick(self, interval: float) -> float:
        """Seconds to the next tick; ticks lie at the same moments for everybody, so that looks are shared."""
        return interval - self._clock.now().timestamp() % interval

    async def _pause(self, view: JobView, seconds: float, start: datetime, on_progress: Progress | None) -> None:
        """Sleep, and say now and then that the wait goes on."""
        while seconds > 0:
            part = min(seconds, _PROGRESS_SECONDS)
            await self._clock.sleep(part)
            seconds -= part
            if on_progress is not None and seconds > 0:
                await on_progress(view, self._passed(start))

    def _passed(self, start: datetime) -> float:
        return (self._clock.now() - start).total_seconds()

    def _interval(self, view: JobView) -> float:
        job = view.job
        age = (self._clock.now() - job.submitted).total_seconds() if job.submitted is not None else 0.0
        return self._slurm.settings.poll_scale * poll_interval(
            age, job.resources.time_limit_seconds, job.elapsed_seconds or 0
        )
