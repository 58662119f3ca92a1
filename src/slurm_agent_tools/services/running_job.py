"""A running job as wait_for_job shows it: how far it came, memory, CPU, and how long it may go on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from slurm_agent_tools.diagnosis.alert_types import AlertFacts, Using
from slurm_agent_tools.diagnosis.alerts import late_note, time_left, typical
from slurm_agent_tools.diagnosis.excerpt import FilePiece, LogText, assemble, narrow
from slurm_agent_tools.diagnosis.program_progress import progress
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.models.job import Job, JobRecord
from slurm_agent_tools.models.shapes import RunningShown
from slurm_agent_tools.services import project_paths
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.services.log_files import declared
from slurm_agent_tools.services.log_paths import Kind, paths_of
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.units import human_memory

_HEAD, _TAIL = 2**16, 2**18

_LIKE = 50


async def share(context: ClusterContext, job: Job, now: datetime, run: Submission | None = None) -> float | None:
    """The share of its work that is done, 0..1; None where its output does not tell. Raises StorageError."""
    texts = []
    for path, kind in await paths_of(context, job, run):
        text = await _ends(context, path, kind)
        texts += [] if text is None else [text]
    found = progress(texts)
    if found is None or found.done is not None or found.left is None or job.started is None:
        return None if found is None else found.done
    passed = (now - job.started).total_seconds()
    return passed / (passed + found.left) if passed > 0 else None


async def _ends(context: ClusterContext, path: str, kind: Kind) -> LogText | None:
    """Both ends of one file of the project or of a folder for logs; None for what may or can not be read."""
    try:
        project_files = await declared(context, path) or context.there
        real = await project_paths.resolve(project_files, "path", path)
        stat = await project_files.files.stat(real)
        if stat is None or stat.kind != "file":
            return None
        spans = [(0, _HEAD), (stat.size - _TAIL, _TAIL)] if stat.size > _HEAD + _TAIL else [(0, stat.size)]
        read = [(start, await project_files.files.read(real, offset=start, size=size)) for start, size in spans]
    except (InputError, StorageError):
        return None
    pieces = [FilePiece(start, start + len(data), data) for start, data in read if data]
    return assemble(path, kind, narrow(pieces), stat.size) if pieces else None


async def whole_share(context: ClusterContext, facts: AlertFacts, run: Submission | None) -> float | None:
    """How far it came; of several parts at once nobody asks."""
    return await share(context, facts.running[0], facts.now, run) if len(facts.parts) == 1 else None


async def like(context: ClusterContext, run: Submission | None) -> Sequence[JobRecord]:
    """Earlier runs of the same script, else of the same name."""
    if run is None:
        return ()
    same = await context.db(context.store.history, context.owner, script_sha256=run.script_sha256, limit=_LIKE)
    if typical(same) is not None:
        return same
    return await context.db(context.store.history, context.owner, name=run.job_name, limit=_LIKE)


# --- memory, CPU, and how long it may go on ---------------------------------------------------------------------------


_NO_SAMPLE = "not measured: no sample of its steps yet"


def shown(facts: AlertFacts, missing: str | None) -> RunningShown:
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


def _note(facts: AlertFacts, missing: str | None) -> str | None:
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
