"""List schedules: the best of many orders by an objective, and better ones by exchanges."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from slurm_agent_tools.planning.bounds import completion_bound, makespan_bound
from slurm_agent_tools.planning.placing import DEPTH, Placement, Preference, justified, parallel, serial
from slurm_agent_tools.planning.schedule import SHARES, Objective, PlanProblem, price

Worth = tuple[float, ...]
"""Of a placement under an objective; the smallest is the best."""

_SERIAL, _SEARCHED = 400, 300
"""Copies up to which lists are placed in series, and improved by exchanges; larger ones differ little."""

_JUSTIFIED, _ROUNDS = 8_000_000, 2
"""Up to which square of the copies, times what is limited, a larger problem's best list is justified, and how often: a
second each."""

_WORK = 6_000_000
"""Looks at waiting jobs that all lists take together, some seconds: of very many different jobs fewer are made."""

_TRIES = 40_000
"""Copies that the exchanges place in all."""

_NEAR = 1.0002
"""So near to the bound nothing more is looked for."""


@dataclass(frozen=True, slots=True)
class ListPlan:
    """The best placement and the list that it came from; `exchanged`: how many lists were tried after the named."""

    placement: Placement
    rule: str
    worth: Worth
    exchanged: int = 0


def best_list(problem: PlanProblem, objective: Objective, *, search: bool = True) -> ListPlan:
    """The best of all lists by the objective. The same problem has the same answer on every machine."""
    best: ListPlan | None = None
    for rule, placement in _candidates(problem, objective):
        found = worth(problem, placement, objective)
        if best is None or found < best.worth:
            best = ListPlan(placement, rule, found)
    if best is None:
        raise AssertionError("every problem has lists")
    if not search or len(problem.pools) > 1:
        return best
    if problem.size <= _SEARCHED:
        return _exchanged(problem, objective, best)
    effort = problem.size**2 * len(problem.capacities[0])
    if objective == "makespan" and effort <= _JUSTIFIED and not problem.shared:
        return _justified(problem, best)
    return best


def naive(problem: PlanProblem) -> Placement:
    """In the order given; who does not fit holds up all behind it."""
    return parallel(problem, range(problem.size), blocking=True)


def worth(problem: PlanProblem, placement: Placement, objective: Objective) -> Worth:
    """What the objective compares; what is equal is told apart by the makespan or the mean completion.

    A placement that would stop what runs already is the worst.
    """
    if any(job.running for job in problem.jobs) and any(
        start > 0 and problem.job(index).running for index, start in enumerate(placement.starts)
    ):
        return (math.inf,)
    ends = [start + seconds for start, seconds in zip(placement.starts, problem.seconds, strict=True)]
    kinds = [problem.job(index) for index in range(problem.size)]
    makespan = max(ends)
    mean = sum(kind.priority * end for kind, end in zip(kinds, ends, strict=True))
    if objective == "makespan":
        return makespan, mean
    if objective == "mean_completion":
        return mean, makespan
    late = [
        end - kind.deadline
        for kind, end in zip(kinds, ends, strict=True)
        if kind.deadline is not None and end > kind.deadline
    ]
    if objective == "deadlines":
        return len(late), sum(late), makespan, mean
    return len(late), placed_cost(problem, placement), sum(late), makespan


def placed_cost(problem: PlanProblem, placement: Placement) -> float:
    """What the pools charge."""
    return math.fsum(price(problem.job(index), problem.pools[pool]) for index, pool in enumerate(placement.places))


# --- the lists --------------------------------------------------------------------------------------------------------


def ranks(problem: PlanProblem) -> dict[str, list[tuple[float, ...]]]:
    """The lists by their names."""
    heads, tails = problem.longest_path
    due = _due(problem)
    behind = _weight_behind(problem)
    rules: dict[str, Callable[[int, float, float, float], tuple[float, ...]]] = {
        "shortest first": lambda _k, time, _s, _w: (time,),
        "longest first": lambda _k, time, size, _w: (-time, -size),
        "critical path": lambda kind, _t, size, _w: (-tails[kind], -size),
        "earliest deadline": lambda kind, _t, _s, _w: (due[kind], tails[kind]),
        "weighted": lambda _k, time, _s, weight: (time / weight,),
        "weighted by size": lambda _k, time, size, weight: (time * size / weight,),
        "weighted with what waits": lambda kind, time, size, weight: (time * size / (weight + behind[kind]),),
        "widest first": lambda _k, time, size, _w: (-size, -time),
        "narrowest first": lambda _k, time, size, _w: (size, -time),
        "largest first": lambda _k, time, size, _w: (-time * size,),
        "large by the root of its size": lambda _k, time, size, _w: (-time * size**0.5,),
        "wide ones, then longest": lambda _k, time, size, _w: (-(size > 0.5), -time),
        "half and wider, then longest": lambda _k, time, size, _w: (-(size >= 0.5), -time),
        "least slack": lambda kind, _t, _s, _w: (due[kind] - tails[kind], heads[kind]),
    }
    sizes = _sizes(problem)
    return {
        name: [
            (not problem.jobs[kind].running, *rule(kind, seconds, sizes[kind], problem.jobs[kind].priority))
            for kind, seconds in zip(problem.owner, problem.seconds, strict=True)
        ]
        for name, rule in rules.items()
    }


def _sizes(problem: PlanProblem) -> list[float]:
    """For every kind the largest part of any capacity that one copy holds."""
    most = [max(amounts) for amounts in zip(*problem.capacities, strict=True)]
    found = [0.0] * len(problem.jobs)
    for index, kind in enumerate(problem.owner):
        held = [demand / all_of / 1.0 for demand, all_of in zip(problem.demands[index], most, strict=True) if all_of]
        part = problem.parts[index] / SHARES / most[0] if most[0] else 0.0
        found[kind] = max([*held, part, 1e-9])
    return found


def _due(problem: PlanProblem) -> list[float]:
    """For every kind by when it has to end, so that those behind it can meet their deadlines."""
    due = [math.inf if job.deadline is None else job.deadline for job in problem.jobs]
    for kind in reversed(problem.in_order):
        for before in problem.needs[kind]:
            due[before] = min(due[before], due[kind] - problem.jobs[kind].seconds)
    return due


def _weight_behind(problem: PlanProblem) -> list[float]:
    """For every kind the weight of those that directly wait for it, and a part of what waits for them."""
    behind, followers = [0.0] * len(problem.jobs), problem.followers
    for kind in reversed(problem.in_order):
        later = (problem.jobs[one].priority * problem.jobs[one].count + behind[one] for one in followers[kind])
        behind[kind] = sum(later) / problem.jobs[kind].count
    return behind


def _candidates(problem: PlanProblem, objective: Objective) -> Iterator[tuple[str, Placement]]:
    """Every list, placed in every way. Which pools come first is a choice of its own where there are several."""
    alike = len({*zip(problem.demands, problem.parts, strict=True)})
    affordable = max(4, _WORK // (problem.size * min(alike, DEPTH)))
    lists = dict(list(ranks(problem).items())[:affordable])
    serially = problem.size <= _SERIAL and len(problem.pools) == 1 and not problem.shared
    for prefer in _preferences(problem, objective):
        for name, rank in lists.items():
            yield name, parallel(problem, rank, prefer=prefer)
            if name == "shortest first":
                yield f"{name}, in turn", parallel(problem, rank, prefer=prefer, blocking=True)
            if serially:
                yield f"{name}, in series", serial(problem, rank)
    yield "as given", parallel(problem, range(problem.size))
    yield "as given, in turn", naive(problem)


def _preferences(problem: PlanProblem, objective: Objective) -> Iterator[Preference]:
    """As given; for cost the cheapest alone, and dearer ones for those that would be late otherwise."""
    if len(problem.pools) == 1:
        yield problem.fits
        return
    if objective != "cost":
        yield problem.fits
        yield [tuple(sorted(fits, key=lambda pool: problem.capacities[pool])) for fits in problem.fits]
        return
    by_price = [_by_price(problem, index) for index in range(problem.size)]
    allowed = [1] * problem.size
    for _ in range(len(problem.pools) + 1):
        prefer = [pools[:many] for pools, many in zip(by_price, allowed, strict=True)]
        yield prefer
        placed = parallel(problem, ranks(problem)["earliest deadline"], prefer=prefer)
        late = [
            index
            for index, start in enumerate(placed.starts)
            if (due := problem.job(index).deadline) is not None and start + problem.seconds[index] > due
        ]
        if not late:
            return
        for index in late:
            allowed[index] += 1
    yield by_price


def _by_price(problem: PlanProblem, index: int) -> tuple[int, ...]:
    """The pools that can hold a copy, the cheapest first."""
    job = problem.job(index)
    return tuple(sorted(problem.fits[index], key=lambda pool: price(job, problem.pools[pool])))


# --- better lists --------------------------------------------------------------------------------------------------


def _exchanged(problem: PlanProblem, objective: Objective, best: ListPlan) -> ListPlan:
    """The best list after jobs were moved within it, forwards and backwards placed, and moved again.

    A walk that takes what is not worse, from a fixed seed.
    """
    goal = _goal(problem, objective)
    chance = random.Random(1)  # noqa: S311 - no secret
    series = not problem.shared
    order = sorted(range(problem.size), key=lambda index: (best.placement.starts[index], index))
    current, tries = best.worth, 0
    for tries in range(1, _TRIES // problem.size + 1):
        if best.worth[0] <= goal:
            break
        moved = _moved(order, chance)
        rank = [0.0] * problem.size
        for place, index in enumerate(moved):
            rank[index] = place
        placement = serial(problem, rank) if series and tries % 2 else parallel(problem, rank)
        if series and objective == "makespan" and tries % 8 == 1:
            placement = justified(problem, placement)
        found = worth(problem, placement, objective)
        if found <= current:
            current = found
            order = moved if tries % 8 != 1 else sorted(range(problem.size), key=lambda one: placement.starts[one])
        if found < best.worth:
            best = ListPlan(placement, best.rule, found)
    return replace(best, exchanged=tries)


def _justified(problem: PlanProblem, best: ListPlan) -> ListPlan:
    """The best list, placed backwards and forwards: of thousands of jobs it takes most of what is above the bound."""
    goal = _goal(problem, "makespan")
    for _ in range(_ROUNDS):
        if best.worth[0] <= goal:
            break
        placement = justified(problem, best.placement)
        found = worth(problem, placement, "makespan")
        if found >= best.worth:
            break
        best = ListPlan(placement, best.rule, found)
    return best


def _moved(order: list[int], chance: random.Random) -> list[int]:
    """The list with one to three of its jobs elsewhere."""
    moved = order.copy()
    for _ in range(chance.randint(1, 3)):
        moved.insert(chance.randrange(len(moved)), moved.pop(chance.randrange(len(moved))))
    return moved


def _goal(problem: PlanProblem, objective: Objective) -> float:
    if objective == "makespan":
        return makespan_bound(problem) * _NEAR
    if objective == "mean_completion":
        weight = sum(problem.job(index).priority for index in range(problem.size))
        return completion_bound(problem) * weight * _NEAR
    return 0.0 if objective == "deadlines" else -1.0
