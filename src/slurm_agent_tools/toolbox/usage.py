"""A running job as wait_for_job shows it: memory, CPU, and how long it may go on. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from slurm_agent_tools.diagnosis.alerts import late_note, time_left
from slurm_agent_tools.diagnosis.kinds import Facts
from slurm_agent_tools.diagnosis.limits import Using
from slurm_agent_tools.replies import RunningShown
from slurm_agent_tools.units import human_memory

_NO_SAMPLE = "not measured: no sample of its steps yet"


def shown(facts: Facts, missing: str | None) -> RunningShown:
    """The part nearest to its memory limit; `missing` says why nothing was measured. Something must run."""
    using = facts.using
    if using is None:
        raise ValueError("nothing runs")
    part, now = using.part, facts.now
    limit, share = part.resources.memory_bytes, using.share
    cpu = using.cpu_share(now)
    end, source = _end(using, now)
    return RunningShown(
        job_id=str(part.job_id),
        parts=len(facts.running),
        elapsed_seconds=part.elapsed_seconds,
        time_left_seconds=time_left(part, now),
        estimated_end=end,
        estimated_from=source,
        progress=None if using.progress is None else round(using.progress, 3),
        memory_bytes=using.memory_bytes,
        memory=None if using.memory_bytes is None else human_memory(using.memory_bytes),
        memory_task_peak_bytes=using.task_peak_bytes,
        memory_limit_bytes=limit,
        memory_limit=None if limit is None else human_memory(limit),
        memory_share=None if share is None else round(share, 3),
        cpu_seconds=using.cpu_seconds,
        cpu_share=None if cpu is None else round(cpu, 3),
        note=_note(facts, missing or (_NO_SAMPLE if using.memory_bytes is None else None)),
    )


def _note(facts: Facts, missing: str | None) -> str | None:
    """What was not measured, and that it will not be done in time."""
    told = [text for text in (missing, late_note(facts)) if text is not None]
    return ". ".join(told) or None


def _end(using: Using, now: datetime) -> tuple[datetime | None, Literal["progress", "time limit"] | None]:
    """When it ends by its progress, but not after its limit; else the limit."""
    part, left = using.part, time_left(using.part, now)
    limit = None if left is None else now + timedelta(seconds=left)
    whole = using.whole(now)
    if whole is not None and part.started is not None:
        end = part.started + timedelta(seconds=whole)
        if limit is None or end < limit:
            return end.replace(microsecond=0), "progress"
    return None if limit is None else limit.replace(microsecond=0), None if limit is None else "time limit"
