"""Strategies side by side on one workload: what each would have done, with what confidence, and what to make of it.

A replay is sensitive: a submission that moves by minutes moves the mean slowdown by several percent (Tsafrir and
Feitelson 2006). So every strategy is replayed on the same five or more workloads whose submissions are moved by chance.
Differences are paired by job, and their intervals are bootstrapped over stretches of successive jobs, because jobs
that waited in one queue are no independent witnesses.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.gangs import GangOrder, replay_gangs
from slurm_agent_tools.planning.simulate import DEPTH, Replay, check_jobs, pool_size, replay
from slurm_agent_tools.planning.strategies import Expectation, Strategy
from slurm_agent_tools.planning.workload import Workload, ordered, playable

FEWEST_RUNS = 5

MOST_RUNS = 50

JITTER = 300.0
"""Seconds by which a submission is moved at most."""

GROWS_TOO_MUCH = 1.5
"""A longest wait that is larger by more than this factor is said with every recommendation."""

SHORT_RUN = 10.0  # seconds: the bound of bounded slowdown (Feitelson et al. 1997)

_DAY = 86_400.0

_STARVED = 10.0  # times its own run time, and more than a day

_BLOCKS, _DRAWS = 100, 1000

_SPREAD = (0.025, 0.975)


RESTART = 60.0
"""Seconds that a job loses each time it goes on after it was put aside."""

AnyStrategy = Strategy | GangOrder


@dataclass(frozen=True, slots=True)
class Figure:
    """The mean over the jittered runs, and the least and the most of them."""

    mean: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a strategy did. Seconds; `bounded_slowdown` (wait + run) / max(run, 10 s), at least 1.

    `waits`: of the first run, ascending. `wait`: all that a job did not run from when it could start to its end.
    `utilisation`: processor time used over what was there from the first submission to the last end. `starved`: share
    of jobs that waited more than a day and ten times as long as they ran. `fairness`: Jain's index of the users' mean
    bounded slowdowns, 1 when all fare alike.
    """

    strategy: AnyStrategy
    waits: tuple[float, ...]
    wait: Figure
    completion: Figure
    bounded_slowdown: Figure
    p95_wait: Figure
    longest_wait: Figure
    utilisation: Figure
    starved: Figure
    fairness: Figure


@dataclass(frozen=True, slots=True)
class _Run:
    """One replay: what each job waited in all, in the order of the workload, and when the last one ended."""

    workload: Workload
    strategy: AnyStrategy
    processors: int
    waits: tuple[float, ...]
    last_end: float


@dataclass(frozen=True, slots=True)
class Difference:
    """A strategy less the baseline, paired by job, with its 95 % interval. Negative is better."""

    wait: float
    wait_interval: tuple[float, float]
    slowdown: float
    slowdown_interval: tuple[float, float]
    longest_ratio: float | None  # None: nobody waited under the baseline


@dataclass(frozen=True, slots=True)
class StrategyComparison:
    """All strategies, the first of them the baseline. `differences` and `verdicts` are of the others, by name.

    `recommended`: None where none is better beyond chance. `recorded_wait`: the mean of what the jobs waited in truth.
    """

    workload: Workload
    processors: int
    runs: int
    outcomes: tuple[Outcome, ...]
    differences: Mapping[str, Difference]
    verdicts: Mapping[str, str]
    recommended: str | None
    recorded_wait: float | None
    load: float | None
    assumptions: tuple[str, ...]


def compare(
    workload: Workload,
    strategies: Sequence[AnyStrategy],
    *,
    processors: int | None = None,
    runs: int = FEWEST_RUNS,
    expectations: Mapping[str, Callable[[], Expectation]] | None = None,
    seed: int = 1,
) -> StrategyComparison:
    """Replay every strategy on the same jittered workloads and compare it with the first.

    `expectations`: by a strategy's name, what makes a fresh predictor for each run. Raises InputError for fewer than
    five runs, no strategy or one twice, a workload without a job to play, and as `replay` does.
    """
    names = [strategy.name for strategy in strategies]
    if not strategies or len(set(names)) < len(names):
        raise InputError("strategies", names, "must name at least one, each once", hint="Name the baseline first.")
    if not FEWEST_RUNS <= runs <= MOST_RUNS:
        hint = f"Give {FEWEST_RUNS} to {MOST_RUNS}: one run says little, because small shifts change much."
        raise InputError("seeds", runs, "is out of range", hint=hint)
    played = playable(workload)
    if not played.jobs:
        told = ", ".join(f"{count} because {why}" for why, count in played.left_out.items()) or "it holds none"
        raise InputError("trace", workload.name, f"has no job to play: {told}")
    check_jobs(played.jobs, pool_size(played, processors))
    moved = [jittered(played, seed + number) for number in range(runs)]
    make = expectations or {}
    sets = [[_checked(load, one, processors, make.get(one.name)) for load in moved] for one in strategies]
    outcomes = tuple(_outcome(replays) for replays in sets)
    differences = {
        outcome.strategy.name: _difference(sets[0], replays, outcomes[0], outcome, seed)
        for outcome, replays in zip(outcomes[1:], sets[1:], strict=True)
    }
    verdicts = {one.strategy.name: _verdict(one, outcomes[0], differences[one.strategy.name]) for one in outcomes[1:]}
    size = sets[0][0].processors
    return StrategyComparison(
        played, size, runs, outcomes, differences, verdicts, _recommended(outcomes, differences), _recorded(played),
        _load(played, size), _assumptions(workload, played, runs, size, strategies),
    )  # fmt: skip


def jittered(workload: Workload, seed: int) -> Workload:
    """The same jobs, each submitted up to five minutes sooner or later; whoever waits for another still comes after."""
    chance = random.Random(seed)  # noqa: S311 - a draw that can be repeated, no secret
    at: dict[int, float] = {}
    for job in workload.jobs:
        moved = max(0.0, job.submit + chance.uniform(-JITTER, JITTER))
        at[job.number] = moved if job.after is None else max(moved, at[job.after] + 1.0)
    jobs = (replace(job, submit=at[job.number]) for job in workload.jobs)
    return ordered(workload.name, jobs, workload.processors, workload.left_out)


def _checked(
    load: Workload, strategy: AnyStrategy, processors: int | None, make: Callable[[], Expectation] | None
) -> _Run:
    """A replay that the independent checker found nothing in."""
    if isinstance(strategy, GangOrder):
        shared = replay_gangs(load, strategy, gpus=processors, restart=RESTART)
        size, faults, end = shared.gpus, shared.faults, max(shared.ends)
        waits = tuple(at - job.submit - job.run for at, job in zip(shared.ends, load.jobs, strict=True))
    else:
        done = replay(load, strategy, processors=processors, expectation=make() if make is not None else None)
        size, faults, waits = done.processors, done.faults, done.waits
        end = max(start + job.run for job, start in done.placed)
    if faults:
        raise RuntimeError(f"the replay of {strategy.name} is wrong: {faults[0]}")
    return _Run(load, strategy, size, waits, end)


# --- What one strategy did --------------------------------------------------------------------------------------------


def bounded_slowdowns(done: Replay | _Run) -> list[float]:
    """(wait + run) / max(run, 10 s), at least 1, of every job in the order of the workload."""
    return [
        max(1.0, (wait + job.run) / max(job.run, SHORT_RUN))
        for wait, job in zip(done.waits, done.workload.jobs, strict=True)
    ]


def _outcome(replays: Sequence[_Run]) -> Outcome:
    rows = [_figures(done) for done in replays]
    figures = [Figure(math.fsum(column) / len(column), min(column), max(column)) for column in zip(*rows, strict=True)]
    return Outcome(replays[0].strategy, tuple(sorted(replays[0].waits)), *figures)


def _figures(done: _Run) -> tuple[float, ...]:
    """Wait, completion, slowdown, p95, longest, utilisation, starved, fairness of one run."""
    jobs, waits, slow = done.workload.jobs, done.waits, bounded_slowdowns(done)
    count = len(jobs)
    wait = math.fsum(waits) / count
    run = math.fsum(job.run for job in jobs) / count
    begin, end = jobs[0].submit, done.last_end
    area = math.fsum(job.run * job.processors for job in jobs)
    starved = sum(one > _DAY and one > _STARVED * job.run for one, job in zip(waits, jobs, strict=True))
    by_user: defaultdict[str, list[float]] = defaultdict(list)
    for job, value in zip(jobs, slow, strict=True):
        by_user[job.user].append(value)
    return (
        wait, wait + run, math.fsum(slow) / count, quantile(sorted(waits), 0.95), max(waits),
        area / (done.processors * (end - begin)) if end > begin else 1.0, starved / count,
        jain([math.fsum(values) / len(values) for values in by_user.values()]),
    )  # fmt: skip


def quantile(ascending: Sequence[float], share: float) -> float:
    """The least value that at least this share of all do not exceed."""
    return ascending[min(len(ascending) - 1, max(0, math.ceil(share * len(ascending)) - 1))]


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness, (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has everything."""
    squares = math.fsum(value * value for value in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else 1.0


def share_within(outcome: Outcome, seconds: float) -> float:
    """The share of jobs that waited less than so long, in the first run."""
    return bisect_left(outcome.waits, seconds) / len(outcome.waits)


# --- Beside the baseline ----------------------------------------------------------------------------------------------


def _difference(
    before: Sequence[_Run], after: Sequence[_Run], base: Outcome, outcome: Outcome, seed: int
) -> Difference:
    waits, slow = [], []
    for old, new in zip(before, after, strict=True):
        waits.append([b - a for a, b in zip(old.waits, new.waits, strict=True)])
        slow.append([b - a for a, b in zip(bounded_slowdowns(old), bounded_slowdowns(new), strict=True)])
    longest = base.longest_wait.mean
    return Difference(
        outcome.wait.mean - base.wait.mean,
        bootstrap(waits, seed),
        outcome.bounded_slowdown.mean - base.bounded_slowdown.mean,
        bootstrap(slow, seed),
        outcome.longest_wait.mean / longest if longest > 0 else None,
    )


def bootstrap(paired: Sequence[Sequence[float]], seed: int) -> tuple[float, float]:
    """The 95 % interval of the mean of paired differences, one row a jittered run, in the order of submission.

    Each draw takes one run, and of its jobs as many stretches of successive ones as there are, with replacement.
    """
    chance = random.Random(seed)  # noqa: S311 - a draw that can be repeated, no secret
    count = len(paired[0])
    blocks = min(_BLOCKS, count)
    edges = [count * number // blocks for number in range(blocks + 1)]
    spans = list(pairwise(edges))
    sums = [[math.fsum(row[a:b]) for a, b in spans] for row in paired]
    sizes = [b - a for a, b in spans]
    means: list[float] = []
    for _ in range(_DRAWS):
        row, drawn = chance.choice(sums), chance.choices(range(blocks), k=blocks)
        means.append(sum(row[block] for block in drawn) / sum(sizes[block] for block in drawn))
    means.sort()
    return quantile(means, _SPREAD[0]), quantile(means, _SPREAD[1])


def _better(difference: Difference) -> bool:
    return difference.wait_interval[1] < 0


def _grows(difference: Difference) -> bool:
    return difference.longest_ratio is None or difference.longest_ratio > GROWS_TOO_MUCH


def _verdict(outcome: Outcome, base: Outcome, difference: Difference) -> str:
    """In one sentence or two: better or worse beyond chance, and what it does to the longest wait."""
    before, after = base.wait.mean, outcome.wait.mean
    better = _better(difference)
    if better:
        said = f"shortens the mean wait by {1 - after / before:.0%}"
    elif difference.wait_interval[0] > 0 and before <= 0:
        said = "makes jobs wait where none did"
    elif difference.wait_interval[0] > 0:
        times = after / before
        said = (
            f"lengthens the mean wait by {times - 1:.0%}"
            if times < 2
            else f"makes the mean wait {times:.0f} times as long"
        )
    else:
        said = "changes the mean wait by no more than chance does"
    if not outcome.strategy.attainable:
        said += "; it knows what nobody can know, and is there to compare with"
    if difference.longest_ratio is None:
        grows = outcome.longest_wait.mean > 0
        return f"{said}; somebody waits where nobody did" if grows else said
    if _grows(difference):
        return f"{said}{', but' if better else ', and'} the longest wait grows by {difference.longest_ratio - 1:.0%}"
    return said


def _recommended(outcomes: Sequence[Outcome], differences: Mapping[str, Difference]) -> str | None:
    """The shortest mean wait among those that are better beyond chance and leave the longest wait within bounds.

    Where every better one makes the longest wait grow too much, the best of them, whose verdict says so.
    """
    better = [one for one in outcomes[1:] if one.strategy.attainable and _better(differences[one.strategy.name])]
    bounded = [one for one in better if not _grows(differences[one.strategy.name])]
    best = min(bounded or better, key=lambda one: one.wait.mean, default=None)
    return None if best is None else best.strategy.name


def _recorded(workload: Workload) -> float | None:
    known = [job.wait for job in workload.jobs if job.wait is not None]
    return math.fsum(known) / len(known) if known else None


def _load(workload: Workload, processors: int) -> float | None:
    """Processor time asked for over what was there while jobs were submitted; None where all came at once."""
    area = math.fsum(job.run * job.processors for job in workload.jobs)
    return area / (processors * workload.span) if workload.span > 0 else None


def _assumptions(
    workload: Workload, played: Workload, runs: int, processors: int, strategies: Sequence[AnyStrategy]
) -> tuple[str, ...]:
    """What the replay takes for granted, so that nobody takes its figures for more than they are."""
    cut = sum(job.limit is not None and job.run > job.limit > 0 for job in workload.jobs)
    told = [
        f"One pool of {processors} processors, all alike and always there, and empty at the beginning.",
        "Nodes, memory, partitions, reservations and failures are left out.",
        "People submit the same jobs at the same times whatever they wait, and every job runs as long as it did.",
        f"Figures are means of {runs} replays; in each, submissions are moved by up to {JITTER / 60:.0f} minutes.",
        "Intervals hold 95 % of draws of stretches of jobs, paired by job.",
    ]
    if cut:
        told.append(f"Jobs that ran beyond their limit end at it: {cut}.")
    left_out = {why: count for why, count in played.left_out.items() if count}
    if left_out:
        counts = "; ".join(f"{count} because {why}" for why, count in sorted(left_out.items()))
        told.append(f"Records that are left out: {counts}.")
    load = _load(played, processors)
    if load is not None and load > 1:
        told.append(f"{load:.0%} of what is there was asked for: waits grow with the length of the workload.")
    ordered_by = [strategy for strategy in strategies if isinstance(strategy, Strategy)]
    if any(strategy.weights is not None for strategy in ordered_by):
        told.append("Of Slurm's priorities age, fair share and size count; every user has the same share.")
    told.append(f"At one moment the first {DEPTH:,} waiting jobs are looked at.")
    if any(isinstance(strategy, GangOrder) and strategy.preempts for strategy in strategies):
        told.append(f"Where jobs are put aside, every job can be, and loses {RESTART:.0f} s each time it goes on.")
    return tuple(told)
