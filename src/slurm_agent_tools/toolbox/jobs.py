"""Job ids that callers name, and what the ledger keeps of the jobs that were looked at."""

from __future__ import annotations

from slurm_agent_tools.errors import InputError, SlurmRefused
from slurm_agent_tools.slurm.client import JobView
from slurm_agent_tools.toolbox.desk import Desk
from slurm_agent_tools.units import JobId, parse_job_id

_LOOKS = 20
_PAUSE = 0.5
_ENDING = frozenset({"COMPLETING", "CANCELLED"})
_NO_FAILURE = frozenset({"COMPLETED", "CANCELLED", "PREEMPTED", "UNKNOWN"})


def parse(text: str, field: str = "job_id") -> JobId:
    """A job id, or InputError naming the field."""
    try:
        job_id = parse_job_id(text)
    except ValueError:
        job_id = None
    if job_id is None or job_id.tasks is not None:
        raise InputError(field, text, "is not a job id", hint="Write 123, 123_4 for an array task or 123+1.")
    return job_id


def failed(view: JobView) -> bool:
    """True for an end that a person should look at; a cancelled or preempted job is no failure of its script."""
    return any(not part.active and part.state not in _NO_FAILURE for part in (view.job, *view.tasks))


def ended(view: JobView) -> bool:
    """True when no part of it can run any more."""
    return not any(part.active or part.state == "UNKNOWN" for part in (view.job, *view.tasks))


async def managed(desk: Desk) -> frozenset[int]:
    """Ids of the jobs that came through the guard."""
    return await desk.db(desk.store.managed_ids, desk.owner)


async def cancel(desk: Desk, job_id: JobId) -> None:
    """End a job that Slurm showed. scancel tells nothing of success, so the queue is asked until it is on its way.

    Raises SlurmError, and SlurmRefused where the job goes on.
    """
    await desk.slurm.cancel(job_id)
    state = ""
    for _ in range(_LOOKS):
        view = await desk.slurm.glance(job_id, max_age=0)
        if view is None or all(part.state in _ENDING for part in (view.job, *view.tasks)):
            return
        state = view.job.state
        await desk.clock.sleep(_PAUSE)
    raise SlurmRefused(f"Slurm took scancel for job {job_id} but the job is still {state}", hint="Look again.")


async def remember(desk: Desk, view: JobView) -> None:
    """Note that this caller read the job's state, and so knows of it, and how it ended."""
    base = view.job.job_id.base
    await desk.db(desk.store.mark_read, desk.owner, f"job:{base}", desk.clock.now())
    run = await desk.db(desk.store.by_job, desk.owner, base)
    if run is not None and run.delivered is None:
        await desk.db(desk.store.deliver, run.token)
    if ended(view) and view.job.job_id == JobId(base):
        await settle(desk, view)


async def settle(desk: Desk, view: JobView, *, category: str | None = None, analysed: bool = False) -> None:
    """Complete the submission's record with its end."""
    run = await desk.db(desk.store.by_job, desk.owner, view.job.job_id.base)
    if run is None:
        return
    read = {"analysed": desk.clock.now()} if analysed else {}
    await desk.db(
        desk.store.update,
        run,
        outcome=view.job.state,
        failed=failed(view),
        run_seconds=view.job.elapsed_seconds,
        category=category or run.category or view.job.state,
        **read,
    )
