"""All findings about a cluster, the most costly first, and what could not be said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from slurm_agent_tools.models.accounted import ClusterRecord
from slurm_agent_tools.planning.findings import full_queue, idle_nodes, over_asked, stranded_gpus
from slurm_agent_tools.planning.findings.finding import ClusterFinding, Level
from slurm_agent_tools.planning.findings.full_queue import Bottleneck

FEWEST_JOBS = 50
"""Jobs that ended: of fewer, one that went wrong is a large share of all."""

FEWEST_HOURS = 24.0
"""From the first that could start to the end: one afternoon is no pattern."""

MOST_OF_A_KIND = 5

OF_EVERYBODY: tuple[Callable[[ClusterRecord], Iterator[ClusterFinding]], ...] = (
    stranded_gpus.stranded_gpus, idle_nodes.idle_beside_queue, idle_nodes.empty_reservations, idle_nodes.cannot_start,
    full_queue.filled_by_one,
)  # fmt: skip
"""What can be said only where all users' jobs are to be seen."""

_ORDER: dict[Level, int] = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, slots=True)
class FindingsReport:
    """The findings, ranked. `too_few`: why none is told. `not_measured`: what could not be looked at, and why."""

    findings: tuple[ClusterFinding, ...]
    bottlenecks: tuple[Bottleneck, ...]
    not_measured: tuple[str, ...]
    jobs: int
    too_few: str | None = None


def find_all(record: ClusterRecord) -> FindingsReport:
    """What a cluster does badly, as far as its record tells."""
    ended = sum(job.run is not None for job in record.jobs)
    gaps = tuple(_not_measured(record))
    too_few = _too_few(record, ended)
    if too_few is not None:
        return FindingsReport((), (), gaps, ended, too_few)
    kinds = over_asked.KINDS if record.own else (*over_asked.KINDS, *OF_EVERYBODY)
    found = [finding for kind in kinds for finding in kind(record)]
    ranked = sorted(found, key=lambda one: (_ORDER[one.level], -one.share, one.id, one.title))
    told = () if record.own else tuple(full_queue.bottlenecks(record))
    return FindingsReport(tuple(_first_of_each(ranked)), told, gaps, ended)


def _first_of_each(ranked: list[ClusterFinding]) -> Iterator[ClusterFinding]:
    seen: Counter[str] = Counter()
    for finding in ranked:
        seen[finding.id] += 1
        if seen[finding.id] <= MOST_OF_A_KIND:
            yield finding


def _too_few(record: ClusterRecord, ended: int) -> str | None:
    if ended < FEWEST_JOBS:
        return f"Too few jobs to say: {ended} ended, {FEWEST_JOBS} are needed."
    first = min((job.ready for job in record.jobs if job.ready is not None), default=record.end)
    hours = (record.end - max(first, record.begin)) / 3600
    if hours < FEWEST_HOURS:
        return f"Too short a time to say: {hours:.0f} hours, {FEWEST_HOURS:.0f} are needed."
    return None


def _not_measured(record: ClusterRecord) -> Iterator[str]:
    with_gpus = [job for job in record.jobs if job.gpus and job.run]
    if with_gpus and not any(job.gpu_busy is not None for job in with_gpus):
        yield "GPU use is not in this accounting, so GPUs that stood still in a job are not found."
    there = any(node.gpus for node in record.nodes.values())
    if there and not record.own and not any(job.gpus for job in record.jobs):
        yield "No job has GPUs in this accounting (AccountingStorageTRES), so nothing of GPUs is found."
    ran = [job for job in record.jobs if job.run and job.run > 60]
    if ran and not any(job.memory_used for job in ran):
        yield "Memory use is not in this accounting, so over-asked memory is not found."
    if record.own:
        yield "Only your own jobs were to be seen: queue, idle nodes, reservations and fragmentation were not judged."
    if record.kept is None:
        yield "Reservations of the past were not to be seen: nodes in them count as open to all."
    if record.outages is None:
        yield "Times in which nodes were down were not to be seen: they count as idle."
