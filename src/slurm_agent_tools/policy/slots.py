"""How many of a caller's jobs count against the limit of concurrent jobs: arrays by their width, chains once. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slurm_agent_tools.models.job import Job
from slurm_agent_tools.units import parse_array

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
