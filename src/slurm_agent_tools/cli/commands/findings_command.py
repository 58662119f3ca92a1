"""The subcommand `findings`: what this cluster does badly, by its own accounting, and the change that would mend it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import anyio.to_thread

from slurm_agent_tools.api import printing, render
from slurm_agent_tools.api.context_registry import OpenedContexts, one_cluster
from slurm_agent_tools.insights.queue_history import cluster_record
from slurm_agent_tools.models.accounted import ClusterRecord
from slurm_agent_tools.planning.findings.finding import ClusterFinding
from slurm_agent_tools.planning.findings.full_queue import Bottleneck
from slurm_agent_tools.planning.findings.ranked import FindingsReport, find_all
from slurm_agent_tools.settings import load
from slurm_agent_tools.text import log_events, sanitize
from slurm_agent_tools.units import how_many

DONE = 0

DAYS = 14


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `findings`."""
    parser.description = (
        "What the cluster does badly, by the accounting of the last days: memory and time that nobody uses, GPUs that"
        " cannot be taken, idle nodes beside a full queue. Each with its evidence, its cost and the change that would"
        " mend it. Changes nothing, and judges what this user may see."
    )
    parser.add_argument("--days", type=int, default=DAYS, metavar="N", help=f"of the last N days ({DAYS})")
    parser.add_argument("--cluster", metavar="NAME", help="the cluster of the settings")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


async def run(args: argparse.Namespace) -> int:
    """Print the findings; returns the exit code. Raises AgentToolsError."""
    settings = load()
    log_events.configure(settings.log_level)
    async with one_cluster(OpenedContexts(settings), args.cluster) as context:
        record = await cluster_record(context, days=args.days)
    report = await anyio.to_thread.run_sync(find_all, record)
    body = sanitize.document(_document(record, report, args.days))
    if args.json:
        printing.document(body, as_json=True)
    else:
        printing.show([render.Line(render.plain(sanitize.shown(text))) for text in _lines(record, report)])
    return DONE


def _document(record: ClusterRecord, report: FindingsReport, days: int) -> dict[str, Any]:
    return {
        "status": "done",
        "summary": _summary(record, report),
        "as_of": datetime.now(UTC).isoformat(timespec="seconds"),
        "cluster": record.cluster,
        "days": days,
        "users": "own" if record.own else "all",
        "jobs": report.jobs,
        "findings": [asdict(finding) for finding in report.findings],
        "bottlenecks": [asdict(one) for one in report.bottlenecks],
        "not_measured": list(report.not_measured),
        "too_few": report.too_few,
    }


def _summary(record: ClusterRecord, report: FindingsReport) -> str:
    whose, days = "yours" if record.own else "all users", how_many(round(record.hours / 24), "day")
    seen = f"{how_many(report.jobs, 'job')} of {whose} ended in {days}."
    if report.too_few is not None:
        return f"{seen} {report.too_few}"
    counts = [
        f"{count} {level}"
        for level in ("high", "medium", "low")
        if (count := sum(finding.level == level for finding in report.findings))
    ]
    return f"{seen} Findings: {', '.join(counts) or 'none'}. Nothing was changed."


def _lines(record: ClusterRecord, report: FindingsReport) -> Iterator[str]:
    for finding in report.findings:
        yield from _told(finding)
    for one in report.bottlenecks:
        yield _bottleneck(one)
    yield from report.not_measured
    yield _summary(record, report)


def _told(finding: ClusterFinding) -> Iterator[str]:
    yield f"{finding.level.upper():<7}{finding.id}: {finding.title}"
    costs = {
        "core hours": finding.cost.core_hours, "GPU hours": finding.cost.gpu_hours,
        "hours of waiting": finding.cost.waiting_hours,
    }  # fmt: skip
    known = [f"{value:,.0f} {what}" for what, value in costs.items() if value is not None]
    if known:
        yield f"       cost: {', '.join(known)}"
    for line in finding.for_users:
        yield f"       users: {line}"
    for line in finding.for_administrators:
        yield f"       administrators: {line}"
    if finding.risk is not None:
        yield f"       risk: {finding.risk}"


def _bottleneck(one: Bottleneck) -> str:
    return (
        f"In partition {one.partition}, {one.hours:,.0f} hours of waiting ({one.share:.0%}) were for {one.resource},"
        f" most of them {one.when} UTC."
    )
