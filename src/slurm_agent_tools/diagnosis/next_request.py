"""What to ask for next time, from one run. Pure; only ever proposed, never sent, and never less than what was used.

Only a run that completed shows what a whole run needs. One that was killed for memory or time gets more than it had;
any other end gets nothing proposed. The numbers are the sizer's; no limit of a partition or policy is known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from slurm_agent_tools.diagnosis.excerpt import LogText
from slurm_agent_tools.diagnosis.job_facts import peak
from slurm_agent_tools.diagnosis.log_advice import memory_in_use, memory_not_granted
from slurm_agent_tools.diagnosis.phrases import percent
from slurm_agent_tools.diagnosis.program_progress import Progress, progress
from slurm_agent_tools.diagnosis.signatures import by_id
from slurm_agent_tools.insights import usage
from slurm_agent_tools.insights.sizing import (
    CPUS,
    LEAST_PER_GPU,
    MEBIBYTE,
    MEMORY,
    TIME_AFTER_ONE_RUN,
    TIME_FORETOLD,
    size,
)
from slurm_agent_tools.insights.usage import at_once
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import Job, Usage
from slurm_agent_tools.models.job_sizing import SizingFigure
from slurm_agent_tools.models.report import Efficiency, Recommendation, RequestChange
from slurm_agent_tools.settings import EfficiencySettings, RateSettings
from slurm_agent_tools.units import UNLIMITED, format_duration, format_memory, human_memory, whole_memory

_LEAST_MEMORY = 128 * MEBIBYTE  # a shell and an interpreter, on each node

_FOR = {False: "on a node, for a shell and an interpreter", True: "on a node, to open its GPUs"}
"""What the least memory is there for, by whether it has GPUs."""

_SHORT_RUN = 30  # seconds: Slurm looks at a task's memory every 30 where its site says nothing else

_LEAST_DONE = 0.05  # of the work: from less than that no end can be foretold

_MOST_TIMES = 4  # the request: a program that wants more at once has another fault than its request

_UNCHECKED = "Whether the partition and the policy allow it was not checked here."

_UNKNOWN = "the need is not known"

_PERHAPS_MORE = f" It may be far too little: {_UNKNOWN}."

_NO_JUDGE = "The job did not complete: what it used is no measure of what a whole run needs."


@dataclass(frozen=True, slots=True)
class EfficiencyTargets:
    """From which share on a job is efficient, and what an hour costs."""

    efficiency: EfficiencySettings = EfficiencySettings()
    rates: RateSettings = RateSettings()


@dataclass(frozen=True, slots=True)
class RunEnding:
    """The diagnosis of a job that did not complete, whether it rests on its log too, and its end in one sentence."""

    diagnosis: Diagnosis
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


def recommend(
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
        text = f"Not all of what was asked for was measured: memory {percent(got.memory)}, CPU {percent(got.cpu)}."
        return Recommendation(verdict="NOT_MEASURED", text=text, target=target)
    text = f"EFFICIENT: {seen}; the target is {percent(target)}."
    return Recommendation(verdict="EFFICIENT", text=text, target=target)


def _enlarged(job: Job, ending: RunEnding) -> list[RequestChange]:
    """What the diagnosis proposes; the log may ask for more than Slurm's records do."""
    line = ending.diagnosis.proposed_change
    if line is None:
        return []
    why = "as analyze_log found"
    if not ending.read:
        why = (
            f"at least: what it had was not enough, and analyze_log {job.job_id} may find in the log that it needs more"
        )
    elif _UNKNOWN in ending.diagnosis.explanation:
        why += f"; at least, because {_UNKNOWN}: ask for twice as much if it runs out again"
    signature = by_id().get(ending.diagnosis.category)
    what = "other" if signature is None or signature.change is None else signature.change
    return [RequestChange(what=what, directive=line, why=why)]


def _adjusted(
    parts: Sequence[Job], used: Usage, low: Sequence[str], seen: str, wanted: EfficiencyTargets
) -> Recommendation:
    target = wanted.efficiency.target
    if any(part.job_id.component is not None for part in parts):
        text = f"{_asked_more(low, seen, target)} Size each component by its own steps."
        return Recommendation(verdict="ADJUST", text=text, target=target)
    cpus = _cpus(parts, wanted.rates) if "CPU" in low else None
    memory = _memory(parts, used, needed=cpus is not None) if "memory" in low or cpus is not None else None
    changes = [change for change in (memory, cpus, _time(used)) if change is not None]
    smaller = [name for name, change in (("memory", memory), ("CPU", cpus)) if name in low and change is not None]
    text = f"No smaller {' or '.join(low)} request is proposed, as it asked for about the least there is: {seen}."
    if changes:  # neither memory nor CPUs, else `smaller` below names them
        text += " Only a shorter time limit is proposed."
    if smaller:
        text = _asked_more(smaller, seen, target)
    if used.elapsed_seconds is not None and used.elapsed_seconds < _SHORT_RUN:
        text += (
            f" It ran {format_duration(used.elapsed_seconds)}: so short a run shows little of what a longer one needs."
        )
    verdict: Literal["ADJUST", "MINIMAL"] = "ADJUST" if changes else "MINIMAL"
    return Recommendation(verdict=verdict, text=text, target=target, changes=changes)


def _asked_more(low: Sequence[str], seen: str, target: float) -> str:
    return f"It asked for more {' and '.join(low)} than it used: {seen}; the target is {percent(target)}."


# --- after a run that completed: what was used and a margin ----------------------------------------------------------


def _memory(parts: Sequence[Job], used: Usage, *, needed: bool) -> RequestChange | None:
    """The peak of a node and 20 %. With fewer CPUs it is said anyway: memory may have been asked for by CPU."""
    part = max(parts, key=lambda each: usage.amount(each, "mem") or 0)
    has, nodes = usage.amount(part, "mem"), usage.amount(part, "node") or 1
    if not has:
        return None
    asks, why = has // nodes, "as much as before, whatever the number of CPUs"
    gpus = (usage.amount(part, usage.GPUS) or 0) // nodes
    least = max(_LEAST_MEMORY, gpus * LEAST_PER_GPU)
    enough = size(MEMORY, SizingFigure(used=used.memory_node_bytes), least=least).recommended
    if enough is not None and enough < asks and used.memory_node_bytes is not None:
        asks, why = enough, f"the peak on a node, {human_memory(used.memory_node_bytes)}, and 20 %"
        if (size(MEMORY, SizingFigure(used=used.memory_node_bytes)).recommended or 0) < least:
            why += f" would be less than the {human_memory(least)} that are the least proposed {_FOR[bool(gpus)]}"
    saved = has - asks * nodes
    if saved <= 0 and not needed:
        return None
    amount = format_memory(whole_memory(asks / max(1, gpus)))
    line = f"--mem-per-gpu={amount}" if gpus else f"--mem={amount}"
    saves = f"{human_memory(saved)} of {human_memory(has)}" if saved > 0 else None
    return RequestChange(what="memory", directive=f"#SBATCH {line}", why=why, saves=saves)


def _cpus(parts: Sequence[Job], rates: RateSettings) -> RequestChange | None:
    """As many as were busy on average, spread over the tasks that ran at once. Tasks are never taken away."""
    part = max(parts, key=_busy)
    started = [step for step in part.steps if step.step_id.isdecimal()]  # the batch script waits for its steps
    has, tasks = usage.amount(part, "cpu"), at_once(started, lambda step: step.tasks) or 1
    busy = _busy(part)
    if not has or busy < 0:
        return None
    each = size(CPUS, SizingFigure(used=busy / tasks), least=1).recommended or 1
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
    figure = size(TIME_AFTER_ONE_RUN, SizingFigure(used=ran), least=1)
    asks, needed = figure.recommended, figure.needed or 0
    if asks is None or (limit != UNLIMITED and asks >= limit):
        return None
    saves = f"{format_duration(limit - asks)} of {format_duration(limit)}" if limit != UNLIMITED else None
    this = "50 % more"
    if needed < asks:  # of a short run the step that it is rounded up to is all of it
        smallest = asks == TIME_AFTER_ONE_RUN.whole(0)
        this = "the least that a limit is shortened to" if smallest else f"{this}, rounded up"
    why = f"it ran {format_duration(ran)}; this is {this}, and a shorter limit starts sooner"
    return RequestChange(what="time", directive=f"#SBATCH --time={format_duration(asks)}", why=why, saves=saves)


# --- after a run that a limit ended: more than it had ----------------------------------------------------------------


def larger_memory(part: Job, texts: Sequence[LogText] = ()) -> RequestChange | None:
    """A fifth more memory than asked for, or than was used or wanted where that is known and more; None: not known."""
    resources = part.resources
    if resources.gpus and resources.memory_per_gpu_bytes:
        known = SizingFigure(failed=resources.memory_per_gpu_bytes)
        return _more_memory("mem-per-gpu", known, "was asked for", _PERHAPS_MORE)
    per_node = resources.memory_per_node_bytes or (resources.memory_bytes if resources.nodes == 1 else None)
    if not per_node:
        return None
    used = max(peak([part]) or 0, memory_in_use(texts, per_node))
    need = used + memory_not_granted(texts)
    if per_node < need <= per_node * _MOST_TIMES:
        known = SizingFigure(used=need, failed=per_node)
        return _more_memory("mem", known, f"the {human_memory(need)} that was used or wanted")
    seen = f" Slurm saw {human_memory(used)} in use by one task; {_UNKNOWN}." if used else _PERHAPS_MORE
    ground = f"the {human_memory(per_node)} that was asked for"
    return _more_memory("mem", SizingFigure(failed=per_node), ground, seen)


def _more_memory(option: str, known: SizingFigure, ground: str, seen: str = "") -> RequestChange | None:
    wanted = size(MEMORY, known).recommended
    if wanted is None:
        return None
    line = f"#SBATCH --{option}={format_memory(wanted)}"
    why = f"Proposed: 20 % more than {ground} ({line}).{seen} {_UNCHECKED}"
    return RequestChange(what="memory", directive=line, why=why)


def longer_time(part: Job, texts: Sequence[LogText] = ()) -> RequestChange | None:
    """The time that the progress seen in the log foretells, else half more; None where the limit is not known."""
    limit = part.resources.time_limit_seconds
    if limit is None or limit <= 0:
        return None
    ran = part.elapsed_seconds or limit
    seen = progress(texts)
    needed = _foretold(seen, ran)
    if seen is None or needed is None or needed <= limit:
        return _more_time(SizingFigure(failed=limit), "Proposed: 50 % more time")
    begun = f"The log's last progress is {seen.text!r} after {format_duration(ran)}."
    begun += f" At that pace the whole run takes {format_duration(round(needed))}."
    return _more_time(SizingFigure(used=needed), f"{begun} Proposed: that time and 15 % more, rounded up")


def _more_time(known: SizingFigure, ground: str) -> RequestChange | None:
    seconds = size(TIME_FORETOLD, known).recommended
    if seconds is None:
        return None
    line = f"#SBATCH --time={format_duration(seconds)}"
    return RequestChange(what="time", directive=line, why=f"{ground} ({line}). {_UNCHECKED}")


def _foretold(seen: Progress | None, ran: int) -> float | None:
    """Seconds from where it began to the end."""
    if seen is None:
        return None
    if seen.left is not None:
        return ran + seen.left
    worked = (seen.done or 0.0) - seen.begun
    return ran * (1 - seen.begun) / worked if worked >= _LEAST_DONE else None
