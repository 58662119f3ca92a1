"""One watcher for all waiters: one look at the queue per tick, the accounting only for jobs that left it."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Awaitable, Callable
from datetime import datetime

import anyio

from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.slurm.merge import JobView, newer
from slurm_agent_tools.transport.base import Clock
from slurm_agent_tools.units import JobId

_PROGRESS_SECONDS = 2.0

_FRESH, _CROWDED = 2.0, 5.0
"""Seconds that an answer may be old; the looks of a crowd lie further apart, and share one all the same."""

_LATE = 1.5

_EACH = 0.004  # seconds that an answer takes on its way out; those of a crowd go one after the other

_HINT = "Try `scontrol ping`, or call wait_for_job again in a minute."

Progress = Callable[[JobView, float], Awaitable[None]]


def poll_interval(age_seconds: float, time_limit_seconds: int | None, run_seconds: float) -> int:
    """Seconds until the next look: 10 in the first 5 minutes, 30 up to 30 minutes, then 300; 60 in the last tenth."""
    if age_seconds < 300:
        return 10
    if age_seconds < 1800:
        return 30
    limited = time_limit_seconds is not None and time_limit_seconds > 0
    return 60 if limited and run_seconds >= 0.9 * (time_limit_seconds or 0) else 300


def offset(user: str) -> float:
    """Seconds, 0 to 300, by which a user's ticks lie after the clock's: users look one after the other, not at once."""
    return crc32(user.encode()) % 300_000 / 1000


class Watcher:
    """Waits for jobs. Queries are shared through the client, whatever the number of waiters."""

    def __init__(self, slurm: SlurmClient, clock: Clock) -> None:
        self._slurm, self._clock = slurm, clock
        self._offset = offset(slurm.user)
        self._waiting = 0

    async def wait(self, job_id: JobId, timeout: float, on_progress: Progress | None = None) -> JobView:  # noqa: ASYNC109
        """The job when it ended, or as it is when the time is up. Raises UnknownJob and SlurmUnreachable.

        A look that Slurm leaves unanswered is given up 1.5 seconds after the asked time.
        """
        self._waiting += 1
        try:
            return await self._wait(job_id, timeout, on_progress)
        finally:
            self._waiting -= 1

    async def _wait(self, job_id: JobId, timeout: float, on_progress: Progress | None) -> JobView:  # noqa: ASYNC109
        start = self._clock.now()
        view = await self._slurm.job(job_id)
        cost = self._passed(start)  # of a look: the last one begins so much before the time is up
        last = False
        while not view.over and not last:
            if timeout - self._passed(start) > 2 * self._slurm.settings.read_timeout:
                await (
                    self._slurm.diagnose()
                )  # asks only a controller that is slow, and takes one command's time at most
            passed = self._passed(start)
            if on_progress is not None:
                await on_progress(view, passed)
            crowd = _EACH * self._waiting
            left, tick = timeout - passed - cost - crowd, self._to_tick(self._interval(view))
            if left <= _EACH:
                break
            last = left <= tick
            await self._pause(view, min(left, tick), start, on_progress)
            began = self._passed(start)
            view = await self._look(job_id, view, timeout + _LATE - began, min(_FRESH + crowd, _CROWDED))
            cost = max(cost, self._passed(start) - began)
        return view

    async def _look(self, job_id: JobId, view: JobView, limit: float, fresh: float) -> JobView:
        with anyio.move_on_after(limit):
            seen = await self._slurm.glance(job_id, max_age=fresh)
            return newer(seen, view) if seen is not None else await self._slurm.job(job_id, max_age=fresh)
        raise SlurmUnreachable(
            f"Slurm did not answer within {limit:.0f} s while job {job_id} was waited for.", hint=_HINT
        )

    def _to_tick(self, interval: float) -> float:
        """Seconds to the next tick; the ticks of all waits of a user lie together, so that looks are shared."""
        return interval - (self._clock.now().timestamp() - self._offset) % interval

    async def _pause(self, view: JobView, seconds: float, start: datetime, on_progress: Progress | None) -> None:
        """Sleep, and say now and then that the wait goes on."""
        while seconds > 0:
            part = seconds if on_progress is None else min(seconds, _PROGRESS_SECONDS)
            await self._clock.sleep(part)
            seconds -= part
            if on_progress is not None and seconds > 0:
                await on_progress(view, self._passed(start))

    def _passed(self, start: datetime) -> float:
        return (self._clock.now() - start).total_seconds()

    def _interval(self, view: JobView) -> float:
        return self._slurm.settings.poll_scale * self.pause(view)

    def pause(self, view: JobView) -> int:
        """Seconds between two looks at this job: by its age, longer where the controller answers slowly."""
        job = view.job
        age = (self._clock.now() - job.submitted).total_seconds() if job.submitted is not None else 0.0
        seconds = poll_interval(age, job.resources.time_limit_seconds, job.elapsed_seconds or 0)
        return seconds * self._slurm.verdict.factor
