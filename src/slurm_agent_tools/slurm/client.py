"""Typed questions to Slurm. Answers are shared: simultaneous questions cost one command."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Generic, TypeVar

import anyio

from slurm_agent_tools.config import SlurmSettings
from slurm_agent_tools.errors import AgentToolsError, SlurmError, SlurmUnreachable, UnknownJob
from slurm_agent_tools.model import Job, Node, Partition
from slurm_agent_tools.slurm import sacct, sbatch, scontrol, sinfo, squeue, truth
from slurm_agent_tools.slurm.runner import Clock, Completed, Runner
from slurm_agent_tools.slurm.sbatch import Submitted, TestOnly
from slurm_agent_tools.slurm.scontrol import Granted
from slurm_agent_tools.slurm.truth import JobView
from slurm_agent_tools.units import JobId

__all__ = ["ClusterInfo", "Granted", "JobView", "SlurmClient", "Submitted", "TestOnly"]
T = TypeVar("T")
_REMEMBERED = 500


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """Which cluster answers, and whether it keeps accounts."""

    name: str
    version: str
    accounting: bool


class Shared(Generic[T]):
    """One question whose answer is kept for a while; simultaneous askers wait for the same command."""

    def __init__(self, clock: Clock, ask: Callable[[], Awaitable[T]]) -> None:
        self._clock, self._ask = clock, ask
        self._lock = anyio.Lock()
        self._answer: T | None = None
        self._error: AgentToolsError | None = None
        self._asked: datetime | None = None

    async def get(self, max_age: float) -> T:
        """An answer that was asked for at most `max_age` seconds before this call."""
        wanted = self._clock.now() - timedelta(seconds=max_age)
        async with self._lock:
            if self._asked is None or self._asked < wanted:
                await self._refresh()
            if self._error is not None:
                raise self._error
            return self._answer  # type: ignore[return-value]  # set together with _asked

    async def _refresh(self) -> None:
        asked = self._clock.now()
        try:
            self._answer, self._error = await self._ask(), None
        except AgentToolsError as error:
            self._error = error
        self._asked = asked


def _fresh_mark() -> str:
    return secrets.token_hex(8)


class SlurmClient:
    """Asks one cluster as one user. `calls` counts the commands by their name; `mark` makes each separator unknown."""

    def __init__(
        self,
        runner: Runner,
        clock: Clock,
        settings: SlurmSettings,
        *,
        user: str,
        mark: Callable[[], str] = _fresh_mark,
    ) -> None:
        self.settings, self.user = settings, user
        self.calls: Counter[str] = Counter()
        self._runner, self._clock, self._mark = runner, clock, mark
        self._queue = Shared(clock, self._ask_queue)
        self._partitions = Shared(clock, self._ask_partitions)
        self._nodes = Shared(clock, self._ask_nodes)
        self._config = Shared(clock, self._ask_config)
        self._by_job: dict[object, Shared[tuple[Job, ...]]] = {}

    # --- reading ---------------------------------------------------------------------------------------------------

    async def queue(self, *, fresh: bool = False, max_age: float | None = None) -> tuple[Job, ...]:
        """All users' jobs, those that ended within MinJobAge included. Raises SlurmError."""
        age = self.settings.cache_seconds if max_age is None else max_age
        return await self._queue.get(0 if fresh else age)

    def mine(self, jobs: Sequence[Job]) -> tuple[Job, ...]:
        """This user's jobs."""
        return tuple(job for job in jobs if job.user == self.user)

    async def job(self, job_id: JobId, *, fresh: bool = False, max_age: float | None = None) -> JobView:
        """The truth about one job. UnknownJob only when queue and accounting both say so, else SlurmError."""
        views = await self.jobs([job_id], fresh=fresh, max_age=max_age)
        if job_id not in views:
            raise UnknownJob("job_id", str(job_id), "Slurm knows no such job", hint="See get_status for your jobs.")
        return views[job_id]

    async def jobs(
        self, ids: Sequence[JobId], *, fresh: bool = False, max_age: float | None = None
    ) -> dict[JobId, JobView]:
        """The truth about several jobs; those that Slurm does not know are left out. Raises SlurmError.

        All questions together take no longer than two commands may.
        """
        age = 0 if fresh else self.settings.cache_seconds if max_age is None else max_age
        limit = 2 * self.settings.read_timeout
        with anyio.move_on_after(limit):
            views = await self._look(ids, age)
            if any(_disputed(view) for view in views.values()):
                views = await self._look(ids, 0)  # only a fresh word of the controller counts against the accounting
            return views
        raise SlurmUnreachable(f"Slurm did not answer within {limit:.0f} s.", hint="Try `scontrol ping`, then again.")

    async def _look(self, ids: Sequence[JobId], age: float) -> dict[JobId, JobView]:
        silent: SlurmError | None = None
        try:
            live = await self.queue(max_age=age)
        except SlurmUnreachable as error:
            live, silent = (), error
        bases = {job_id.base for job_id in ids}
        going = [job.job_id for job in live if job.active]
        over = frozenset(wanted.base for wanted in ids if not any(truth.matches(one, wanted) for one in going))
        past = await self._past(over, _parted(ids, going), age, silent)
        details = (
            [job for base in sorted(bases) for job in await self.details(base, max_age=age)] if silent is None else []
        )
        return self._views(ids, (live, details, past), silent)

    async def _past(
        self, over: frozenset[int], parted: frozenset[int], max_age: float, silent: SlurmError | None
    ) -> tuple[Job, ...]:
        """The accounting's word: needed for jobs that are over, a help with those of which only some parts are."""
        try:
            return await self._accounts(over | parted, max_age) if over | parted else ()
        except SlurmUnreachable as error:
            if over:
                raise silent or error from None
            return ()

    def _views(
        self, ids: Sequence[JobId], lists: tuple[Sequence[Job], Sequence[Job], Sequence[Job]], silent: SlurmError | None
    ) -> dict[JobId, JobView]:
        found: dict[JobId, JobView] = {}
        for job_id in ids:
            seen = truth.view(job_id, *lists)
            if silent is not None and (seen is None or not seen.over):
                raise silent  # what the accounting alone calls active may have changed since
            if seen is not None:
                found[job_id] = seen
        return found

    async def glance(self, job_id: JobId, *, max_age: float) -> JobView | None:
        """A job as the queue alone shows it; None when it is not active there. Raises SlurmError."""
        view = truth.view(job_id, await self.queue(max_age=max_age), (), ())
        going = view is not None and any(part.active for part in (view.job, *view.tasks))
        return view if going else None

    async def details(self, base: int, *, max_age: float) -> tuple[Job, ...]:
        """What only `scontrol show job` tells of a job's parts; nothing when it is forgotten. Raises SlurmError."""
        return await self._shared(("details", base), partial(self._ask_details, base)).get(max_age)

    async def _accounts(self, bases: frozenset[int], max_age: float) -> tuple[Job, ...]:
        """What the accounting tells; nothing on a cluster without one."""
        return await self._shared(("accounts", bases), partial(self._ask_accounts, bases)).get(max_age)

    def _shared(self, key: object, ask: Callable[[], Awaitable[tuple[Job, ...]]]) -> Shared[tuple[Job, ...]]:
        """One question per job, so that everybody who waits for it shares the answer; the oldest are dropped."""
        if key not in self._by_job:
            while len(self._by_job) >= _REMEMBERED:
                del self._by_job[next(iter(self._by_job))]
            self._by_job[key] = Shared(self._clock, ask)
        return self._by_job[key]

    async def _ask_details(self, base: int) -> tuple[Job, ...]:
        done = await self._run(scontrol.job_argv(JobId(base)))
        return () if scontrol.unknown(done) else scontrol.parse_jobs(done)

    async def _ask_accounts(self, bases: frozenset[int]) -> tuple[Job, ...]:
        done = await self._run(sacct.argv(sorted(bases), mark=self._mark()))
        return () if sacct.disabled(done) else sacct.parse(done)

    async def partitions(self, *, fresh: bool = False) -> dict[str, Partition]:
        """Every partition with what its nodes have. Raises SlurmError."""
        return await self._partitions.get(0 if fresh else self.settings.cache_seconds)

    async def nodes(self, *, fresh: bool = False) -> tuple[Node, ...]:
        """Every node. Raises SlurmError."""
        return await self._nodes.get(0 if fresh else self.settings.cache_seconds)

    async def info(self) -> ClusterInfo:
        """Name, version, accounting. Raises SlurmError."""
        found = await self._config.get(3600)
        kind = found.get("AccountingStorageType", "(null)")
        accounting = kind not in {"(null)", "accounting_storage/none"}
        return ClusterInfo(found["ClusterName"], found.get("SLURM_VERSION", ""), accounting)

    async def recent(self, since: datetime) -> tuple[Job, ...]:
        """This user's jobs that the accounting saw since a time and that are over. Raises SlurmError."""
        minutes = max(1, round((self._clock.now() - since).total_seconds() / 60))
        done = await self._run(sacct.argv(since=f"now-{minutes}minutes", user=self.user, mark=self._mark()))
        return () if sacct.disabled(done) else tuple(job for job in sacct.parse(done) if not job.active)

    async def find_token(self, token: str, *, since: datetime | None = None) -> Job | None:
        """This user's job with a token in its comment, from the queue, then from the accounting. Raises SlurmError."""
        for job in self.mine(await self.queue(fresh=True)):
            if job.comment == token:
                return job
        seen = await self.recent_all(since or self._clock.now() - timedelta(days=1))
        return next((job for job in seen if job.comment == token), None)

    async def recent_all(self, since: datetime) -> tuple[Job, ...]:
        """This user's jobs since a time, active ones too. Raises SlurmError."""
        minutes = max(1, round((self._clock.now() - since).total_seconds() / 60) + 1)
        done = await self._run(sacct.argv(since=f"now-{minutes}minutes", user=self.user, mark=self._mark()))
        return () if sacct.disabled(done) else sacct.parse(done)

    # --- submitting ------------------------------------------------------------------------------------------------

    async def test_only(
        self, options: Sequence[str], script: bytes, args: Sequence[str], *, cwd: str, env: Mapping[str, str]
    ) -> TestOnly:
        """Slurm's opinion of a request, without a job. Raises SlurmUnreachable."""
        return sbatch.parse_trial(await self._run(sbatch.trial_argv(options, args), stdin=script, cwd=cwd, env=env))

    async def submit(
        self, options: Sequence[str], script: bytes, args: Sequence[str], *, cwd: str, env: Mapping[str, str]
    ) -> Submitted:
        """Send a job. SlurmUnreachable: surely not sent; SlurmUncertain: maybe; SlurmRefused: Slurm said no."""
        return sbatch.parse(await self._change(sbatch.argv(options, args), stdin=script, cwd=cwd, env=env))

    async def held(self, job_id: JobId) -> Granted:
        """What Slurm made of a job. Raises SlurmUnreachable, and UnknownJob when it has forgotten it."""
        done = await self._run(scontrol.job_argv(job_id))
        if scontrol.unknown(done):
            raise UnknownJob("job_id", str(job_id), "Slurm knows no such job any more")
        return scontrol.granted(scontrol.parse_jobs(done))

    async def batch_script(self, job_id: JobId) -> bytes:
        """The bytes of the script that Slurm holds. Raises SlurmError."""
        done = await self._run(scontrol.script_argv(job_id))
        if done.exit_code != 0:
            scontrol.check_change(done)
        return done.stdout

    async def release(self, job_id: JobId) -> None:
        """Let a held job run. Raises SlurmUncertain and SlurmRefused."""
        scontrol.check_change(await self._change(scontrol.release_argv(job_id)))

    async def cancel(self, job_id: JobId) -> None:
        """Ask for its end; whether it came has to be looked at. Raises SlurmUncertain and SlurmRefused."""
        scontrol.check_change(await self._change(sbatch.cancel_argv(job_id)))

    # --- running ---------------------------------------------------------------------------------------------------

    async def _ask_queue(self) -> tuple[Job, ...]:
        return squeue.parse(await self._run(squeue.argv(self._mark())))

    async def _ask_nodes(self) -> tuple[Node, ...]:
        return sinfo.parse(await self._run(sinfo.argv()))

    async def _ask_config(self) -> dict[str, str]:
        return scontrol.parse_config(await self._run(scontrol.config_argv()))

    async def _ask_partitions(self) -> dict[str, Partition]:
        found = scontrol.parse_partitions(await self._run(scontrol.partitions_argv()))
        nodes, config = await self.nodes(), await self._config.get(3600)
        found = tuple(scontrol.with_defaults(part, config) for part in found)
        return {part.name: _furnished(part, [node for node in nodes if part.name in node.partitions]) for part in found}

    async def _run(
        self, argv: Sequence[str], *, stdin: bytes = b"", cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Completed:
        self.calls[" ".join(argv[:3]) if argv[0] == "scontrol" and argv[1] == "show" else argv[0]] += 1
        return await self._runner.run(argv, stdin=stdin, cwd=cwd, env=env, timeout=self.settings.read_timeout)

    async def _change(
        self, argv: Sequence[str], *, stdin: bytes = b"", cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Completed:
        self.calls[argv[0]] += 1
        return await self._runner.run(argv, stdin=stdin, cwd=cwd, env=env, timeout=self.settings.submit_timeout)


def _disputed(view: JobView) -> bool:
    """True where the accounting calls a part active that the controller did not show."""
    return any(part.state == "UNKNOWN" for part in (view.job, *view.tasks))


def _parted(ids: Sequence[JobId], going: Sequence[JobId]) -> frozenset[int]:
    """Wanted wholes of which parts go on; the controller may have forgotten the other parts."""
    parts = {one.base for one in going if one != one.whole}
    return frozenset(wanted.base for wanted in ids if wanted == wanted.whole and wanted.base in parts)


def _furnished(part: Partition, nodes: Sequence[Node]) -> Partition:
    return replace(
        part,
        gpus_per_node=max((node.gpus for node in nodes), default=0),
        cpus_per_node=max((node.cpus for node in nodes), default=0),
        memory_per_node=min((node.memory_bytes for node in nodes), default=0),
        memory_per_node_max=max((node.memory_bytes for node in nodes), default=0),
        gpus_per_node_min=min((node.gpus for node in nodes if node.gpus), default=0),
        threads_per_core=max((node.threads_per_core for node in nodes), default=1),
        total_gpus=sum(node.gpus for node in nodes),
    )
