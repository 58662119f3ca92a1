"""The subcommand `report`: what a finished job was, used and cost, as Markdown or as one JSON document."""

from __future__ import annotations

import argparse

from slurm_agent_tools.api import printing, serialize
from slurm_agent_tools.api.context_registry import OpenedContexts, one_cluster
from slurm_agent_tools.cli.terminal import at_terminal
from slurm_agent_tools.models.report import ReportReply
from slurm_agent_tools.services import completion_report
from slurm_agent_tools.settings import load
from slurm_agent_tools.text import log_events
from slurm_agent_tools.transport.base import asker

DONE, AGAIN = 0, 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `report`."""
    parser.description = (
        "Tell what a finished job waited, ran, used and cost, and what to ask for next time, as Markdown. Figures that"
        " nobody measured are told as `not measured`. Changes nothing."
    )
    parser.add_argument("job_id", metavar="JOBID", help="123, 123_4 for an array task, 123+1 for a het component")
    parser.add_argument("--cluster", metavar="NAME", help="the cluster of the settings that the job is on")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


async def run(args: argparse.Namespace) -> int:
    """Print the report; 4 while the job is not over. Raises AgentToolsError."""
    settings = load()
    log_events.configure(settings.log_level)
    asker.set(at_terminal)
    async with one_cluster(OpenedContexts(settings), args.cluster) as context:
        reply = await completion_report.of_job(context, args.job_id)
    _say(reply, as_json=args.json)
    return DONE if reply.report is not None else AGAIN


def _say(reply: ReportReply, *, as_json: bool) -> None:
    if as_json:
        printing.document(serialize.document(reply), as_json=True)
    elif reply.report is not None:
        printing.lines(reply.report.text.split("\n"))
    else:
        printing.lines([reply.summary])
