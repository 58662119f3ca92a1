"""The values that a round varies: how many there are, drawn by chance, and as coordinates between 0 and 1."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from slurm_agent_tools.models.campaign import Setting
from slurm_agent_tools.models.campaign_file import Choices, Range

Dimension = Choices | Range

Space = Mapping[str, Dimension]
"""What is varied together, by its name."""


def combinations(space: Space) -> int | None:
    """How many configurations there are; None where they cannot be counted."""
    counts = [_count(dimension) for dimension in space.values()]
    known = [count for count in counts if count is not None]
    return math.prod(known) if len(known) == len(counts) else None


def at_units(space: Space, units: Sequence[float]) -> dict[str, Setting]:
    """The configuration at these coordinates, one for each name of the space, each within [0, 1]."""
    return {name: _at(dimension, unit) for (name, dimension), unit in zip(space.items(), units, strict=True)}


def drawn(space: Space, chance: random.Random) -> dict[str, Setting]:
    """A configuration by chance, each value as likely as any other."""
    return at_units(space, [chance.random() for _ in space])


def distinct(space: Space, count: int, chance: random.Random) -> list[dict[str, Setting]]:
    """So many configurations by chance, none twice; fewer where there are not as many."""
    most = combinations(space)
    wanted = count if most is None else min(count, most)
    rows: dict[tuple[Setting, ...], dict[str, Setting]] = {}
    for _ in range(50 * wanted):
        if len(rows) == wanted:
            break
        row = drawn(space, chance)
        rows.setdefault(tuple(row.values()), row)
    return list(rows.values())


def coordinates(space: Space, settings: Mapping[str, Setting]) -> tuple[float, ...]:
    """Where a configuration lies: a number within [0, 1] for what is ordered, one for each choice that is not."""
    return tuple(part for name, dimension in space.items() for part in _coordinates(dimension, settings[name]))


def dimensions(space: Space) -> list[int]:
    """For each coordinate the number of the name that it belongs to."""
    widths = [len(_coordinates(dimension, _at(dimension, 0.0))) for dimension in space.values()]
    return [number for number, width in enumerate(widths) for _ in range(width)]


def inside(space: Space, settings: Mapping[str, Setting]) -> bool:
    """Whether a configuration has every name of the space, each with a value that it may have."""
    return all(name in settings and _allows(dimension, settings[name]) for name, dimension in space.items())


def _allows(dimension: Dimension, value: Setting) -> bool:
    if isinstance(dimension, Range):
        return _is_number(value) and dimension.low <= _number(value) <= dimension.high
    return value in dimension


def _count(dimension: Dimension) -> int | None:
    if isinstance(dimension, Range):
        return None if dimension.step is None and not dimension.whole else _steps(dimension) + 1
    return len(set(dimension))


def _steps(values: Range) -> int:
    """The number of the last step from low that is not above high."""
    step = values.step or 1.0
    return math.floor((values.high - _start(values)) / step + 1e-9)


def _start(values: Range) -> float:
    return float(math.ceil(values.low)) if values.whole and values.step is None else values.low


def _at(dimension: Dimension, unit: float) -> Setting:
    if not isinstance(dimension, Range):
        choices = ordered(dimension)
        return choices[min(int(unit * len(choices)), len(choices) - 1)]
    return within(dimension, _between(dimension, unit))


def within(dimension: Dimension, value: Setting) -> Setting:
    """The value that the dimension has nearest to this one; six digits where every number would do."""
    if not isinstance(dimension, Range):
        return value
    number = _number(value)
    if dimension.step is None and not dimension.whole:
        return min(max(float(f"{number:.6g}"), dimension.low), dimension.high)
    step = dimension.step or 1.0
    taken = min(max(round((number - _start(dimension)) / step), 0), _steps(dimension))
    exact = float(f"{_start(dimension) + taken * step:.12g}")
    return round(exact) if dimension.whole else exact


def _between(values: Range, unit: float) -> float:
    """The value at a share of the way; whole and stepped ones get as much of the way as their neighbours."""
    if values.log:
        return math.exp(math.log(values.low) + unit * (math.log(values.high) - math.log(values.low)))
    if values.step is None and not values.whole:
        return values.low + unit * (values.high - values.low)
    step = values.step or 1.0
    return _start(values) + (unit * (_steps(values) + 1) - 0.5) * step


def ordered(choices: Choices) -> tuple[Setting, ...]:
    """The choices once each, numbers by their size."""
    once = tuple(dict.fromkeys(choices))
    numbers = [choice for choice in once if _is_number(choice)]
    return tuple(sorted(numbers, key=_number)) if len(numbers) == len(once) else once


def _coordinates(dimension: Dimension, value: Setting) -> tuple[float, ...]:
    if isinstance(dimension, Range):
        low, high, at = dimension.low, dimension.high, min(max(_number(value), dimension.low), dimension.high)
        if dimension.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return ((at - low) / (high - low),)
    choices = ordered(dimension)
    if all(_is_number(choice) for choice in choices):
        return (choices.index(value) / max(len(choices) - 1, 1),)
    return tuple(float(choice == value) for choice in choices)


def _is_number(value: Setting) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Setting) -> float:
    return float(value) if not isinstance(value, str) else math.nan
