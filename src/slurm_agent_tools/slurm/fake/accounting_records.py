"""The accounting of the fake Slurm: what it was told of each job, which may reach it late."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace

from slurm_agent_tools.slurm.fake.fake_job import FakeJob


@dataclass(frozen=True, slots=True)
class Told:
    """A job as it was at a moment, and from when on the accounting shows it."""

    job: FakeJob
    visible: float


@dataclass(slots=True)
class Accounting:
    """`delay`: seconds that a word takes. `enabled`: whether the cluster keeps accounts at all."""

    delay: float = 0.0
    enabled: bool = True
    told: dict[int, list[Told]] = field(default_factory=dict)

    def note(self, job: FakeJob, now: float) -> None:
        """Tell it of a change."""
        if not self.enabled:
            return
        kept = copy(job)
        kept.steps = [replace(step) for step in job.steps]
        kept.request = copy(job.request)
        self.told.setdefault(job.number, []).append(Told(kept, now + self.delay))

    def late(self, number: int, seconds: float) -> None:
        """Let the last word about a job come so much later."""
        told = self.told[number]
        told[-1] = replace(told[-1], visible=told[-1].visible + seconds)

    def records(self, now: float) -> list[FakeJob]:
        """What it shows now, by number."""
        found = []
        for number in sorted(self.told):
            seen = [told.job for told in self.told[number] if told.visible <= now]
            if seen:
                found.append(seen[-1])
        return found
