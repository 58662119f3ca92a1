"""The kinds of alerts about a job, and the facts that they are raised on. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from slurm_agent_tools.diagnosis.limits import Using
from slurm_agent_tools.diagnosis.words import flat
from slurm_agent_tools.history.records import JobRecord
from slurm_agent_tools.model import Job, Node, Partition, Reservation
from slurm_agent_tools.replies import Alert, Severity
from slurm_agent_tools.units import JobId, format_duration

CROWDED = 20
_LONGEST = 40  # of a name: an alert is a sentence
KINDS: Mapping[str, tuple[Severity, str]] = {
    "job-failed": ("critical", "A job, or a part of it, failed: any end but COMPLETED, CANCELLED and PREEMPTED."),
    "node-trouble": ("critical", "A node that the job runs on is down, failing or does not answer, or it ended it."),
    "cannot-start": (
        "critical",
        "No waiting starts the job: Slurm's reason says so, or nodes that it cannot do without take no jobs.",
    ),
    "memory-high": ("high", "A running job has more than 95 % of the memory that it asked for."),
    "time-left": (
        "high",
        "A job has less than 5 minutes and 20 % of its limit left, or by its log it is too slow for it.",
    ),
    "queue-backup": ("high", "More than 20 of your jobs are pending."),
    "preempted": ("high", "A job was ended for one that goes before it. It is not sent again by itself."),
    "partition-down": ("medium", "A partition of the job is down, inactive or drained."),
    "maintenance": ("medium", "Nodes that the job runs on or waits for are reserved for maintenance within its time."),
    "long-wait": ("medium", "A job waits more than twice as long as was estimated, and more than 30 seconds."),
    "slow-run": ("medium", "A job runs more than twice as long as 95 % of at least 3 like runs that completed."),
    "requeued": ("medium", "Slurm put the job back into the queue, or started it again."),
}
"""Every alert about one job: how grave it is, and when it is raised."""
WAITS_FOR_OTHERS = frozenset(
    {"Dependency", "BeginTime", "JobHeldUser", "JobHeldAdmin", "JobArrayTaskLimit", "DependencyNeverSatisfied"}
)
"""Slurm's reasons of a job that waits for something other than nodes."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long a job was expected to wait, in seconds, and who said so."""

    seconds: float
    source: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one job and its surroundings. None: not asked, or no answer.

    `parts` are its array tasks or components, else the job itself. `hosts` are the names of nodes of each part, in
    their order; `needed` of a waiting part by its id those of its --nodelist, else those that Slurm says it waits for.
    `like` are earlier runs of the same job. `using` tells of the running part nearest to its memory limit.
    """

    job: Job
    parts: tuple[Job, ...]
    now: datetime
    hosts: tuple[frozenset[str], ...] = ()
    needed: Mapping[JobId, frozenset[str]] = field(default_factory=dict)
    nodes: Sequence[Node] | None = None
    partitions: Mapping[str, Partition] | None = None
    reservations: Sequence[Reservation] | None = None
    using: Using | None = None
    pending: int | None = None
    estimate: Estimate | None = None
    like: Sequence[JobRecord] = ()

    @property
    def running(self) -> tuple[Job, ...]:
        """The parts that run."""
        return tuple(part for part in self.parts if part.state == "RUNNING")

    @property
    def waiting(self) -> tuple[Job, ...]:
        """The parts that wait."""
        return tuple(part for part in self.parts if part.state == "PENDING")


def alert(code: str, message: str, job: Job | None = None, severity: Severity | None = None) -> Alert:
    """One of the kinds above, about one job; `severity` where it is another one than that of its kind."""
    about = None if job is None else str(job.job_id)
    return Alert(severity=severity or KINDS[code][0], code=code, message=message, job_id=about)


def called(job: Job) -> str:
    """`Job 7 (train)`, to begin a sentence about a job."""
    name = flat(job.name)
    shown = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
    return f"Job {job.job_id} ({shown})" if shown else f"Job {job.job_id}"


def span(seconds: float) -> str:
    """A length of time for people."""
    return f"{seconds:.0f} s" if seconds < 120 else format_duration(round(seconds))


def crowded(pending: int) -> Iterator[Alert]:
    """More jobs wait than a person may know of."""
    if pending > CROWDED:
        yield alert("queue-backup", f"More than {CROWDED} of your jobs are pending: {pending}.")
