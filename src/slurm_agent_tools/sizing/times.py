"""How long a job is asked for: as stated, from its runs, or the default. Pure."""

from __future__ import annotations

from collections.abc import Callable

from slurm_agent_tools.catalogue import GenerateScript
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.history.sizing import Advice, Figure
from slurm_agent_tools.model import Partition
from slurm_agent_tools.units import UNLIMITED, format_duration, parse_span, parse_time_limit

_TIME = 2 * 3600


def budget_seconds(text: str) -> int:
    """A time budget as seconds: 5m, 1h30m, 5400s, or as Slurm writes durations. Raises InputError."""
    return _parsed("time_budget", text, parse_span, "5m, 1h30m, 5400s, ")


def seconds(ask: GenerateScript, runs: Advice, reasons: list[str]) -> int:
    """The limit that was asked for, else what its runs say; never more than the budget."""
    given = asked(ask)
    if "time_limit" not in given and runs.time.recommended is not None:
        given["history"] = runs.time.recommended
    if not given:
        reasons.append(f"Time: {format_duration(_TIME)}, the default.")
        return _TIME
    field = min(given, key=lambda name: given[name])
    why = {
        "time_limit": "as asked",
        "time_budget": "the time budget; a later result is of no use",
        "history": rests_on(runs.time, runs),
    }
    reasons.append(f"Time: {format_duration(given[field])}, {why[field]}.")
    if runs.enough and runs.time.used is not None and given[field] < runs.time.used:
        used = format_duration(round(runs.time.used))
        reasons.append(f"That may be too short: of {runs.time.runs} runs 5 % took {used} or longer.")
    return given[field]


def rests_on(figure: Figure, runs: Advice) -> str:
    """The reason of a number that comes from runs."""
    if runs.enough:
        return f"from {figure.runs} runs of this name: what 95 % of them used, and a margin"
    return "a run of this name failed with less"


def asked(ask: GenerateScript) -> dict[str, int]:
    """What is stated of the time, in seconds, by field; a budget in whole minutes, as Slurm counts."""
    limit = None if ask.time_limit is None else _parsed("time_limit", ask.time_limit)
    budget = None if ask.time_budget is None else -(-budget_seconds(ask.time_budget) // 60) * 60
    stated = {"time_limit": limit, "time_budget": budget}
    return {field: seconds for field, seconds in stated.items() if seconds is not None}


def _parsed(field: str, text: str, parse: Callable[[str], int] = parse_time_limit, also: str = "") -> int:
    hint = f"Write {also}MINUTES, HH:MM:SS or D-HH:MM:SS."
    try:
        seconds = parse(text)
    except ValueError as error:
        raise InputError(field, text, "is not a duration", hint=hint) from error
    if seconds == UNLIMITED:
        raise InputError(field, text, "means no limit", hint=hint)
    return seconds


def within(wanted: int, ask: GenerateScript, partition: Partition | None, reasons: list[str]) -> int:
    """A default is lowered to what the partition allows; a time that was asked for is not."""
    most = partition.max_time_seconds if partition is not None else None
    if most is None or wanted <= most or partition is None:
        return wanted
    if ask.time_limit is not None:
        problem = f"is more than partition {partition.name} allows, {format_duration(most)}"
        raise InputError("time_limit", ask.time_limit, problem, hint="Ask for less, or name another partition.")
    reasons.append(f"Time lowered to {format_duration(most)}: partition {partition.name} allows no more.")
    return most // 60 * 60
