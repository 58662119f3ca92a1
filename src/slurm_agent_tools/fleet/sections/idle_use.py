"""GPUs that are held and not used, what jobs have beside what they use, and jobs that near their limit. Pure.

Whether a GPU is idle is told by the first of these that measured it: a Prometheus with a series for each GPU; the
GPU use that Slurm itself samples (gres/gpuutil), together with the CPU time of the job's steps; nvidia-smi in a step of
the job, look by look, where the settings let it; that CPU time alone, where it is next to nothing, because no program
uses a GPU without a CPU. What none of them tells is not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from slurm_agent_tools.diagnosis.phrases import listed
from slurm_agent_tools.fleet.fleet_facts import FleetFacts, GpuPoints
from slurm_agent_tools.fleet.use_windows import QUIET, IdleKind, KeptLooks, UseSample, idle_now
from slurm_agent_tools.models.fleet_answer import EndingShown, IdleShown, NotMeasured, UseBeside
from slurm_agent_tools.models.job import Job, StepUse

EMPTY = 0.005
"""CPU seconds a second, of all steps together: below it nothing is running."""

_EXTERN = "extern"

_NO_STEPS = "nvidia-smi is not asked in a step of the job (fleet.gpu_steps)"

_NEAR, _LEAST = 0.1, 300
"""A job nears its limit with less than this share of it left, or less than so many seconds."""


def idle(facts: FleetFacts) -> list[IdleShown]:
    """The caller's running jobs that hold GPUs and use none of them, longest first."""
    found = [one for job in _with_gpus(facts) if (one := _judged(job, facts)) is not None]
    return sorted(found, key=lambda one: one.since)


def idle_sentence(made: Sequence[IdleShown]) -> str:
    """How many."""
    gpus = sum(one.gpus for one in made)
    return f"{gpus} of your GPUs do nothing." if made else ""


def _with_gpus(facts: FleetFacts) -> list[Job]:
    return [job for job in facts.mine if job.state == "RUNNING" and job.resources.gpus]


def _number(job: Job) -> int:
    return job.raw_id if job.raw_id is not None else job.job_id.base


def _least(facts: FleetFacts) -> float:
    return facts.settings.idle_minutes * 60


def _judged(job: Job, facts: FleetFacts) -> IdleShown | None:
    number = _number(job)
    if number in facts.gpu_series:
        return _by_series(job, facts.gpu_series[number], "prometheus", facts)
    steps = _steps(job, facts)
    if facts.gpu_steps.get(number) and not _sampled(job, facts):
        return _by_series(job, facts.gpu_steps[number], "nvidia_smi", facts) or _held_empty(job, steps, facts)
    if steps is None or any(step.gpu_percent for step in steps):
        return None
    return _by_cpu_time(job, steps, facts)


def _held_empty(job: Job, steps: Sequence[StepUse] | None, facts: FleetFacts) -> IdleShown | None:
    """By CPU time, where all that nvidia-smi was seen to tell is no use at all, for less time than is needed."""
    used = any(use > QUIET for points in facts.gpu_steps[_number(job)] for _, use in points)
    return None if used or steps is None else _by_cpu_time(job, steps, facts)


def _by_series(
    job: Job, series: GpuPoints, source: Literal["prometheus", "nvidia_smi"], facts: FleetFacts
) -> IdleShown | None:
    """The GPUs whose series is idle until now; the kind of the one that is idle longest."""
    windows = []
    for points in series:
        samples = [UseSample(at, use) for at, use in points]
        window = idle_now(samples, _least(facts), facts.now, held_since=job.started)
        windows += [window] if window is not None else []
    if not windows:
        return None
    first = min(windows, key=lambda one: one.start)
    gpus = min(len(windows), job.resources.gpus or len(windows))  # two collectors tell the same GPU twice
    return IdleShown(job_id=str(job.job_id), gpus=gpus, since=first.start, source=source, kind=first.kind)


def _by_cpu_time(job: Job, steps: Sequence[StepUse], facts: FleetFacts) -> IdleShown | None:
    """By the CPU time of its steps since its start, else since a look that is kept."""
    if job.started is None or (facts.now - job.started).total_seconds() < _least(facts):
        return None
    spent = _spent(steps)
    if spent is None:
        return None
    kind: IdleKind
    if spent <= EMPTY * (facts.now - job.started).total_seconds():
        since, kind = job.started, "held-empty"
    else:
        kept = facts.quiet_since.get(_number(job))
        if kept is None or (facts.now - kept).total_seconds() < _least(facts):
            return None
        since, kind = kept, "idle-after-activity"
    sampled = any(step.gpu_percent is not None for step in steps)
    gpus = job.resources.gpus or 0
    return IdleShown(
        job_id=str(job.job_id), gpus=gpus, since=since, source="gpuutil" if sampled else "cpu_time", kind=kind
    )


def _steps(job: Job, facts: FleetFacts) -> tuple[StepUse, ...] | None:
    """Its steps; None where nothing was told of them."""
    found = (facts.use or {}).get(_number(job))
    return found or None


def _spent(steps: Sequence[StepUse]) -> float | None:
    """CPU seconds of all steps; 0 where Slurm keeps nothing but the step that holds the nodes.

    What somebody starts on a node by ssh runs in that one (pam_slurm_adopt), so it counts as far as it is known.
    """
    real = [step for step in steps if step.step_id != _EXTERN or step.cpu_seconds is not None]
    if not real:
        return 0.0
    known = [step.cpu_seconds for step in real]
    return None if None in known else sum(value or 0.0 for value in known)


def unknown(facts: FleetFacts) -> list[NotMeasured]:
    """Whose GPUs nobody measures, and why; that of other users nothing is looked at."""
    holding = _with_gpus(facts)
    blind = [job for job in holding if not _measured(job, facts)]
    told = []
    if blind:
        why = facts.series_note or "Prometheus knows nothing of them"
        notes = (facts.gpu_step_notes.get(_number(job)) for job in blind)
        steps = next((note for note in notes if note is not None), _NO_STEPS)
        cpu = "their CPU time alone is looked at" if facts.use is not None else "sstat did not answer"
        jobs = listed((str(job.job_id) for job in blind), most=3)
        told.append(
            NotMeasured(what=f"GPU use of jobs {jobs}", why=f"{why}; Slurm samples no gres/gpuutil; {steps}; {cpu}")
        )
    elif not holding and all(job.resources.gpus is not None for job in facts.mine):
        told.append(NotMeasured(what="GPU use", why="you have no running job with GPUs, others' are not looked at"))
    unsure = [job for job in facts.mine if job.resources.gpus is None]
    if unsure:
        jobs = listed((str(job.job_id) for job in unsure), most=3)
        told.append(NotMeasured(what=f"GPUs of jobs {jobs}", why="Slurm was not asked for each of so many jobs"))
    return told


def _measured(job: Job, facts: FleetFacts) -> bool:
    number = _number(job)
    return number in facts.gpu_series or _sampled(job, facts) or bool(facts.gpu_steps.get(number))


def _sampled(job: Job, facts: FleetFacts) -> bool:
    return any(step.gpu_percent is not None for step in _steps(job, facts) or ())


def quiet_since(facts: FleetFacts, looks: KeptLooks) -> dict[int, datetime]:
    """Keep this look at the CPU time of running jobs, and tell since when each is quiet, by its own number."""
    found: dict[int, datetime] = {}
    for job in facts.mine:
        steps = _steps(job, facts)
        spent = None if steps is None else _spent(steps)
        if spent is not None and job.state == "RUNNING":
            looks.keep(_number(job), facts.now, spent)
            since = looks.quiet_since(_number(job), EMPTY)
            found |= {} if since is None else {_number(job): since}
    return found


# --- What is allocated beside what is used, and what ends soon --------------------------------------------------------


def beside(facts: FleetFacts) -> list[UseBeside]:
    """Of each of the caller's running jobs the shares of CPUs and memory that its steps use, least used first."""
    found = [one for job in facts.mine if job.state == "RUNNING" and (one := _beside(job, facts)) is not None]
    return sorted(found, key=lambda one: min(one.cpu_share or 1.0, one.memory_share or 1.0))


def _beside(job: Job, facts: FleetFacts) -> UseBeside | None:
    steps = _steps(job, facts)
    if steps is None or job.started is None:
        return None
    passed, held = (facts.now - job.started).total_seconds(), job.resources
    spent = _spent(steps)
    sizes = [step.memory_bytes for step in steps if step.memory_bytes is not None]
    cpu = spent / (held.cpus * passed) if spent is not None and held.cpus and passed >= 1 else None
    memory = sum(sizes) / held.memory_bytes if sizes and held.memory_bytes else None
    if cpu is None and memory is None:
        return None
    return UseBeside(
        job_id=str(job.job_id),
        cpus=held.cpus,
        cpu_share=None if cpu is None else round(cpu, 3),
        memory_bytes=held.memory_bytes,
        memory_share=None if memory is None else round(memory, 3),
    )


def endings(facts: FleetFacts) -> list[EndingShown]:
    """Running jobs whose time limit comes soon, first ones first."""
    found = []
    for job in facts.mine:
        limit = job.resources.time_limit_seconds
        if job.state != "RUNNING" or job.started is None or limit is None or limit < 0:
            continue
        end = job.started + timedelta(seconds=limit)
        left = (end - facts.now).total_seconds()
        if left <= max(_NEAR * limit, min(_LEAST, limit / 2)):
            found.append(EndingShown(job_id=str(job.job_id), limit_ends=end, left_seconds=max(0, round(left))))
    return sorted(found, key=lambda one: one.limit_ends)
