"""What a job was given and used, in the arithmetic of seff(1) (contribs/seff of Slurm). Pure.

CPU: the CPU time of all steps over CPUs times elapsed time. Memory: that of the largest step over what the job had on
all its nodes. A step that was never sampled has not measured anything, and is not 0.
"""

from __future__ import annotations

import base64
import heapq
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from slurm_agent_tools.models.job import Job, Step, Usage

GPUS = "gres/gpu"


def ran(job: Job, tasks: Sequence[Job]) -> list[Job]:
    """The array tasks or components that started, or the job itself where it has none."""
    return [part for part in (tasks or (job,)) if part.started is not None and part.elapsed_seconds is not None]


def amount(part: Job, name: str) -> int | None:
    """How much of one kind; from the controller where the accounting tells nothing. No GPU is 0."""
    if part.allocated is not None:
        return gpus_in(part.allocated) if name == GPUS else part.allocated.get(name)
    known = part.resources
    return {"cpu": known.cpus, "mem": known.memory_bytes, "node": known.nodes, GPUS: known.gpus}[name]


def gpus_in(tres: Mapping[str, int]) -> int:
    """GPUs of all types; a cluster may account for them by type alone (AccountingStorageTRES=gres/gpu:a100)."""
    by_type = sum(number for name, number in tres.items() if name.startswith(f"{GPUS}:"))
    return tres.get(GPUS, by_type)


def seconds(part: Job, name: str) -> float | None:
    """So much of one kind times the seconds that it ran; suspended time is no time (sacct(1), Elapsed)."""
    had = amount(part, name)
    return None if had is None or part.elapsed_seconds is None else float(had * part.elapsed_seconds)


def with_gpus(job: Job, told: Job | None) -> Job:
    """The job with its GPUs as the accounting has them, where the controller was not asked for each of so many."""
    if job.resources.gpus is not None or told is None:
        return job
    return replace(job, resources=replace(job.resources, gpus=amount(told, GPUS)))


def gpu_kinds(part: Job) -> dict[str | None, int]:
    """GPUs by type; None for those whose type Slurm does not tell."""
    head = f"{GPUS}:"
    found: dict[str | None, int] = {
        name.removeprefix(head): count for name, count in (part.allocated or {}).items() if name.startswith(head)
    }
    rest = (amount(part, GPUS) or 0) - sum(found.values())
    return found | {None: rest} if rest > 0 else found


def total(values: Iterable[float | None]) -> float | None:
    """The sum; None where one is not known or there is none."""
    known = list(values)
    return None if not known or None in known else float(sum(value for value in known if value is not None))


# --- How busy a job's GPUs were, from what the accounting holds. Pure; None where nobody measured it ------------------


Source = Literal["jobstats", "accounting", "prometheus"]

_MARK = "JS1:"

_LONGEST, _LARGEST = 2**16, 2**20

_MOST = 2**60  # of any figure: bytes of a GPU's memory, per cent

_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class GpuUse:
    """`utilization` 0..1 over all GPUs and their time; `memory_bytes` the most of all GPUs together."""

    utilization: float | None = None
    memory_bytes: int | None = None
    source: Source | None = None
    note: str | None = None  # why nothing was measured


def measured(parts: Sequence[Job]) -> GpuUse:
    """From jobstats where it speaks of every part with GPUs, else from Slurm's own samples."""
    having = [part for part in parts if amount(part, GPUS)]
    if not having:
        return GpuUse()
    summaries = [summary(part.admin_comment) for part in having]
    if all(found is not None and found.utilization is not None for found in summaries):
        return _joined(having, [found for found in summaries if found is not None])
    return _sampled(having)


def _joined(parts: Sequence[Job], found: Sequence[GpuUse]) -> GpuUse:
    weights = [seconds(part, GPUS) or 0.0 for part in parts]
    busy = sum(weight * (use.utilization or 0.0) for weight, use in zip(weights, found, strict=True))
    sizes = [use.memory_bytes for use in found if use.memory_bytes is not None]
    return GpuUse(busy / sum(weights) if sum(weights) else None, max(sizes, default=None), "jobstats")


def _sampled(parts: Sequence[Job]) -> GpuUse:
    """gres/gpuutil is in per cent and added up over the GPUs of a task."""
    had = total(seconds(part, GPUS) for part in parts)
    busy = [
        percent * step.elapsed_seconds / 100
        for part in parts
        for step in part.steps
        if (percent := all_tasks(step, "gres/gpuutil")) is not None and step.elapsed_seconds is not None
    ]
    sizes = [size for part in parts for step in part.steps if (size := all_tasks(step, "gres/gpumem")) is not None]
    if not had or not busy:
        return GpuUse()
    return GpuUse(min(1.0, sum(busy) / had), max(sizes, default=None), "accounting")


def all_tasks(step: Step, name: str) -> int | None:
    """The sum over its tasks, from the mean where that alone is kept."""
    if name in step.tres_usage_in_tot:
        return step.tres_usage_in_tot[name]
    mean = step.tres_usage_in_ave.get(name)
    return None if mean is None else mean * (step.tasks or 1)


def summary(comment: str | None) -> GpuUse | None:
    """What a jobstats comment says of the GPUs; None for any other text, and for what cannot be read."""
    if comment is None or not comment.startswith(_MARK) or len(comment) > _LONGEST:
        return None
    try:
        unpacker = zlib.decompressobj(_GZIP)
        text = unpacker.decompress(base64.b64decode(comment.removeprefix(_MARK), validate=True), _LARGEST)
        told = json.loads(text) if not unpacker.unconsumed_tail else None
    except (ValueError, zlib.error, RecursionError):
        return None
    nodes = told.get("nodes") if isinstance(told, dict) else None
    if not isinstance(nodes, dict):
        return None
    busy = [value / 100 for value in _numbers(nodes, "gpu_utilization") if value <= 100]
    sizes = list(_numbers(nodes, "gpu_used_memory"))
    return GpuUse(sum(busy) / len(busy) if busy else None, round(sum(sizes)) if sizes else None, "jobstats")


def _numbers(nodes: dict[str, Any], name: str) -> Iterator[float]:
    """The figures of every GPU of every node."""
    for node in nodes.values():
        found = node.get(name) if isinstance(node, dict) else None
        for value in found.values() if isinstance(found, dict) else ():
            if isinstance(value, int | float) and 0 <= value < _MOST:  # whole numbers may be too large for a float
                yield float(value)


# --- What a job was given and used, in the arithmetic of seff(1) (contribs/seff of Slurm) -----------------------------


def usage(job: Job, tasks: Sequence[Job] = ()) -> Usage:
    """Sums over the array tasks or components that ran, or over the job itself where it has none.

    A sum is None when one of its parts was not measured; a CPU time of 0 was not, as no program does without any.
    Rests on the accounting's records (`allocated`, `steps`).
    """
    parts = ran(job, tasks)
    fullest = max(parts, key=_filling, default=None)
    gpus = measured(parts)
    return Usage(
        elapsed_seconds=max((part.elapsed_seconds or 0 for part in parts), default=None),
        cpu_seconds=total(0.0 if _idle(part, parts) else cpu(part.steps) for part in parts) or None,
        cpu_allocated_seconds=total(seconds(part, "cpu") for part in parts),
        gpu_allocated_seconds=total(seconds(part, GPUS) for part in parts),
        gpu_utilization=gpus.utilization,
        gpu_memory_bytes=gpus.memory_bytes,
        memory_peak_bytes=None if fullest is None else _most(memory(step) for step in fullest.steps),
        memory_allocated_bytes=None if fullest is None else amount(fullest, "mem"),
        memory_node_bytes=_most(node_memory(part.steps) for part in parts),
        time_limit_seconds=job.resources.time_limit_seconds,
    )


def cpu(steps: Sequence[Step]) -> float | None:
    """CPU seconds of all steps; None when one was not measured or there is none. Steps share no process."""
    return total(step.cpu_seconds for step in steps)


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
    """The most that steps at the same time had together of one amount; None where none of them tells.

    A step whose times are not known may have run beside every other.
    """
    found = [(step, told) for step in steps if (told := amount(step)) is not None]
    if any(step.started is None for step, _ in found):
        return sum(told for _, told in found)
    now = sum(told for step, told in found if step.elapsed_seconds is None)
    most, ends = now if found else None, list[tuple[float, int]]()
    for step, told in sorted(found, key=lambda pair: _began(pair[0])):
        while ends and ends[0][0] <= _began(step):
            now -= heapq.heappop(ends)[1]
        if step.elapsed_seconds is not None:
            now += told
            heapq.heappush(ends, (_began(step) + max(1, step.elapsed_seconds), told))
        most = max(most or 0, now)
    return most


def _began(step: Step) -> float:
    return step.started.timestamp() if step.started is not None else 0.0


def _node_share(step: Step) -> int | None:
    whole = memory(step)
    if whole is None or step.max_rss_bytes is None:
        return whole
    on_node = -(-(step.tasks or 1) // max(1, step.allocated.get("node", 1)))
    return min(whole, step.max_rss_bytes * on_node)


def _filling(part: Job) -> tuple[float, float]:
    """How full its memory was, then how large it was; what was not measured comes last."""
    peak, had = _most(memory(step) for step in part.steps), amount(part, "mem")
    return (peak / had if peak and had else -1.0, peak or -1.0)


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
