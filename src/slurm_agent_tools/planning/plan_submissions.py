"""From a plan to the fewest submissions that start its jobs in its order, under the cap of jobs at once.

Copies of one kind are one array, with as many tasks at once as the plan ever runs. Whatever starts on GPUs that others
hold before is chained to their ends, so that all can be submitted at once: the order is kept by Slurm, whoever ends
earlier or later, and one that waits for the end of another takes over its slot. (Orders by the flow of resources:
Policella et al., "From precedence constraint posting to partial order schedules", 2007.) What would be one too many for
the cap is submitted once those before it have ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from slurm_agent_tools.planning.planned_job import PlannedJob
from slurm_agent_tools.planning.schedule import JobSchedule, PlacedJob
from slurm_agent_tools.units import ranges

FarKind = Literal["pbs", "kubernetes"]
"""Schedulers for which generate_script writes what a person starts."""


@dataclass(frozen=True, slots=True)
class PlannedSubmission:
    """One call of submit_job. `job`: the kind. `width`: tasks at once.

    `chained`: kinds whose jobs it waits for inside of Slurm; of them it needs the success of those in `needed`, as the
    caller said. `behind`: kinds that have ended before it is submitted, as no slot is free until then. Times in
    seconds from now; `place` the pool. `numbers`: of an array's tasks, where they are not all from 0 on. `at`: the
    scheduler that its place has, where it is not Slurm: a person starts it there.
    """

    job: str
    how: Literal["array", "single", "chain"]
    width: int
    start: float
    place: str
    tasks: int = 1
    chained: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    at: FarKind | None = None

    @property
    def key(self) -> str:
        """Its name among all calls: copies of one kind may run here and elsewhere."""
        return self.job if self.at is None else f"{self.job} at {self.place}"

    @property
    def array(self) -> str | None:
        """As sbatch --array."""
        if self.tasks == 1 and not self.numbers:
            return None
        throttle = f"%{self.width}" if self.width < self.tasks else ""
        return f"{ranges(self.numbers or range(self.tasks))}{throttle}"

    def dependency(self, told: Callable[[str], str] = "<{}>".format) -> str | None:
        """As sbatch --dependency, with the names of kinds, as `told`, where the ids of their jobs belong."""
        freeing = tuple(name for name in self.chained if name not in self.needed)
        found = [
            f"{what}:" + ":".join(told(name) for name in names)
            for what, names in (("afterok", self.needed), ("afterany", freeing))
            if names
        ]
        return ",".join(found) or None


def submissions(schedule: JobSchedule, most_at_once: int | None) -> tuple[PlannedSubmission, ...]:
    """In the order in which they are submitted. `most_at_once`: slots that are free; a chained one takes none."""
    kinds: dict[str, list[PlacedJob]] = {}
    for one in schedule.placed:
        kinds.setdefault(one.job.name, []).append(one)
    before = _holders(schedule)
    slots = _Slots({name: max(one.end for one in copies) for name, copies in kinds.items()}, most_at_once)
    return tuple(slots.submission(copies, before[copies[0].job.name]) for copies in kinds.values())


def submissions_at(
    schedule: JobSchedule, most_at_once: int | None, far: Mapping[str, FarKind]
) -> tuple[PlannedSubmission, ...]:
    """The same where some pools have another scheduler. `far`: name of a pool -> its kind.

    Nothing waits inside of one scheduler for a job of another: it is started once that has ended. Kubernetes lets no
    job wait for another. The cap is that of the guard's own submissions.
    """
    if all(one.pool not in far for one in schedule.placed):
        return submissions(schedule, most_at_once)
    groups: dict[str | None, list[PlacedJob]] = {}
    for one in schedule.placed:
        groups.setdefault(one.pool if one.pool in far else None, []).append(one)
    found: list[PlannedSubmission] = []
    for place, placed in groups.items():
        names = {one.job.name for one in placed}
        parts = tuple(replace(one, job=_within(one.job, names)) for one in placed)
        steps = submissions(JobSchedule(parts, schedule.pools), most_at_once if place is None else None)
        kind = None if place is None else far[place]
        found += [_placed(one, [copy for copy in placed if copy.job.name == one.job], kind) for one in steps]
    return tuple(sorted(found, key=lambda one: one.start))


def _within(job: PlannedJob, names: Collection[str]) -> PlannedJob:
    return replace(job, after=tuple(name for name in job.after if name in names))


def _placed(one: PlannedSubmission, copies: Sequence[PlacedJob], kind: FarKind | None) -> PlannedSubmission:
    """A submission with the numbers of its own copies, and what it waits for in other places."""
    job = copies[0].job
    behind = [*one.behind, *(name for name in job.after if name not in one.chained)]
    chained = one.chained
    if kind == "kubernetes":
        behind, chained = [*behind, *chained], ()
    numbers = tuple(job.tasks[copy.copy] for copy in copies) if job.array else ()
    plain = numbers == tuple(range(len(numbers))) and len(numbers) == job.count
    how: Literal["array", "single", "chain"] = "array" if job.array else "chain" if chained else "single"
    return replace(
        one, how=how, chained=chained, needed=tuple(name for name in one.needed if name in chained),
        behind=tuple(dict.fromkeys(behind)), numbers=() if plain else tuple(sorted(numbers)), at=kind,
    )  # fmt: skip


def at_once(copies: Sequence[PlacedJob]) -> int:
    """The most of these that run at the same time."""
    events = sorted([(one.start, 1) for one in copies] + [(one.end, -1) for one in copies])
    running = most = 0
    for _, change in events:
        running += change
        most = max(most, running)
    return most


def _holders(schedule: JobSchedule) -> dict[str, list[str]]:
    """For every kind the kinds that held the GPUs of those copies that start first, or the CPUs where it has no GPU.

    Who shares a GPU waits for nobody: others run beside it.
    """
    holds: dict[tuple[str, int], str] = {}
    ended: dict[tuple[str, float], str] = {}
    begins: dict[str, float] = {}
    found: dict[str, list[str]] = {}
    for one in schedule.placed:
        name, before = one.job.name, found.setdefault(one.job.name, [])
        places = [(one.pool, gpu) for gpu in one.gpus]
        if one.start == begins.setdefault(name, one.start) and one.job.share is None:
            last = [holds[place] for place in places if place in holds]
            if not places and (one.pool, one.start) in ended:
                last = [ended[one.pool, one.start]]
            before += [other for other in last if other != name]
        if not places:
            ended[one.pool, one.end] = name
        holds |= dict.fromkeys(places, name)
    return found


class _Slots:
    """The slots of those that are submitted, counted as the policy counts them (models.job_resources.count_slots).

    Each takes over the slot of the oldest that it waits for and nobody else has taken over; a chain counts by its
    widest link.
    """

    def __init__(self, ends: dict[str, float], most: int | None) -> None:
        self._ends, self._most = ends, most
        self._numbers = {name: number for number, name in enumerate(ends)}
        self._held: dict[str, int] = {}  # the last of each chain -> the chain's width, the oldest first
        self._passed = -math.inf  # until then it was waited outside of Slurm

    def submission(self, copies: Sequence[PlacedJob], holders: Collection[str]) -> PlannedSubmission:
        """One kind: its first copy says what it follows."""
        first = copies[0]
        width = at_once(copies) if self._most is None else min(at_once(copies), self._most)
        chained = dict.fromkeys([*first.job.after, *(one for one in holders if self._ends[one] <= first.start)])
        behind: list[str] = []
        if self._most is not None:
            behind = self._over(chained, first.job.after)
            behind += self._room(chained, width, first.start, self._most)
            self._passed = max([self._passed, *(self._ends[name] for name in behind)])
            behind += self._over(chained, first.job.after)
            self._take(chained, first.job.name, width)
        names = tuple(sorted(chained, key=self._numbers.__getitem__))
        how: Literal["array", "single", "chain"] = "array" if first.job.array else "chain" if names else "single"
        # A slice ends at its time limit, which is no success: what goes on from it waits for its end alone.
        needed = () if first.job.slices_done else tuple(name for name in names if name in first.job.after)
        return PlannedSubmission(
            first.job.name, how, width, first.start, first.pool, len(copies), names, needed, tuple(behind),
            first.job.numbers,
        )  # fmt: skip

    def _over(self, chained: dict[str, None], needed: Collection[str]) -> list[str]:
        """Those that held a slot, of what has ended when it is submitted; `chained` waits for none of it any more.

        Slurm forgets jobs minutes after their end, and the policy lets nothing wait for a job that it has forgotten.
        Of `needed` the success has still to be asked for.
        """
        ended = [name for name in chained if self._ends[name] <= self._passed and name not in needed]
        for name in ended:
            del chained[name]
        return [name for name in ended if self._held.pop(name, None) is not None]

    def _heir(self, chained: Collection[str]) -> str | None:
        return next((name for name in self._held if name in chained), None)

    def _count(self, chained: Collection[str], width: int) -> int:
        heir = self._heir(chained)
        taken = sum(self._held.values())
        return taken + width if heir is None else taken - self._held[heir] + max(width, self._held[heir])

    def _take(self, chained: Collection[str], name: str, width: int) -> None:
        heir = self._heir(chained)
        self._held[name] = max(width, self._held.pop(heir)) if heir is not None else width

    def _room(self, chained: dict[str, None], width: int, start: float, most: int) -> list[str]:
        """Kinds that have to end before; `chained` gets one more where a slot is passed on by that alone."""
        if self._count(chained, width) <= most:
            return []
        free = [name for name in self._held if self._ends[name] <= start]
        if self._heir(chained) is None and free:
            chained[min(free, key=lambda name: self._ends[name])] = None
        behind: list[str] = []
        for name in sorted(self._held, key=lambda name: self._ends[name]):
            if self._count(chained, width) <= most:
                break
            behind.append(name)
            del self._held[name]
        return behind
