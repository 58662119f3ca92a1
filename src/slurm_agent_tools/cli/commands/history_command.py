"""The subcommand `history`: what is remembered of jobs, by tag, by text, or by likeness to a script."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from slurm_agent_tools.api import printing, render
from slurm_agent_tools.api.context_registry import OpenedContexts, one_cluster
from slurm_agent_tools.api.search_history import HistoryQuestion, search_history
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.insights.accounting_history import DAYS
from slurm_agent_tools.models.history_answer import HistoryReply, PastJob
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.settings import load
from slurm_agent_tools.text import log_events, sanitize
from slurm_agent_tools.units import format_duration, human_memory

DONE = 0

_HEADER = ("LIKE", "SUBMITTED (UTC)", "JOB", "STATE", "CATEGORY", "NAME", "MEMORY USED", "TIME USED", "RUN")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `history`."""
    parser.description = (
        "Jobs of this project: what they asked for, how they ended and what they used. The newest first; with --query"
        " the best match first, with --like those that asked for the same, and what to ask for next time."
    )
    parser.add_argument(
        "--tag", action="append", default=[], metavar="T", dest="tags",
        help="with this tag: a job id, partition, state, run id, category of failure, or failed; may be given again",
    )  # fmt: skip
    parser.add_argument("--any", action="store_true", help="with any of the tags, not all of them")
    parser.add_argument("--query", default="", metavar="TEXT", help="with all these words in name, script or tags")
    parser.add_argument("--like", metavar="SCRIPT", help="the likest to what this script of the project asks for")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="so many at most (20)")
    parser.add_argument("--days", type=int, default=DAYS, metavar="N", help=f"of the last N days ({DAYS})")
    parser.add_argument("--cluster", metavar="NAME", help="the cluster of the settings that they ran on")
    parser.add_argument("--memory", action="store_true", help="with --json: each as a memory server stores it")
    parser.add_argument("--store", action="store_true", help="first hand what is due to the settings' memory server")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


async def run(args: argparse.Namespace) -> int:
    """Print what is asked for; returns the exit code. Raises AgentToolsError."""
    for field, most in (("limit", 2000), ("days", 3650)):
        if not 1 <= getattr(args, field) <= most:
            raise InputError(field, getattr(args, field), "is out of range", hint=f"Give a number from 1 to {most}.")
    settings = load()
    log_events.configure(settings.log_level)
    wanted = HistoryQuestion(
        args.tags, not args.any, args.query, args.like, args.limit, args.days, args.memory and args.json
    )
    async with one_cluster(OpenedContexts(settings), args.cluster) as context:
        if args.store:
            await _store(context)
        reply = await search_history(context, wanted)
    body = sanitize.document(reply.model_dump(mode="json"))
    if args.json:
        printing.document(body, as_json=True)
    else:
        printing.show(list(_pieces(reply)))
    return DONE


async def _store(context: ClusterContext) -> None:
    """Tell the memory server all that is due. Raises InputError where there is none, and MemoryUnreachable."""
    from slurm_agent_tools.insights.memory_sync import ROUND, MemorySync  # noqa: PLC0415 - few have such a server

    if not context.settings.memory.on:
        hint = "Set SLURM_AGENT_MEMORY__COMMAND or SLURM_AGENT_MEMORY__URL."
        raise InputError("store", True, "there is no memory server in the settings", hint=hint)
    memory = MemorySync(context.settings.memory)
    while await memory.hand_over(context) == ROUND:
        pass


def _pieces(reply: HistoryReply) -> Iterator[render.Piece]:
    rows = [_cells(job) for job in reply.jobs if isinstance(job, PastJob)]
    if rows:
        yield _table(rows)
    warnings = reply.advice.warnings if reply.advice is not None else ()
    for text in filter(None, (reply.summary, *warnings, reply.note)):
        yield render.Line(render.plain(sanitize.shown(text)))


def _table(rows: Sequence[Sequence[str]]) -> render.Table:
    """The rows below their header, in columns as wide as they have to be; a column without any entry is left out."""
    columns = [column for column in zip(_HEADER, *rows, strict=True) if any(column[1:])]
    header, *kept = zip(*columns, strict=True)
    return render.table(header, kept, render.aligned([header, *kept]))


def _cells(job: PastJob) -> tuple[str, ...]:
    """One job, in the columns of the header. Of what was not measured nothing is shown."""
    usage, limit = job.usage, job.requested.time_limit_seconds
    peak = usage.memory_peak_bytes if usage is not None else None
    seconds = usage.elapsed_seconds if usage is not None else None
    return (
        "" if job.likeness is None else f"{job.likeness:.2f}",
        f"{job.submitted:%Y-%m-%d %H:%M}",
        job.job_id,
        job.state,
        "" if job.category in {None, job.state} else sanitize.line(job.category),
        sanitize.line(job.name),
        "" if peak is None else f"{human_memory(peak)} of {job.requested.memory or '?'}",
        "" if seconds is None else f"{format_duration(seconds)} of {'?' if limit is None else format_duration(limit)}",
        sanitize.line(job.run_id or ""),
    )
