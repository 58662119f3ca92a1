"""The memory of jobs as callers see it: searched by tag, by text, or by likeness to a script."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.history.export import memory
from slurm_agent_tools.history.records import JobRecord
from slurm_agent_tools.history.search import search, similar, tags
from slurm_agent_tools.history.sizing import Advice, Figure, advise
from slurm_agent_tools.jobscript.resources import resolve
from slurm_agent_tools.model import Resources
from slurm_agent_tools.replies.history import (
    AdviceShown,
    FigureShown,
    HistoryReply,
    KeptJob,
    MemoryShown,
    PastJob,
    UsageShown,
)
from slurm_agent_tools.toolbox import paths, show
from slurm_agent_tools.toolbox.desk import Desk
from slurm_agent_tools.toolbox.past import DAYS, past
from slurm_agent_tools.toolbox.reading import read

_MOST = 10_000
_DATA = ["jobs"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question to the memory; `like` is a script in the project. `memory`: as memory servers store them."""

    tags: Sequence[str] = ()
    match_all: bool = True
    query: str = ""
    like: str | None = None
    limit: int = 20
    days: int = DAYS
    memory: bool = False


async def recall(desk: Desk, wanted: Wanted) -> HistoryReply:
    """The answer; with `like` also what runs of that job or script advise. Raises InputError and StorageError."""
    asked = await _asked(desk, wanted.like) if wanted.like is not None else None
    known = await past(desk, days=wanted.days, limit=_MOST)
    found = search(known.records, tags=wanted.tags, match_all=wanted.match_all, query=wanted.query, limit=_MOST)
    near: Sequence[tuple[float | None, JobRecord]]
    if asked is None:
        near = [(None, record) for record in found[: wanted.limit]]
        advice = None
    else:
        near = similar(found, asked.requested, name=asked.name, script_path=asked.path, limit=wanted.limit)
        runs = [one for one in known.records if one.name == asked.name or one.script_path == asked.path]
        advice = advice_shown(advise(runs, asked.requested))
    return HistoryReply(
        status="ok",
        summary=_summary(len(found), len(near), wanted) + (f" {advice.summary}" if advice is not None else ""),
        as_of=desk.clock.now(),
        data_only=_DATA if near else [],
        jobs=[kept(record, like) for like, record in near]
        if wanted.memory
        else [job(record, like) for like, record in near],
        advice=advice,
        note=known.silent,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    name: str
    path: str
    requested: Resources


async def _asked(desk: Desk, script: str) -> _Asked:
    """What a script asks for; without a cluster as far as it can be told."""
    shelf = await paths.either(desk, "like", script)
    real, data = await paths.read_script(shelf, "like", script, limit=desk.policy.policy.sizes.script_bytes)
    reading, _ = await read(desk, data, paths.relative(shelf, real))
    partitions = None
    with contextlib.suppress(SlurmError):
        partitions = await desk.slurm.partitions()
    name = reading.request.name or reading.path.rsplit("/", 1)[-1]
    return _Asked(name, reading.path, resolve(reading.request, partitions))


def kept(record: JobRecord, likeness: float | None = None) -> KeptJob:
    """One record as memory servers store it."""
    return KeptJob(job_id=record.job_id, state=record.state, likeness=likeness, memory=MemoryShown(**memory(record)))


def job(record: JobRecord, likeness: float | None = None) -> PastJob:
    """One record as it is shown."""
    plain = {item.name: getattr(record, item.name) for item in fields(record) if item.name in PastJob.model_fields}
    return PastJob(
        **{
            **plain,
            "tags": list(tags(record)),
            "likeness": likeness,
            "requested": show.resources(record.requested),
            "usage": None if record.usage is None else UsageShown(**asdict(record.usage)),
        }
    )


def advice_shown(advice: Advice) -> AdviceShown:
    """Advice as it is shown."""
    return AdviceShown(
        basis=advice.basis,
        enough=advice.enough,
        summary=advice.summary,
        memory=_figure(advice.memory),
        time=_figure(advice.time),
        cpus=_figure(advice.cpus),
        warnings=list(advice.warnings),
        recommended=None if advice.recommended is None else show.resources(advice.recommended),
    )


def _figure(figure: Figure) -> FigureShown:
    return FigureShown(**{name: getattr(figure, name) for name in FigureShown.model_fields})


def _summary(found: int, shown: int, wanted: Wanted) -> str:
    if not found:
        return f"No job of the last {wanted.days} days fits."
    number = "1 job" if found == 1 else f"{found} jobs"
    return f"{number} of the last {wanted.days} days" + (f", {shown} shown." if shown < found else ".")
