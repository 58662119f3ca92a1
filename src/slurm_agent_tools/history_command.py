"""The subcommand `history`: what is remembered of jobs, by tag, by text, or by likeness to a script."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from slurm_agent_tools import config, logs, printing, render, trust
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.replies.history import HistoryReply, PastJob
from slurm_agent_tools.toolbox.desk import Desk
from slurm_agent_tools.toolbox.desks import Opened
from slurm_agent_tools.toolbox.past import DAYS
from slurm_agent_tools.toolbox.recall import Wanted, recall
from slurm_agent_tools.units import format_duration, human_memory

DONE = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `history`."""
    parser.description = (
        "Jobs of this project: what they asked for, how they ended and what they used. The newest first; with --query"
        " the best match first, with --like those that asked for the same, and what to ask for next time."
    )
    parser.add_argument(
        "--tag", action="append", default=[], metavar="T", dest="tags",
        help="with this tag: a job id, partition, state, run id or category of failure; may be given again",
    )  # fmt: skip
    parser.add_argument("--any", action="store_true", help="with any of the tags, not all of them")
    parser.add_argument("--query", default="", metavar="TEXT", help="with all these words in name, script or tags")
    parser.add_argument("--like", metavar="SCRIPT", help="the likest to what this script of the project asks for")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="so many at most (20)")
    parser.add_argument("--days", type=int, default=DAYS, metavar="N", help=f"of the last N days ({DAYS})")
    parser.add_argument("--cluster", metavar="NAME", help="the cluster of the settings that they ran on")
    parser.add_argument("--store", action="store_true", help="first hand what is due to the settings' memory server")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


async def run(args: argparse.Namespace) -> int:
    """Print what is asked for; returns the exit code. Raises AgentToolsError."""
    for field, most in (("limit", 2000), ("days", 3650)):
        if not 1 <= getattr(args, field) <= most:
            raise InputError(field, getattr(args, field), "is out of range", hint=f"Give a number from 1 to {most}.")
    settings = config.load()
    logs.configure(settings.log_level)
    wanted = Wanted(args.tags, not args.any, args.query, args.like, args.limit, args.days)
    desks = Opened(settings)
    try:
        desk = await desks.at(args.cluster)
        if args.store:
            await _store(desk)
        reply = await recall(desk, wanted)
    finally:
        await desks.close()
    body = trust.document(reply.model_dump(mode="json"))
    printing.lines([json.dumps(body, indent=2, allow_nan=False)] if args.json else map(render.plain, _lines(reply)))
    return DONE


async def _store(desk: Desk) -> None:
    """Tell the memory server all that is due. Raises InputError where there is none, and MemoryUnreachable."""
    from slurm_agent_tools.toolbox.remembering import ROUND, Remembering  # noqa: PLC0415 - few have such a server

    if not desk.settings.memory.on:
        hint = "Set SLURM_AGENT_MEMORY__COMMAND or SLURM_AGENT_MEMORY__URL."
        raise InputError("store", True, "there is no memory server in the settings", hint=hint)
    memory = Remembering(desk.settings.memory)
    while await memory.hand_over(desk) == ROUND:
        pass


def _lines(reply: HistoryReply) -> Iterator[str]:
    for job in reply.jobs:
        yield _line(job)
    yield trust.shown(reply.summary)
    for text in [*(reply.advice.warnings if reply.advice is not None else ()), *([reply.note] if reply.note else ())]:
        yield trust.shown(text)


def _line(job: PastJob) -> str:
    like = f"{job.likeness:.2f}  " if job.likeness is not None else ""
    ended = f"{job.state}{f' ({job.category})' if job.category else ''}"
    found = f"{like}{job.submitted:%Y-%m-%d %H:%M}  {job.job_id:<8} {ended:<12} {trust.line(job.name)}{_used(job)}"
    return found + (f"  run {trust.line(job.run_id)}" if job.run_id else "")


def _used(job: PastJob) -> str:
    """Memory and time, used of what was asked; what was not measured is left out."""
    if job.usage is None:
        return ""
    peak, seconds = job.usage.memory_peak_bytes, job.usage.elapsed_seconds
    limit = job.requested.time_limit_seconds
    memory = f"  memory {human_memory(peak)} of {job.requested.memory or '?'}" if peak is not None else ""
    time = f"  time {format_duration(seconds)}" if seconds is not None else ""
    return memory + time + (f" of {format_duration(limit)}" if time and limit is not None else "")
