"""What a job was given and used, in the arithmetic of seff(1) (contribs/seff of Slurm). Pure.

CPU: the CPU time of all steps over CPUs times elapsed time. Memory: that of the largest step over what the job had on
all its nodes. A step that was never sampled has not measured anything, and is not 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from slurm_agent_tools.history import given
from slurm_agent_tools.history.gpus import measured
from slurm_agent_tools.model import Job, Step, Usage


def usage(job: Job, tasks: Sequence[Job] = ()) -> Usage:
    """Sums over the array tasks or components that ran, or over the job itself where it has none.

    A sum is None when one of its parts was not measured. Rests on the accounting's records (`allocated`, `steps`).
    """
    parts = given.ran(job, tasks)
    fullest = max(parts, key=_filling, default=None)
    gpus = measured(parts)
    return Usage(
        elapsed_seconds=max((part.elapsed_seconds or 0 for part in parts), default=None),
        cpu_seconds=given.total(0.0 if _idle(part, parts) else cpu(part.steps) for part in parts),
        cpu_allocated_seconds=given.total(given.seconds(part, "cpu") for part in parts),
        gpu_allocated_seconds=given.total(given.seconds(part, given.GPUS) for part in parts),
        gpu_utilization=gpus.utilization,
        gpu_memory_bytes=gpus.memory_bytes,
        memory_peak_bytes=None if fullest is None else _most(memory(step) for step in fullest.steps),
        memory_allocated_bytes=None if fullest is None else given.amount(fullest, "mem"),
        memory_node_bytes=_most(node_memory(part.steps) for part in parts),
        time_limit_seconds=job.resources.time_limit_seconds,
    )


def cpu(steps: Sequence[Step]) -> float | None:
    """CPU seconds of all steps; None when one was not measured or there is none. Steps share no process."""
    return given.total(step.cpu_seconds for step in steps)


def _idle(part: Job, parts: Sequence[Job]) -> bool:
    """True for a het component in which the script started nothing: the batch script runs in the first one."""
    return part.job_id.component is not None and not part.steps and any(other.steps for other in parts)


def memory(step: Step) -> int | None:
    """Most memory of all tasks together, bytes, over all nodes; None where not sampled.

    The sum that Slurm keeps (TRESUsageInTot) misses tasks that ended before their first sample; then it is the largest
    task's (MaxRSS) times the number of tasks, at least what was used.
    """
    total, largest = step.tres_usage_in_tot.get("mem"), step.max_rss_bytes
    if total and step.tres_usage_in_min.get("mem"):
        return total
    if largest is None:
        return total or None
    return max(total or 0, largest * (step.tasks or 1))


def node_memory(steps: Sequence[Step]) -> int | None:
    """Most that a node may have needed, bytes: the steps that ran at the same time added up.

    A node's share of a step is not known: it is at most its largest task times the tasks there when they are spread
    evenly, and never above the whole step.
    """
    return at_once(steps, _node_share)


def at_once(steps: Sequence[Step], amount: Callable[[Step], int | None]) -> int | None:
    """The most that steps at the same time had together of one amount; None where none of them tells."""
    found = [(step, told) for step in steps if (told := amount(step)) is not None]
    return _most(sum(told for other, told in found if _ran_at(other, step)) for step, _ in found)


def _node_share(step: Step) -> int | None:
    whole = memory(step)
    if whole is None or step.max_rss_bytes is None:
        return whole
    on_node = -(-(step.tasks or 1) // max(1, step.allocated.get("node", 1)))
    return min(whole, step.max_rss_bytes * on_node)


def _ran_at(other: Step, step: Step) -> bool:
    """Whether `other` ran when `step` began; yes where the times are not known."""
    if other is step or other.started is None or step.started is None or other.elapsed_seconds is None:
        return True
    since = (step.started - other.started).total_seconds()
    return 0 <= since < max(1, other.elapsed_seconds)


def _filling(part: Job) -> tuple[float, float]:
    """How full its memory was, then how large it was; what was not measured comes last."""
    peak, had = _most(memory(step) for step in part.steps), given.amount(part, "mem")
    return (peak / had if peak and had else -1.0, peak or -1.0)


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
