"""What no schedule can be better than: lower bounds of the makespan and of the mean completion. Seconds."""

from __future__ import annotations

from slurm_agent_tools.planning.schedule import SHARES, PlanProblem


def makespan_bound(problem: PlanProblem) -> float:
    """Seconds that every schedule takes at least.

    The largest of: what is held over what there is (area), the longest chain of jobs, how many long jobs meet on one
    GPU, what wide jobs that leave no room for others take with the others behind them, what wide jobs take beside one
    long narrow job, and, for gangs, the area after a dual feasible function, which counts a job that leaves room for no
    other as if it held all (Fekete and Schepers, "New classes of fast lower bounds for bin packing problems", 2001).
    Several pools are taken as one, in which each schedule of theirs has room.
    """
    _, tails = problem.longest_path
    found = max(tails, default=0.0)
    for demands, capacity in usage(problem):
        if capacity:  # of what there is none, nobody holds any
            found = max(
                found,
                _energy(demands, problem.seconds, capacity),
                _meeting(demands, problem.seconds, capacity),
                _beside_nobody(demands, problem.seconds, capacity),
                _beside_one(demands, problem.seconds, capacity),
            )
    return found


def completion_bound(problem: PlanProblem) -> float:
    """The least mean completion in seconds, weighted by priority.

    On one fast machine that runs all as a fluid, the order by seconds x size / weight is the best for the means of the
    times at which jobs are worked on (Smith's rule); from there to its end each job still takes half of its own time.
    Where all weigh the same, shortest first on as many places as the narrowest jobs have is the best of all. A job also
    ends no earlier than the jobs before it let it.
    """
    heads, _ = problem.longest_path
    weights = [problem.job(index).priority for index in range(problem.size)]
    alone = sum(
        weight * (heads[kind] + seconds)
        for weight, kind, seconds in zip(weights, problem.owner, problem.seconds, strict=True)
    )
    best = alone
    for demands, capacity in usage(problem):
        best = max(best, _fluid(demands, problem.seconds, weights, capacity))
        if capacity and len(set(weights)) == 1:
            best = max(best, weights[0] * _in_places(demands, problem.seconds, capacity))
    return best / sum(weights)


def usage(problem: PlanProblem) -> list[tuple[list[int], int | None]]:
    """For each thing that pools limit: what every copy holds of it, and how much there is; GPUs in parts of SHARES."""
    found: list[tuple[list[int], int | None]] = []
    for what, amounts in enumerate(zip(*problem.capacities, strict=True)):
        total = sum(amounts)
        unit = SHARES if what == 0 else 1
        held = [asked[what] * unit for asked in problem.demands]
        if what == 0:
            held = [whole + part for whole, part in zip(held, problem.parts, strict=True)]
        found.append((held, None if total >= 2**62 else total * unit))
    return found


def _energy(demands: list[int], seconds: tuple[float, ...], capacity: int) -> float:
    """The area over the capacity, as it is and after functions that keep what fits together fitting together.

    u_k: a demand counts as floor((k+1) d / C) / k of the whole, or as itself where that is exact. U_e: above C - e all,
    below e nothing.
    """
    kinds: dict[int, float] = {}
    for demand, time in zip(demands, seconds, strict=True):
        kinds[demand] = kinds.get(demand, 0.0) + time
    best = sum(demand * time for demand, time in kinds.items()) / capacity if capacity else 0.0
    sizes = sorted(size for size in kinds if 0 < size <= capacity / 2)[:50]
    for small in sizes:
        held = (_all_or_nothing(demand, small, capacity) * time for demand, time in kinds.items())
        best = max(best, sum(held) / capacity)
    for parts in range(1, 17):
        best = max(best, sum(_rounded(demand, parts, capacity) * time for demand, time in kinds.items()))
    return best


def _all_or_nothing(demand: int, small: int, capacity: int) -> int:
    if demand > capacity - small:
        return capacity
    return demand if demand >= small else 0


def _rounded(demand: int, parts: int, capacity: int) -> float:
    """The part of the whole that u_k counts; `parts` is k."""
    times = (parts + 1) * demand
    return demand / capacity if times % capacity == 0 else (times // capacity) / parts


def _meeting(demands: list[int], seconds: tuple[float, ...], capacity: int) -> float:
    """Of jobs of which at most m run at once, m k + 1 put k + 1 behind each other somewhere."""
    least = min((demand for demand in demands if demand > 0), default=0)
    if not least:
        return 0.0
    best = 0.0
    for size in {least, capacity // 3 + 1, capacity // 2 + 1}:
        most = capacity // size
        longest = sorted((time for demand, time in zip(demands, seconds, strict=True) if demand >= size), reverse=True)
        for first in range(most, len(longest), max(1, most)):
            behind = first // most + 1
            best = max(best, sum(longest[first - behind + 1 : first + 1]))
    return best


def _beside_nobody(demands: list[int], seconds: tuple[float, ...], capacity: int) -> float:
    """Of jobs of one size and wider: those that leave no room for any of these run alone, one behind the other.

    To them comes what the others take at least.
    """
    best = 0.0
    for size in sorted({demand for demand in demands if demand > 0})[:50]:
        wide = [(demand, time) for demand, time in zip(demands, seconds, strict=True) if demand >= size]
        rest = [(demand, time) for demand, time in wide if demand <= capacity - size]
        alone = sum(time for demand, time in wide if demand > capacity - size)
        held, times = [demand for demand, _ in rest], tuple(time for _, time in rest)
        beside = max(*times, _energy(held, times, capacity), _meeting(held, times, capacity)) if rest else 0.0
        best = max(best, alone + beside)
    return best


def _beside_one(demands: list[int], seconds: tuple[float, ...], capacity: int) -> float:
    """Of jobs of one size and wider so many run at once: one narrower job takes the places of some while it runs.

    A job of 1 of 4 GPUs leaves room for one of 2, not for two. Of all narrower ones the one counts that takes most.
    """
    kinds: dict[int, float] = {}
    longest: dict[int, float] = {}
    for demand, time in zip(demands, seconds, strict=True):
        kinds[demand] = kinds.get(demand, 0.0) + time
        longest[demand] = max(longest.get(demand, 0.0), time)
    best = 0.0
    for size in sorted(kind for kind in kinds if 0 < kind <= capacity / 2)[:50]:
        places = capacity // size
        taken = {kind: places - (capacity - kind) // size for kind in kinds if 0 < kind < size}
        narrow = max(taken, key=lambda kind: taken[kind] * longest[kind], default=0)
        if not narrow:
            continue
        held = taken[narrow] * longest[narrow]
        for demand, time in kinds.items():
            if demand > capacity - narrow:
                held += places * time
            elif demand > capacity - size:  # beside it the narrow one, and no other
                held += (places - taken[narrow]) * time
            elif demand >= size:
                held += demand // size * time
        best = max(best, held / places)
    return best


def _in_places(demands: list[int], seconds: tuple[float, ...], capacity: int) -> float:
    """The least sum of the ends of jobs on so many places as the narrowest have: shortest first, one place each."""
    least = min(demands)
    if least <= 0:
        return 0.0
    ends = [0.0] * min(len(demands), capacity // least)
    total = 0.0
    for number, time in enumerate(sorted(seconds)):  # in turn: no place is free before that of the job before
        ends[number % len(ends)] += time
        total += ends[number % len(ends)]
    return total


def _fluid(demands: list[int], seconds: tuple[float, ...], weights: list[float], capacity: int | None) -> float:
    if capacity is None or not capacity:
        return 0.0
    area = [demand * time / capacity for demand, time in zip(demands, seconds, strict=True)]
    order = sorted(range(len(area)), key=lambda index: area[index] / weights[index])
    total = done = 0.0
    for index in order:
        done += area[index]
        total += weights[index] * (done - area[index] / 2 + seconds[index] / 2)
    return total
