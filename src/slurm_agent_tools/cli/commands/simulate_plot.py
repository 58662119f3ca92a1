"""A comparison of strategies as SVG: bars of the mean wait with the spread over the runs, and how many waited how long.

No library draws it, and nothing in it is active: text, lines and shapes alone. What comes from outside is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from slurm_agent_tools.planning.compare import Outcome, StrategyComparison, quantile
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.text.svg_parts import picture, rule, words

_WIDTH, _LEFT, _RIGHT, _ROW, _CURVES = 760, 150, 90, 30, 260

_SPAN = _WIDTH - _LEFT - _RIGHT

# Told apart by people who see colours differently (Okabe and Ito), and by their dashes.
_COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

_DASHES = ("", "6 3", "2 3", "8 3 2 3", "", "6 3", "2 3")

_TICKS = ((60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h"), (36_000.0, "10 h"), (360_000.0, "100 h"))

_POINTS = 100


def wait_plot(comparison: StrategyComparison) -> str:
    """One SVG document."""
    outcomes = comparison.outcomes
    top = 56
    curves = top + _ROW * len(outcomes) + 60
    height = curves + _CURVES + 50 + 18 * len(outcomes)
    title = f"Waits under {len(outcomes)} strategies: {sanitize.line(comparison.workload.name)[:80]}"
    parts = [
        words(16, 22, title, font_size=14),
        words(16, 42, f"Mean wait, least to most of {comparison.runs} replays; beside it the longest wait"),
        *_bars(outcomes, top),
        words(16, curves - 12, "Share of jobs that waited less than"),
        *_axes(curves),
        *(part for number, one in enumerate(outcomes) for part in _curve(one, number, curves)),
    ]
    return picture(parts, _WIDTH, height, title)


def _bars(outcomes: Sequence[Outcome], top: float) -> Iterator[str]:
    most = max(one.wait.most for one in outcomes) or 1.0
    for number, one in enumerate(outcomes):
        y = top + number * _ROW
        low, mean, high = (value / most * _SPAN for value in (one.wait.least, one.wait.mean, one.wait.most))
        yield words(_LEFT - 8, y + 16, one.strategy.name, anchor="end")
        colour = _COLOURS[number % len(_COLOURS)]
        yield f'<rect x="{_LEFT}" y="{y + 4:.1f}" width="{mean:.1f}" height="16" fill="{colour}" fill-opacity="0.6"/>'
        yield rule((_LEFT + low, y + 12), (_LEFT + high, y + 12), stroke="#000000")
        yield words(_LEFT + high + 6, y + 16, f"{shown_seconds(one.wait.mean)}")
        yield words(_WIDTH - 8, y + 16, shown_seconds(one.longest_wait.mean), anchor="end")


def _axes(top: float) -> Iterator[str]:
    for share in (0, 25, 50, 75, 100):
        y = top + _CURVES * (1 - share / 100)
        yield rule((_LEFT, y), (_LEFT + _SPAN, y), stroke="#dddddd")
        yield words(_LEFT - 8, y + 4, f"{share} %", anchor="end")
    for seconds, label in _TICKS:
        x = _place(seconds)
        yield rule((x, top), (x, top + _CURVES), stroke="#dddddd")
        yield words(x, top + _CURVES + 16, label, anchor="middle")


def _place(seconds: float) -> float:
    """Where a wait lies on the axis: by its logarithm, from a minute to a thousand hours; shorter ones at the left."""
    lowest, highest = math.log10(60.0), math.log10(3.6e6)
    share = (math.log10(max(seconds, 60.0)) - lowest) / (highest - lowest)
    return _LEFT + _SPAN * min(1.0, share)


def _curve(outcome: Outcome, number: int, top: float) -> Iterator[str]:
    """Its quantiles as a line, and its name below the axes."""
    colour, dash = _COLOURS[number % len(_COLOURS)], _DASHES[number % len(_DASHES)]
    points = " ".join(
        f"{_place(quantile(outcome.waits, step / _POINTS)):.1f},{top + _CURVES * (1 - step / _POINTS):.1f}"
        for step in range(_POINTS + 1)
    )
    style = f'fill="none" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{dash}"'
    yield f'<polyline points="{points}" {style}/>'
    y = top + _CURVES + 40 + 18 * number
    yield f'<polyline points="{_LEFT},{y - 4} {_LEFT + 40},{y - 4}" {style}/>'
    yield words(_LEFT + 48, y, f"{outcome.strategy.name}: {outcome.strategy.what}")


def shown_seconds(seconds: float) -> str:
    """A wait for people: `45 s`, `12 min`, `3.4 h`, `5.2 d`."""
    for most, unit, name in ((90.0, 1.0, "s"), (5400.0, 60.0, "min"), (172_800.0, 3600.0, "h")):
        if seconds < most:
            value = seconds / unit
            return f"{value:.0f} {name}" if value >= 10 or unit == 1.0 else f"{value:.1f} {name}"
    return f"{seconds / 86_400:.1f} d"
