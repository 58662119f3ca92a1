"""Questions that are asked seldom: what running jobs use, what the accounting knows, and what jobs waited lately."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import anyio

from slurm_agent_tools.errors import AccountingUnreachable, InputError
from slurm_agent_tools.models.job import Job, PastWaits, StepUse, by_number
from slurm_agent_tools.models.node import Reservation
from slurm_agent_tools.slurm import merge
from slurm_agent_tools.slurm.answer_cache import SharedAnswer, SharedAnswers
from slurm_agent_tools.transport.base import Clock, Completed
from slurm_agent_tools.units import JobId

if TYPE_CHECKING:
    from slurm_agent_tools.models.accounted import Association, NodeSpan
    from slurm_agent_tools.slurm.commands.srun_overlap import GpuLook
    from slurm_agent_tools.slurm.questions import ClusterInfo, CommandRunner

USE_AGE = 10.0

RESERVATIONS_AGE = 60.0

GPU_AGE = 60.0
"""Seconds between two steps in one job, however many ask."""

_GPU_PATIENCE = 1.5

_STEPS_AT_ONCE = 4

Use = Mapping[int, tuple[StepUse, ...]]


class RunningJobs:
    """The part of the client that looks at running jobs; answers are shared as all others are."""

    def __init__(self, asker: CommandRunner, clock: Clock) -> None:
        self._asker = asker
        self._use = SharedAnswers(clock, self._ask_use)
        self._reservations = SharedAnswer(clock, self._ask_reservations)
        self._gpus = SharedAnswers(clock, self._ask_gpus)

    async def gpus(self, jobs: Iterable[tuple[int, int]]) -> Mapping[tuple[int, int], GpuLook]:
        """What nvidia-smi says inside of running jobs of this user, each by Slurm's own number and its nodes."""
        return await self._gpus.get(sorted(jobs), GPU_AGE)

    async def _ask_gpus(self, jobs: frozenset[tuple[int, int]], _: float) -> dict[tuple[int, int], GpuLook]:
        """A step in each, few at a time; each is a call of Slurm with a time limit of its own."""
        from slurm_agent_tools.slurm.commands import srun_overlap  # noqa: PLC0415 - only where it is asked for

        found: dict[tuple[int, int], GpuLook] = {}
        few = anyio.CapacityLimiter(_STEPS_AT_ONCE)

        async def one(job: tuple[int, int]) -> None:
            async with few:
                done = await self._asker.run(srun_overlap.argv(*job), patience=_GPU_PATIENCE, max_output=2**16)
                found[job] = srun_overlap.parse(done)

        async with anyio.create_task_group() as group:
            for job in sorted(jobs):
                group.start_soon(one, job)
        return found

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


# --- What the accounting knows of jobs. Nobody waits long for it, and everybody is told when it is silent -------------


_KEPT = 1000  # the last ones; the ledger remembers those of managed jobs longer

_COLUMNS_AGE = 3600.0

_WEEK_AGE = 60.0

_QUIET = 30.0
"""Seconds in which an accounting that let a command wait in vain is asked only for what nobody else tells."""

_HURRIED = 0.5
"""The share of a command's time limit that the accounting gets where the controller tells the most of it."""

_PATIENT = 6.0
"""Times the limit of a command that a question for weeks of all users may take."""


class ExitCodes:
    """Of the jobs that failed, run by run."""

    def __init__(self) -> None:
        self._kept: dict[tuple[JobId, datetime | None], int] = {}

    def keep(self, jobs: Iterable[Job]) -> None:
        """Remember what the controller told of these."""
        for job in jobs:
            if job.short_code is False and job.exit_code:
                self._kept[job.job_id, job.started] = job.exit_code
        for key in list(self._kept)[:-_KEPT]:
            del self._kept[key]

    def recall(self, jobs: Iterable[Job]) -> tuple[Job, ...]:
        """The accounting's records, with the codes in full where they were told once."""
        return tuple(merge.coded(job, self._kept.get((job.job_id, job.started))) for job in jobs)


class AccountingQuestions:
    """The part of the client that asks slurmdbd.

    `absent`: this cluster was found to keep no accounting. `failed`: why the last question came to nothing.
    """

    def __init__(self, asker: CommandRunner, clock: Clock, *, user: str, mark: Callable[[], str]) -> None:
        self._asker, self._clock, self._user, self._mark = asker, clock, user, mark
        self._jobs = SharedAnswers(clock, self._ask_jobs)
        self._week = SharedAnswer(clock, self._ask_week)
        self._columns, self._share = SharedAnswer(clock, self._ask_columns), 1.0
        self._late: tuple[datetime, AccountingUnreachable] | None = None
        self.codes = ExitCodes()
        self.absent = False
        self.failed: AccountingUnreachable | None = None

    @property
    def missing(self) -> str | None:
        """Why the last question came to nothing; None where it was answered, or nothing was asked."""
        if self.absent:
            return "This cluster keeps no accounting (slurmdbd)."
        return None if self.failed is None else self.failed.message

    @property
    def silent(self) -> AccountingUnreachable | None:
        """What came of the last question where that waited in vain, up to half a minute ago."""
        if self._late is None or (self._clock.now() - self._late[0]).total_seconds() > _QUIET:
            return None
        return self._late[1]

    async def jobs(self, bases: Iterable[int], max_age: float, *, alone: bool = True) -> tuple[Job, ...]:
        """What it tells of these jobs; nothing on a cluster without one. Raises AccountingUnreachable, SlurmError.

        `alone`: nobody else tells of them, so it gets all the time of a command.
        """
        wanted = sorted(bases)
        if wanted and not alone and self.silent is not None:
            raise self.silent
        found = await self._jobs.get([(base, alone) for base in wanted], max_age)
        return self.codes.recall(job for jobs in found.values() for job in jobs)

    async def recent(self, since: datetime) -> tuple[Job, ...]:
        """This user's jobs since a time that are over. Raises AccountingUnreachable, SlurmError."""
        return tuple(job for job in await self._mine_since(since, margin=0) if not job.active)

    async def recent_all(self, since: datetime) -> tuple[Job, ...]:
        """This user's jobs since a time, active ones too. Raises AccountingUnreachable, SlurmError."""
        return await self._mine_since(since, margin=1)

    async def week(self) -> tuple[Job, ...]:
        """This user's jobs of the last seven days, each run of a requeued one, at most a minute old.

        Raises AccountingUnreachable, SlurmError.
        """
        return await self._week.get(_WEEK_AGE)

    async def _ask_week(self) -> tuple[Job, ...]:
        return await self._mine_since(self._clock.now() - timedelta(days=7), margin=1, every_run=True)

    async def ran(self, since: datetime, name: str | None = None) -> tuple[Job, ...]:
        """The same of one name, or of all. Raises AccountingUnreachable, SlurmError."""
        narrow = name if name and "," not in name else None  # to sacct a comma ends a name
        found = await self._mine_since(since, margin=1, name=narrow)
        return tuple(job for job in found if name in {None, job.name})

    async def everyone(self, since: datetime) -> tuple[Job, ...]:
        """All users' jobs since a time, as far as this user may see them, without steps.

        Nothing on a cluster without accounting. Raises InputError where they are too many for one answer,
        AccountingUnreachable and SlurmError.
        """
        from slurm_agent_tools.slurm.commands import sacct  # noqa: PLC0415 - as below

        hours = self._hours(since)
        argv = sacct.argv(since=f"now-{hours}hours", everyone=True, mark=self._mark())
        return await self._weeks(argv, hours)

    async def weeks(self, since: datetime) -> tuple[Job, ...]:
        """The same with their steps, and what they used. Raises as `everyone` does."""
        from slurm_agent_tools.slurm.commands import sacct  # noqa: PLC0415 - as below

        hours = self._hours(since)
        return await self._weeks(sacct.weeks_argv(hours, self._mark()), hours)

    async def kept(self, since: datetime) -> tuple[NodeSpan, ...]:
        """Reservations since a time, those that are over included. Raises AccountingUnreachable, SlurmError."""
        from slurm_agent_tools.slurm.commands import sacctmgr  # noqa: PLC0415 - as below

        done = await self._asker.run(sacctmgr.reservations_argv(self._hours(since)))
        return sacctmgr.parse_reservations(done, self._clock.now().timestamp())

    async def outages(self, since: datetime) -> tuple[NodeSpan, ...]:
        """When nodes were down or drained since a time. Raises AccountingUnreachable, SlurmError."""
        from slurm_agent_tools.slurm.commands import sacctmgr  # noqa: PLC0415 - as below

        done = await self._asker.run(sacctmgr.events_argv(self._hours(since)))
        return sacctmgr.parse_events(done, self._clock.now().timestamp())

    async def associations(self, info: Callable[[], Awaitable[ClusterInfo]]) -> tuple[Association, ...]:
        """This user's accounts here, with the QOS of each. Raises AccountingUnreachable, SlurmError."""
        from slurm_agent_tools.slurm.commands import sacctmgr  # noqa: PLC0415 - as below

        argv = sacctmgr.associations_argv(self._user, (await info()).name)
        return sacctmgr.parse_associations(await self._asker.run(argv))

    def _hours(self, since: datetime) -> int:
        return max(1, math.ceil((self._clock.now() - since).total_seconds() / 3600))

    async def _weeks(self, argv: list[str], hours: int) -> tuple[Job, ...]:
        from slurm_agent_tools.slurm.commands import sacct  # noqa: PLC0415 - as below

        done = await self._asker.run(argv, patience=_PATIENT)
        if done.truncated:
            days = max(1, round(hours / 24))
            raise InputError("days", days, "holds more jobs than are looked at at once", hint="Ask for fewer of them.")
        self.absent = sacct.disabled(done)
        return () if self.absent else sacct.parse(done)

    async def _ask_jobs(self, keys: frozenset[tuple[int, bool]], _: float) -> dict[tuple[int, bool], tuple[Job, ...]]:
        """What the accounting tells of all these at once."""
        from slurm_agent_tools.slurm.commands import sacct  # noqa: PLC0415 - only for what left the queue

        self._share = 1.0 if any(alone for _, alone in keys) else _HURRIED
        more = await self._columns.get(_COLUMNS_AGE)
        argv = sacct.argv(sorted({base for base, _ in keys}), more=more, mark=self._mark())
        done = await self._run(argv, self._share)
        found = by_number(() if self.absent else sacct.parse(done))
        return {key: found.get(key[0], ()) for key in keys}

    async def _ask_columns(self) -> tuple[str, ...]:
        from slurm_agent_tools.slurm.commands import sacct  # noqa: PLC0415 - as above

        done = await self._run(sacct.columns_argv(), self._share)
        return () if self.absent else sacct.parse_columns(done)

    async def _mine_since(
        self, since: datetime, *, margin: int, name: str | None = None, every_run: bool = False
    ) -> tuple[Job, ...]:
        """`margin`: minutes before that time, so that no clock's difference leaves a job out."""
        from slurm_agent_tools.slurm.commands import sacct  # noqa: PLC0415 - as above

        if self.silent is not None:
            raise self.silent
        minutes = max(1, round((self._clock.now() - since).total_seconds() / 60) + margin)
        when = f"now-{minutes}minutes"
        argv = sacct.argv(since=when, user=self._user, name=name, mark=self._mark(), every_run=every_run)
        done = await self._run(argv, 1.0)
        return () if self.absent else self.codes.recall(sacct.parse(done))

    async def _run(self, argv: list[str], share: float) -> Completed:
        """The command's answer, once it is known that slurmdbd gave one. Raises AccountingUnreachable, SlurmError."""
        from slurm_agent_tools.slurm.commands import sacct  # noqa: PLC0415 - as above

        done = await self._asker.run(argv, patience=share)
        self.absent = sacct.disabled(done)
        try:
            if not self.absent:
                sacct.check(done)
        except AccountingUnreachable as error:
            self.failed = AccountingUnreachable(error.message, hint=error.hint)  # no frames: they hold the answer
            self._late = (self._clock.now(), self.failed) if done.timed_out else None
            raise
        self.failed = self._late = None
        return done


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

    @property
    def age(self) -> float | None:
        """Seconds since the kept answer was asked for; None where there is none."""
        return self._kept.age

    async def past(self, *, ask: bool = True, fresh: bool = False) -> PastWaits | None:
        """What jobs that ran lately waited, as far as this user may see them. Raises SlurmError.

        None where nothing is kept and it may not be asked: `ask` is False, the controller is slow, or there was no
        answer a moment ago. `fresh`: what is kept does where it may not be asked, only.
        """
        may = ask and self._may() and not self._paused
        if not (self.kept or may):
            return None
        answered = False
        try:
            found = await self._kept.get(0 if fresh and may else AGE)
            answered = True
        finally:  # an error, or nobody waited for it any longer
            self._failed = None if answered else self._clock.now()
        return found

    @property
    def _paused(self) -> bool:
        return self._failed is not None and (self._clock.now() - self._failed).total_seconds() < PAUSE

    async def _ask(self) -> PastWaits:
        """A short window first: how many ran in it says how long a window may be without asking for too many."""
        from slurm_agent_tools.slurm.commands import sacct_waits  # noqa: PLC0415 - few calls ask for what is past

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
        from slurm_agent_tools.slurm.commands import sacct_waits  # noqa: PLC0415 - few calls ask for what is past

        done = await self._asker.run(sacct_waits.argv(hours, self._mark()), max_output=sacct_waits.OUTPUT)
        if done.truncated:
            return None
        waits, users = sacct_waits.parse(done)
        return PastWaits(waits, hours, own=users <= {self._user})
