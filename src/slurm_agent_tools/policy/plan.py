"""What the policy judges: a plan, with what the cluster and the ledger say at the moment. Frozen records, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import Resources, ScriptReading


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
    slots_after: int | None = None  # active_jobs with this job in it, counted by policy.slots
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
