"""One job: what Slurm says of it, how far it is, why it failed, the end of its output, and what the guard decided."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import anyio.to_thread

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.job_facts import NONE
from slurm_agent_tools.errors import AgentToolsError, SlurmError
from slurm_agent_tools.insights import gpu_metrics, job_outcome, use_curves
from slurm_agent_tools.insights.usage import GPUS, amount
from slurm_agent_tools.models.job import JobView
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.web_page import TICK, PageAsked, WebPage
from slurm_agent_tools.services import job_alerts, jobs, log_analysis, present
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.services.log_files import OutputFile
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.text import sanitize

_TAIL, _LINES, _FILES = 64 * 1024, 200, 4

_PARTS = 50

_AGE = 4.0

_GPU_SPAN = timedelta(days=2)


async def gather(context: ClusterContext, asked: PageAsked) -> dict[str, Any]:
    """The record of the page; nothing is noted down. Raises InputError, UnknownJob and SlurmError."""
    with contextlib.suppress(SlurmError):  # told below, by what the ledger has of the job
        await context.slurm.queue(max_age=TICK * context.slurm.verdict.factor)
    view = await jobs.look(context, jobs.parse(asked.rest))
    run = await context.db(context.store.by_job, context.owner, view.job.job_id.base)
    seen = await job_alerts.look(context, view, run)
    curves, why_none = await _curves(context, view, seen)
    logs, unread = await _logs(context, view)
    diagnosis = await anyio.to_thread.run_sync(_diagnosis, context, view, run, logs)
    record = fragments.plain(
        {
            "job": present.job(view.job, managed=run is not None).model_dump(mode="json")
            | {"cause": job_outcome.cause(context, run, view.job)},
            "tasks": [present.brief_job(one).model_dump(mode="json") for one in view.tasks[:_PARTS]],
            "tasks_not_shown": max(0, len(view.tasks) - _PARTS),
            "use": None if seen.running is None else seen.running.model_dump(mode="json"),
            "alerts": [one.model_dump(mode="json") for one in [*jobs.missing(view), *seen.alerts]],
            "over": view.over,
            "diagnosis": diagnosis,
            "logs": [_log(one) for one in logs[:_FILES]],
            "unread": unread,
            "decision": await _decision(context, run),
            "script": None if run is None else run.script_path,
            "not_measured": why_none,
        }
    )
    return record | {"curves": curves}


async def _curves(
    context: ClusterContext, view: JobView, seen: job_alerts.ObservedJob
) -> tuple[dict[str, list[list[float]]], list[str]]:
    """What it used over time, and why some of it is not there."""
    job, now = view.job, context.clock.now()
    if job.started is None:
        return {}, []
    use_curves.looks.keep(context.owner, job.job_id.base, now, seen.running)
    lines: dict[str, Sequence[tuple[datetime, float]]] = {}
    lines |= use_curves.series(use_curves.looks.of(context.owner, job.job_id.base), job.resources.cpus)
    why = [] if any(lines.values()) else ["memory and CPU: nobody looked at it here while it ran"]
    if amount(job, GPUS):
        number = job.raw_id or job.job_id.base
        until = job.ended or now
        since = max(job.started, until - _GPU_SPAN)
        found = await gpu_metrics.series(context.settings.gpu_metrics, [number], since, until)
        lines |= {f"GPU {place}": points for place, points in enumerate(found.jobs.get(number, ()))}
        why += [] if number in found.jobs else [f"GPUs: {found.note or 'Prometheus knows nothing of this job'}"]
    return use_curves.drawable(lines, job.started), why


async def _logs(context: ClusterContext, view: JobView) -> tuple[list[OutputFile], str | None]:
    """The end of its output, and why there is none."""
    try:
        return await log_analysis.read_logs(context, view, tail=_TAIL), None
    except AgentToolsError as error:
        return [], error.message


def _log(one: OutputFile) -> dict[str, Any]:
    lines = [] if one.text is None else [line.text for line in one.text.lines][-_LINES:]
    return {
        "path": sanitize.line(one.file.path),
        "size_bytes": one.file.size_bytes,
        "note": one.file.note,
        "lines": len(lines),
        "text": "\n".join(lines),
    }


def _diagnosis(
    context: ClusterContext, view: JobView, run: Submission | None, logs: list[OutputFile]
) -> dict[str, Any] | None:
    """Why it failed; None of one that goes on or did not."""
    if not view.over:
        return None
    found = diagnose(view.job, view.tasks, [one.text for one in logs if one.text is not None])
    found = job_outcome.explained(context, run, view.job, found)
    return None if found.category == NONE else found.model_dump(mode="json")


async def _decision(context: ClusterContext, run: Submission | None) -> dict[str, Any] | None:
    """What the guard decided when it was submitted; None of a job that did not come through it."""
    kept = None if run is None else await context.db(context.store.decided, run.token)
    if kept is None:
        return None
    one = kept.decision
    return {
        "verdict": one.verdict,
        "rules": [
            {"id": rule.id, "outcome": rule.outcome, "message": rule.message}
            for rule in one.rules
            if rule.outcome != "pass"
        ],
        "passed": sum(rule.outcome == "pass" for rule in one.rules),
        "pinned": [asdict(pin) for pin in one.pinned],
        "approval": None
        if one.approval is None
        else {"by": one.approval.by, "channel": one.approval.channel, "at": one.approval.at.isoformat()},
    }


PAGE = WebPage("job", "Job", gather, age=_AGE, listed=False, named=True)
