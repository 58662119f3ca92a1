"""Predictions beside what happened: how often they held, and how intervals are corrected by that. Pure.

The correction is split conformal prediction (Romano, Patterson and Candès 2019, "Conformalized quantile regression"),
on the logarithm of seconds, each side by itself, over the last answers instead of a fixed set: what quantiles of
similar jobs promise is too narrow, and by how much is seen in how the last ones ended.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from slurm_agent_tools.units import how_many

LOW, MEDIAN, HIGH = 0.1, 0.5, 0.9

KEPT = 500
"""Different answers that a correction rests on at most: the last ones. The same answer to the same asker counts once,
however many jobs of an array got it: a thousand tasks that end alike say as little about others as one of them.
"""

MOST_KEPT = 40_000
"""Answers in all that are kept for it."""

ENOUGH = 20
"""With fewer answers no interval is shown."""

LAST = 50
"""Estimates that the text speaks of."""


def too_few(answers: int) -> str:
    """Why there is no interval: so few estimates before were compared."""
    told = f"only {how_many(answers, 'earlier estimate')}" if answers else "no earlier estimate"
    return f"{told} {'have' if answers > 1 else 'has'} been compared with what happened"


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Seconds that one in ten, one in two and nine in ten do not exceed."""

    low: float
    median: float
    high: float

    def within(self, least: float, most: float) -> Quantiles:
        """Each kept between two bounds, in seconds."""
        low, median, high = (min(max(one, least), most) for one in (self.low, self.median, self.high))
        return Quantiles(low, median, high)


class _Recent:
    """The last differences between what happened and what was said: of each quantile, sorted."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._order: deque[tuple[Hashable, tuple[float, ...]]] = deque()
        self._different: Counter[Hashable] = Counter()
        self.sorted: tuple[list[float], ...] = ([], [], [])

    def add(self, answer: Hashable, residuals: tuple[float, ...]) -> None:
        """Keep one more; the oldest goes where there are too many."""
        self._order.append((answer, residuals))
        self._different[answer] += 1
        for kept, residual in zip(self.sorted, residuals, strict=True):
            insort(kept, residual)
        while len(self._different) > self._most or len(self._order) > MOST_KEPT:
            self._drop()

    def _drop(self) -> None:
        answer, residuals = self._order.popleft()
        self._different[answer] -= 1
        if not self._different[answer]:
            del self._different[answer]
        for kept, residual in zip(self.sorted, residuals, strict=True):
            del kept[bisect_left(kept, residual)]

    def __len__(self) -> int:
        return len(self._order)


class Correction:
    """Corrects raw quantiles by how the last ones ended; `kept`: so many different answers at most."""

    def __init__(self, kept: int = KEPT) -> None:
        self._recent = _Recent(kept)

    @property
    def answers(self) -> int:
        """How many answers it rests on."""
        return len(self._recent)

    def observe(self, asker: Hashable, raw: Quantiles, happened: float) -> None:
        """What was answered to whom before any correction, and what came of it, in seconds."""
        said = (raw.low, raw.median, raw.high)
        self._recent.add((asker, raw), tuple(math.log(max(happened, 1.0) / max(one, 1.0)) for one in said))

    def corrected(self, raw: Quantiles) -> Quantiles | None:
        """None with fewer than ENOUGH answers: raw quantiles are never shown."""
        if len(self._recent) < ENOUGH:
            return None
        low, median, high = (
            max(said, 1.0) * math.exp(_ranked(residuals, share))
            for said, share, residuals in zip(
                (raw.low, raw.median, raw.high), (LOW, MEDIAN, HIGH), self._recent.sorted, strict=True
            )
        )
        high = max(low, high)
        return Quantiles(low, min(max(median, low), high), high)


def _ranked(residuals: Sequence[float], share: float) -> float:
    """The rank that holds for one answer more than there are, so that `share` is kept with few of them too."""
    wanted = (len(residuals) + 1) * share
    rank = math.ceil(wanted) if share >= MEDIAN else math.floor(wanted)
    return residuals[min(max(rank, 1), len(residuals)) - 1]


def weighted_quantiles(values: Sequence[tuple[float, float]]) -> Quantiles:
    """Of (value, weight) sorted by value, the first at which each share of the weight is reached."""
    reached = list(accumulate(weight for _, weight in values))
    low, median, high = (
        values[min(bisect_left(reached, share * reached[-1]), len(values) - 1)][0] for share in (LOW, MEDIAN, HIGH)
    )
    return Quantiles(low, median, high)


# --- What is told of it -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ComparedEstimate:
    """One estimate and what happened, in seconds or bytes. None: no interval was given on that side."""

    expected: float | None
    low: float | None
    high: float | None
    happened: float

    @property
    def held(self) -> bool | None:
        """Whether it lay in the interval, ends included; None where none was given."""
        if self.low is None and self.high is None:
            return None
        return (self.low is None or self.low <= self.happened) and (self.high is None or self.happened <= self.high)

    @property
    def within_twice(self) -> bool | None:
        """Whether what was expected is neither half nor twice of it; None where nothing was."""
        if self.expected is None:
            return None
        return max(self.expected, 1.0) <= 2 * max(self.happened, 1.0) <= 4 * max(self.expected, 1.0)


@dataclass(frozen=True, slots=True)
class Calibration:
    """How the last estimates ended: how many were given, held, were too short and too long, and within twice."""

    estimates: int
    held: int
    too_low: int
    too_high: int
    within_twice: int

    @property
    def share(self) -> float | None:
        """Held of all; None where there was none."""
        return self.held / self.estimates if self.estimates else None

    @property
    def text(self) -> str:
        """One sentence for a person, with which way they erred where one way outweighs."""
        if not self.estimates:
            return "no estimate has been compared with what happened yet"
        told = f"of the last {self.estimates} estimates {self.held} held"
        if max(self.too_low, self.too_high) < 2 * min(self.too_low, self.too_high) + 3:
            return told
        way = "shorter" if self.too_low > self.too_high else "longer"
        return f"{told}; most of the others were {way} than what happened"


def calibration(outcomes: Iterable[ComparedEstimate], last: int = LAST) -> Calibration:
    """Of the last so many outcomes, oldest first; those without an interval do not count."""
    judged = [one for one in outcomes if one.held is not None][-last:]
    missed = [one for one in judged if not one.held]
    below = sum(1 for one in missed if one.high is not None and one.happened > one.high)
    return Calibration(
        estimates=len(judged),
        held=len(judged) - len(missed),
        too_low=below,
        too_high=len(missed) - below,
        within_twice=sum(1 for one in judged if one.within_twice),
    )
