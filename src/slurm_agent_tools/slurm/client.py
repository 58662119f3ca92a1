"""The truth about jobs, from as few questions as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import anyio

from slurm_agent_tools.errors import AccountingUnreachable, SlurmError, SlurmUnreachable, UnknownJob
from slurm_agent_tools.models.job import Job, token_in
from slurm_agent_tools.slurm import merge
from slurm_agent_tools.slurm.merge import JobView
from slurm_agent_tools.slurm.questions import SlurmQuestions
from slurm_agent_tools.units import JobId

_SEE = "See get_status for your jobs. A task is named 123_4 and a component 123+1, not by its own number."


class JobViews(dict[JobId, JobView]):
    """What is known of jobs. `silent`: why the accounting's part is missing, and so perhaps a job."""

    def __init__(self, silent: AccountingUnreachable | None = None) -> None:
        super().__init__()
        self.silent = silent


class SlurmClient(SlurmQuestions):
    """Asks one cluster as one user."""

    async def job(self, job_id: JobId, *, fresh: bool = False, max_age: float | None = None) -> JobView:
        """The truth about one job. UnknownJob only when queue and accounting both say so, else SlurmError."""
        views = await self.jobs([job_id], fresh=fresh, max_age=max_age)
        if job_id not in views:
            if views.silent is not None:
                raise views.silent
            raise UnknownJob("job_id", str(job_id), "Slurm knows no such job", hint=await self._instead(job_id))
        return views[job_id]

    async def _instead(self, job_id: JobId) -> str:
        """What to ask for in place of an id that no job has: tasks and components have numbers of their own, too."""
        number, told = job_id.base, list[Job]()
        with suppress(SlurmError):
            told += await self._details_of([number], frozenset({number}), frozenset(), self.settings.cache_seconds)
            told += await self.accounting.jobs([number], self.settings.cache_seconds, alone=False)
        part = next((job.job_id for job in told if job.raw_id == number and job.job_id.base != number), None)
        if part is None or job_id != job_id.whole:
            kept = " This cluster keeps no accounting, and its controller forgets a job some minutes after its end."
            return f"{_SEE}{kept if self.accounting.absent else ''}"
        return f"{number} is Slurm's own number of {part}, a part of job {part.base}. Ask for one of these."

    async def jobs(
        self, ids: Sequence[JobId], *, fresh: bool = False, max_age: float | None = None, patient: bool = True
    ) -> JobViews:
        """The truth about several jobs; those that Slurm does not know are left out. Raises SlurmError.

        All questions together take no longer than two commands may. `patient` False: an accounting that was silent a
        moment ago is not asked again, whoever else can tell.
        """
        age = 0 if fresh else self.settings.cache_seconds if max_age is None else max_age
        limit = 2 * self.settings.read_timeout
        with anyio.move_on_after(limit):
            views = await self._look(ids, age, patient=patient)
            if any(_disputed(view) for view in views.values()):
                views = await self._look(ids, 0, patient=patient)  # only a fresh word counts against the accounting
            return views
        raise SlurmUnreachable(f"Slurm did not answer within {limit:.0f} s.", hint="Try `scontrol ping`, then again.")

    async def _look(self, ids: Sequence[JobId], age: float, *, patient: bool) -> JobViews:
        silent: SlurmError | None = None
        bases = {job_id.base for job_id in ids}
        live: tuple[Job, ...] = ()
        try:
            live = (await self.queue(max_age=age)).jobs(sorted(bases))
        except SlurmUnreachable as error:
            silent = error
        going = [job.job_id for job in live if job.active]
        over = frozenset(wanted.base for wanted in ids if not any(merge.matches(one, wanted) for one in going))
        known = {job.job_id.base for job in live}
        missing: AccountingUnreachable | None = None
        past: tuple[Job, ...] = ()
        try:  # needed for jobs that are over, a help with those of which only some parts are
            alone = patient and bool(over - known)
            past = await self.accounting.jobs(over | _parted(ids, going), age, alone=alone)
        except AccountingUnreachable as error:
            if silent is not None and over:
                raise SlurmUnreachable(f"{silent.message} {error.message}", hint=silent.hint) from error
            missing = error
        told = {job.job_id.base for job in past} - {job.job_id.base for job in past if job.active}
        cut = frozenset(job.job_id.base for job in past if job.other_code is not None) & known & over
        details = await self._details_of(bases, over - told, cut, age) if silent is None else ()
        ends = {job.job_id.base for job in details if job.exit_code is not None}
        if age and silent is None and (known & over) - told - ends:  # what was kept is from before its end
            details = await self._details_of(bases, over - told, cut, 0)
        self.accounting.codes.keep(details)
        # For a moment the accounting may hold a task that just began as a job of its own (measured).
        parts = {job.raw_id for job in details if job.raw_id != job.job_id.base}
        wanted = [one for one in ids if one.base not in parts]
        return self._views(wanted, (live, details, past), silent, missing)

    def _views(
        self,
        ids: Sequence[JobId],
        lists: tuple[Sequence[Job], Sequence[Job], Sequence[Job]],
        silent: SlurmError | None,
        missing: AccountingUnreachable | None,
    ) -> JobViews:
        found = JobViews(missing)
        for job_id in ids:
            seen = merge.view(job_id, *lists)
            if silent is not None and (seen is None or not seen.over):
                raise silent  # what the accounting alone calls active may have changed since
            if seen is not None:
                found[job_id] = seen if missing is None else replace(seen, missing=missing.message)
        return found

    async def glance(self, job_id: JobId, *, max_age: float) -> JobView | None:
        """A job as the queue alone shows it; None when it is not active there. Raises SlurmError."""
        view = merge.view(job_id, (await self.queue(max_age=max_age)).jobs([job_id.base]), (), ())
        going = view is not None and any(part.active for part in (view.job, *view.tasks))
        return view if going else None

    async def find_token(self, token: str, *, since: datetime | None = None) -> Job | None:
        """This user's job with a token in its comment, from the queue, then from the accounting. Raises SlurmError."""
        queued = self.mine(await self.queue(fresh=True)).commented(token)
        if queued is not None:
            return queued
        seen = await self.recent_all(since or self._clock.now() - timedelta(days=1))
        return next((job for job in seen if token_in(job.comment) == token), None)


def _disputed(view: JobView) -> bool:
    """True where the accounting calls a part active that the controller did not show."""
    return any(part.state == "UNKNOWN" for part in (view.job, *view.tasks))


def _parted(ids: Sequence[JobId], going: Sequence[JobId]) -> frozenset[int]:
    """Wanted wholes of which parts go on; the controller may have forgotten the other parts."""
    parts = {one.base for one in going if one != one.whole}
    return frozenset(wanted.base for wanted in ids if wanted == wanted.whole and wanted.base in parts)
