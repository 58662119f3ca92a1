"""The subcommand `simulate`: what other strategies would have made of a workload, side by side with confidence."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import anyio.to_thread

from slurm_agent_tools.api import printing, render
from slurm_agent_tools.api.context_registry import OpenedContexts, one_cluster
from slurm_agent_tools.cli.commands.simulate_plot import shown_seconds, wait_plot
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.insights.queue_history import ClusterPast, cluster_past
from slurm_agent_tools.planning.compare import FEWEST_RUNS, AnyStrategy, Outcome, StrategyComparison, compare
from slurm_agent_tools.planning.gangs import GANG_ORDERS
from slurm_agent_tools.planning.strategies import STRATEGIES, PriorityWeights, site_weights
from slurm_agent_tools.planning.workload import MOST_BYTES, Unit, Workload, from_accounting, read_swf
from slurm_agent_tools.settings import load
from slurm_agent_tools.text import log_events, safe_open, sanitize
from slurm_agent_tools.units import how_many

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
    async with one_cluster(OpenedContexts(load()), args.cluster) as context:
        return await cluster_past(context, days=args.days, partition=args.partition)


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
    head = f"{how_many(len(found.workload.jobs), 'job')} on {how_many(found.processors, 'processor')}, "
    head += f"{how_many(found.runs, 'replay')} of each strategy."
    if len(found.outcomes) == 1:
        return f"{head} {base.strategy.name}: mean wait {shown_seconds(base.wait.mean)}."
    if found.recommended is None:
        return f"{head} None is better than {base.strategy.name} beyond chance."
    return f"{head} Recommended: {found.recommended}, which {found.verdicts[found.recommended]}."


def _pieces(found: StrategyComparison, body: dict[str, Any]) -> Iterator[render.Piece]:
    rows = [_cells(found, outcome) for outcome in found.outcomes]
    yield render.table(_HEADER, rows, render.aligned([_HEADER, *rows]))
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
