"""What a running job uses against what it was given. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from slurm_agent_tools.model import Job, StepUse

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
