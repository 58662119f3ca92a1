"""How long a job will run, by similar jobs that have ended: the mode within a factor of two. Pure.

Of the last jobs of the same user, name, size and limit, of the same user, size and limit, of the same user and limit,
and of the same user, those count most that are most alike and were submitted last. What is expected is where the
greatest weight lies within a factor of two; the limit counts as one more of them. Only what had ended is known.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from slurm_agent_tools.planning.calibration import ComparedEstimate, Correction, Quantiles, too_few, weighted_quantiles
from slurm_agent_tools.planning.workload import TracedJob
from slurm_agent_tools.units import format_duration, how_many

LATEST = 20
"""Jobs of one likeness that count: those submitted last."""

_FADED = {weight: tuple(weight * 0.85**age for age in range(LATEST)) for weight in (8.0, 4.0, 2.0, 1.0)}
"""By the weight of a likeness: what its jobs count, the last first."""

_LIMIT_WEIGHT = 2.0

GRACE = 60.0
"""Seconds that a job may be seen to run beyond its limit, until Slurm has ended it."""

_STEPS = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 18000.0, 36000.0, 72000.0, 180000.0, 360000.0)
"""What is added to a time that has expired, step by step (Tsafrir, Etsion and Feitelson 2007)."""

Weighted = Sequence[tuple[float, float]]
"""(seconds, weight), sorted by seconds."""


@dataclass(frozen=True, slots=True)
class RunQuestion:
    """A job that waits: size, limit in seconds, user and name."""

    processors: int
    limit: float | None
    user: str
    name: str = ""


RunAsked = RunQuestion | TracedJob
"""A TracedJob is asked about as one that waits: its run and its wait are not looked at."""


@dataclass(frozen=True, slots=True)
class RunPrediction:
    """Seconds that a job will run. `low`, `median`, `high`: one in ten, one in two, nine in ten end sooner.

    None is not known, and `reason` says why. `basis`: ended jobs it rests on; `likeness`: what the most similar of them
    share with this one; `answers`: earlier answers that the interval is corrected by.
    """

    expected: float | None
    low: float | None
    median: float | None
    high: float | None
    basis: int
    likeness: str
    limit: float | None
    answers: int
    reason: str = ""
    similar: Weighted = field(default=(), repr=False)
    raw: Quantiles | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """For a person: what is expected, the interval, and what both rest on."""
        if self.expected is None:
            return f"not known: {self.reason}"
        rests = f"by {self.jobs}, the nearest of {self.likeness}" if self.basis else f"by {self.likeness}"
        expected = format_duration(round(self.expected))
        if self.interval is None:
            return f"{expected} ({rests}; {self.reason})" if self.reason else f"{expected} ({rests})"
        return f"{expected}, in eight of ten cases {self.interval} ({rests})"

    @property
    def jobs(self) -> str:
        """On how many it rests, in words."""
        return how_many(self.basis, "job")

    @property
    def interval(self) -> str | None:
        """From when to when eight of ten end; None where too few estimates were compared."""
        if self.low is None or self.high is None:
            return None
        return f"{format_duration(round(self.low))} to {format_duration(round(self.high))}"

    def compared(self, ran: float) -> ComparedEstimate:
        """Beside what it took, in seconds."""
        return ComparedEstimate(self.expected, self.low, self.high, ran)

    def corrected(self, elapsed: float) -> RunPrediction:
        """What is expected of the job now that it has run `elapsed` seconds: always more than that.

        Up to what was expected the estimate stays. Then the similar jobs count that ran longer still, and where there
        is none a step more, growing from a minute to days. Not beyond the limit and its grace, while that holds.
        """
        most = math.inf if self.limit is None or elapsed >= self.limit + GRACE else self.limit + GRACE
        if self.expected is None or elapsed < self.expected:
            return _running_on(self, elapsed, most)
        longer = [(seconds, weight) for seconds, weight in self.similar if seconds > elapsed]
        expected = min(most_likely(longer) if longer else next_step(elapsed), most)
        median = None if self.median is None else max(self.median, expected)
        expired = replace(self, expected=expected, median=median, reason="it has run longer than was expected")
        return _running_on(expired, elapsed, most)


def _running_on(said: RunPrediction, elapsed: float, most: float) -> RunPrediction:
    """The interval of a job that runs on. One that has outrun it may take all of its limit, if it has one."""
    low, median, high = (
        None if one is None else min(max(one, elapsed), most) for one in (said.low, said.median, said.high)
    )
    if high is not None and high <= elapsed:
        high = None if math.isinf(most) else most
    return replace(said, low=low, median=median, high=high)


def next_step(elapsed: float) -> float:
    """The end of the first step that lies beyond `elapsed`, in seconds; beyond all steps half as much again."""
    reached = 0.0
    for step in _STEPS:
        reached += step
        if reached > elapsed:
            return reached
    return 1.5 * elapsed


def most_likely(values: Weighted) -> float:
    """The time around which the greatest weight lies within a factor of two.

    `values` are sorted. The window from x to 4 x with the greatest weight is taken, the shortest where several have as
    much, and its middle on the logarithm: every value in it is within twice of that.
    """
    times = [seconds for seconds, _ in values]
    if times[0] < 1.0:
        times = [max(seconds, 1.0) for seconds in times]
    sums = list(accumulate([weight for _, weight in values], initial=0.0))
    count, greatest, middle, end = len(times), -1.0, times[0], 0
    for index, least in enumerate(times):
        most = 4 * least
        if times[end] > most:
            continue  # the same end as before, and less before it
        while end < count and times[end] <= most:
            end += 1
        if sums[end] - sums[index] > greatest + 1e-9:
            greatest, middle = sums[end] - sums[index], math.sqrt(least * times[end - 1])
        if end == count:
            break
    return middle


class RunPredictor:
    """Learns from jobs as they end, and is asked about others. What it has not been told of it does not know."""

    def __init__(self) -> None:
        self._ended: dict[Hashable, list[tuple[float, int, float]]] = {}
        self._latest: dict[Hashable, list[float]] = {}  # run times alone, the last first, until the next has ended
        self._expected: dict[str, dict[Hashable, float]] = {}  # by user and kind, until the user's next job has ended
        self._corrections = {True: Correction(), False: Correction()}  # by whether jobs of the same user were known

    def predict(self, job: RunAsked) -> float | None:
        """Seconds that are expected alone; None where neither similar jobs nor a limit are known."""
        same, kind = self._expected.setdefault(job.user, {}), (job.processors, job.limit, job.name)
        if kind not in same:
            values = self._values(_own(job))
            if not values:
                return self._of_strangers(job)
            if job.limit is not None:
                insort(values, (job.limit, _LIMIT_WEIGHT))
            same[kind] = _within_limit(most_likely(values), job.limit)
        return same[kind]

    def _of_strangers(self, job: RunAsked) -> float | None:
        values, _, _ = self._similar(job)
        return _within_limit(most_likely(values), job.limit) if values else None

    def estimate(self, job: RunAsked) -> RunPrediction:
        """What is expected, with its interval."""
        values, basis, likeness = self._similar(job)
        if not values:
            why = "no job like it has ended, and it has no time limit"
            return RunPrediction(None, None, None, None, 0, likeness, None, 0, why)
        raw = weighted_quantiles(values)
        correction = self._corrections[likeness in _OWN]
        shown, answers = correction.corrected(raw), correction.answers
        if shown is not None and job.limit is not None:
            shown = shown.within(0.0, job.limit + GRACE)
        return RunPrediction(
            expected=_within_limit(most_likely(values), job.limit),
            low=None if shown is None else shown.low,
            median=None if shown is None else shown.median,
            high=None if shown is None else shown.high,
            basis=basis,
            likeness=likeness,
            limit=job.limit,
            answers=answers,
            reason="" if shown is not None else too_few(answers),
            similar=tuple(values),
            raw=raw,
        )

    def observe(self, job: TracedJob, estimate: RunPrediction | None = None) -> None:
        """This job has ended, after `job.run` seconds; `estimate`: what was said of it at its submission.

        A job that never ran says nothing about those that do.
        """
        if job.run <= 0:
            return
        if estimate is not None and estimate.raw is not None:
            self._corrections[estimate.likeness in _OWN].observe(
                (job.user, job.processors, job.limit), estimate.raw, job.run
            )
        self._expected.pop(job.user, None)
        ended = (job.submit, job.number, job.run)
        for key, _, _ in (*_own(job), *_others(job)):
            kept = self._ended.get(key)
            if kept is None:
                self._ended[key] = [ended]
                continue
            self._latest.pop(key, None)
            insort(kept, ended)
            if len(kept) > LATEST:
                del kept[0]

    def _similar(self, job: RunAsked) -> tuple[list[tuple[float, float]], int, str]:
        """Run times with their weights, how many jobs they are of, and what the most similar share."""
        values, basis, likeness = self._of(_own(job))
        if not values:
            values, basis, likeness = self._of(_others(job))
        if job.limit is not None:
            insort(values, (job.limit, _LIMIT_WEIGHT))
        return values, basis, likeness or ("its time limit alone" if job.limit is not None else "nothing")

    def _of(self, levels: Sequence[tuple[Hashable, float, str]]) -> tuple[list[tuple[float, float]], int, str]:
        numbers: set[int] = set()
        likeness = ""
        for key, _, words in levels:
            kept = self._ended.get(key, ())
            likeness = likeness or (words if kept else "")
            numbers.update([number for _, number, _ in kept])
        return self._values(levels), len(numbers), likeness

    def _values(self, levels: Sequence[tuple[Hashable, float, str]]) -> list[tuple[float, float]]:
        """Run times with their weights, sorted."""
        values: list[tuple[float, float]] = []
        for key, weight, _ in levels:
            kept = self._ended.get(key)
            if kept is not None:
                latest = self._latest.get(key)
                if latest is None:
                    latest = self._latest[key] = [run for _, _, run in reversed(kept)]
                values.extend(zip(latest, _FADED[weight], strict=False))
        values.sort()
        return values


_NAMED, _CALLED, _SIZED, _LIMITED, _USERS = _OWN = (
    "the same user, name, limit and size", "the same user and name", "the same user, limit and size",
    "the same user and limit", "the same user",
)  # fmt: skip


def _own(job: RunAsked) -> list[tuple[Hashable, float, str]]:
    """What is alike among the user's own jobs, most alike first: key, weight, words."""
    levels: list[tuple[Hashable, float, str]] = [
        ((_SIZED, job.user, job.limit, job.processors), 4.0, _SIZED),
        ((_LIMITED, job.user, job.limit), 2.0, _LIMITED),
        ((_USERS, job.user), 1.0, _USERS),
    ]
    if job.name:
        levels.insert(0, ((_CALLED, job.user, job.name), 4.0, _CALLED))
        levels.insert(0, ((_NAMED, job.user, job.name, job.limit, job.processors), 8.0, _NAMED))
    return levels


def _others(job: RunAsked) -> list[tuple[Hashable, float, str]]:
    """The same among everybody's jobs, for a user of whom nothing has ended."""
    sized, limited = "the same limit and size, of other users", "the same limit, of other users"
    return [((sized, job.limit, job.processors), 2.0, sized), ((limited, job.limit), 1.0, limited)]


def _within_limit(seconds: float, limit: float | None) -> float:
    return seconds if limit is None else min(seconds, limit)


def estimates_in_order(
    jobs: Iterable[TracedJob],
    predictor: RunPredictor | None = None,
    given: Mapping[int, Quantiles] | None = None,
) -> Iterator[tuple[TracedJob, RunPrediction]]:
    """Each job at its submission with what is said of it then, in order: only jobs that had ended by then are known.

    `jobs`: by submission; one of which no wait is known counts as started at once. The way to learn from a history,
    too, with a `predictor` that is kept: in the end it knows them all. `given`: by a job's number the quantiles that
    were really told of it before any correction.
    """
    really = given or {}
    told = predictor or RunPredictor()
    running: list[tuple[float, int, TracedJob, RunPrediction]] = []
    for place, job in enumerate(jobs):
        while running and running[0][0] <= job.submit:
            _, _, ended, said = heapq.heappop(running)
            told.observe(ended, said)
        estimate = told.estimate(job)
        yield job, estimate
        said = replace(estimate, raw=really[job.number]) if job.number in really else estimate
        heapq.heappush(running, (job.submit + (job.wait or 0.0) + job.run, place, job, said))
    for _, _, ended, said in sorted(running, key=lambda one: one[:2]):
        told.observe(ended, said)
