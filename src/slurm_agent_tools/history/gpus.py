"""How busy a job's GPUs were, from what the accounting holds. Pure; None where nobody measured it.

jobstats leaves a summary in a job's AdminComment when it ends: `JS1:` and a gzipped JSON document in base64, or one of
the words Short and None (Jobstats, "Generating Job Summaries"). Its figures are means over the run. Slurm itself
samples gres/gpuutil and gres/gpumem where AccountingStorageTRES names them and the GPUs can be asked.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from slurm_agent_tools.history import given
from slurm_agent_tools.model import Job, Step

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
    having = [part for part in parts if given.amount(part, given.GPUS)]
    if not having:
        return GpuUse()
    summaries = [summary(part.admin_comment) for part in having]
    if all(found is not None and found.utilization is not None for found in summaries):
        return _joined(having, [found for found in summaries if found is not None])
    return _sampled(having)


def _joined(parts: Sequence[Job], found: Sequence[GpuUse]) -> GpuUse:
    weights = [given.seconds(part, given.GPUS) or 0.0 for part in parts]
    busy = sum(weight * (use.utilization or 0.0) for weight, use in zip(weights, found, strict=True))
    sizes = [use.memory_bytes for use in found if use.memory_bytes is not None]
    return GpuUse(busy / sum(weights) if sum(weights) else None, max(sizes, default=None), "jobstats")


def _sampled(parts: Sequence[Job]) -> GpuUse:
    """gres/gpuutil is in per cent and added up over the GPUs of a task."""
    had = given.total(given.seconds(part, given.GPUS) for part in parts)
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
