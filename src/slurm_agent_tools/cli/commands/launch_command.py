"""The subcommand `launch`: a SkyPilot task is started after a person agreed to its price per hour and its end."""

from __future__ import annotations

import argparse
import sys

from slurm_agent_tools import settings
from slurm_agent_tools.api import printing, serialize
from slurm_agent_tools.api.context_registry import OpenedContexts, one_cluster
from slurm_agent_tools.cli.commands import approve_command, launching
from slurm_agent_tools.models.submission_answer import LaunchReply
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.text import log_events

_CODES = {"launched": 0, "dry_run": 0, "blocked": 3, "unconfirmed": 4}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `launch`."""
    parser.description = (
        "Start a SkyPilot task that generate_script wrote (format skypilot), or one like it. The policy judges it, the"
        " program sky makes its dry run, and a person reads price per hour, autostop and the whole task before a yes:"
        " here at a terminal, or with `approve`."
    )
    parser.add_argument("task", metavar="NAME.yaml", help="the task file, inside the project")
    parser.add_argument("--justification", metavar="TEXT", help="why it needs what the policy asks a reason for")
    parser.add_argument("--dry-run", action="store_true", help="judge it and let sky make its dry run; start nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


async def run(args: argparse.Namespace) -> int:
    """Start one task; returns the exit code. Raises AgentToolsError."""
    read = settings.load()
    log_events.configure(read.log_level)
    async with one_cluster(OpenedContexts(read), None) as context:
        reply = await _launched(context, args)
    printing.document(serialize.document(reply), as_json=args.json)
    return _CODES[reply.status]


async def _launched(context: ClusterContext, args: argparse.Namespace) -> LaunchReply:
    wanted, caller = await launching.plan(context, args.task, args.justification), Caller()
    await context.log_decision(caller, wanted.decision, "launch", "decided", path=wanted.path)
    answer = launching.refused(context, wanted) or await launching.dry_run(context, wanted)
    if args.dry_run or answer.status == "blocked":
        return answer
    given = await launching.granted(context, wanted)
    if given is None and _person_is_here(context, as_json=args.json):
        printing.note(answer.output or "")
        await approve_command.asked(context, await launching.question(context, wanted), decline=False)
        given = await launching.granted(context, wanted)
    return (
        await launching.ask(context, wanted) if given is None else await launching.start(context, wanted, given, caller)
    )


def _person_is_here(context: ClusterContext, *, as_json: bool) -> bool:
    """Whether a person may be asked in this process; who wants JSON is a program."""
    channels = context.policy.policy.approval_channels
    return not as_json and "terminal" in channels and sys.stdin.isatty() and sys.stdout.isatty()
