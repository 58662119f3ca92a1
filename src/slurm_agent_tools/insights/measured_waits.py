"""How long jobs of one shape really waited here, and whether a result will be there in time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Literal

from slurm_agent_tools.insights.sizing import ENOUGH, percentile
from slurm_agent_tools.models.job import Job, PastWait, PastWaits
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.shapes import QueueWaits, RunningShown, WaitMeasured
from slurm_agent_tools.units import UNLIMITED, format_duration, how_many

_GPUS, _OTHERS = 2, 4
"""Alike: at most this many times more or less."""


@dataclass(frozen=True, slots=True)
class MeasuredWaits:
    """What jobs waited, in seconds; `median` and `p95` None where there were fewer than ENOUGH."""

    jobs: int
    median: int | None = None
    p95: int | None = None


def same_shape(past: Iterable[PastWait], asked: Resources) -> list[PastWait]:
    """Jobs of the same partition and about the same size: GPUs within twice, CPUs, memory and time within four times.

    What is not known of the request is not compared; a job of which it is not known is not alike.
    """
    named = set((asked.partition or "").split(",")) - {""}
    return [one for one in past if one.partition in named and _like(one.asked, asked)]


def _like(one: Resources, asked: Resources) -> bool:
    return (
        _near(one.gpus or 0, asked.gpus or 0, _GPUS)
        and _near(one.cpus, asked.cpus, _OTHERS)
        and _near(one.memory_bytes, asked.memory_bytes, _OTHERS)
        and _near(one.time_limit_seconds, asked.time_limit_seconds, _OTHERS)
    )


def _near(one: int | None, asked: int | None, times: int) -> bool:
    """Within so many times. No GPU, and no limit (-1), are like nothing but themselves."""
    if asked is None or one == asked:
        return True
    return one is not None and min(one, asked) > 0 and max(one, asked) <= times * min(one, asked)


def measure_waits(past: Iterable[PastWait]) -> MeasuredWaits:
    """Median and 95th percentile of the waits. Of an array, the part that started first counts, as one job."""
    first: dict[int, int] = {}
    for one in past:
        first[one.job] = min(one.seconds, first.get(one.job, one.seconds))
    seconds = list(first.values())
    if len(seconds) < ENOUGH:
        return MeasuredWaits(len(seconds))
    p95 = percentile([(one, 1) for one in seconds])
    return MeasuredWaits(len(seconds), round(median(seconds)), None if p95 is None else round(p95))


def by_partition(past: Sequence[PastWait]) -> Mapping[str, MeasuredWaits]:
    """What all jobs of each partition waited; those with too few jobs are left out."""
    found = {
        name: measure_waits(one for one in past if one.partition == name) for name in {one.partition for one in past}
    }
    return {name: found[name] for name in sorted(found) if found[name].median is not None}


# --- Whether a result will be there in time: the wait and the run, beside the time that there is ----------------------


@dataclass(frozen=True, slots=True)
class TimeNeeded:
    """Seconds, each with what it rests on; None: not known."""

    wait: int | None
    wait_from: str
    run: int | None
    run_from: str


@dataclass(frozen=True, slots=True)
class BudgetJudgement:
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


def judge_budget(budget: int, need: TimeNeeded) -> BudgetJudgement:
    """True only where both wait and run are known and fit; False where what is known alone does not fit."""
    known = [seconds for seconds in (need.wait, need.run) if seconds is not None]
    total = sum(known)
    told = f"{_said('wait', need.wait, need.wait_from)} + {_said('run up to', need.run, need.run_from)}"
    fits = False if total > budget else True if len(known) == 2 else None
    verdict = {False: "It may miss", True: "It fits", None: "It is not known whether it fits"}[fits]
    return BudgetJudgement(fits, f"{verdict} the time budget of {format_duration(budget)}: {told}.")


def _said(what: str, seconds: int | None, words: str) -> str:
    if seconds is None:
        return f"{what.removesuffix(' up to')} not known ({words})"
    return f"{what} {format_duration(seconds)} ({words})"


# --- How long the next wait for jobs that go on should be -------------------------------------------------------------

_LEAST_WAIT, _MOST_WAIT = 45, 1800
"""Seconds: as long as a wait takes by default, and half an hour."""

_RUNS = 5


def usual_seconds(took: Iterable[int | None]) -> float | None:
    """How long completed runs of a script took, newest first; of the last few the one in the middle."""
    known = [seconds for seconds in took if seconds is not None][:_RUNS]
    return median(known) if known else None


def seconds_left(
    now: datetime, job: Job, running: RunningShown | None, start: datetime | None, usual: float | None
) -> float:
    """Until a job is expected to end, by its own progress, its `usual` time, else its limit; or to start."""
    if running is None:
        return _MOST_WAIT if start is None else (start - now).total_seconds() + _LEAST_WAIT
    if running.estimated_from == "progress" and running.estimated_end is not None:
        return (running.estimated_end - now).total_seconds()
    if usual is not None and job.elapsed_seconds is not None and usual > job.elapsed_seconds:
        return usual - job.elapsed_seconds
    return _MOST_WAIT if running.time_left_seconds is None else running.time_left_seconds


def suggested_wait(left: Sequence[float | None], until: Literal["any", "all"]) -> int | None:
    """Until one of the jobs is expected to end, or all; None where there is none to wait for. None in `left`: ended."""
    known = [seconds for seconds in left if seconds is not None]
    if not known or (until == "any" and len(known) < len(left)):
        return None
    wait = min(known) if until == "any" else max(known)
    return int(min(max(wait, _LEAST_WAIT), _MOST_WAIT))


# --- as they are shown ---------------------------------------------------------------------------------------------


def shown(measured: MeasuredWaits) -> WaitMeasured | None:
    """None where too few jobs were seen."""
    if measured.median is None or measured.p95 is None:
        return None
    return WaitMeasured(median=measured.median, p95=measured.p95, jobs=measured.jobs)


def period(hours: int) -> str:
    """7 days, 24 hours."""
    days = hours // 24
    return f"{days} days" if days > 1 and not hours % 24 else f"{hours} hours"


def of_queue(past: PastWaits, age: float | None = None) -> QueueWaits:
    """What all jobs waited, whatever their size. `age`: seconds since the accounting was asked."""
    every = measure_waits(past.waits)
    found = {name: shown(one) for name, one in by_partition(past.waits).items()}
    note = past.note or f"{_ran(every.jobs, own=past.own)} in the last {period(past.hours)}{_old(age)}"
    return QueueWaits(
        measured=shown(every), partitions={name: one for name, one in found.items() if one is not None}, note=note
    )


def _ran(jobs: int, *, own: bool) -> str:
    """How many ran. Where there was none, nobody's can be told from anybody's."""
    if jobs == 0:
        return "the accounting shows no job that ran"
    return f"{how_many(jobs, 'job')}{' of your own' if own else ''} ran"


def _old(age: float | None) -> str:
    minutes = 0 if age is None else int(age // 60)
    return f", asked {minutes} min ago (refresh asks again)" if minutes else ""
