"""A search over many parameters at once by a small Gaussian process of our own: Matern 5/2, expected improvement.

Made for up to some 60 runs, where each run costs far more than a second of thought (Jones, Schonlau and Welch,
Efficient Global Optimization, 1998; Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2,
4 and 5). The first points are spread evenly (Roberts' R sequence); points of one wave are told apart by taking the
model's mean for those that are not run yet. Pure, and the same again for the same seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul

from slurm_agent_tools.campaigns.search_space import Space, at_units, combinations, coordinates, dimensions, inside
from slurm_agent_tools.models.campaign import Setting

Point = tuple[float, ...]

_MOST_TAKEN = 80
_CANDIDATES = 200
_REFINED = 100


@dataclass(frozen=True, slots=True)
class Tried:
    """A configuration that was run, and what counts of it; None where it failed."""

    settings: Mapping[str, Setting]
    value: float | None


def suggest(
    space: Space, tried: Sequence[Tried], count: int, *, asked: int, seed: int, maximize: bool
) -> list[dict[str, Setting]]:
    """So many configurations to run next, none that was tried; fewer where there are no more.

    `asked`: how many the search suggested before; `seed` stays the same through one search.
    """
    known = [one for one in tried if inside(space, one.settings)]
    taken = {_key(space, one.settings) for one in known}
    most = combinations(space)
    count = count if most is None else min(count, most - len(taken))
    observed = _averages(space, known, maximize)
    rows: list[dict[str, Setting]] = []
    spread = _starting(space, observed) - asked
    model: _Model | None = None
    for number in range(count):
        if number < spread:
            row = _even(space, asked + number, seed, taken)
        else:
            model = _Model(space, observed, like=model)
            row = _most_promising(space, model, taken, random.Random(f"{seed} {asked} {number}"))  # noqa: S311
        if row is None:
            break
        rows.append(row)
        taken.add(_key(space, row))
        if model is not None:
            observed = {**observed, coordinates(space, row): model.at(coordinates(space, row))[0]}
    return rows


def _starting(space: Space, observed: Mapping[Point, float]) -> int:
    """How many points are spread evenly before the model is asked."""
    return max(5, 2 * len(space) + 1) if len(set(observed.values())) > 1 else 10**6


def _key(space: Space, settings: Mapping[str, Setting]) -> tuple[Setting, ...]:
    return tuple(settings[name] for name in space)


def _averages(space: Space, tried: Sequence[Tried], maximize: bool) -> dict[Point, float]:
    """Point -> its mean, to be minimized; a failed one counts as the worst that was seen."""
    values: dict[tuple[float, ...], list[float]] = {}
    failed: list[Point] = []
    for one in tried:
        point = coordinates(space, one.settings)
        if one.value is None or not math.isfinite(one.value):
            failed.append(point)
        else:
            values.setdefault(point, []).append(-one.value if maximize else one.value)
    means = {point: sum(listed) / len(listed) for point, listed in values.items()}
    if not means:
        return {}
    worst = max(means.values())
    means.update({point: worst for point in failed if point not in means})
    best_first = sorted(means, key=means.__getitem__)
    return {point: means[point] for point in best_first[:_MOST_TAKEN]}


def _even(space: Space, number: int, seed: int, taken: set[tuple[Setting, ...]]) -> dict[str, Setting] | None:
    """The point of this number of an even sequence that starts by chance; another where it was tried."""
    size = len(space)
    ratio = 2.0
    for _ in range(40):
        ratio = (1 + ratio) ** (1 / (size + 1))
    start = random.Random(seed)  # noqa: S311 - a design, and no secret
    shift = [start.random() for _ in range(size)]
    for far in range(2000):
        step = number + far * 97 + 1
        row = at_units(space, [(shift[axis] + step * ratio ** -(axis + 1)) % 1.0 for axis in range(size)])
        if _key(space, row) not in taken:
            return row
    return None


def _most_promising(
    space: Space, model: _Model, taken: set[tuple[Setting, ...]], chance: random.Random
) -> dict[str, Setting] | None:
    """The configuration with the largest expected improvement among many by chance and many near the best."""
    best: tuple[float, dict[str, Setting] | None, list[float]] = (-1.0, None, [])
    rows = [[chance.random() for _ in space] for _ in range(_CANDIDATES)]
    for number in range(_CANDIDATES + _REFINED):
        if number < _CANDIDATES:
            units = rows[number]
        else:
            width = 0.15 * 0.97 ** (number - _CANDIDATES)
            units = [min(max(unit + chance.gauss(0.0, width), 0.0), 1.0) for unit in best[2] or rows[0]]
        row = at_units(space, units)
        if _key(space, row) in taken:
            continue
        gain = model.improvement(coordinates(space, row))
        if gain > best[0]:
            best = (gain, row, units)
    return best[1] or _even(space, len(taken), chance.getrandbits(32), taken)


class _Model:
    """A Gaussian process over what was observed, its values brought to mean 0 and spread 1.

    `like`: a model of the same search whose scales and noise are taken over, so that they are not sought again.
    """

    def __init__(self, space: Space, observed: Mapping[Point, float], like: _Model | None = None) -> None:
        self._axes = dimensions(space)
        self._points = list(observed)
        values = list(observed.values())
        self._mean = sum(values) / len(values)
        spread = math.sqrt(sum((value - self._mean) ** 2 for value in values) / len(values))
        self._spread = spread or 1.0
        self._values = [(value - self._mean) / self._spread for value in values]
        likeliest = (like.scales, like.noise) if like else self._likeliest(len(space))
        self.scales: list[float] = likeliest[0]
        """How far values are alike along each axis."""
        self.noise: float = likeliest[1]
        """The part of their variance that is noise."""
        self._near = self._scaled(self._points, self.scales)
        kernel, factor = _kernel(self._near), None
        while factor is None:
            factor = _cholesky(kernel, self.noise)
            self.noise *= 1.0 if factor else 10.0
        self._factor = factor
        half = _forward(factor, self._values)
        self._weights = _backward(factor, half)
        self._amplitude = max(_dot(half, half) / len(half), 1e-6)
        self._best = min(value - self.noise * weight for value, weight in zip(self._values, self._weights, strict=True))

    def _scaled(self, points: Sequence[Point], scales: Sequence[float]) -> list[Point]:
        """The points in units of how far values are alike along each axis."""
        units = [1 / scales[axis] for axis in self._axes]
        return [tuple(map(mul, point, units)) for point in points]

    def at(self, point: Point) -> tuple[float, float]:
        """Mean and standard deviation at a point, in the values' own unit."""
        mean, deviation = self._standard(point)
        return self._mean + self._spread * mean, self._spread * deviation

    def improvement(self, point: Point) -> float:
        """The expected improvement over the best mean so far, in spreads."""
        mean, deviation = self._standard(point)
        if deviation < 1e-9:
            return 0.0
        z = (self._best - mean) / deviation
        return deviation * (z * 0.5 * math.erfc(-z / math.sqrt(2)) + math.exp(-z * z / 2) / math.sqrt(2 * math.pi))

    def _standard(self, point: Point) -> tuple[float, float]:
        (here,) = self._scaled([point], self.scales)
        near = [_matern(math.dist(here, other)) for other in self._near]
        half = _forward(self._factor, near)
        left = max(1.0 - _dot(half, half), 0.0)
        return _dot(near, self._weights), math.sqrt(self._amplitude * left)

    def _likeliest(self, size: int) -> tuple[list[float], float]:
        """How far values are alike along each axis, and the noise: by likelihood and a mild prior, axis by axis."""
        usual = 0.4 * math.sqrt(size)
        best = max(
            (self._likelihood([usual * factor] * size, noise, usual), factor, noise)
            for factor in (0.35, 0.7, 1.4)
            for noise in (1e-4, 1e-2, 1e-1)
        )
        score, scales, noise = best[0], [usual * best[1]] * size, best[2]
        for factor in (2.2, 1.5) if size > 1 else (1.4,):
            for axis in range(size):
                for change in (factor, 1 / factor):
                    tried = [scale * change if at == axis else scale for at, scale in enumerate(scales)]
                    found = self._likelihood(tried, noise, usual)
                    if found > score:
                        score, scales = found, tried
                        break
        return scales, noise

    def _likelihood(self, scales: Sequence[float], noise: float, usual: float) -> float:
        factor = _cholesky(_kernel(self._scaled(self._points, scales)), noise)
        if factor is None:
            return -math.inf
        half = _forward(factor, self._values)
        count = len(half)
        fit = max(_dot(half, half) / count, 1e-12)
        prior = sum((math.log(scale / usual) / 1.0) ** 2 for scale in scales) / 2
        return -count / 2 * math.log(fit) - sum(math.log(row[-1]) for row in factor) - prior


def _kernel(points: Sequence[Point]) -> list[list[float]]:
    """How alike values at these points are: the lower triangle."""
    return [[*(_matern(math.dist(point, other)) for other in points[:row]), 1.0] for row, point in enumerate(points)]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    """The scalar product, as far as the shorter one goes."""
    return float(sum(map(mul, one, other)))


def _matern(distance: float) -> float:
    """Matern's covariance with smoothness 5/2 (Rasmussen and Williams, equation 4.17)."""
    scaled = math.sqrt(5.0) * distance
    return (1.0 + scaled + scaled * scaled / 3.0) * math.exp(-scaled)


def _cholesky(lower: list[list[float]], noise: float) -> list[list[float]] | None:
    """The lower triangular factor, row by row; None where rounding makes it impossible."""
    factor: list[list[float]] = []
    for row in lower:
        made: list[float] = []
        for column, other in enumerate(factor):
            made.append((row[column] - _dot(made, other)) / other[column])
        left = row[len(factor)] + noise + 1e-10 - _dot(made, made)
        if left <= 0:
            return None
        factor.append([*made, math.sqrt(left)])
    return factor


def _forward(factor: list[list[float]], values: Sequence[float]) -> list[float]:
    solved: list[float] = []
    for row, value in zip(factor, values, strict=True):
        solved.append((value - _dot(row, solved)) / row[-1])
    return solved


def _backward(factor: list[list[float]], values: Sequence[float]) -> list[float]:
    left = list(values)
    for row in range(len(factor) - 1, -1, -1):
        left[row] /= factor[row][row]
        for column in range(row):
            left[column] -= factor[row][column] * left[row]
    return left
