"""Questions to Slurm, one timed command each. Answers are shared: simultaneous questions cost one command."""

from __future__ import annotations

import math
import secrets
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, overload

from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.models.job import Job, PastWaits, by_number
from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm import answer_cache
from slurm_agent_tools.slurm.answer_cache import KeptBackdrop, SharedAnswer, SharedAnswers
from slurm_agent_tools.slurm.commands import scontrol, squeue
from slurm_agent_tools.slurm.commands.columns import SEPARATOR
from slurm_agent_tools.slurm.commands.squeue import Queue
from slurm_agent_tools.transport.base import Clock, CommandTimes, Completed, OnOutput, Runner, command_kind
from slurm_agent_tools.units import JobId

if TYPE_CHECKING:
    from slurm_agent_tools.slurm.commands.scontrol_nodes import NodeRecords
    from slurm_agent_tools.slurm.commands.sdiag import ControllerStatistics
    from slurm_agent_tools.slurm.occasional_questions import AccountingQuestions, RunningJobs, WaitHistory


# --- Running Slurm's commands, counted by kind, the controller's answers timed ----------------------------------------

_TIMED = frozenset({"squeue", "scontrol", "sdiag"})


class CommandRunner:
    """Asks one cluster. `calls` counts the commands by kind, `answers` are the controller's last ones."""

    def __init__(self, runner: Runner, settings: SlurmSettings) -> None:
        self.settings = settings
        self.calls: Counter[str] = Counter()
        self.times = CommandTimes()
        self.answers: deque[ControllerAnswer] = deque(maxlen=KEPT)
        self._runner = runner

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        max_output: int = 64 * 2**20,
        patience: float = 1.0,
        on_output: OnOutput | None = None,
    ) -> Completed:
        """A command that changes nothing. `patience`: the share of the usual time limit that it may take."""
        self.calls[kind := command_kind(argv)] += 1
        done = await self._runner.run(
            argv, stdin=stdin, cwd=cwd, env=env, timeout=self.settings.read_timeout * patience, max_output=max_output,
            on_output=on_output,
        )  # fmt: skip
        self.times.note(kind, done.seconds)
        if argv[0] in _TIMED:
            self.answers.append(ControllerAnswer(done.seconds, len(done.stdout), not done.timed_out))
        return done

    async def change(
        self, argv: Sequence[str], *, stdin: bytes = b"", cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Completed:
        """A command that changes something: it gets more time."""
        self.calls[kind := command_kind(argv)] += 1
        done = await self._runner.run(argv, stdin=stdin, cwd=cwd, env=env, timeout=self.settings.submit_timeout)
        self.times.note(kind, done.seconds)
        return done


KEPT = 6
"""Answers that count."""

MOST = 6
"""The largest factor: looks that are due every 10 seconds come once a minute."""

_BASE, _RATE = 1.0, 2e6

_SMALL, _ENOUGH = 100_000, 2  # bytes; answers


@dataclass(frozen=True, slots=True)
class ControllerAnswer:
    """One answer of the controller: seconds, bytes, and whether it came at all."""

    seconds: float
    size: int
    came: bool = True

    @property
    def ratio(self) -> float:
        """Its time over the time that an answer of its size may take: a second, and one for every two megabytes."""
        return self.seconds / (_BASE + self.size / _RATE)

    @property
    def slow(self) -> bool:
        """True for an answer that took longer than it may, or never came."""
        return self.ratio > 1 or not self.came


@dataclass(frozen=True, slots=True)
class LoadVerdict:
    """What the answers show. `factor` multiplies pauses and ages; `seconds` is what a slow answer took."""

    kind: Literal["calm", "loaded", "limited"]
    factor: int
    seconds: float = 0.0


CALM = LoadVerdict("calm", 1)


def judge_load(answers: Sequence[ControllerAnswer], diagnosis: ControllerStatistics | None) -> LoadVerdict:
    """Calm, loaded, or limited: a controller that is not busy but lets small answers wait for seconds.

    That is what a caller sees of rl_enable (slurm.conf(5)): its commands wait, none fails (measured on 24.11).
    """
    slow = [answer for answer in answers[-KEPT:] if answer.slow]
    busy = diagnosis is not None and diagnosis.busy
    if len(slow) < _ENOUGH and not (slow and busy):
        return CALM
    from statistics import median  # noqa: PLC0415 - a controller that answers is not measured

    ratio = median(answer.ratio for answer in slow)
    factor = min(MOST, max(2, math.ceil(ratio)))
    small = [answer for answer in slow if answer.came and answer.size < _SMALL]
    limited = not busy and len(small) >= _ENOUGH
    return LoadVerdict("limited" if limited else "loaded", factor, round(median(answer.seconds for answer in slow), 1))


# --- Questions to Slurm, one command each. Answers are shared: simultaneous questions cost one command ----------------


_FEW, _NARROW = 4, 1000  # jobs
_WHILE, _OLDEST, _CONFIG_AGE, _DIAGNOSIS_AGE = 10.0, 60.0, 3600.0, 300.0  # seconds


class DetailNeed(Enum):
    """What the controller's details of a job are asked for."""

    HELP = "to fill in what the queue leaves out"
    CODE = "to tell an exit code in full"
    ALONE = "nobody else tells of it"


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """Which cluster answers, and whether it keeps accounts."""

    name: str
    version: str
    accounting: bool


_FRESH_MARK = partial(secrets.token_hex, 8)
OfAll = tuple[CommandRunner, SharedAnswer[Queue], SharedAnswer[tuple[Node, ...]]]
"""What a client has that asks for another user with the same commands: its answers are not kept twice."""


class SlurmQuestions:
    """The half of the client that asks. `calls` counts the commands by kind; `mark` makes each separator unknown."""

    def __init__(
        self,
        runner: Runner,
        clock: Clock,
        settings: SlurmSettings,
        *,
        user: str,
        mark: Callable[[], str] = _FRESH_MARK,
        backdrop: KeptBackdrop | None = None,
        of_all: OfAll | None = None,
    ) -> None:
        queue, nodes = SharedAnswer(clock, self._ask_queue), SharedAnswer(clock, self._ask_nodes)
        self.of_all: OfAll = of_all or (CommandRunner(runner, settings), queue, nodes)
        self._asker, self._queue, self._nodes = self.of_all
        self.times = self._asker.times
        self.settings, self.user = settings, user
        self._clock, self._mark = clock, mark
        self._partitions = SharedAnswer(clock, self._ask_partitions)
        self._backdrop = backdrop or KeptBackdrop()
        self._records: NodeRecords | None = None
        self._config = SharedAnswer(clock, self._ask_config)
        self._diagnosis = SharedAnswer(clock, self._ask_diagnosis)
        self._diagnosed: ControllerStatistics | None = None
        self._every = SharedAnswer(clock, self._ask_every)
        self._singly: list[datetime] = []
        self._details = SharedAnswers(clock, self._ask_details)

    @cached_property
    def accounting(self) -> AccountingQuestions:
        """What is asked of slurmdbd."""
        from slurm_agent_tools.slurm import occasional_questions  # noqa: PLC0415 - a submission asks none of them

        return occasional_questions.AccountingQuestions(self._asker, self._clock, user=self.user, mark=self._mark)

    @cached_property
    def running(self) -> RunningJobs:
        """What is asked of running jobs."""
        from slurm_agent_tools.slurm import occasional_questions  # noqa: PLC0415 - as above

        return occasional_questions.RunningJobs(self._asker, self._clock)

    @cached_property
    def lookback(self) -> WaitHistory:
        """What is asked of jobs that waited lately."""
        from slurm_agent_tools.slurm import occasional_questions  # noqa: PLC0415 - as above

        return occasional_questions.WaitHistory(
            self._asker,
            self._clock,
            user=self.user,
            mark=self._mark,
            accounting=self._accounting,
            may=lambda: self.verdict == CALM and self.accounting.silent is None,
        )

    @property
    def waits_kept(self) -> bool:
        """Whether what jobs waited lately was asked for in the last ten minutes."""
        return "lookback" in vars(self) and self.lookback.kept

    @property
    def calls(self) -> Counter[str]:
        """Slurm's commands so far, by kind."""
        return self._asker.calls

    # --- sparing the controller --------------------------------------------------------------------------------------

    @property
    def verdict(self) -> LoadVerdict:
        """How the controller answers now."""
        return judge_load(tuple(self._asker.answers), self._diagnosed)

    @property
    def age_limit(self) -> float:
        """How old a shared answer may be, in seconds: older where the controller is slow."""
        return min(_OLDEST, self.settings.cache_seconds * self.verdict.factor)

    async def diagnose(self) -> LoadVerdict:
        """The verdict; where answers are slow the controller is asked why, at most every 5 minutes."""
        if any(answer.slow for answer in self._asker.answers):
            try:
                self._diagnosed = await self._diagnosis.get(_DIAGNOSIS_AGE)
            except SlurmError:
                self._diagnosed = None  # its silence says no more than the slow answers do
        return self.verdict

    @property
    def ages(self) -> dict[str, float | None]:
        """How old the kept answers are, in seconds."""
        return {"queue": self._queue.age, "nodes": self._nodes.age, "partitions": self._partitions.age}

    # --- questions ---------------------------------------------------------------------------------------------------

    async def queue(self, *, max_age: float | None = None) -> Queue:
        """All users' jobs, those that ended within MinJobAge included. Raises SlurmError."""
        return await self._queue.get(self.age_limit if max_age is None else max_age)

    @overload
    def mine(self, jobs: Queue) -> Queue: ...

    @overload
    def mine(self, jobs: Sequence[Job]) -> Sequence[Job]: ...

    def mine(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """This user's jobs."""
        return jobs.of(self.user) if isinstance(jobs, Queue) else [job for job in jobs if job.user == self.user]

    async def details(self, base: int, *, max_age: float) -> tuple[Job, ...]:
        """What only `scontrol show job` tells of a job's parts; nothing when it is forgotten. Raises SlurmError."""
        found = await self._details.get([(base, DetailNeed.ALONE)], max_age)
        return found.get((base, DetailNeed.ALONE), ())

    async def partitions(self, *, fresh: bool = False, max_age: float | None = None) -> dict[str, Partition]:
        """Every partition with what its nodes have. Raises SlurmError.

        What the nodes have is at most an hour old, and of partitions that are still the same; `fresh` asks it too.
        """
        if fresh:
            self._backdrop.forget()
        return await self._partitions.get(0 if fresh else self.age_limit if max_age is None else max_age)

    async def nodes(self, *, max_age: float | None = None) -> tuple[Node, ...]:
        """Every node with what jobs were given of it, and since when a reason stands. Raises SlurmError."""
        return await self._nodes.get(self.age_limit if max_age is None else max_age)

    async def info(self) -> ClusterInfo:
        """Name, version, accounting. Raises SlurmError."""
        found = await self._config.get(_CONFIG_AGE)
        kind = found.get("AccountingStorageType", "(null)")
        accounting = kind not in {"(null)", "accounting_storage/none"}
        return ClusterInfo(found["ClusterName"], found.get("SLURM_VERSION", ""), accounting)

    async def configuration(self) -> Mapping[str, str]:
        """slurm.conf as the controller tells it, at most an hour old. Raises SlurmError."""
        return await self._config.get(_CONFIG_AGE)

    async def past(self, *, ask: bool = True, fresh: bool = False) -> PastWaits | None:
        """What jobs of all users that ran lately waited; see WaitHistory.past. Raises SlurmError."""
        return await self.lookback.past(ask=ask, fresh=fresh)

    async def _accounting(self) -> bool:
        return (await self.info()).accounting

    async def recent_all(self, since: datetime) -> tuple[Job, ...]:
        """This user's jobs since a time, active ones too. Raises SlurmError."""
        return await self.accounting.recent_all(since)

    async def ran(self, since: datetime, name: str | None = None) -> tuple[Job, ...]:
        """This user's jobs since a time, active ones too, of one name or of all. Raises SlurmError."""
        return await self.accounting.ran(since, name)

    async def _details_of(
        self, bases: Iterable[int], needed: frozenset[int], cut: frozenset[int], max_age: float
    ) -> tuple[Job, ...]:
        """What the controller tells of these jobs one by one; of many at once perhaps only of those `needed`.

        `cut`: those that failed, of whose exit codes the accounting told a part.
        """
        needs = {
            base: DetailNeed.ALONE if base in needed else DetailNeed.CODE if base in cut else DetailNeed.HELP
            for base in bases
        }
        found = await self._details.get([(base, needs[base]) for base in sorted(needs)], max_age)
        return tuple(job for jobs in found.values() for job in jobs)

    # --- commands ----------------------------------------------------------------------------------------------------

    async def _ask_queue(self) -> Queue:
        argv = squeue.argv(mark := self._mark())
        reader = squeue.QueueReader(f"{SEPARATOR}{mark}")
        done = await self._asker.run(argv, env=squeue.ENVIRONMENT, on_output=reader.feed)
        return reader.queue(done, self._clock.now())

    async def _ask_nodes(self) -> tuple[Node, ...]:
        from slurm_agent_tools.slurm.commands import scontrol_nodes  # noqa: PLC0415 - what partitions rest on is kept

        self._records = self._records or scontrol_nodes.NodeRecords()
        return self._records.parse(await self._asker.run(scontrol_nodes.argv()))

    async def _ask_config(self) -> dict[str, str]:
        return scontrol.parse_config(await self._asker.run(scontrol.config_argv()))

    async def _ask_diagnosis(self) -> ControllerStatistics:
        from slurm_agent_tools.slurm.commands import sdiag  # noqa: PLC0415 - few controllers are slow

        return sdiag.parse(await self._asker.run(sdiag.argv()))

    async def _ask_partitions(self) -> dict[str, Partition]:
        done = await self._asker.run(scontrol.partitions_argv())
        found, sign = scontrol.parse_partitions(done), answer_cache.backdrop_mark(done)
        known = await self._backdrop.get(self._clock.now(), sign, frozenset(part.name for part in found))
        if known is None:
            nodes, config = await self.nodes(), await self._config.get(_CONFIG_AGE)
            theirs = {part.name: [node for node in nodes if part.name in node.partitions] for part in found}
            known = answer_cache.backdrop_of(self._clock.now(), sign, config, theirs)
            await self._backdrop.keep(known)
        furnished = [known.equipment[part.name].on(part) for part in found]
        return {part.name: scontrol.with_defaults(part, known.config) for part in furnished}

    async def _ask_details(
        self, keys: frozenset[tuple[int, DetailNeed]], max_age: float
    ) -> dict[tuple[int, DetailNeed], tuple[Job, ...]]:
        """Up to four jobs in a while one by one; more in one listing of all, unless that is too long or not clear.

        Then only those that nobody else tells of, and up to four that failed.
        """
        bases = {base for base, _ in keys}
        now = self._clock.now()
        self._singly = [moment for moment in self._singly if (now - moment).total_seconds() < _WHILE]
        few = len(bases) + len(self._singly) <= _FEW
        if not few and len(await self.queue(max_age=_OLDEST)) <= _NARROW:
            every = await self._every.get(max_age)
            if every is not None:
                return {key: every.get(key[0], ()) for key in keys}
        alone = {base for base, need in keys if need == DetailNeed.ALONE}
        failed = sorted(base for base, need in keys if need == DetailNeed.CODE and base not in alone)
        wanted = bases if few else alone.union(failed[:_FEW])
        self._singly += [now] * len(wanted)
        told = by_number([job for base in sorted(wanted) for job in await self._detail(base)])
        return {key: told.get(key[0], ()) for key in keys}

    async def _ask_every(self) -> dict[int, tuple[Job, ...]] | None:
        found = scontrol.parse_every(await self._asker.run(scontrol.all_jobs_argv()))
        return None if found is None else by_number(found)

    async def _detail(self, base: int) -> tuple[Job, ...]:
        done = await self._asker.run(scontrol.job_argv(JobId(base)))
        return () if scontrol.unknown(done) else scontrol.parse_details(done, base)
