"""A long wait that ends early when there is something new of its job that a person should not wait for."""

from __future__ import annotations

import anyio

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models.job import JobView
from slurm_agent_tools.services import job_alerts
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.client import Progress
from slurm_agent_tools.units import JobId

_PAUSE = 60.0
"""Seconds between two looks: `high` is to be known within five minutes, and nothing here is sooner for less."""


async def wait_with_alerts(context: ClusterContext, job_id: JobId, seconds: float, tell: Progress | None) -> JobView:
    """As the watcher's wait; one of more than a minute ends when a new alert of this job is critical or high.

    What was there when the wait began ends none, so that the call can be made again.
    """
    pause = _PAUSE * context.settings.slurm.poll_scale
    if seconds <= pause:
        return await context.watcher.wait(job_id, seconds, tell)
    watch = _AlertWatch(context, tell)
    found: list[JobView | AgentToolsError] = []
    async with anyio.create_task_group() as group:
        group.start_soon(watch.keep, pause, group.cancel_scope)
        try:
            found.append(await context.watcher.wait(job_id, seconds, watch.see))
        except AgentToolsError as error:  # outside of the group it is itself again
            found.append(error)
        group.cancel_scope.cancel()
    ended = found[0] if found else watch.view
    if isinstance(ended, AgentToolsError):
        raise ended
    return ended if ended is not None else await context.watcher.wait(job_id, 0, tell)


class _AlertWatch:
    """Looks at the job beside the watcher, which keeps telling how it stands."""

    def __init__(self, context: ClusterContext, tell: Progress | None) -> None:
        self._context, self._tell = context, tell
        self._seen = anyio.Event()
        self.view: JobView | None = None

    async def see(self, view: JobView, passed: float) -> None:
        """The watcher's word."""
        self.view = view
        self._seen.set()
        if self._tell is not None:
            await self._tell(view, passed)

    async def keep(self, pause: float, scope: anyio.CancelScope) -> None:
        """Look now and then; cancel the wait on something new. A look that fails ends the watch, not the wait."""
        await self._seen.wait()
        try:
            known = await self._serious_alerts()
            while True:
                await self._context.clock.sleep(pause)
                now = await self._serious_alerts()
                if now - known:
                    scope.cancel()
                    return
                known |= now
        except AgentToolsError:
            return

    async def _serious_alerts(self) -> set[tuple[str, str]]:
        """Code and severity of what is critical or high of this very job."""
        if self.view is None:
            return set()
        run = await self._context.db(self._context.store.by_job, self._context.owner, self.view.job.job_id.base)
        told = (await job_alerts.look(self._context, self.view, run)).alerts
        return {
            (alert.code, alert.severity) for alert in told if alert.severity != "medium" and alert.job_id is not None
        }
