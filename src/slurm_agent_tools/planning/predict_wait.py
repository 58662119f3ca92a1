"""How long a job will still wait, by what similar jobs waited here, as quantiles. Pure.

Jobs that have started since somebody looked at the queue are compared by account, partition, limit, what they had
waited already, and by how many jobs of the same account stood before them: of a burst of a thousand the last waits
longer than the first, which says more than its size. What is expected is where the greatest weight lies within a factor
of two, as for run times. Slurm's own estimate is one more voice and no more, because it is often off a hundredfold.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from slurm_agent_tools.planning.calibration import ComparedEstimate, Correction, Quantiles, too_few, weighted_quantiles
from slurm_agent_tools.planning.predict_run import most_likely
from slurm_agent_tools.units import format_duration, how_many

DAY = 86_400.0

LATEST = 400
"""Waits of one likeness that count: those that ended last, of several bursts."""

KEPT = 2000
"""Different answers that the intervals are corrected by: those of some days, as one day's waits are all alike."""

_FADING = tuple(0.995**age for age in range(LATEST))

_SLURM_WEIGHT = 1.0


@dataclass(frozen=True, slots=True)
class WaitQuestion:
    """A job that waits, as it stands in the queue at `asked` (seconds since any beginning, one for all questions).

    `waited`: seconds since it was submitted. `own_ahead`: jobs of its account that were submitted before it and wait
    too; `alike_ahead`: those of them that ask for the same; `own_waiting`, `alike_waiting`: all that wait of its
    account, itself included, and those that ask for the same. `slurm`: the seconds that Slurm itself says. `queue`:
    other figures of the queue, by name, for the extra `forecast`. `number`: Slurm's own of the job, where it is known.
    """

    asked: float
    account: str
    partition: str
    processors: int
    limit: float | None
    waited: float = 0.0
    own_ahead: int = 0
    alike_ahead: int = 0
    own_waiting: int = 1
    alike_waiting: int = 1
    memory: float | None = None
    slurm: float | None = None
    queue: Mapping[str, float] = field(default_factory=dict)
    number: int | None = None


@dataclass(frozen=True, slots=True)
class WaitPrediction:
    """Seconds from the question to the start; None is not known, and `reason` says why.

    Beyond a day figures say little (one in five is within twice), so `text` says no more than that it is more than one.
    `basis`: waits that it rests on; `answers`: earlier answers that the interval is corrected by.
    """

    expected: float | None
    low: float | None
    median: float | None
    high: float | None
    basis: int
    likeness: str
    answers: int
    reason: str = ""
    raw: Quantiles | None = field(default=None, repr=False)

    @property
    def beyond_a_day(self) -> bool | None:
        """Whether more than a day is expected; None where nothing is."""
        return None if self.expected is None else self.expected > DAY

    @property
    def text(self) -> str:
        """For a person: what is expected, the interval, and what both rest on."""
        if self.expected is None:
            return f"not known: {self.reason}"
        rests = (
            f"by {how_many(self.basis, 'wait')} of {self.likeness}" if self.basis else "by Slurm's own estimate alone"
        )
        if self.low is None or self.high is None:
            return f"{_said(self.expected)} ({rests}; {self.reason})"
        return f"{_said(self.expected)}, in eight of ten cases {_said(self.low)} to {_said(self.high)} ({rests})"

    def compared(self, waited: float) -> ComparedEstimate:
        """Beside what it waited from the question on, in seconds."""
        return ComparedEstimate(self.expected, self.low, self.high, waited)


def _said(seconds: float) -> str:
    return "more than a day" if seconds > DAY else format_duration(round(seconds))


@dataclass(frozen=True, slots=True)
class _Similar:
    """What similar jobs waited: the mode, the raw quantiles, on how many it rests, what the most similar share."""

    expected: float | None = None
    raw: Quantiles | None = None
    basis: int = 0
    likeness: str = ""


class WaitPredictor:
    """Learns from waits as they end, and is asked about others. What it has not been told of it does not know."""

    def __init__(self) -> None:
        self._ended: dict[Hashable, list[tuple[float, float]]] = {}
        self._correction = Correction(KEPT)
        self._answers: dict[Hashable, _Similar] = {}  # until the next wait has ended
        self._medians: dict[Hashable, float | None] = {}

    def estimate(self, job: WaitQuestion) -> WaitPrediction:
        """What is expected, with its interval."""
        found = self._similar(job)
        if found.raw is None:
            why = "no wait of a job like it is known, and Slurm gives no start"
            return WaitPrediction(None, None, None, None, 0, "", 0, why)
        raw = found.raw
        shown, answers = self._correction.corrected(raw), self._correction.answers
        return WaitPrediction(
            expected=found.expected,
            low=None if shown is None else shown.low,
            median=None if shown is None else shown.median,
            high=None if shown is None else shown.high,
            basis=found.basis,
            likeness=found.likeness,
            answers=answers,
            reason="" if shown is not None else too_few(answers),
            raw=raw,
        )

    def usual(self, job: WaitQuestion) -> tuple[float | None, ...]:
        """The median of the last waits of each likeness, most alike first; None where there was none."""
        return tuple(self._median(key) for key, _, _ in _levels(job))

    def _median(self, key: Hashable) -> float | None:
        if key not in self._medians:
            kept = self._ended.get(key)
            self._medians[key] = median(wait for _, wait in kept) if kept else None
        return self._medians[key]

    def observe(self, job: WaitQuestion, waited: float, estimate: WaitPrediction | None = None) -> None:
        """It has started, `waited` seconds after the question; `estimate`: what was said of it then."""
        if estimate is not None and estimate.raw is not None:
            self._correction.observe((job.account, job.partition), estimate.raw, waited)
        self._answers.clear()
        self._medians.clear()
        for key, _, _ in _levels(job):
            kept = self._ended.setdefault(key, [])
            insort(kept, (job.asked + waited, waited))
            if len(kept) > LATEST:
                del kept[0]

    def _similar(self, job: WaitQuestion) -> _Similar:
        """Many are asked about at one look at the queue, and those of one burst are answered alike."""
        levels = _levels(job)
        same = (job.slurm, *(key for key, _, _ in levels))
        if same not in self._answers:
            self._answers[same] = self._gathered(levels, job.slurm)
        return self._answers[same]

    def _gathered(self, levels: Sequence[tuple[Hashable, float, str]], slurm: float | None) -> _Similar:
        values: list[tuple[float, float]] = []
        basis, likeness = 0, ""
        for key, weight, words in levels:
            kept = self._ended.get(key, ())
            likeness = likeness or (words if kept else "")
            basis = max(basis, len(kept))
            values += [(wait, weight * fading) for fading, (_, wait) in zip(_FADING, reversed(kept), strict=False)]
        if slurm is not None:
            values.append((slurm, _SLURM_WEIGHT))
        if not values:
            return _Similar()
        values.sort()
        return _Similar(most_likely(values), weighted_quantiles(values), basis, likeness)


def _levels(job: WaitQuestion) -> list[tuple[Hashable, float, str]]:
    """What is alike: key, weight, words. Counts and times by powers of two."""
    ahead, alike, own = (_power(one + 1) for one in (job.own_ahead, job.alike_ahead, job.own_waiting))
    limit = None if job.limit is None else _power(job.limit)
    account = "jobs of the same account and partition with as many before them"
    return [
        (("account", job.account, job.partition, ahead), 4.0, account),
        (
            ("burst", job.partition, ahead, alike, own),
            4.0,
            "jobs of the same partition at the same place of such a burst",
        ),
        (("limit", job.partition, ahead, limit), 2.0, "jobs of the same partition and limit with as many before them"),
        (("waited", ahead, _power(job.waited)), 1.0, "jobs that had waited as long with as many before them"),
        (("partition", job.partition), 0.1, "jobs of the same partition"),
    ]


def _power(value: float) -> int:
    """The nearest power of two."""
    return round(math.log2(max(value, 1.0)))


def waits_in_order(
    asked: Iterable[tuple[WaitQuestion, float]],
    predictor: WaitPredictor | None = None,
    given: Mapping[int, Quantiles] | None = None,
) -> Iterator[tuple[WaitQuestion, float, WaitPrediction]]:
    """Each question, in order, with what it waited and what is said of it: only waits that had ended are known.

    The way to learn from a history, too, with a `predictor` that is kept: in the end it knows them all. `given`: by a
    job's number the quantiles that were really told of it before any correction.
    """
    really = given or {}
    told = predictor or WaitPredictor()
    waiting: list[tuple[float, int, WaitQuestion, float, WaitPrediction]] = []
    for place, (job, waited) in enumerate(asked):
        while waiting and waiting[0][0] <= job.asked:
            _, _, started, took, said = heapq.heappop(waiting)
            told.observe(started, took, said)
        estimate = told.estimate(job)
        yield job, waited, estimate
        raw = None if job.number is None else really.get(job.number)
        said = estimate if raw is None else replace(estimate, raw=raw)
        heapq.heappush(waiting, (job.asked + waited, place, job, waited, said))
    for _, _, started, took, said in sorted(waiting, key=lambda one: one[:2]):
        told.observe(started, took, said)
