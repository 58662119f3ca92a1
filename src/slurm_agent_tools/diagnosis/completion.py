"""The completion report: what a finished job was, used and cost, as data and as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.diagnosis import markdown, words
from slurm_agent_tools.diagnosis.advice import Ending, Wanted, advise, shares
from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.cost import cost
from slurm_agent_tools.diagnosis.facts import failed, peak
from slurm_agent_tools.history import given
from slurm_agent_tools.history.gpus import GpuUse, measured
from slurm_agent_tools.history.usage import memory, usage
from slurm_agent_tools.model import Job, Step, Usage
from slurm_agent_tools.replies import Diagnosis, ResourcesShown
from slurm_agent_tools.replies.report import (
    CompletionReport,
    GpuUseShown,
    QueueSeen,
    StepShown,
    UsageShown,
)
from slurm_agent_tools.units import human_memory

_MOST_STEPS = 10
_GOOD = frozenset({"COMPLETED", "RUNNING", "PENDING", "CANCELLED"})


@dataclass(frozen=True, slots=True)
class Around:
    """What the records do not hold: the request, the settings, who else measured the GPUs, the queue.

    `found`: what analyze_log found; None where it did not look at the job. `cause`: one sentence on its end.
    """

    requested: ResourcesShown = field(default_factory=ResourcesShown)
    wanted: Wanted = field(default_factory=Wanted)
    gpus: GpuUse | None = None
    queue: QueueSeen = field(default_factory=QueueSeen)
    found: Diagnosis | None = None
    cause: str | None = None


def report(job: Job, tasks: Sequence[Job], around: Around) -> CompletionReport:
    """The report. A figure that nobody measured is None, and `not measured` in the text."""
    parts, used, largest = given.ran(job, tasks), usage(job, tasks), peak([job, *tasks])
    bad = any(failed(part) for part in (job, *tasks))
    ending = Ending(around.found or diagnose(job, tasks, ()), around.found is not None, around.cause) if bad else None
    steps = _chosen(list(_steps(parts)))
    count = sum(len(part.steps) for part in parts)
    plain = CompletionReport(
        job_id=str(job.job_id),
        outcome=words.outcome(job),
        queue_seconds=words.queued(job),
        run_seconds=used.elapsed_seconds if tasks else job.elapsed_seconds,
        max_rss_bytes=largest,
        max_rss=None if largest is None else human_memory(largest),
        requested=around.requested,
        text="",
        efficiency=shares(used),
        usage=_used(used),
        gpu=_gpus(parts, around.gpus),
        steps=steps,
        steps_not_shown=count - len(steps),
        cost=cost(parts, around.wanted.rates),
        recommendation=advise(job, tasks, used, ending, around.wanted),
        queue=around.queue,
    )
    return plain.model_copy(update={"text": markdown.text(plain, job, tasks, ending)})


def _used(used: Usage) -> UsageShown:
    return UsageShown(
        cpu_seconds=used.cpu_seconds,
        cpu_allocated_seconds=used.cpu_allocated_seconds,
        gpu_allocated_seconds=used.gpu_allocated_seconds,
        memory_peak_bytes=used.memory_peak_bytes,
        memory_peak=_size(used.memory_peak_bytes),
        memory_allocated_bytes=used.memory_allocated_bytes,
        memory_allocated=_size(used.memory_allocated_bytes),
        memory_node_bytes=used.memory_node_bytes,
    )


def _gpus(parts: Sequence[Job], elsewhere: GpuUse | None) -> GpuUseShown:
    """What the accounting holds counts first, then what somebody else was asked for."""
    found = measured(parts)
    if found.utilization is None and elsewhere is not None:
        found = elsewhere
    return GpuUseShown(
        utilization=None if found.utilization is None else round(found.utilization, 4),
        memory_bytes=found.memory_bytes,
        memory=_size(found.memory_bytes),
        source=found.source,
        note=found.note,
    )


def _steps(parts: Sequence[Job]) -> Iterator[StepShown]:
    for part in parts:
        for step in part.steps:
            yield _step(part, step)


def _chosen(steps: list[StepShown]) -> list[StepShown]:
    """All where they are few, else those that failed before the others."""
    if len(steps) <= _MOST_STEPS:
        return steps
    return sorted(steps, key=lambda step: step.state in _GOOD)[:_MOST_STEPS]


def _step(part: Job, step: Step) -> StepShown:
    cpus, had, took = step.allocated.get("cpu"), step.allocated.get("mem"), memory(step)
    held = cpus * step.elapsed_seconds if cpus and step.elapsed_seconds else None
    return StepShown(
        step_id=f"{part.job_id}.{step.step_id}",
        name=step.name,
        state=step.state,
        run_seconds=step.elapsed_seconds,
        tasks=step.tasks,
        cpus=cpus,
        cpu_seconds=step.cpu_seconds,
        cpu_efficiency=round(step.cpu_seconds / held, 4) if held and step.cpu_seconds is not None else None,
        memory_bytes=took,
        memory=_size(took),
        memory_allocated_bytes=had,
        memory_efficiency=round(took / had, 4) if took is not None and had else None,
    )


def _size(size: int | None) -> str | None:
    return None if size is None else human_memory(size)
