"""What the policy judges: a plan, with what the cluster and the ledger say at the moment. Frozen records, no I/O."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import Resources, ScriptReading
from slurm_agent_tools.units import parse_array


@dataclass(frozen=True, slots=True)
class PastRun:
    """What the ledger knows of an earlier submission by the same caller."""

    job_id: str
    script_path: str
    script_sha256: str
    job_name: str
    request_sha256: str
    submitted: datetime
    outcome: str | None = None  # Slurm's end state, None while unknown or active
    failed: bool | None = None
    category: str | None = None
    analysed: bool = False
    active: bool = False
    unseen: str | None = None  # why nobody here knows how it ended, where the accounting would


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """Facts of the moment that the policy needs from the cluster and the ledger."""

    now: datetime
    partitions: Mapping[str, Partition]
    active_jobs: int  # running plus pending, arrays by what may run at once, chains once
    active: tuple[Job, ...] = ()
    status_read: datetime | None = None
    known_jobs: frozenset[str] = frozenset()  # ids named in --dependency that Slurm knows and has not forgotten
    ended_jobs: Mapping[str, str] = field(default_factory=dict)  # of those that it names: how they ended, FAILED
    takes_over: str | None = None  # the active job whose slot this one takes over by its dependency
    slots_after: int | None = None  # active_jobs with this job in it, see count_slots
    history: tuple[PastRun, ...] = ()  # newest first
    pending_after: int | None = None  # pending jobs with this one, counted like the active ones
    submissions_today: int = 0  # of this user on this cluster in the last 24 hours, from the ledger
    gpu_hours_today: float = 0.0  # asked for by those that go on, used by those that are over
    cpu_hours_today: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """What a writing tool is about to do, as the policy sees it. `live` None: rules that need it are not_evaluated.

    For `save_result` and `generate_script`: `path` is the file to write (absolute, links resolved), `size` its bytes.
    """

    tool: str
    project: str
    reading: ScriptReading | None = None
    resources: Resources = Resources()
    request_sha256: str | None = None
    justification: str | None = None
    live: LiveFacts | None = None
    partitions: Mapping[str, Partition] | None = None  # what the cluster offers, where no more than that was asked
    path: str | None = None
    path_exists: bool = False
    adds: bool = False  # what the file holds already stays as it is
    size: int | None = None
    problem: str | None = None  # why the script could not be read at all (rule script-exists)
    user: str | None = None
    today: date | None = None  # for exceptions that end; None: none counts


# --- How many of a caller's jobs count against the limit of concurrent jobs -------------------------------------------

_ENDS = re.compile(r"(?:afterok|afterany|afternotok|aftercorr|afterburstbuffer):([^,?]+)")

_PARENT = re.compile(r"(\d+)(?:_\d+|_\*)?(?:\+\d+)?(?:\([a-z]+\))?")


@dataclass(frozen=True, slots=True)
class Claim:
    """One submission's claim: `width` tasks at once, after the end of the jobs `after`."""

    base: int
    width: int
    after: frozenset[int] = frozenset()


def claims(jobs: Iterable[Job]) -> tuple[Claim, ...]:
    """One claim per submission from the rows of the queue; array tasks and het components are put together."""
    rows: dict[int, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.active:
            rows[job.job_id.base].append(job)
    return tuple(_claim(base, group) for base, group in sorted(rows.items()))


def waits_for(dependency: str | None) -> frozenset[int]:
    """Base ids of the jobs whose end a dependency waits for, as sbatch takes it or squeue prints it."""
    found: set[int] = set()
    for listed in _ENDS.findall(dependency or ""):
        for item in listed.split(":"):
            match = _PARENT.fullmatch(item)
            if match is not None:
                found.add(int(match[1]))
    return frozenset(found)


def named(dependency: str | None) -> frozenset[int]:
    """Base ids of every job that a dependency names, whatever it waits for."""
    return frozenset(int(found) for found in re.findall(r":(\d+)", dependency or ""))


def count_slots(claimed: Sequence[Claim]) -> int:
    """Slots that these claims take together.

    Running plus pending jobs; an array by the tasks that may run at once; a job that waits for the end of another
    takes over its slot, so a chain counts once, by its widest link; every further dependent of the same job counts on
    its own.
    """
    by_base = {claim.base: claim for claim in claimed}
    parent_of: dict[int, int] = {}
    taken: set[int] = set()
    for claim in sorted(claimed, key=lambda item: item.base):
        free = sorted(parent for parent in claim.after if parent in by_base and parent not in taken)
        # Ids grow with time, so a parent is always older: links can never form a ring.
        free = [parent for parent in free if parent < claim.base]
        if free:
            parent_of[claim.base] = free[0]
            taken.add(free[0])
    return sum(_widest(claim, by_base, parent_of) for claim in claimed if claim.base not in taken)


def _widest(last: Claim, by_base: dict[int, Claim], parent_of: dict[int, int]) -> int:
    width, base = last.width, last.base
    while base in parent_of:
        base = parent_of[base]
        width = max(width, by_base[base].width)
    return width


def _claim(base: int, rows: list[Job]) -> Claim:
    width, limit = 0, None
    for job in rows:
        if job.job_id.tasks is not None:
            spec = parse_array(job.job_id.tasks)
            width += spec.count
            limit = spec.limit or limit
        elif job.job_id.component in {None, 0}:
            width += 1
    after = frozenset[int]().union(*(waits_for(job.dependency) for job in rows))
    return Claim(base, max(1, width if limit is None else min(width, limit)), after)
