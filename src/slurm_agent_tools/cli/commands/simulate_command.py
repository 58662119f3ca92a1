"""The subcommand `simulate`: what other strategies would have made of a workload, side by side with confidence."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, get_args

import anyio.to_thread

from slurm_agent_tools.api import printing, render
from slurm_agent_tools.api.context_registry import OpenedContexts
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.insights.queue_history import ClusterPast, cluster_past
from slurm_agent_tools.planning.compare import FEWEST_RUNS, AnyStrategy, Outcome, StrategyComparison, compare, quantile
from slurm_agent_tools.planning.gangs import GANG_ORDERS
from slurm_agent_tools.planning.strategies import STRATEGIES, PriorityWeights, site_weights
from slurm_agent_tools.planning.workload import MOST_BYTES, Unit, Workload, from_accounting, read_swf
from slurm_agent_tools.settings import load
from slurm_agent_tools.text import log_events, safe_open, sanitize

DONE = 0

SITE = "site"

_DEFAULT = ("easy", "easy-shortest", "easy-predicted", "easy-similar", "shortest", "shares")

_HEADER = (
    "STRATEGY",
    "MEAN WAIT",
    "95 % BESIDE THE FIRST",
    "SLOWDOWN",
    "P95",
    "LONGEST",
    "STARVED",
    "FAIRNESS",
    "USED",
)

MIXED = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `simulate`."""
    parser.description = (
        "Replay a workload under several strategies on one pool of processors: waits, slowdown, starvation and fairness"
        " side by side, with intervals over jittered replays, and the assumptions. The first strategy is the one that"
        " the others are compared with. Changes nothing."
    )
    parser.add_argument(
        "trace", nargs="?", metavar="TRACE", help="a trace in the Standard Workload Format, plain or gzip"
    )
    parser.add_argument("--accounting", action="store_true", help="this cluster's own accounting in place of a trace")
    parser.add_argument("--days", type=int, default=30, metavar="N", help="with --accounting: the last N days (30)")
    parser.add_argument(
        "--unit", choices=get_args(Unit), default="cpus", help="with --accounting: what is counted (cpus)"
    )
    parser.add_argument("--partition", metavar="NAME", help="with --accounting: only this partition and its nodes")
    parser.add_argument("--cluster", metavar="NAME", help="with --accounting: the cluster of the settings")
    parser.add_argument("--processors", type=int, metavar="N", help="the size of the pool, where it is another")
    parser.add_argument("--lines", type=int, metavar="N", help="only the first N lines of the trace")
    known = ", ".join((*STRATEGIES, *GANG_ORDERS, SITE))
    parser.add_argument(
        "--strategies", metavar="A,B,...", help=f"of {known}; {SITE}: with --accounting, its priorities"
    )
    parser.add_argument("--seeds", type=int, default=FEWEST_RUNS, metavar="N", help="jittered replays of each (5)")
    parser.add_argument("--svg", type=Path, metavar="OUT", help="write the waits as a plot into this new file")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


async def run(args: argparse.Namespace) -> int:
    """Print the comparison; returns the exit code. Raises AgentToolsError."""
    if args.accounting == (args.trace is not None):
        raise InputError("trace", args.trace, "or --accounting is needed, and not both")
    if args.lines is not None and args.lines < 1:
        raise InputError("lines", args.lines, "must be at least 1")
    settings = load()
    log_events.configure(settings.log_level)
    past = await _past(args) if args.accounting else None
    workload = _trace(Path(args.trace), args.lines) if past is None else _ran(past, args.unit, args.partition)
    strategies = chosen(args.strategies, None if past is None else site_weights(past.configuration))
    found = await anyio.to_thread.run_sync(
        lambda: compare(workload, strategies, processors=args.processors, runs=args.seeds)
    )
    if args.svg is not None:
        _write(args.svg, wait_plot(found))
    body = sanitize.document(_document(found, past, args.svg))
    if args.json:
        printing.document(body, as_json=True)
    else:
        printing.show(list(_pieces(found, body)))
    return DONE


async def _past(args: argparse.Namespace) -> ClusterPast:
    registry = OpenedContexts(load())
    try:
        context = await registry.at(args.cluster)
        return await cluster_past(context, days=args.days, partition=args.partition)
    finally:
        await registry.close()


def _ran(past: ClusterPast, unit: Unit, partition: str | None) -> Workload:
    name = f"accounting of {past.cluster}, last {past.days} days" + (f", partition {partition}" if partition else "")
    return from_accounting(past.jobs, name=name, unit=unit, processors=past.sizes[unit] or None)


def _trace(path: Path, lines: int | None) -> Workload:
    try:
        data = safe_open.read(path, MOST_BYTES)
    except OSError as error:
        raise InputError("trace", str(path), f"cannot be read: {error.strerror}", hint="Give an SWF file.") from error
    return read_swf(data, name=path.name, lines=lines)


def chosen(listed: str | None, weights: PriorityWeights | None) -> list[AnyStrategy]:
    """The strategies by their names. Raises InputError for one that is not known, or needs what is not there."""
    names = list(_DEFAULT) if listed is None else [name.strip() for name in listed.split(",")]
    if listed is None and weights is not None:
        names.append(SITE)
    found: list[AnyStrategy] = []
    every: dict[str, AnyStrategy] = {**STRATEGIES, **GANG_ORDERS}
    for name in names:
        if name == SITE and weights is not None:
            what = "by this site's own weights of age, fair share and size, backfilling by time limits"
            found.append(replace(STRATEGIES["shares"], name=SITE, what=what, weights=weights))
        elif name == SITE:
            raise InputError("strategies", name, "needs --accounting on a site with priority/multifactor")
        elif name in every:
            found.append(every[name])
        else:
            raise InputError("strategies", name, "is not known", hint=f"Known: {', '.join((*every, SITE))}.")
    return found


def _write(path: Path, text: str) -> None:
    """Write a new file. Raises InputError where there is one, and StorageError."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError("svg", str(path), "is there already", hint="Name a new file.") from error
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}", hint="Check the folder and its owner.") from error


# --- The answer -------------------------------------------------------------------------------------------------------


def _document(found: StrategyComparison, past: ClusterPast | None, svg: Path | None) -> dict[str, Any]:
    return {
        "status": "done",
        "summary": _summary(found),
        "as_of": datetime.now(UTC).isoformat(timespec="seconds"),
        "workload": found.workload.name,
        "users": None if past is None else "own" if past.own else "all",
        "jobs": len(found.workload.jobs),
        "left_out": dict(found.workload.left_out),
        "processors": found.processors,
        "load": _rounded(found.load),
        "recorded_mean_wait_seconds": _rounded(found.recorded_wait),
        "replays": found.runs,
        "baseline": found.outcomes[0].strategy.name,
        "recommended": found.recommended,
        "strategies": [_row(found, outcome) for outcome in found.outcomes],
        "assumptions": [*found.assumptions, *_of_accounting(past)],
        "svg": None if svg is None else str(svg),
    }


def _of_accounting(past: ClusterPast | None) -> Iterator[str]:
    if past is None:
        return
    if past.own:
        yield "Only your own jobs were to be seen: those of others, and what you waited for them, are missing."
    else:
        yield "The jobs of all users are played, as far as the accounting shows them."
    yield "A job counts as submitted when it could start; what it waited for other jobs or for its time is no wait."


def _row(found: StrategyComparison, outcome: Outcome) -> dict[str, Any]:
    name = outcome.strategy.name
    figures = {
        "wait_seconds": outcome.wait, "completion_seconds": outcome.completion,
        "bounded_slowdown": outcome.bounded_slowdown, "p95_wait_seconds": outcome.p95_wait,
        "longest_wait_seconds": outcome.longest_wait, "utilisation": outcome.utilisation,
        "starved": outcome.starved, "fairness": outcome.fairness,
    }  # fmt: skip
    difference = found.differences.get(name)
    return {
        "name": name,
        "what": outcome.strategy.what,
        **{key: {part: _rounded(value) for part, value in asdict(one).items()} for key, one in figures.items()},
        "beside_baseline": None if difference is None else {
            "wait_seconds": _rounded(difference.wait),
            "wait_interval": [_rounded(value) for value in difference.wait_interval],
            "bounded_slowdown": _rounded(difference.slowdown),
            "bounded_slowdown_interval": [_rounded(value) for value in difference.slowdown_interval],
            "longest_wait_ratio": _rounded(difference.longest_ratio),
        },
        "verdict": found.verdicts.get(name),
    }  # fmt: skip


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _summary(found: StrategyComparison) -> str:
    base = found.outcomes[0]
    head = f"{len(found.workload.jobs)} jobs on {found.processors} processors, {found.runs} replays of each strategy."
    if len(found.outcomes) == 1:
        return f"{head} {base.strategy.name}: mean wait {shown_seconds(base.wait.mean)}."
    if found.recommended is None:
        return f"{head} None is better than {base.strategy.name} beyond chance."
    return f"{head} Recommended: {found.recommended}, which {found.verdicts[found.recommended]}."


def _pieces(found: StrategyComparison, body: dict[str, Any]) -> Iterator[render.Piece]:
    rows = [_cells(found, outcome) for outcome in found.outcomes]
    widths = [max(map(len, column)) for column in zip(_HEADER, *rows, strict=True)]
    told = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (_HEADER, *rows)
    )
    yield render.table(_HEADER, rows, told)
    told_of = [f"{name}: {verdict}." for name, verdict in found.verdicts.items()]
    recorded = found.recorded_wait
    known = [] if recorded is None else [f"In truth these jobs waited {shown_seconds(recorded)} in the mean."]
    for text in (
        *told_of,
        *known,
        str(body["summary"]),
        "It is assumed:",
        *(f"- {one}" for one in body["assumptions"]),
    ):
        yield render.Line(render.plain(sanitize.shown(text)))


def _cells(found: StrategyComparison, outcome: Outcome) -> Sequence[str]:
    difference = found.differences.get(outcome.strategy.name)
    beside = "" if difference is None else " to ".join(_signed(value) for value in difference.wait_interval)
    return (
        outcome.strategy.name,
        shown_seconds(outcome.wait.mean),
        beside,
        f"{outcome.bounded_slowdown.mean:.1f}",
        shown_seconds(outcome.p95_wait.mean),
        shown_seconds(outcome.longest_wait.mean),
        f"{outcome.starved.mean:.1%}",
        f"{outcome.fairness.mean:.2f}",
        f"{outcome.utilisation.mean:.0%}",
    )


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{shown_seconds(abs(seconds))}"


# --- The plot: bars of the mean wait with the spread over the runs, and how many waited how long ----------------------

# Text, lines and shapes alone; what comes from outside is escaped.

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
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(16, 22, title, size=14),
        _text(16, 42, f"Mean wait, least to most of {comparison.runs} replays; beside it the longest wait"),
        *_bars(outcomes, top),
        _text(16, curves - 12, "Share of jobs that waited less than"),
        *_axes(curves),
        *(part for number, one in enumerate(outcomes) for part in _curve(one, number, curves)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def _line(a: tuple[float, float], b: tuple[float, float], colour: str = "#999999") -> str:
    return f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" stroke="{colour}"/>'


def _bars(outcomes: Sequence[Outcome], top: float) -> Iterator[str]:
    most = max(one.wait.most for one in outcomes) or 1.0
    for number, one in enumerate(outcomes):
        y = top + number * _ROW
        low, mean, high = (value / most * _SPAN for value in (one.wait.least, one.wait.mean, one.wait.most))
        yield _text(_LEFT - 8, y + 16, one.strategy.name, anchor="end")
        colour = _COLOURS[number % len(_COLOURS)]
        yield f'<rect x="{_LEFT}" y="{y + 4:.1f}" width="{mean:.1f}" height="16" fill="{colour}" fill-opacity="0.6"/>'
        yield _line((_LEFT + low, y + 12), (_LEFT + high, y + 12), "#000000")
        yield _text(_LEFT + high + 6, y + 16, f"{shown_seconds(one.wait.mean)}")
        yield _text(_WIDTH - 8, y + 16, shown_seconds(one.longest_wait.mean), anchor="end")


def _axes(top: float) -> Iterator[str]:
    for share in (0, 25, 50, 75, 100):
        y = top + _CURVES * (1 - share / 100)
        yield _line((_LEFT, y), (_LEFT + _SPAN, y), "#dddddd")
        yield _text(_LEFT - 8, y + 4, f"{share} %", anchor="end")
    for seconds, label in _TICKS:
        x = _place(seconds)
        yield _line((x, top), (x, top + _CURVES), "#dddddd")
        yield _text(x, top + _CURVES + 16, label, anchor="middle")


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
    yield _text(_LEFT + 48, y, f"{outcome.strategy.name}: {outcome.strategy.what}")


def shown_seconds(seconds: float) -> str:
    """A wait for people: `45 s`, `12 min`, `3.4 h`, `5.2 d`."""
    for most, unit, name in ((90.0, 1.0, "s"), (5400.0, 60.0, "min"), (172_800.0, 3600.0, "h")):
        if seconds < most:
            value = seconds / unit
            return f"{value:.0f} {name}" if value >= 10 or unit == 1.0 else f"{value:.1f} {name}"
    return f"{seconds / 86_400:.1f} d"
