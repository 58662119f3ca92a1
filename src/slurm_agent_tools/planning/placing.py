"""Placing a list: jobs in one order after another, each as early as it fits.

Two ways (Kolisch, "Serial and parallel resource-constrained project scheduling methods revisited", 1996): in parallel,
time goes on and whoever is first in the list and fits starts; in series, each job in turn gets the earliest time from
which it fits to its end, which may be before jobs that are placed already.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from slurm_agent_tools.planning.schedule import SHARES, JobSchedule, PlanProblem

Rank = Sequence[float | tuple[float, ...]]
"""Of every copy; the smallest is first in the list."""

Preference = Sequence[tuple[int, ...]]
"""For every copy the pools that it may go to, the first one first."""

Demand = Sequence[tuple[int, int]]
"""What one copy asks of a pool, and how much of it; what it asks nothing of is left out."""

DEPTH = 300
"""Kinds of waiting jobs that are looked at when something is free; those alike count once."""


@dataclass(frozen=True, slots=True)
class Placement:
    """For every copy: its start in seconds, its pool, and the opened GPU that it shares."""

    starts: tuple[float, ...]
    places: tuple[int, ...]
    slots: tuple[int | None, ...] | None = None

    def schedule(self, problem: PlanProblem) -> JobSchedule:
        """With numbers of GPUs."""
        return problem.schedule(self.starts, self.places, self.slots)


class _Pool:
    """What is free in one pool while time goes on. A share goes to the fullest opened GPU that has room for it."""

    def __init__(self, capacity: Sequence[int]) -> None:
        self.free = list(capacity)
        self.opened: dict[int, int] = {}  # slot -> parts that are free

    def take(self, demand: Demand, part: int, new_slot: int) -> tuple[bool, int | None]:
        """Whether it fits, and the slot of a share; it is held from now on."""
        free = self.free
        for what, asked in demand:
            if asked > free[what]:
                return False, None
        slot: int | None = None
        if part:
            room = [(left, one) for one, left in self.opened.items() if left >= part]
            if room:
                slot = min(room)[1]
            elif free[0] >= 1:
                slot, self.opened[new_slot] = new_slot, SHARES
                free[0] -= 1
            else:
                return False, None
            self.opened[slot] -= part
        for what, asked in demand:
            free[what] -= asked
        return True, slot

    def give_back(self, demand: Demand, part: int, slot: int | None) -> None:
        """Its job has ended."""
        for what, asked in demand:
            self.free[what] += asked
        if slot is not None:
            self.opened[slot] += part
            if self.opened[slot] == SHARES:
                del self.opened[slot]
                self.free[0] += 1


class _Waiting:
    """Copies that may start, those alike together: of copies alike only the first in the list is looked at."""

    def __init__(self, problem: PlanProblem, rank: Rank, prefer: Preference) -> None:
        self._rank = [(one, index) for index, one in enumerate(rank)]
        kinds: dict[object, int] = {}
        each = zip(problem.demands, problem.parts, prefer, strict=True)
        self._alike = [kinds.setdefault(one, len(kinds)) for one in each]
        self._queues: dict[int, list[tuple[float | tuple[float, ...], int]]] = {}
        self._heads: list[tuple[float | tuple[float, ...], int]] = []
        self._order = _Order(problem)
        self._add(self._order.first())

    def _add(self, copies: Iterable[int]) -> None:
        """These may start from now on."""
        for index in copies:
            queue = self._queues.setdefault(self._alike[index], [])
            heapq.heappush(queue, self._rank[index])
        self._heads = sorted(queue[0] for queue in self._queues.values() if queue)

    def ended(self, index: int) -> None:
        """One copy has ended: those that waited for the last of its kind may start."""
        freed = self._order.done(index)
        if freed:
            self._add(freed)

    def start(self, fits: Callable[[int], bool], *, blocking: bool) -> None:
        """Start whoever fits, in the order of the list; `blocking`: up to the first that does not."""
        heads, place = self._heads, 0
        while place < min(len(heads), DEPTH):
            index = heads[place][1]
            if fits(index):
                queue = self._queues[self._alike[index]]
                heapq.heappop(queue)
                del heads[place]
                if queue:
                    insort(heads, queue[0])
            elif blocking:
                return
            else:
                place += 1


class _Order:
    """Which copies may start, as others have ended."""

    def __init__(self, problem: PlanProblem) -> None:
        self._owner, self._followers = problem.owner, problem.followers
        self._copies: list[list[int]] = [[] for _ in problem.jobs]
        for index, kind in enumerate(problem.owner):
            self._copies[kind].append(index)
        self._left = [len(copies) for copies in self._copies]
        self._blocks = [len(needed) for needed in problem.needs]

    def first(self) -> list[int]:
        """Those that wait for nothing."""
        return [index for kind, copies in enumerate(self._copies) if not self._blocks[kind] for index in copies]

    def done(self, index: int) -> list[int]:
        """Those that waited for this copy last."""
        kind = self._owner[index]
        self._left[kind] -= 1
        if self._left[kind]:
            return []
        freed: list[int] = []
        for one in self._followers[kind]:
            self._blocks[one] -= 1
            if not self._blocks[one]:
                freed += self._copies[one]
        return freed


def parallel(
    problem: PlanProblem, rank: Rank, *, prefer: Preference | None = None, blocking: bool = False
) -> Placement:
    """Time goes on from end to end of jobs, and whoever is first in the list and fits starts.

    `blocking`: nobody overtakes one that does not fit.
    """
    prefer = problem.fits if prefer is None else prefer
    pools = [_Pool(capacity) for capacity in problem.capacities]
    waiting = _Waiting(problem, rank, prefer)
    starts, places = [0.0] * problem.size, [0] * problem.size
    slots: list[int | None] = [None] * problem.size
    running: list[tuple[float, int]] = []
    demands = _asked(problem)
    now = 0.0

    def fits(index: int) -> bool:
        for pool in prefer[index]:
            taken, slot = pools[pool].take(demands[index], problem.parts[index], index)
            if taken:
                starts[index], places[index], slots[index] = now, pool, slot
                heapq.heappush(running, (now + problem.seconds[index], index))
                return True
        return False

    waiting.start(fits, blocking=blocking)
    while running:
        now = running[0][0]
        while running and running[0][0] == now:
            _, index = heapq.heappop(running)
            pools[places[index]].give_back(demands[index], problem.parts[index], slots[index])
            waiting.ended(index)
        waiting.start(fits, blocking=blocking)
    return Placement(tuple(starts), tuple(places), tuple(slots) if problem.shared else None)


def _asked(problem: PlanProblem) -> list[Demand]:
    """For every copy: what it asks for, and how much of it."""
    asked = {demand: tuple(held for held in enumerate(demand) if held[1]) for demand in {*problem.demands}}
    return [asked[demand] for demand in problem.demands]


def serial(problem: PlanProblem, rank: Rank) -> Placement:
    """Each in the order of the list at the earliest time from which it fits to its end. One pool, no shares."""
    times, free = [0.0], [list(problem.capacities[0])]
    starts = [0.0] * problem.size
    ready = [0.0] * len(problem.jobs)
    demands = _asked(problem)
    for index in _eligible(problem, rank):
        kind, seconds, demand = problem.owner[index], problem.seconds[index], demands[index]
        needs = problem.needs[kind]
        earliest = max(ready[one] for one in needs) if needs else 0.0
        first, last = _room(times, free, bisect_left(times, earliest), seconds, demand)
        start = times[first]
        end = start + seconds
        if last == len(times) or times[last] != end:
            times.insert(last, end)
            free.insert(last, free[last - 1].copy())
        for row in free[first:last]:
            for what, amount in demand:
                row[what] -= amount
        starts[index] = start
        ready[kind] = max(ready[kind], end)
    return Placement(tuple(starts), (0,) * problem.size)


def _room(times: list[float], free: list[list[int]], first: int, seconds: float, demand: Demand) -> tuple[int, int]:
    """The row at which it can start, and the first row at or after its end."""
    row, rows = first, len(times)
    end = times[first] + seconds
    while row < rows and times[row] < end:
        left = free[row]
        for what, amount in demand:
            if amount > left[what]:
                first = row + 1
                end = times[first] + seconds
                break
        row += 1
    return first, row


def _eligible(problem: PlanProblem, rank: Rank) -> Iterator[int]:
    """Every copy by its rank, and behind all that it waits for."""
    if not any(problem.needs):
        yield from sorted(range(problem.size), key=lambda index: (rank[index], index))
        return
    order = _Order(problem)
    queue = [(rank[index], index) for index in order.first()]
    heapq.heapify(queue)
    while queue:
        _, index = heapq.heappop(queue)
        yield index
        for copy in order.done(index):
            heapq.heappush(queue, (rank[copy], copy))


def justified(problem: PlanProblem, placement: Placement) -> Placement:
    """As late as possible from the end, then as early as possible again: never longer, often shorter.

    Source: Valls, Ballestin and Quintanilla, "Justification and RCPSP", 2005.
    """
    ends = [start + seconds for start, seconds in zip(placement.starts, problem.seconds, strict=True)]
    backwards = replace(problem, needs=problem.followers)
    late = serial(backwards, [-end for end in ends])
    begins = [-(start + seconds) for start, seconds in zip(late.starts, problem.seconds, strict=True)]
    return serial(problem, begins)
