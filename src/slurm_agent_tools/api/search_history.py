"""The memory of jobs as callers see it: searched by tag, by text, or by likeness to a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from slurm_agent_tools.insights.accounting_history import DAYS, accounting_history
from slurm_agent_tools.insights.job_search import search, similar, tags
from slurm_agent_tools.insights.memory_server import memory
from slurm_agent_tools.insights.run_sizes import size_from_runs
from slurm_agent_tools.models.history_answer import (
    AdviceShown,
    HistoryReply,
    MemoryServerJob,
    MemoryServerRecord,
    PastJob,
    RememberedUsage,
)
from slurm_agent_tools.models.job import JobRecord
from slurm_agent_tools.models.job_sizing import JobSizing
from slurm_agent_tools.models.shapes import ResourcesShown
from slurm_agent_tools.services import project_paths
from slurm_agent_tools.services.context import ClusterContext

_MOST = 10_000

_DATA = ["jobs"]


@dataclass(frozen=True, slots=True)
class HistoryQuestion:
    """A question to the memory; `like` is a script in the project. `memory`: as memory servers store them."""

    tags: Sequence[str] = ()
    match_all: bool = True
    query: str = ""
    like: str | None = None
    limit: int = 20
    days: int = DAYS
    memory: bool = False


async def search_history(context: ClusterContext, wanted: HistoryQuestion) -> HistoryReply:
    """The answer; with `like` also what runs of that job or script advise. Raises InputError and StorageError."""
    asked = await project_paths.asked_of(context, "like", wanted.like) if wanted.like is not None else None
    known = await accounting_history(context, days=wanted.days, limit=_MOST)
    found = search(known.records, tags=wanted.tags, match_all=wanted.match_all, query=wanted.query, limit=_MOST)
    near: Sequence[tuple[float | None, JobRecord]]
    if asked is None:
        near = [(None, record) for record in found[: wanted.limit]]
        advice = None
    else:
        near = similar(found, asked.requested, name=asked.name, script_path=asked.path, limit=wanted.limit)
        runs = [one for one in known.records if one.name == asked.name or one.script_path == asked.path]
        advice = advice_shown(size_from_runs(runs, asked.requested))
    return HistoryReply(
        status="ok",
        summary=_summary(len(found), len(near), wanted) + (f" {advice.summary}" if advice is not None else ""),
        as_of=context.clock.now(),
        data_only=_DATA if near else [],
        jobs=[remembered_for_server(record, like) for like, record in near]
        if wanted.memory
        else [job_with_history(record, like) for like, record in near],
        advice=advice,
        note=known.silent,
    )


def remembered_for_server(record: JobRecord, likeness: float | None = None) -> MemoryServerJob:
    """One record as memory servers store it."""
    return MemoryServerJob(
        job_id=record.job_id, state=record.state, likeness=likeness, memory=MemoryServerRecord(**memory(record))
    )


def job_with_history(record: JobRecord, likeness: float | None = None) -> PastJob:
    """One record as it is shown."""
    plain = {item.name: getattr(record, item.name) for item in fields(record) if item.name in PastJob.model_fields}
    return PastJob(
        **{
            **plain,
            "tags": list(tags(record)),
            "likeness": likeness,
            "requested": ResourcesShown.of(record.requested),
            "usage": None if record.usage is None else RememberedUsage(**asdict(record.usage)),
        }
    )


def advice_shown(sizing: JobSizing) -> AdviceShown:
    """Advice as it is shown: the sizing as it is, the request with the human spelling beside each number."""
    recommended = None if sizing.recommended is None else ResourcesShown.of(sizing.recommended)
    plain = {item.name: getattr(sizing, item.name) for item in fields(sizing)}
    return AdviceShown(**{**plain, "warnings": list(sizing.warnings), "recommended": recommended})


def _summary(found: int, shown: int, wanted: HistoryQuestion) -> str:
    if not found:
        return f"No job of the last {wanted.days} days fits."
    number = "1 job" if found == 1 else f"{found} jobs"
    return f"{number} of the last {wanted.days} days" + (f", {shown} shown." if shown < found else ".")
