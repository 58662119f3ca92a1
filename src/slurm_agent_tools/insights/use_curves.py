"""Curves of what a job used: memory and CPU by the looks that pages took, GPUs by Prometheus where the site has it."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from slurm_agent_tools.models.shapes import RunningShown
from slurm_agent_tools.store.submissions import Owner

_JOBS, _LOOKS = 200, 720

_APART = 5.0
"""Seconds between looks that are kept."""

Points = Sequence[tuple[datetime, float]]


@dataclass(frozen=True, slots=True)
class UseLook:
    """What the steps of a job used at one moment. None: not measured."""

    at: datetime
    memory_share: float | None
    cpu_seconds: float | None


@dataclass(slots=True)
class UseLooks:
    """The last looks at the last jobs, of one process. What nobody looked at is not known."""

    _looks: OrderedDict[tuple[Owner, int], deque[UseLook]] = field(default_factory=OrderedDict)

    def keep(self, owner: Owner, job: int, at: datetime, seen: RunningShown | None) -> None:
        """One look; of a job that does not run, or of which nothing was measured, there is nothing to keep."""
        if seen is None or (seen.memory_share is None and seen.cpu_seconds is None):
            return
        kept = self._looks.pop((owner, job), None) or deque(maxlen=_LOOKS)
        self._looks[owner, job] = kept
        if not kept or (at - kept[-1].at).total_seconds() >= _APART:
            kept.append(UseLook(at, seen.memory_share, seen.cpu_seconds))
        while len(self._looks) > _JOBS:
            self._looks.popitem(last=False)

    def of(self, owner: Owner, job: int) -> tuple[UseLook, ...]:
        """All looks at one job, the oldest first."""
        return tuple(self._looks.get((owner, job), ()))


looks = UseLooks()
"""Of this process."""


def series(seen: Sequence[UseLook], cpus: int | None) -> dict[str, list[tuple[datetime, float]]]:
    """Shares of what the job was given, 0..1: memory at each look, of its `cpus` between two of them."""
    memory = [(one.at, one.memory_share) for one in seen if one.memory_share is not None]
    cpu = [(after.at, rate) for one, after in pairwise(seen) if (rate := _between(one, after, cpus)) is not None]
    return {"memory": memory, "CPU": cpu}


def _between(one: UseLook, after: UseLook, cpus: int | None) -> float | None:
    """The share of its CPUs that was busy from one look to the next; None where a step ended between them."""
    if one.cpu_seconds is None or after.cpu_seconds is None or not cpus:
        return None
    used, could = after.cpu_seconds - one.cpu_seconds, cpus * (after.at - one.at).total_seconds()
    return min(1.0, used / could) if could > 0 and used >= 0 else None


def drawable(lines: Mapping[str, Points], began: datetime) -> dict[str, list[list[float]]]:
    """The same as plain numbers: minutes since the job began, and per cent. Without what was not measured."""
    return {
        name: [[(at - began).total_seconds() / 60, 100 * share] for at, share in points]
        for name, points in lines.items()
        if points
    }
