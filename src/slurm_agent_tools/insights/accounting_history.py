"""What jobs did before: the ledger's records, completed by the accounting, which also has the user's other jobs."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ParamSpec, Protocol, TypeVar

import anyio

from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.insights.job_search import merged
from slurm_agent_tools.insights.usage import usage
from slurm_agent_tools.models.job import Job, JobRecord, KnownBefore, PastWait, run_id_in
from slurm_agent_tools.slurm import merge
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.transport.base import Clock, LoginEnvironment
from slurm_agent_tools.units import JobId

DAYS = 30

_PATIENCE = 3.0

_OUT_OF_MEMORY = "host-out-of-memory"

_OURS = "sat-"  # how the comment of a job begins that came through the guard


_P = ParamSpec("_P")

_T = TypeVar("_T")


class JobSources(Protocol):
    """Where jobs of a cluster are known: Slurm's accounting, and the ledger. Whoever serves a call has them."""

    @property
    def slurm(self) -> SlurmClient:
        """Who asks Slurm."""
        ...

    @property
    def store(self) -> Store:
        """The ledger."""
        ...

    @property
    def owner(self) -> Owner:
        """Whose jobs."""
        ...

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    @property
    def environment(self) -> LoginEnvironment:
        """Who this is where the jobs run, and where the project is there."""
        ...

    @property
    def cluster(self) -> str:
        """The cluster's name in the settings."""
        ...

    def db(self, method: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Awaitable[_T]:
        """Run a method of the ledger off the event loop."""
        ...


@dataclass(frozen=True, slots=True)
class AccountingHistory:
    """Records, newest first; `silent` says why the accounting is missing in them."""

    records: list[JobRecord]
    silent: str | None = None


async def accounting_history(
    context: JobSources,
    *,
    name: str | None = None,
    script_path: str | None = None,
    days: int = DAYS,
    limit: int = 500,
) -> AccountingHistory:
    """What is known of this caller's jobs of this name or script, or of all where neither is given.

    Of the accounting's jobs those count that ran inside the project. Raises StorageError.
    """
    since = context.clock.now() - timedelta(days=days)
    kept = await _kept(context, name, script_path, since, limit)
    names = [name] if name is not None else sorted({record.name for record in kept}) if script_path else [None]
    told, silent = [], None
    try:
        for one in names:
            told += await from_accounting(context, since, one)
    except SlurmError as error:
        silent = f"The accounting does not answer, so these are the guard's own jobs only: {error.message}"
    return AccountingHistory(merged(kept, told)[:limit], silent)


async def _kept(
    context: JobSources, name: str | None, script_path: str | None, since: datetime, limit: int
) -> list[JobRecord]:
    store, owner = context.store, context.owner
    if name is None and script_path is None:
        return await context.db(store.history, owner, since=since, limit=limit)
    found: dict[str, JobRecord] = {}
    if name is not None:
        named = await context.db(store.history, owner, name=name, since=since, limit=limit)
        found |= {record.job_id: record for record in named}
    if script_path is not None:
        same = await context.db(store.history, owner, script_path=script_path, since=since, limit=limit)
        found |= {record.job_id: record for record in same}
    return list(found.values())


async def from_accounting(context: JobSources, since: datetime, name: str | None = None) -> list[JobRecord]:
    """Jobs of this user in this project that are over, as the accounting tells. Raises SlurmError."""
    groups: defaultdict[int, list[Job]] = defaultdict(list)
    for job in await context.slurm.ran(since, name):
        groups[job.job_id.base].append(job)
    found = (_record(context, base, parts) for base, parts in groups.items())
    return [record for record in found if record is not None]


async def known_before(
    context: JobSources, records: Sequence[JobRecord] = (), starts: Sequence[PastWait] = ()
) -> KnownBefore:
    """These with what else the ledger knows of earlier jobs: how estimates ended, and which were smoke runs."""
    ended = await context.db(context.store.ended_estimates, context.owner)
    staged = await context.db(context.store.staged, context.owner) if records else []
    return KnownBefore(records, starts, ended, frozenset(str(run.job_id) for run in staged if run.stage == "smoke"))


async def is_answered(context: JobSources, name: str) -> list[JobRecord]:
    """The same of one name, of the last days; nothing where the accounting does not answer in time."""
    with contextlib.suppress(SlurmError), anyio.move_on_after(_PATIENCE):
        return await from_accounting(context, context.clock.now() - timedelta(days=DAYS), name)
    return []


def _record(context: JobSources, base: int, parts: Iterable[Job]) -> JobRecord | None:
    view = merge.view(JobId(base), (), (), parts)
    if view is None or not view.over or not _inside(context, view.job.work_dir):
        return None
    job = view.job
    submitted = job.submitted or job.started
    if submitted is None:
        return None
    return JobRecord(
        job_id=str(base),
        cluster=context.owner.cluster,
        project=context.owner.project,
        user=context.owner.user,
        name=job.name,
        script_path="",
        script_sha256="",
        requested=job.resources,  # of one task of an array, as Slurm counts too
        submitted=submitted,
        state=job.state,
        partition=job.partition,
        run_id=run_id_in(job.comment) if (job.comment or "").startswith(_OURS) else None,
        started=job.started,
        ended=job.ended,
        exit_code=job.exit_code,
        signal=job.signal,
        category=_OUT_OF_MEMORY if any(map(merge.out_of_memory, (job, *view.tasks))) else None,
        usage=usage(job, view.tasks),
        tasks=len(view.tasks) or 1,
        managed=False,
    )


def _inside(context: JobSources, folder: str | None) -> bool:
    root = context.environment.root.rstrip("/")
    return folder is not None and f"{folder}/".startswith(f"{root}/")
