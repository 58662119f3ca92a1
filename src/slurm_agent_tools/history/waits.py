"""How long jobs of one shape really waited here: from the moment they could run until they did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from slurm_agent_tools.history.sizing import ENOUGH, percentile
from slurm_agent_tools.model import Resources

_GPUS, _OTHERS = 2, 4
"""Alike: at most this many times more or less."""


@dataclass(frozen=True, slots=True)
class Waited:
    """One job that started, or one part of it. `seconds`: from when it could run until it did."""

    job: int
    partition: str
    seconds: int
    asked: Resources


@dataclass(frozen=True, slots=True)
class Past:
    """Jobs of this cluster that ran in the last `hours`. `own`: only this user's are told, or no others were there.

    `note`: why nothing is known.
    """

    waits: tuple[Waited, ...] = ()
    hours: int = 0
    own: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What jobs waited, in seconds; `median` and `p95` None where there were fewer than ENOUGH."""

    jobs: int
    median: int | None = None
    p95: int | None = None


def alike(past: Iterable[Waited], asked: Resources) -> list[Waited]:
    """Jobs of the same partition and about the same size: GPUs within twice, CPUs, memory and time within four times.

    What is not known of the request is not compared; a job of which it is not known is not alike.
    """
    named = set((asked.partition or "").split(",")) - {""}
    return [one for one in past if one.partition in named and _like(one.asked, asked)]


def _like(one: Resources, asked: Resources) -> bool:
    return (
        _near(one.gpus or 0, asked.gpus or 0, _GPUS)
        and _near(one.cpus, asked.cpus, _OTHERS)
        and _near(one.memory_bytes, asked.memory_bytes, _OTHERS)
        and _near(one.time_limit_seconds, asked.time_limit_seconds, _OTHERS)
    )


def _near(one: int | None, asked: int | None, times: int) -> bool:
    """Within so many times. No GPU, and no limit (-1), are like nothing but themselves."""
    if asked is None or one == asked:
        return True
    return one is not None and min(one, asked) > 0 and max(one, asked) <= times * min(one, asked)


def measure(past: Iterable[Waited]) -> Measured:
    """Median and 95th percentile of the waits. Of an array, the part that started first counts, as one job."""
    first: dict[int, int] = {}
    for one in past:
        first[one.job] = min(one.seconds, first.get(one.job, one.seconds))
    seconds = list(first.values())
    if len(seconds) < ENOUGH:
        return Measured(len(seconds))
    p95 = percentile([(one, 1) for one in seconds])
    return Measured(len(seconds), round(median(seconds)), None if p95 is None else round(p95))


def by_partition(past: Sequence[Waited]) -> Mapping[str, Measured]:
    """What all jobs of each partition waited; those with too few jobs are left out."""
    found = {name: measure(one for one in past if one.partition == name) for name in {one.partition for one in past}}
    return {name: found[name] for name in sorted(found) if found[name].median is not None}
