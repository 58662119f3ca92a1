"""Whether a result will be there in time: the wait and the run, beside the time that there is."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_agent_tools.units import UNLIMITED, format_duration


@dataclass(frozen=True, slots=True)
class Need:
    """Seconds, each with what it rests on; None: not known."""

    wait: int | None
    wait_from: str
    run: int | None
    run_from: str


@dataclass(frozen=True, slots=True)
class Judged:
    """`fits` None: not known. False: it may end too late, as a limit is the longest that a run can take."""

    fits: bool | None
    why: str


def run_seconds(used: float | None, runs: int, limit: int | None) -> tuple[int | None, str]:
    """How long it runs: what its runs took at the 95th percentile, else all of its time limit."""
    if used is not None:
        return round(used), f"95 % of its {runs} runs took no longer"
    if limit is None or limit == UNLIMITED:
        return None, "it has no time limit, and too few earlier runs to know better"
    return limit, "its time limit; too few earlier runs to know better"


def wait_seconds(slurm: int | None, measured: int | None, jobs: int) -> tuple[int | None, str]:
    """How long it waits: the longer of Slurm's estimate and what 95 % of its like waited."""
    known = [(slurm, "Slurm's estimate"), (measured, f"95 % of {jobs} jobs like it waited no longer")]
    found = [(seconds, words) for seconds, words in known if seconds is not None]
    return max(found, key=lambda pair: pair[0]) if found else (None, "nothing is known of the wait")


def judge(budget: int, need: Need) -> Judged:
    """True only where both wait and run are known and fit; False where what is known alone does not fit."""
    known = [seconds for seconds in (need.wait, need.run) if seconds is not None]
    total = sum(known)
    told = f"{_said('wait', need.wait, need.wait_from)} + {_said('run up to', need.run, need.run_from)}"
    fits = False if total > budget else True if len(known) == 2 else None
    verdict = {False: "It may miss", True: "It fits", None: "It is not known whether it fits"}[fits]
    return Judged(fits, f"{verdict} the time budget of {format_duration(budget)}: {told}.")


def _said(what: str, seconds: int | None, words: str) -> str:
    if seconds is None:
        return f"{what.removesuffix(' up to')} not known ({words})"
    return f"{what} {format_duration(seconds)} ({words})"
