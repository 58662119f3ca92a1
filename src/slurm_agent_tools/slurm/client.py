"""What is changed in Slurm; the truth about jobs, from as few questions as it takes; one watcher for all who wait."""

from __future__ import annotations

import re
from binascii import crc32
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import anyio

from slurm_agent_tools.errors import AccountingUnreachable, SlurmError, SlurmUnreachable, UnknownJob
from slurm_agent_tools.models.job import Job, JobView, token_in
from slurm_agent_tools.models.job_resources import named_jobs
from slurm_agent_tools.slurm.commands import sbatch, scontrol, squeue
from slurm_agent_tools.slurm.commands.sbatch import Submitted, TestOnly
from slurm_agent_tools.slurm.questions import SlurmQuestions
from slurm_agent_tools.transport.base import Clock
from slurm_agent_tools.units import JobId

_SEE = "See get_status for your jobs. A task is named 123_4 and a component 123+1, not by its own number."


# --- What the client changes in Slurm: submitting, releasing, cancelling; and looking at what Slurm holds -------------


_RELEASES = 4
"""How often a release is asked for while slurmdbd numbers the job: slurmctld waits 5 seconds each time."""


class JobActions(SlurmQuestions):
    """The half of the client that submits and ends jobs."""

    async def test_only(
        self, options: Sequence[str], script: bytes, args: Sequence[str], *, cwd: str, env: Mapping[str, str]
    ) -> TestOnly:
        """Slurm's opinion of a request, without a job. Raises SlurmUnreachable."""
        argv = sbatch.argv(options, args, trial=True)
        return sbatch.parse_trial(await self._asker.run(argv, stdin=script, cwd=cwd, env=env))

    async def submit(
        self, options: Sequence[str], script: bytes, args: Sequence[str], *, cwd: str, env: Mapping[str, str]
    ) -> Submitted:
        """Send a job. SlurmUnreachable: surely not sent; SlurmUncertain: maybe; SlurmRefused: Slurm said no."""
        argv = sbatch.argv(options, args)
        return sbatch.parse(await self._asker.change(argv, stdin=script, cwd=cwd, env=env))

    async def held(self, job_id: JobId) -> Job:
        """What Slurm made of a job that it holds, an array as a whole.

        Raises SlurmUnreachable, and UnknownJob when Slurm has forgotten it.
        """
        done = await self._asker.run(scontrol.job_argv(job_id))
        if scontrol.unknown(done):
            raise UnknownJob("job_id", str(job_id), "Slurm knows no such job any more")
        return scontrol.parse_jobs(done)[0]

    async def tickets(self) -> dict[str, int]:
        """This user's jobs in the queue that were let in with a ticket, by the ticket's number. Raises SlurmError."""
        return squeue.parse_tickets(await self._asker.run(squeue.tickets_argv(self.user)))

    async def batch_script(self, job_id: JobId) -> bytes:
        """The bytes of the script that Slurm holds. Raises SlurmError."""
        done = await self._asker.run(scontrol.script_argv(job_id))
        if done.exit_code != 0:
            scontrol.check_change(done)
        return done.stdout

    async def release(self, job_id: JobId) -> None:
        """Let a held job run. Raises SlurmUncertain and SlurmRefused."""
        try:
            for _ in range(_RELEASES):
                done = await self._asker.change(["scontrol", "release", str(job_id)])
                if not scontrol.awaits_accounting(done):
                    break
            scontrol.check_change(done)
        finally:
            self._queue.changed()

    async def cancel(self, job_id: JobId) -> None:
        """Ask for its end; whether it came has to be looked at. Raises SlurmUncertain and SlurmRefused."""
        try:
            scontrol.check_change(await self._asker.change(sbatch.cancel_argv(job_id)))
        finally:
            self._queue.changed()


# --- The truth about jobs, from as few questions as it takes ----------------------------------------------------------


class JobViews(dict[JobId, JobView]):
    """What is known of jobs. `silent`: why the accounting's part is missing, and so perhaps a job."""

    def __init__(self, silent: AccountingUnreachable | None = None) -> None:
        super().__init__()
        self.silent = silent


class SlurmClient(JobActions):
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
        from slurm_agent_tools.slurm import merge  # noqa: PLC0415 - a submission looks at no other job

        silent: SlurmError | None = None
        bases = {job_id.base for job_id in ids}
        live: tuple[Job, ...] = ()
        try:
            live = (await self.queue(max_age=age)).jobs(sorted(bases))
        except SlurmUnreachable as error:
            silent = error
        going = [job.job_id for job in live if job.active]
        over = frozenset(wanted.base for wanted in ids if not any(one.belongs_to(wanted) for one in going))
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
        details = merge.confirmed(details, live, past)
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
        found, tables = JobViews(missing), [_by_part(jobs) for jobs in lists]
        for job_id in ids:
            seen = _merged(job_id, *(_near(job_id, table) for table in tables))
            if silent is not None and (seen is None or not seen.over):
                raise silent  # what the accounting alone calls active may have changed since
            if seen is not None:
                found[job_id] = seen if missing is None else replace(seen, missing=missing.message)
        return found

    async def glance(self, job_id: JobId, *, max_age: float) -> JobView | None:
        """A job as the queue alone shows it; None when it is not active there. Raises SlurmError."""
        view = _merged(job_id, (await self.queue(max_age=max_age)).jobs([job_id.base]))
        going = view is not None and any(part.active for part in (view.job, *view.tasks))
        return view if going else None

    async def find_token(self, token: str, *, since: datetime | None = None) -> Job | None:
        """This user's job with a token in its comment, from the queue, then from the accounting. Raises SlurmError."""
        queued = self.mine(await self.queue(max_age=0)).commented(token)
        if queued is not None:
            return queued
        seen = await self.recent_all(since or self._clock.now() - timedelta(days=1))
        return next((job for job in seen if token_in(job.comment) == token), None)


_Parts = Mapping[JobId | tuple[int, str], Sequence[Job]]


def _by_part(jobs: Iterable[Job]) -> _Parts:
    """Jobs by their own id, all of one number, and the ranges of that number: each task is looked for among few."""
    found: defaultdict[JobId | tuple[int, str], list[Job]] = defaultdict(list)
    for job in jobs:
        found[job.job_id].append(job)
        found[job.job_id.base, "all"].append(job)
        if job.job_id.tasks is not None:
            found[job.job_id.base, "ranges"].append(job)
    return found


def _near(wanted: JobId, parts: _Parts) -> Sequence[Job]:
    """What may belong to it."""
    if wanted == wanted.whole:
        return parts.get((wanted.base, "all"), ())
    return [*parts.get(wanted, ()), *parts.get((wanted.base, "ranges"), ())]


def _merged(
    wanted: JobId, live: Iterable[Job], details: Iterable[Job] = (), past: Iterable[Job] = ()
) -> JobView | None:
    from slurm_agent_tools.slurm import merge  # noqa: PLC0415 - a submission looks at no other job

    return merge.view(wanted, live, details, past)


def _disputed(view: JobView) -> bool:
    """True where the accounting calls a part active that the controller did not show."""
    return any(part.state == "UNKNOWN" for part in (view.job, *view.tasks))


def _parted(ids: Sequence[JobId], going: Sequence[JobId]) -> frozenset[int]:
    """Wanted wholes of which parts go on; the controller may have forgotten the other parts."""
    parts = {one.base for one in going if one != one.whole}
    return frozenset(wanted.base for wanted in ids if wanted == wanted.whole and wanted.base in parts)


# --- One watcher for all waiters: one look at the queue per tick, the accounting only for jobs that left it -----------


_PROGRESS_SECONDS = 2.0

_FRESH, _CROWDED = 2.0, 5.0
"""Seconds that an answer may be old; the looks of a crowd lie further apart, and share one all the same."""

_LATE = 1.5

_EACH = 0.004  # seconds that an answer takes on its way out; those of a crowd go one after the other

_SILENT_HINT = "Try `scontrol ping`, or call wait_for_job again in a minute."

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
        from slurm_agent_tools.slurm import merge  # noqa: PLC0415 - as above

        with anyio.move_on_after(limit):
            seen = await self._slurm.glance(job_id, max_age=fresh)
            return merge.newer(seen, view) if seen is not None else await self._slurm.job(job_id, max_age=fresh)
        raise SlurmUnreachable(
            f"Slurm did not answer within {limit:.0f} s while job {job_id} was waited for.", hint=_SILENT_HINT
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


# --- What a job waits for ---------------------------------------------------------------------------------------------

_ONE = re.compile(r"(afterok|afterany|afternotok|after|aftercorr):(\d+)")

_ENDS = {
    "afterok": "ends well",
    "afterany": "ends",
    "afternotok": "fails",
    "after": "has begun",
    "aftercorr": "ends well, task by task",
}


async def awaited_jobs(slurm: SlurmClient, dependency: str | None) -> str | None:
    """A sentence on what it waits for; None where nothing keeps it. `sbatch --test-only` tells nothing of this."""
    if not dependency or not await _going(slurm, dependency):
        return None
    one = _ONE.fullmatch(dependency)
    if one is None:
        return f"It starts once its dependency {dependency} holds."
    return f"It starts after job {one[2]} {_ENDS[one[1]]}."


async def _going(slurm: SlurmClient, dependency: str) -> bool:
    """Whether a job that it names is not over, or cannot be asked for. A singleton names none, but waits."""
    if "singleton" in dependency:
        return True
    for base in sorted(named_jobs(dependency)):
        try:
            view = await slurm.job(JobId(base))
        except UnknownJob:
            continue
        except SlurmError:
            return True
        begun = re.fullmatch(rf"after:{base}", dependency) is not None and view.job.started is not None
        if not view.over and not begun:
            return True
    return False
