"""Jobs, pools and schedules: what is to run, on what, and what starts when. Refuses what no plan can be made of."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.units import format_memory

Objective = Literal["makespan", "mean_completion", "deadlines", "cost"]

MOST = 10_000
"""Jobs of one plan, copies counted: a plan of more is no answer that anybody reads."""

LONGEST = 10 * 366 * 86400.0
"""Seconds that one job may be expected to take."""

LARGEST = 10**6
"""Weight of one job, and price of one hour: sums of more are no numbers that can be told."""

HELD = 10**9
"""GPUs, CPUs or jobs of one pool, or of one job."""

SHARES = 1000
"""Into how many parts a GPU is divided where jobs take a share of one."""


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """One copy with its start and end in seconds from now. `gpus`: the numbers of those that it holds, in its pool."""

    job: PlannedJob
    copy: int
    start: float
    end: float
    pool: str
    gpus: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """`name`, or `name.3` where there are several."""
        return f"{self.job.name}.{self.job.tasks[self.copy]}" if self.job.array else self.job.name

    @property
    def late(self) -> float:
        """Seconds by which it misses its deadline."""
        return 0.0 if self.job.deadline is None else max(0.0, self.end - self.job.deadline)


@dataclass(frozen=True, slots=True)
class JobSchedule:
    """What starts when, by start. The figures follow from it."""

    placed: tuple[PlacedJob, ...]
    pools: tuple[JobPool, ...]

    @property
    def makespan(self) -> float:
        """Seconds until all have ended."""
        return max((one.end for one in self.placed), default=0.0)

    @property
    def mean_completion(self) -> float:
        """Mean seconds until a job has ended, weighted by priority."""
        weight = sum(one.job.priority for one in self.placed)
        return sum(one.job.priority * one.end for one in self.placed) / weight if weight else 0.0

    @property
    def missed(self) -> tuple[PlacedJob, ...]:
        """Those that end after their deadline."""
        return tuple(one for one in self.placed if one.late > 0)

    @property
    def cost(self) -> float:
        """What the pools charge for what is held while it is held."""
        by_name = {pool.name: pool for pool in self.pools}
        return sum(price(one.job, by_name[one.pool]) for one in self.placed)


def price(job: PlannedJob, pool: JobPool) -> float:
    """What one copy costs there."""
    gpus = job.gpus if job.share is None else job.share
    return (gpus * pool.gpu_hour + job.cpus * pool.cpu_hour) * job.seconds / 3600


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """Jobs that can be planned: every copy by its number, what it needs in the pools' units, what it waits for.

    `demands[i]` and each of `capacities` list GPUs, CPUs, memory and jobs, of those that any pool limits; a share is
    counted in GPUs / SHARES (`parts`). `fits[i]`: the pools that can hold copy i at all. `needs[j]`: the kinds of which
    every copy has ended before any copy of kind j starts.
    """

    jobs: tuple[PlannedJob, ...]
    pools: tuple[JobPool, ...]
    owner: tuple[int, ...]
    copies: tuple[int, ...]
    seconds: tuple[float, ...]
    demands: tuple[tuple[int, ...], ...]
    capacities: tuple[tuple[int, ...], ...]
    parts: tuple[int, ...]
    fits: tuple[tuple[int, ...], ...]
    needs: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """Copies of all jobs."""
        return len(self.owner)

    @property
    def shared(self) -> bool:
        """Whether any takes a share of a GPU."""
        return any(self.parts)

    @property
    def longest_path(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """For every kind: seconds that pass at least before it starts, and from its start until all behind it end."""
        heads, tails = [0.0] * len(self.jobs), [job.seconds for job in self.jobs]
        order = self.in_order
        for index in order:
            heads[index] = max((heads[one] + self.jobs[one].seconds for one in self.needs[index]), default=0.0)
        for index in reversed(order):
            for one in self.needs[index]:
                tails[one] = max(tails[one], self.jobs[one].seconds + tails[index])
        return tuple(heads), tuple(tails)

    @property
    def in_order(self) -> tuple[int, ...]:
        """The kinds, each behind those that it waits for."""
        waits, followers = [len(one) for one in self.needs], self.followers
        order = [index for index, count in enumerate(waits) if not count]
        for index in order:  # grows while it is read
            for one in followers[index]:
                waits[one] -= 1
                if not waits[one]:
                    order.append(one)
        return tuple(order)

    @property
    def followers(self) -> tuple[tuple[int, ...], ...]:
        """For every kind those that wait for it."""
        found: list[list[int]] = [[] for _ in self.jobs]
        for index, needed in enumerate(self.needs):
            for one in needed:
                found[one].append(index)
        return tuple(map(tuple, found))

    def job(self, index: int) -> PlannedJob:
        """The kind of a copy."""
        return self.jobs[self.owner[index]]

    def schedule(
        self, starts: Sequence[float], places: Sequence[int], slots: Sequence[int | None] | None = None
    ) -> JobSchedule:
        """The copies at these starts in these pools, with the numbers of the GPUs that each holds."""
        gpus = _numbered(self, starts, places, slots or [None] * self.size)
        order = sorted(range(self.size), key=lambda index: (starts[index], index))
        placed = tuple(
            PlacedJob(
                self.job(index), self.copies[index], starts[index], starts[index] + self.seconds[index],
                self.pools[places[index]].name, gpus[index],
            )
            for index in order
        )  # fmt: skip
        return JobSchedule(placed, self.pools)


def plan_problem(jobs: Sequence[PlannedJob], pools: Sequence[JobPool]) -> PlanProblem:
    """The jobs as one problem. Raises InputError, which names the job, its field, the value and the mend."""
    by_name = checked(jobs, pools)
    for job in jobs:
        _check_names(job, by_name)
    _check_circles(by_name)
    copies = [(index, copy) for index, job in enumerate(jobs) for copy in range(job.count)]
    kinds = {job.name: index for index, job in enumerate(jobs)}
    limited = _limited(jobs, pools)
    asked = [_asked(job) for job in jobs]
    fits = [_fits(job, pools) for job in jobs]
    return PlanProblem(
        jobs=tuple(jobs),
        pools=tuple(pools),
        owner=tuple(index for index, _ in copies),
        copies=tuple(copy for _, copy in copies),
        seconds=tuple(float(jobs[index].seconds) for index, _ in copies),
        demands=tuple(tuple(asked[index][what] for what in limited) for index, _ in copies),
        capacities=tuple(tuple(_capacity(pool, what) for what in limited) for pool in pools),
        parts=tuple(round((jobs[index].share or 0) * SHARES) for index, _ in copies),
        fits=tuple(fits[index] for index, _ in copies),
        needs=tuple(tuple(sorted({kinds[name] for name in job.after})) for job in jobs),
    )


# --- what is refused --------------------------------------------------------------------------------------------------


def checked(jobs: Sequence[PlannedJob], pools: Sequence[JobPool]) -> dict[str, PlannedJob]:
    """The kinds by their names, all their figures and those of the pools looked at. Raises InputError."""
    _check_number(jobs, pools)
    _check_pools(pools)
    by_name = named(jobs)
    for job in jobs:
        _check_figures(job)
    return by_name


def _field(job: PlannedJob, name: str) -> str:
    return f"jobs {job.name!r}: {name}"


def _check_number(jobs: Sequence[PlannedJob], pools: Sequence[JobPool]) -> None:
    if not jobs:
        raise InputError("jobs", None, "are required", hint="Give at least one job, with its expected time.")
    if not pools:
        raise InputError("pool", None, "is required", hint='Say what there is, such as {"gpus": 4}.')
    for job in jobs:
        if job.count < 1:
            raise InputError(_field(job, "count"), job.count, "is less than 1", hint="Leave the job out instead.")
    total = 0
    for job in jobs:
        total += job.count
        if total > MOST:
            together = sum(one.count for one in jobs)
            hint = f"All together are {together} jobs: plan the next {MOST}, or put several tasks into one job."
            raise InputError(_field(job, "count"), job.count, f"is beyond the {MOST} that are planned", hint=hint)


def _check_pools(pools: Sequence[JobPool]) -> None:
    names: set[str] = set()
    for pool in pools:
        if pool.name in names:
            raise InputError("pool", pool.name, "is the name of two pools", hint="Give each a name of its own.")
        names.add(pool.name)
        counts, prices = {"gpus": (0, HELD), "cpus": (0, HELD), "jobs": (1, HELD)}, (0, LARGEST)
        spans = counts | {"memory_bytes": (0, _UNLIMITED - 1), "gpu_hour": prices, "cpu_hour": prices}
        for what, (lowest, most) in spans.items():
            value = getattr(pool, what)
            if value is not None and not lowest <= value <= most:
                field = f"pool {pool.name!r}: {what.removesuffix('_bytes')}"
                problem = f"is more than {most}" if value > most else f"is less than {lowest}"
                raise InputError(field, value, problem, hint="Say what there is, or leave it out.")


def named(jobs: Sequence[PlannedJob]) -> dict[str, PlannedJob]:
    """The kinds by their names. Raises InputError for a name that is given twice, empty or too long."""
    found: dict[str, PlannedJob] = {}
    for job in jobs:
        if not job.name or len(job.name) > 200:
            raise InputError(_field(job, "name"), job.name, "is empty or too long", hint="Give 1 to 200 characters.")
        if job.name in found:
            raise InputError(_field(job, "name"), job.name, "is given twice", hint="Equal jobs are one with a count.")
        found[job.name] = job
    return found


def _check_figures(job: PlannedJob) -> None:
    if not (math.isfinite(job.seconds) and 0 < job.seconds <= LONGEST):
        hint = 'Say how long one of them runs, such as "2h".'
        raise InputError(_field(job, "expected"), job.seconds, "is no time that a job can take", hint=hint)
    for name, value in (("gpus", job.gpus), ("cpus", job.cpus), ("memory", job.memory_bytes)):
        if not 0 <= value <= (_UNLIMITED - 1 if name == "memory" else HELD):
            problem = "is less than 0" if value < 0 else "is more than a job can hold"
            raise InputError(_field(job, name), value, problem, hint="Say what one of them holds.")
    if job.deadline is not None and not (math.isfinite(job.deadline) and job.deadline > 0):
        hint = "Give a time that is still to come."
        raise InputError(_field(job, "deadline"), job.deadline, "is not in the future", hint=hint)
    if not 1 / LARGEST <= job.priority <= LARGEST:
        hint = f"1 is usual, 2 counts as two jobs; from {1 / LARGEST:g} to {LARGEST}."
        raise InputError(_field(job, "priority"), job.priority, "is no weight of a job", hint=hint)
    if job.share is not None and not (math.isfinite(job.share) and 1 / SHARES <= job.share <= 1):
        hint = "Give the part of one GPU, such as 0.25, or gpus for whole ones."
        raise InputError(_field(job, "share"), job.share, "is no part of one GPU", hint=hint)
    if job.share is not None and job.gpus:
        raise InputError(_field(job, "share"), job.share, "is given beside gpus", hint="Leave one of them out.")


def _check_names(job: PlannedJob, by_name: Mapping[str, PlannedJob]) -> None:
    for name in job.after:
        if name not in by_name:
            hint = f"Known names are {', '.join(list(by_name)[:10])}."
            raise InputError(_field(job, "after"), name, "is the name of no job", hint=hint)


def _check_circles(by_name: Mapping[str, PlannedJob]) -> None:
    """Raise for jobs that wait for each other: walked without recursion, as chains may be long."""
    done: set[str] = set()
    for first in by_name:
        way, on_way = [(first, iter(by_name[first].after))], {first}
        while way and first not in done:
            name, rest = way[-1]
            following = next((one for one in rest if one not in done), None)
            if following is None:
                done.add(name)
                on_way.discard(way.pop()[0])
            elif following in on_way:
                path = [one for one, _ in way]
                circle = " -> ".join([*path[path.index(following) :], following])
                hint = f"They wait for each other: {circle}. Take one of these out."
                raise InputError(_field(by_name[name], "after"), following, "is a circle", hint=hint)
            else:
                way.append((following, iter(by_name[following].after)))
                on_way.add(following)


# --- what is counted --------------------------------------------------------------------------------------------------


_WHAT = ("gpus", "cpus", "memory_bytes", "jobs")

_UNLIMITED = 2**62


def _asked(job: PlannedJob) -> dict[str, int]:
    """What one copy holds. A share is counted apart, as it may lie on a GPU that is open already."""
    return {"gpus": job.gpus, "cpus": job.cpus, "memory_bytes": job.memory_bytes, "jobs": 1}


def _capacity(pool: JobPool, what: str) -> int:
    value = getattr(pool, what)
    return _UNLIMITED if value is None else int(value)


def _limited(jobs: Sequence[PlannedJob], pools: Sequence[JobPool]) -> tuple[str, ...]:
    """What can ever be short; GPUs always, as they have numbers."""

    def short(what: str) -> bool:
        total = sum(_asked(job)[what] * job.count for job in jobs)
        return any(total > _capacity(pool, what) for pool in pools)

    return tuple(what for what in _WHAT if what == "gpus" or short(what))


def _fits(job: PlannedJob, pools: Sequence[JobPool]) -> tuple[int, ...]:
    asked = _asked(job) | ({"gpus": 1} if job.share is not None else {})
    found = tuple(
        index for index, pool in enumerate(pools) if all(asked[what] <= _capacity(pool, what) for what in _WHAT)
    )
    if found:
        return found
    for what in _WHAT:
        most = max(_capacity(pool, what) for pool in pools)
        if asked[what] > most:
            field = _field(job, what.removesuffix("_bytes"))
            value, there = (format_memory(n) if what == "memory_bytes" else n for n in (asked[what], most))
            hint = f"Ask for at most {there}, or plan for a larger pool."
            raise InputError(field, value, f"is more than the pool has, {there}", hint=hint)
    hint = f"The pools are {', '.join(pool.name for pool in pools)}: ask for less, or add one."
    raise InputError(_field(job, "resources"), asked, "is more than any pool has at once", hint=hint)


def _numbered(
    problem: PlanProblem, starts: Sequence[float], places: Sequence[int], slots: Sequence[int | None]
) -> list[tuple[int, ...]]:
    """The numbers of the GPUs of every copy: the lowest that are free. Copies in one slot share one GPU.

    What is held never exceeds what there is, so a number is always free.
    """
    spans = defaultdict[tuple[int, int], list[int]](list)  # (pool, slot or the copy itself) -> copies
    for index in range(problem.size):
        slot = slots[index]
        spans[places[index], -index - 1 if slot is None else slot].append(index)
    found: list[tuple[int, ...]] = [()] * problem.size
    events = []
    for number, ((pool, slot), members) in enumerate(spans.items()):
        count = 1 if slot >= 0 else problem.job(members[0]).gpus
        if problem.pools[pool].gpus is not None and count:
            events.append((min(starts[one] for one in members), 1, number, pool, count, members))
            last = max(starts[one] + problem.seconds[one] for one in members)
            events.append((last, 0, number, pool, count, members))
    most = sum(count for _, begins, _, _, count, _ in events if begins)  # numbers beyond are never the lowest
    free = {number: list(range(min(pool.gpus or 0, most))) for number, pool in enumerate(problem.pools)}
    for _, begins, _, pool, count, members in sorted(events, key=lambda event: event[:3]):
        if begins:
            taken, free[pool] = tuple(free[pool][:count]), free[pool][count:]
            for one in members:
                found[one] = taken
        else:
            free[pool] = sorted([*free[pool], *found[members[0]]])
    return found
