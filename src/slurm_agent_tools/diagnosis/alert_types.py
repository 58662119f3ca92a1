"""The kinds of alerts about a job, and the facts that they are raised on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from slurm_agent_tools.diagnosis.phrases import listed
from slurm_agent_tools.models.job import Job, JobRecord, StepUse
from slurm_agent_tools.models.node import Node, Partition, Reservation
from slurm_agent_tools.models.shapes import Alert, Severity
from slurm_agent_tools.units import JobId

KNOWN = 0.05
"""From this share of the work on, the rest is estimated from it."""

_MARGIN = 1.1  # a program is slower while it starts: that much more than the limit is no certain miss


@dataclass(frozen=True, slots=True)
class Using:
    """One running part and what its running steps use. None: not measured. `progress`: 0..1, as its log tells."""

    part: Job
    memory_bytes: int | None = None  # all steps, on all nodes, now
    task_peak_bytes: int | None = None
    cpu_seconds: float | None = None
    progress: float | None = None

    @property
    def share(self) -> float | None:
        """Of its memory, 0..1 and more; None where either is not known."""
        shares = [size / limit for size, limit in self._pairs()]
        return max(shares, default=None)

    @property
    def nearest(self) -> tuple[int, int]:
        """Bytes used and the limit that they are nearest to. Raises ValueError where the share is None."""
        return max(self._pairs(), key=lambda pair: pair[0] / pair[1])

    def _pairs(self) -> list[tuple[int, int]]:
        """What all have against the whole grant, what one task had against the grant of one node."""
        given = self.part.resources
        pairs = [(self.memory_bytes, given.memory_bytes), (self.task_peak_bytes, given.memory_per_node_bytes)]
        return [(size, limit) for size, limit in pairs if size is not None and limit]

    def cpu_share(self, now: datetime) -> float | None:
        """CPU time over the CPU time that it could have had so far."""
        cpus, started = self.part.resources.cpus, self.part.started
        if self.cpu_seconds is None or not cpus or started is None:
            return None
        could = cpus * (now - started).total_seconds()
        return self.cpu_seconds / could if could >= 1 else None

    def whole(self, now: datetime) -> float | None:
        """Seconds that the whole run takes at the pace that its log shows; None where that is not known."""
        if self.progress is None or self.progress < KNOWN or self.part.started is None:
            return None
        return (now - self.part.started).total_seconds() / self.progress

    def missed(self, now: datetime) -> float | None:
        """The same where it is clearly more than the time limit, else None."""
        limit, whole = self.part.resources.time_limit_seconds, self.whole(now)
        if whole is None or limit is None or limit < 0 or whole <= limit * _MARGIN:
            return None
        return whole


def measure(parts: Iterable[Job], use: Mapping[int, tuple[StepUse, ...]] | None) -> Using | None:
    """The running part that is nearest to its memory limit; None where nothing runs.

    `use` is by Slurm's own numbers, None where it could not be asked.
    """
    found = [_using(part, (use or {}).get(_number(part), ())) for part in parts if part.state == "RUNNING"]
    return max(found, key=lambda using: using.share or 0.0, default=None)


def _number(part: Job) -> int:
    return part.raw_id if part.raw_id is not None else part.job_id.base


def _using(part: Job, steps: tuple[StepUse, ...]) -> Using:
    sizes = [step.memory_bytes for step in steps if step.memory_bytes is not None]
    peaks = [step.task_peak_bytes for step in steps if step.task_peak_bytes is not None]
    seconds = [step.cpu_seconds for step in steps if step.cpu_seconds is not None]
    return Using(
        part,
        memory_bytes=sum(sizes) if sizes else None,
        task_peak_bytes=max(peaks, default=None),
        cpu_seconds=sum(seconds) if seconds and sizes else None,
    )


# --- The kinds of alerts about a job, and the facts that they are raised on -------------------------------------------


CROWDED = 20

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
class WaitEstimate:
    """How long a job was expected to wait, in seconds, and who said so."""

    seconds: float
    source: str


@dataclass(frozen=True, slots=True)
class AlertFacts:
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
    estimate: WaitEstimate | None = None
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


def crowded(pending: int) -> Iterator[Alert]:
    """More jobs wait than a person may know of."""
    if pending > CROWDED:
        yield alert("queue-backup", f"More than {CROWDED} of your jobs are pending: {pending}.")


def nodes_down(nodes: Iterable[Node]) -> Iterator[Alert]:
    """Nodes that run nothing although nobody took them away."""
    bad = [f"{node.name} ({node.state})" for node in nodes if node.troubled]
    if bad:
        message = f"Nodes down, failing or silent: {listed(bad, most=3)}."
        yield Alert(severity="medium", code="nodes-down", message=message)
