"""How sure it is that configurations differ from a baseline: intervals that hold for all of them at once.

Dunnett's comparison of several treatments with a control (Journal of the American Statistical Association 50, 1955),
with the spread pooled over all, on the logarithm where all values are positive. Where the runs' deviations are plainly
not normal, a seeded bootstrap of them is asked as well (Westfall and Young, Resampling-Based Multiple Testing, 1993),
and the wider answer counts. Pure.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, median

MISSED_LOW = 0.0475
"""The share of cases in which any low end may lie above the true gain."""

MISSED_HIGH = 0.0025
"""The share of cases in which any high end may lie below it; both together leave 95 %."""

SEEN_BY_CHANCE = 0.10
"""The share of cases in which runs that do not differ at all look as if they did."""

SEEN_OF_FEW = 0.03
"""The same where a configuration has so few runs that their means still lean to one side as runs do."""

_ROUNDING = 1e-12
"""A share of the values below which a difference is that of sums of floating-point numbers."""

_DRAWS = 1000
_PLAINLY = 9.21  # the 1 % point of the statistic of Jarque and Bera, chi squared with 2 degrees of freedom
_FEWEST_DEVIATIONS = 20
_FEW_RUNS = 5


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of a configuration over the baseline, as a share of the baseline's value, and its interval."""

    gain: float
    low: float
    high: float


def gains(
    baseline: Sequence[float], arms: Mapping[str, Sequence[float]], *, maximize: bool, share: float = 1.0, seed: int = 0
) -> dict[str, Gain]:
    """The gain of each arm with two runs or more; none where the baseline has fewer.

    All true gains lie within their intervals but for 5 of 100 campaigns, times `share`: the part of them that this
    comparison may take, so that all comparisons of a campaign together take no more than the 5. An interval holds 0
    besides where all runs together do not show that anything differs: of campaigns without any
    difference fewer promote something so, at the cost of hardly any gain that is there.
    """
    judged = {name: values for name, values in arms.items() if len(values) >= 2}
    if len(baseline) < 2 or not judged:
        return {}
    groups = _scaled([baseline, *judged.values()])
    spread = _Spread(groups)
    wider = _bootstrapped(groups, share, seed) if spread.plainly_not_normal else (0.0, 0.0)
    runs = [len(group.deviations) for group in groups]
    seen = SEEN_OF_FEW if min(runs) < _FEW_RUNS else SEEN_BY_CHANCE
    rounding = _ROUNDING * max((abs(group.center) for group in groups if group.unit is not None), default=1.0)
    differ = _differ(groups, spread, seen * share, rounding)
    found: dict[str, Gain] = {}
    for number, name in enumerate(judged, 1):
        error, freedom, weight = spread.of(number)
        sizes = (runs[0], tuple(sorted(runs[1:])), float(f"{min(freedom, 1000.0):.2g}"))
        low = max(critical(*sizes, MISSED_LOW * share), wider[0]) * error + rounding
        high = max(critical(*sizes, MISSED_HIGH * share), wider[1]) * error + rounding
        more = groups[number].center - groups[0].center
        down, up = groups[0].ways(low if maximize else high, high if maximize else low, weight)
        ends = (more, more - down, more + up) if maximize else (-more, -more - up, -more + down)
        found[name] = _gain(groups[0], *ends, differ=differ, maximize=maximize)
    return found


def _gain(baseline: _Group, better: float, low: float, high: float, *, differ: bool, maximize: bool) -> Gain:
    ends = (better, low, high) if differ else (better, min(low, 0.0), max(high, 0.0))
    return Gain(*(baseline.share(at, maximize=maximize) for at in ends))


def surpasses(known: Sequence[float], single: float, *, challengers: int, maximize: bool) -> bool:
    """Whether one run, the best of so many, is better than what is known of a configuration would give by chance.

    Where that has one run as well, the better one is.
    """
    if len(known) < 2:
        return single > known[0] if maximize else single < known[0]
    logs = single > 0 and all(value > 0 for value in known)
    scale = _scale([single, *known])
    runs = [math.log(value) if logs else value / scale for value in known]
    more = (math.log(single) if logs else single / scale) - fmean(runs)
    spread = math.sqrt(math.fsum((run - fmean(runs)) ** 2 for run in runs) / (len(runs) - 1) * (1 + 1 / len(runs)))
    least = critical(len(runs), (1,) * challengers, float(len(runs) - 1), MISSED_LOW) * spread
    return (more if maximize else -more) > least


@dataclass(frozen=True, slots=True)
class _Group:
    """The runs of one configuration on the scale that is compared: its center and how the runs deviate from it."""

    center: float
    deviations: tuple[float, ...]
    unit: float | None
    """What a difference is a share of; None where centers are logarithms."""
    of_mean: bool = False
    """Whether the center is the logarithm of the usual mean, not of the geometric one."""

    def ways(self, down: float, up: float, weight: float) -> tuple[float, float]:
        """How far below and above a difference of two centers its true value may lie; given are errors of normal ones.

        Of usual means not their ratio is normal but what one has over the true ratio times the other. That difference
        is set against the value that both would have then, of which the other one tells `weight` (as in Fieller,
        Journal of the Royal Statistical Society B 16, 1954). Ratios alone lean to one side where a baseline has more
        runs than what is compared with it.
        """
        if not self.of_mean:
            return down, up
        return _log_ratio(down, 1 - weight, weight), _log_ratio(up, weight, 1 - weight)

    def share(self, better: float, *, maximize: bool) -> float:
        """By how much a center is better than this one, as a share of this one's value: 0.2 is a fifth better."""
        if self.unit is not None:
            return better / self.unit
        return math.expm1(min(better, 700.0)) if maximize else -math.expm1(min(-better, 700.0))


def _log_ratio(error: float, own: float, other: float) -> float:
    return math.log((1 + error * own) / max(1 - error * other, 0.05))


def _scaled(groups: Sequence[Sequence[float]]) -> list[_Group]:
    """Where all values are positive ratios are compared: of the usual or of the geometric means, as runs deviate."""
    if not all(value > 0 for values in groups for value in values):
        scale = _scale(value for values in groups for value in values)
        groups = [[value / scale for value in values] for values in groups]
        unit = abs(fmean(groups[0])) or 1.0 / scale
        return [_Group(fmean(values), tuple(value - fmean(values) for value in values), unit) for values in groups]
    usual, geometric = [], []
    for values in groups:
        middle, logs = fmean(values), [math.log(value) for value in values]
        usual.append(_Group(math.log(middle), tuple(value / middle - 1 for value in values), None, True))
        geometric.append(_Group(fmean(logs), tuple(log - fmean(logs) for log in logs), None))
    few = sum(map(len, groups)) < _FEWEST_DEVIATIONS
    return geometric if few or abs(_shape(geometric)[0]) <= abs(_shape(usual)[0]) else usual


def _scale(values: Iterable[float]) -> float:
    """What values are divided by, so that no square or cube of one is beyond what a number can be."""
    return max(map(abs, values)) or 1.0


def _shape(groups: Sequence[_Group]) -> tuple[float, float]:
    """Skewness and excess of the deviations of all groups."""
    pool = _pool(groups)
    second = fmean(one * one for one in pool)
    if second <= 0:
        return 0.0, 0.0
    return fmean(one**3 for one in pool) / second**1.5, fmean(one**4 for one in pool) / second**2 - 3


def _pool(groups: Sequence[_Group]) -> list[float]:
    """The deviations from all centers, brought to the spread that they have around the true ones."""
    return [
        one * math.sqrt(len(group.deviations) / (len(group.deviations) - 1))
        for group in groups
        for one in group.deviations
    ]


class _Spread:
    """How much runs of one configuration differ: pooled, but for those that plainly differ more than the rest.

    Where all plainly differ unlike each other each has its own.

    Group 0 is the baseline.
    """

    def __init__(self, groups: Sequence[_Group]) -> None:
        self._runs = [len(group.deviations) for group in groups]
        squares = [math.fsum(one * one for one in group.deviations) for group in groups]
        free = [runs - 1 for runs in self._runs]
        self._variance = [total / freedom for total, freedom in zip(squares, free, strict=True)]
        every = set(range(len(groups)))
        self._wild = every if _uneven(groups) else {number for number in every if _wilder(number, squares, free)}
        calm = [number for number in range(len(groups)) if number not in self._wild] or list(range(len(groups)))
        self._freedom = sum(free[number] for number in calm)
        self._pooled = sum(squares[number] for number in calm) / self._freedom
        skewness, excess = _shape(groups)
        self.plainly_not_normal = (
            sum(self._runs) >= _FEWEST_DEVIATIONS and sum(self._runs) / 6 * (skewness**2 + excess**2 / 4) > _PLAINLY
        )
        """Whether skewness and tails of the deviations are not those of normal ones (Jarque and Bera, 1980)."""

    def of(self, number: int) -> tuple[float, float, float]:
        """The standard error of a group's difference from the baseline, its degrees of freedom, the baseline's part.

        The last is the baseline's share of the error's square.
        """
        runs = (self._runs[0], self._runs[number])
        if not self._wild & {0, number}:
            parts = (1 / runs[0], 1 / runs[1])
            return math.sqrt(self._pooled * sum(parts)), float(self._freedom), parts[0] / sum(parts)
        own = [(self._variance[at] / self._runs[at], self._runs[at] - 1) for at in (0, number)]
        error, freedom = _welch(own)
        return error, freedom, own[0][0] / error**2 if error else 0.5

    def of_others(self, number: int) -> tuple[float, float]:
        """The same of a group's difference from all others together."""
        others = sum(self._runs) - self._runs[number]
        if number not in self._wild:
            return math.sqrt(self._pooled * (1 / others + 1 / self._runs[number])), float(self._freedom)
        own = (self._variance[number] / self._runs[number], self._runs[number] - 1)
        return _welch([own, (self._pooled / others, self._freedom)])


def _welch(parts: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """The standard error of a difference of means with spreads of their own, and its degrees of freedom (Welch, 1947).

    `parts`: the variance of each mean, and its degrees of freedom.
    """
    square = sum(part for part, _ in parts)
    below = sum(part**2 / free for part, free in parts)
    return math.sqrt(square), max(square**2 / below, 1.0) if below else 1.0


def _differ(groups: Sequence[_Group], spread: _Spread, missed: float, rounding: float) -> bool:
    """Whether some group lies apart from all others together: analysis of means, each with its part of `missed`.

    (Nelson, Journal of Quality Technology 15, 1983; Bonferroni's bound, which is close here.) With many alike groups
    this sees one better one more surely than its difference from the baseline alone does.
    """
    looks = 2 * (len(groups) if len(groups) > 2 else 1)
    runs = [len(group.deviations) for group in groups]
    total = sum(count * group.center for count, group in zip(runs, groups, strict=True))
    for number, group in enumerate(groups):
        others = (total - runs[number] * group.center) / (sum(runs) - runs[number])
        error, freedom = spread.of_others(number)
        least = error * critical(2, (2,), float(f"{min(freedom, 1000.0):.2g}"), missed / looks) + rounding
        if abs(group.center - others) > least:
            return True
    return False


def _wilder(number: int, squares: Sequence[float], free: Sequence[int]) -> bool:
    """Whether a group differs more within itself than all others do, as in one of 1,000 by chance (F, approximately).

    The cube root of a variance ratio is about normal (Wilson and Hilferty, 1931; Paulson, 1942).
    """
    others = sum(free) - free[number]
    rest = (sum(squares) - squares[number]) / others
    if rest <= 0:
        return squares[number] > 0
    return _normal_score(squares[number] / free[number] / rest, free[number], others) > 3.09


def _normal_score(ratio: float, free: int, below: int) -> float:
    """The value of a normal deviate that is passed as often as this ratio of two variances (approximately)."""
    root, own, other = math.cbrt(ratio), 2 / (9 * free), 2 / (9 * below)
    return (root * (1 - other) - (1 - own)) / math.sqrt(other * root**2 + own)


def _uneven(groups: Sequence[_Group]) -> bool:
    """Whether groups of several runs scatter unlike each other, as in one of 100 by chance.

    By the distances of runs from their median, which far-off runs hardly mislead (Brown and Forsythe, Journal of the
    American Statistical Association 69, 1974).
    """
    far = [[abs(one - median(group.deviations)) for one in group.deviations] for group in groups]
    if min(map(len, far)) < _FEW_RUNS:
        return False
    means, total = [fmean(values) for values in far], sum(map(len, far))
    middle = fmean(value for values in far for value in values)
    within = math.fsum((value - mean) ** 2 for values, mean in zip(far, means, strict=True) for value in values)
    between = math.fsum(len(values) * (mean - middle) ** 2 for values, mean in zip(far, means, strict=True))
    free, below = len(far) - 1, total - len(far)
    return within > 0 and _normal_score(between / free / (within / below), free, below) > 2.33


def _bootstrapped(groups: Sequence[_Group], share: float, seed: int) -> tuple[float, float]:
    """Critical values for what lies above and below the baseline by chance, from deviations drawn anew."""
    pool, counts = _pool(groups), [len(group.deviations) for group in groups]
    free = sum(counts) - len(counts)
    chance = random.Random(seed)  # noqa: S311 - resampling, and no secret
    ups, downs = [], []
    for _ in range(_DRAWS):
        drawn = [chance.choices(pool, k=count) for count in counts]
        means = [sum(values) / count for values, count in zip(drawn, counts, strict=True)]
        squares = sum(value * value for values in drawn for value in values)
        within = squares - sum(count * mean * mean for mean, count in zip(means, counts, strict=True))
        spread = math.sqrt(max(within, 0.0) / free) or 1e-300
        scaled = [
            (mean - means[0]) / (spread * math.sqrt(1 / count + 1 / counts[0]))
            for mean, count in zip(means[1:], counts[1:], strict=True)
        ]
        ups.append(max(scaled))
        downs.append(-min(scaled))
    return _upper(ups, MISSED_LOW * share), _upper(downs, MISSED_HIGH * share)


def _upper(values: list[float], missed: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil((1 - missed) * len(ordered)))]


@lru_cache(maxsize=512)
def critical(control: int, arms: tuple[int, ...], freedom: float, missed: float) -> float:
    """The value that the largest of the studentised differences passes in this share of cases where none is true.

    `control`, `arms`: numbers of runs; `freedom`: degrees of freedom of the spread. The differences share the control,
    and given it and the spread they are independent: two integrals remain (Dunnett, 1955).
    """
    shares = Counter(math.sqrt(count / (count + control)) for count in arms)
    ways = [(math.sqrt(0.5 / (1 - share * share)), share, count) for share, count in shares.items()]
    cells = _cells(freedom)
    low, high = 0.0, 8.0
    while _missed(high, ways, cells) > missed and high < 1e6:
        low, high = high, high * 4
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _missed(middle, ways, cells) > missed else (low, middle)
        if high - low < 1e-5 * high:
            break
    return high


_NORMAL = [(step * 0.3, 0.3 * math.exp(-((step * 0.3) ** 2) / 2) / math.sqrt(2 * math.pi)) for step in range(-20, 21)]


_FAR = 1e-13
"""A weight so small that all cells with less together change no value in a digit that counts."""


def _missed(
    value: float, ways: Sequence[tuple[float, float, int]], cells: Sequence[tuple[float, float, float]]
) -> float:
    within = 0.0
    for spread, at, weight in cells:
        product = weight
        for scale, share, count in ways:
            product *= (0.5 * math.erfc(-scale * (value * spread + share * at))) ** count
        within += product
    return 1.0 - within


@lru_cache(maxsize=32)
def _cells(freedom: float) -> Sequence[tuple[float, float, float]]:
    """Where the two integrals are evaluated: spread, deviation of the control, and the weight of both."""
    all_of_them = ((spread, at, weight * density) for spread, weight in _chi_points(freedom) for at, density in _NORMAL)
    return [cell for cell in all_of_them if cell[2] > _FAR]


def _chi_points(freedom: float) -> list[tuple[float, float]]:
    """Points and weights for the spread as a share of the true one: chi over the root of its degrees of freedom."""
    if freedom >= 1000:
        return [(1.0, 1.0)]
    width = 1 / math.sqrt(2 * freedom)
    first, last = -(8 * width + 14 / freedom), 6 * width
    count = 64
    step = (last - first) / count
    constant = math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)
    points = []
    for number in range(count + 1):
        at = first + number * step
        density = math.exp(constant + freedom * at - freedom / 2 * math.exp(2 * at))
        points.append((math.exp(at), density * step))
    total = sum(weight for _, weight in points)
    return [(at, weight / total) for at, weight in points]
