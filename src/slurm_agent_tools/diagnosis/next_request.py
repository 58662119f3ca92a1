"""What to ask for next time, from one run. Pure; only ever proposed, and never less than what was used.

Only a run that completed shows what a whole run needs. One that was killed gets what the diagnosis proposes, which is
never smaller than what it had; any other end gets nothing proposed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from slurm_agent_tools.diagnosis.phrases import percent
from slurm_agent_tools.insights import usage
from slurm_agent_tools.insights.usage import at_once
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import Job, Usage
from slurm_agent_tools.models.report import Efficiency, Recommendation, RequestChange
from slurm_agent_tools.settings import EfficiencySettings, RateSettings
from slurm_agent_tools.units import UNLIMITED, format_duration, format_memory, human_memory

_MIB, _GIB = 2**20, 2**30

_LEAST = 128 * _MIB  # a shell and an interpreter, on each node

_STEPS = ((3600, 300), (12 * 3600, 900), (math.inf, 3600))  # up to the first, time is rounded up to the second

_NO_JUDGE = "The job did not complete: what it used is no measure of what a whole run needs."


@dataclass(frozen=True, slots=True)
class EfficiencyTargets:
    """From which share on a job is efficient, and what an hour costs."""

    efficiency: EfficiencySettings = EfficiencySettings()
    rates: RateSettings = RateSettings()


@dataclass(frozen=True, slots=True)
class RunEnding:
    """The diagnosis of a job that did not complete, whether it rests on its log too, and its end in one sentence."""

    found: Diagnosis
    read: bool = False
    cause: str | None = None


def shares(used: Usage) -> Efficiency:
    """What was used of what was given."""
    return Efficiency(
        cpu=_share(used.cpu_seconds, used.cpu_allocated_seconds),
        memory=_share(used.memory_peak_bytes, used.memory_allocated_bytes),
        gpu=None if used.gpu_utilization is None else round(used.gpu_utilization, 4),
        time=_share(used.elapsed_seconds, used.time_limit_seconds),
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or whole is None or whole <= 0 else round(part / whole, 4)


def advise(
    job: Job, tasks: Sequence[Job], used: Usage, ending: RunEnding | None, wanted: EfficiencyTargets | None = None
) -> Recommendation:
    """The verdict, and what to change. `ending`: of a job that failed."""
    wanted = wanted or EfficiencyTargets()
    target, parts = wanted.efficiency.target, usage.ran(job, tasks)
    if ending is not None or not parts:
        changes = [] if ending is None else _enlarged(job, ending)
        verdict: Literal["ADJUST", "NOT_JUDGED"] = "ADJUST" if changes else "NOT_JUDGED"
        return Recommendation(verdict=verdict, text=_NO_JUDGE, target=target, changes=changes)
    got = shares(used)
    low = [
        name
        for name, share, least in (
            ("memory", got.memory, wanted.efficiency.memory),
            ("CPU", got.cpu, wanted.efficiency.cpu),
        )
        if share is not None and share < least
    ]
    seen = f"memory {percent(got.memory)}, CPU {percent(got.cpu)} of what was asked for"
    if low:
        return _adjusted(parts, used, low, seen, wanted)
    if got.memory is None or got.cpu is None:
        return Recommendation(verdict="NOT_MEASURED", text=f"Not all was measured: {seen}.", target=target)
    text = f"EFFICIENT: {seen}; the target is {percent(target)}."
    return Recommendation(verdict="EFFICIENT", text=text, target=target)


def _enlarged(job: Job, ending: RunEnding) -> list[RequestChange]:
    """What the diagnosis proposes; the log may ask for more than Slurm's records do."""
    line = ending.found.proposed_change
    if line is None:
        return []
    what, why = _kind(line), "as analyze_log found"
    if not ending.read:
        why = (
            f"at least: what it had was not enough, and analyze_log {job.job_id} may find in the log that it needs more"
        )
    return [RequestChange(what=what, directive=line, why=why)]


def _adjusted(
    parts: Sequence[Job], used: Usage, low: Sequence[str], seen: str, wanted: EfficiencyTargets
) -> Recommendation:
    target = wanted.efficiency.target
    text = f"It asked for more {' and '.join(low)} than it used: {seen}; the target is {percent(target)}."
    if any(part.job_id.component is not None for part in parts):
        text += " Size each component by its own steps."
        return Recommendation(verdict="ADJUST", text=text, target=target)
    cpus = _cpus(parts, wanted.rates) if "CPU" in low else None
    memory = _memory(parts, used, needed=cpus is not None) if "memory" in low or cpus is not None else None
    changes = [change for change in (memory, cpus, _time(used)) if change is not None]
    if not changes:
        text = f"No smaller request is proposed: {seen}, but it asked for about the least there is."
        return Recommendation(verdict="MINIMAL", text=text, target=target)
    return Recommendation(verdict="ADJUST", text=text, target=target, changes=changes)


def _kind(line: str | None) -> str:
    words = (("--mem", "memory"), ("--time", "time"), ("cpus", "cpus"))
    return next((what for sign, what in words if line and sign in line), "other")


# --- what to ask for -----------------------------------------------------------------------------------------------


def _memory(parts: Sequence[Job], used: Usage, *, needed: bool) -> RequestChange | None:
    """The peak of a node and 20 %. With fewer CPUs it is said anyway: memory may have been asked for by CPU."""
    part = max(parts, key=lambda each: usage.amount(each, "mem") or 0)
    has, nodes = usage.amount(part, "mem"), usage.amount(part, "node") or 1
    if not has:
        return None
    asks, why = has // nodes, "as much as before, whatever the number of CPUs"
    if used.memory_node_bytes is not None:
        enough = max(_whole(used.memory_node_bytes * 6 / 5), _LEAST)
        if enough < asks:
            asks, why = enough, f"the peak on a node, {human_memory(used.memory_node_bytes)}, and 20 %"
    saved = has - asks * nodes
    if saved <= 0 and not needed:
        return None
    gpus = (usage.amount(part, usage.GPUS) or 0) // nodes
    line = f"--mem-per-gpu={format_memory(_whole(asks / gpus))}" if gpus else f"--mem={format_memory(_whole(asks))}"
    saves = f"{human_memory(saved)} of {human_memory(has)}" if saved > 0 else None
    return RequestChange(what="memory", directive=f"#SBATCH {line}", why=why, saves=saves)


def _whole(size: float) -> int:
    """Rounded up to whole M, from 8G on to whole G."""
    unit = _GIB if size >= 8 * _GIB else _MIB
    return math.ceil(size / unit) * unit


def _cpus(parts: Sequence[Job], rates: RateSettings) -> RequestChange | None:
    """As many as were busy on average, spread over the tasks that ran at once. Tasks are never taken away."""
    part = max(parts, key=_busy)
    started = [step for step in part.steps if step.step_id.isdecimal()]  # the batch script waits for its steps
    has, tasks = usage.amount(part, "cpu"), at_once(started, lambda step: step.tasks) or 1
    busy = _busy(part)
    if not has or busy < 0:
        return None
    each = max(1, math.ceil(round(busy / tasks, 1)))
    saved = has - each * tasks
    if saved <= 0:
        return None
    hours = saved * sum(one.elapsed_seconds or 0 for one in parts) / 3600
    price = f", {hours * rates.cpu_hour:.2f} {rates.currency}" if rates.cpu_hour else ""
    return RequestChange(
        what="cpus",
        directive=f"#SBATCH --cpus-per-task={each}",
        why=f"{busy:.1f} of {has} CPUs were busy on average, with {tasks} {'task' if tasks == 1 else 'tasks'}",
        saves=f"up to {saved} of {has} CPUs, {hours:.3g} CPU-hours a run{price}",
    )


def _busy(part: Job) -> float:
    """CPUs that were busy on average; -1 where it was not measured."""
    seconds = usage.total(step.cpu_seconds for step in part.steps)
    return -1.0 if seconds is None or not part.elapsed_seconds else seconds / part.elapsed_seconds


def _time(used: Usage) -> RequestChange | None:
    """The time of the longest part and 50 %, in whole steps that a person would write."""
    ran, limit = used.elapsed_seconds, used.time_limit_seconds
    if ran is None or limit is None:
        return None
    wanted = ran * 1.5
    step = next(size for most, size in _STEPS if wanted <= most)
    asks = max(1, math.ceil(wanted / step)) * step
    if limit != UNLIMITED and asks >= limit:
        return None
    saves = f"{format_duration(limit - asks)} of {format_duration(limit)}" if limit != UNLIMITED else None
    why = f"it ran {format_duration(ran)}; this is 50 % more, and a shorter limit starts sooner"
    return RequestChange(what="time", directive=f"#SBATCH --time={format_duration(asks)}", why=why, saves=saves)
