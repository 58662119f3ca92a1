"""Plots as SVG: dots, stacked bars, parallel coordinates, steps, curves, what ran when.

Self-contained, every text escaped; in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.text.svg_parts import rule, safe, words

WIDTH, HEIGHT = 640, 300

_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 16, 30, 46

COLOURS = ("#2f6f9f", "#d17a22", "#5b8c3e", "#a04668", "#6d5aa8", "#8a6d3b", "#3d8f8a", "#777777")
"""Told apart by people who see few colours as well; used in this order."""

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:currentColor}.title{font-weight:600;font-size:13px}"
    ".axis{stroke:currentColor;stroke-opacity:.45}.grid{stroke:currentColor;stroke-opacity:.12}"
)

_SPREAD_FOR_LOGARITHM = 30
"""An axis whose largest value is so many times its smallest shows magnitudes."""


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """One run in a plot. `group` gives the colour and stands in the legend; `told` is shown under the pointer."""

    x: float
    y: float
    group: str = ""
    told: str = ""


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    begin: float
    end: float
    logarithm: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value."""
        low, high, value = (
            (math.log(self.low), math.log(self.high), math.log(value))
            if self.logarithm
            else (self.low, self.high, value)
        )
        share = 0.5 if high == low else (value - low) / (high - low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Round numbers along it."""
        if self.logarithm:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [10.0**power for power in powers if self.low <= 10.0**power <= self.high]
            return found if len(found) > 1 else [self.low, self.high]
        if self.low == self.high:
            return [self.low]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        step = next(step * factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= 5)
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _axis(
    values: Iterable[float], begin: float, end: float, *, from_zero: bool = False, logarithm: bool = False
) -> _Axis:
    found = list(values)
    low, high = min(found), max(found)
    if logarithm and low > 0:
        return _Axis(low, high, begin, end, logarithm=low < high)
    if from_zero:
        return _Axis(min(0.0, low), max(high, 1e-12), begin, end)
    margin = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return _Axis(low - margin, high + margin, begin, end)


def by_magnitude(values: Sequence[float]) -> bool:
    """Whether an axis of these values shows magnitudes: all above 0, and far apart."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= _SPREAD_FOR_LOGARITHM


def number(value: float) -> str:
    """A number as people write it, four digits at most."""
    return f"{value:.4g}"


def scatter(points: Sequence[PlotPoint], *, title: str, x: str, y: str, ordered: Sequence[str] | None = None) -> str:
    """Runs as dots. `ordered`: the names of the values on the x axis, which count from 0, where they are no numbers."""
    shown = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    if not shown:
        return _nothing(title)
    across = _axis(
        (point.x for point in shown), _LEFT, WIDTH - _RIGHT,
        logarithm=ordered is None and by_magnitude([point.x for point in shown]),
    )  # fmt: skip
    up = _axis((point.y for point in shown), HEIGHT - _BOTTOM, _TOP)
    groups = list(dict.fromkeys(point.group for point in shown))
    marks = {float(place): name for place, name in enumerate(ordered)} if ordered is not None else None
    pieces = [*_frame(title, x, y), *_up_ticks(up), *_across_ticks(across, marks)]
    for point in shown:
        colour = COLOURS[groups.index(point.group) % len(COLOURS)]
        told = f"<title>{safe(point.told)}</title>" if point.told else ""
        pieces.append(
            f'<circle cx="{across.at(point.x):.1f}" cy="{up.at(point.y):.1f}" r="4.5" fill="{colour}"'
            f' fill-opacity=".75">{told}</circle>'
        )
    return _picture([*pieces, *_legend(groups)], HEIGHT, title)


def stacked_bars(rows: Sequence[tuple[str, Mapping[str, float]]], *, title: str, unit: str) -> str:
    """One bar a row, its parts one behind the other: how a time or a cost is made up."""
    if not rows:
        return _nothing(title)
    names = list(dict.fromkeys(name for _, parts in rows for name in parts))
    height = _TOP + 22 * len(rows) + _BOTTOM
    left = 180
    across = _axis([0.0, *(sum(parts.values()) for _, parts in rows)], left, WIDTH - 60, from_zero=True)
    pieces = [_heading(title)]
    for place, (label, parts) in enumerate(rows):
        top = _TOP + 22 * place
        pieces.append(words(left - 6, top + 13, _short(label, 26), anchor="end"))
        begun = 0.0
        for name, value in parts.items():
            begin, end = across.at(begun), across.at(begun + value)
            colour = COLOURS[names.index(name) % len(COLOURS)]
            told = f"<title>{safe(f'{label}: {name} {number(value)} {unit}')}</title>"
            width = max(end - begin, 0)
            pieces.append(
                f'<rect x="{begin:.1f}" y="{top}" width="{width:.1f}" height="16" fill="{colour}">{told}</rect>'
            )
            begun += value
        pieces.append(words(across.at(begun) + 4, top + 13, number(begun)))
    legend = _legend(names, y=height - 12)
    unit_line = words(WIDTH - _RIGHT, height - 12, unit, anchor="end")
    return _picture([*pieces, *legend, unit_line], height, title)


def parallel_coordinates(
    axes: Sequence[str], lines: Sequence[tuple[Sequence[float | str], float]], *, title: str, best_is_high: bool
) -> str:
    """One line a configuration through its value on each axis, the last axis is what counts; the best drawn last."""
    if not lines or len(axes) < 2:
        return _nothing(title)
    gap = (WIDTH - _LEFT - 50) / (len(axes) - 1)
    columns = [[line[place] for line, _ in lines] for place in range(len(axes))]
    scales = [_column(column) for column in columns]
    pieces = [_heading(title)]
    for place, name in enumerate(axes):
        x = _LEFT + gap * place
        pieces.append(rule((x, _TOP + 12), (x, HEIGHT - _BOTTOM), class_="axis"))
        pieces.append(words(x, HEIGHT - 14, _short(name, 18), anchor="middle"))
        pieces += [words(x + 5, y, _short(label, 12)) for label, y in _ends(scales[place])]
    ranked = sorted(lines, key=lambda line: line[1] if best_is_high else -line[1])
    for place, (line, _) in enumerate(ranked):
        share = place / max(1, len(ranked) - 1)
        path = " ".join(f"{_LEFT + gap * column:.1f},{scales[column][value]:.1f}" for column, value in enumerate(line))
        colour, opacity = (COLOURS[1], 1.0) if place == len(ranked) - 1 else (COLOURS[0], 0.15 + 0.55 * share)
        pieces.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-opacity="{opacity:.2f}"/>'
        )
    return _picture(pieces, HEIGHT, title)


def growing(points: Sequence[tuple[float, float]], *, title: str, x: str, y: str, limit: float | None) -> str:
    """What was spent by when, as steps, and the limit as a line."""
    if not points:
        return _nothing(title)
    across = _axis([0.0, *(when for when, _ in points)], _LEFT, WIDTH - _RIGHT, from_zero=True)
    up = _axis([0.0, limit or 0.0, *(spent for _, spent in points)], HEIGHT - _BOTTOM, _TOP, from_zero=True)
    path, before = [f"M{across.at(0):.1f} {up.at(0):.1f}"], 0.0
    for when, spent in points:
        path += [f"L{across.at(when):.1f} {up.at(before):.1f}", f"L{across.at(when):.1f} {up.at(spent):.1f}"]
        before = spent
    pieces = [*_frame(title, x, y), *_up_ticks(up), *_across_ticks(across, None)]
    if limit is not None:
        level = up.at(limit)
        pieces.append(rule((_LEFT, level), (WIDTH - _RIGHT, level), stroke=COLOURS[3], stroke_dasharray="5 4"))
        pieces.append(words(WIDTH - _RIGHT, level - 4, f"limit {number(limit)}", anchor="end"))
    pieces.append(f'<path d="{" ".join(path)}" fill="none" stroke="{COLOURS[0]}" stroke-width="2"/>')
    return _picture(pieces, HEIGHT, title)


def curves(
    lines: Mapping[str, Sequence[tuple[float, float]]], *, title: str, x: str, y: str, most: float | None = None
) -> str:
    """One line for each name through its points (x, y), in their order; `most`: the end of the upright axis."""
    known = {name: [one for one in points if all(map(math.isfinite, one))] for name, points in lines.items()}
    every = [one for points in known.values() for one in points]
    if not every:
        return _nothing(title)
    across = _axis((place for place, _ in every), _LEFT, WIDTH - _RIGHT)
    heights = [0.0, *(value for _, value in every), *([] if most is None else [most])]
    up = _axis(heights, HEIGHT - _BOTTOM, _TOP, from_zero=True)
    pieces = [*_frame(title, x, y), *_up_ticks(up), *_across_ticks(across, None)]
    for number_of, points in enumerate(known.values()):
        colour = COLOURS[number_of % len(COLOURS)]
        path = " ".join(f"{across.at(place):.1f},{up.at(value):.1f}" for place, value in points)
        pieces.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        pieces += [  # a single sample is no line
            f'<circle cx="{across.at(place):.1f}" cy="{up.at(value):.1f}" r="3" fill="{colour}"/>'
            for place, value in points[:1] if len(points) == 1
        ]  # fmt: skip
    return _picture([*pieces, *_legend([*known])], HEIGHT, title)


@dataclass(frozen=True, slots=True)
class TimeBar:
    """From when to when something was in one state, in one unit of time; `kind` gives the colour, in the legend too."""

    begin: float
    end: float
    kind: str
    told: str = ""


def what_ran_when(rows: Sequence[tuple[str, Sequence[TimeBar]]], *, title: str, unit: str) -> str:
    """A row for each run with its bars, time from left to right from 0."""
    ends = [bar.end for _, bars in rows for bar in bars]
    if not ends:
        return _nothing(title)
    height = _TOP + 18 * len(rows) + _BOTTOM
    across = _axis([0.0, *ends], 120, WIDTH - _RIGHT, from_zero=True)
    kinds = list(dict.fromkeys(bar.kind for _, bars in rows for bar in bars))
    pieces = [_heading(title)]
    for tick in across.ticks():
        at = across.at(tick)
        pieces.append(rule((at, _TOP - 4), (at, height - 40), class_="grid"))
        pieces.append(words(at, height - 26, number(tick), anchor="middle"))
    for place, (label, bars) in enumerate(rows):
        top = _TOP + 18 * place
        pieces.append(words(114, top + 12, _short(label, 17), anchor="end"))
        for bar in bars:
            left, width = across.at(bar.begin), max(1.0, across.at(bar.end) - across.at(bar.begin))
            told = f"<title>{safe(bar.told)}</title>" if bar.told else ""
            colour = COLOURS[kinds.index(bar.kind) % len(COLOURS)]
            pieces.append(
                f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="13" fill="{colour}">{told}</rect>'
            )
    unit_line = words(WIDTH - _RIGHT, height - 8, unit, anchor="end")
    return _picture([*pieces, *_legend(kinds, y=height - 8), unit_line], height, title)


# --- Parts of a plot --------------------------------------------------------------------------------------------------


def _column(values: Sequence[float | str]) -> dict[float | str, float]:
    """The pixel of each value on one upright axis."""
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    begin, end = HEIGHT - _BOTTOM, _TOP + 12
    if len(numbers) == len(values):
        low, high = min(numbers), max(numbers)
        axis = _Axis(low, high, begin, end, logarithm=by_magnitude(numbers))
        return {value: axis.at(float(value)) for value in numbers}
    names = sorted(set(values), key=str)
    axis = _Axis(0, max(1, len(names) - 1), begin, end)
    return {name: axis.at(place) for place, name in enumerate(names)}


def _ends(scale: Mapping[float | str, float]) -> list[tuple[str, float]]:
    """The labels beside an axis: of numbers the least and the most, of names all."""
    items = sorted(scale.items(), key=lambda item: item[1])
    kept = items if any(isinstance(value, str) for value, _ in items) else [items[0], items[-1]][: len(items)]
    return [(number(value) if isinstance(value, (int, float)) else value, pixel) for value, pixel in kept]


def _heading(text: str) -> str:
    return words(8, 18, text, class_="title")


def _frame(title: str, x: str, y: str) -> Iterator[str]:
    corner, right = (_LEFT, HEIGHT - _BOTTOM), WIDTH - _RIGHT
    yield _heading(title)
    yield rule(corner, (right, HEIGHT - _BOTTOM), class_="axis")
    yield rule((_LEFT, _TOP), corner, class_="axis")
    yield words(right, HEIGHT - 8, x, anchor="end")
    yield words(right, 18, y, anchor="end")


def _up_ticks(axis: _Axis) -> Iterator[str]:
    for value in axis.ticks():
        y = axis.at(value)
        yield rule((_LEFT, y), (WIDTH - _RIGHT, y), class_="grid")
        yield words(_LEFT - 6, y + 4, number(value), anchor="end")


def _across_ticks(axis: _Axis, names: Mapping[float, str] | None) -> Iterator[str]:
    for value in axis.ticks() if names is None else names:
        label = number(value) if names is None else _short(names[value], 14)
        yield words(axis.at(value), HEIGHT - _BOTTOM + 16, label, anchor="middle")


def _legend(names: Sequence[str], y: float = HEIGHT - 8) -> Iterator[str]:
    x = 8.0
    for place, name in enumerate(names):
        if not name:
            continue
        label = _short(name, 22)
        yield f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="10" height="10" fill="{COLOURS[place % len(COLOURS)]}"/>'
        yield words(x + 14, y, label)
        x += 26 + 6.6 * len(label)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _nothing(title: str) -> str:
    return _picture([_heading(f"{title}: nothing was measured")], 30, title)


_OWN_LOOK = f' style="max-width:{WIDTH}px;color:#24292f;background:#fff"><style>{_STYLE}</style>'


def unstyled(picture: str) -> str:
    """A plot without colours of its own, for a page that allows no style but its own sheet."""
    return picture.replace(_OWN_LOOK, ">", 1)


def _picture(pieces: Iterable[str], height: float, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img"'
        f' aria-label="{safe(title)}"{_OWN_LOOK}{"".join(pieces)}</svg>'
    )
