"""The subcommand `report`: what a finished job was, used and cost, as Markdown or as one JSON document."""

from __future__ import annotations

import argparse

from slurm_agent_tools import config, faces, logs, printing
from slurm_agent_tools.replies import ReportReply
from slurm_agent_tools.slurm.runner import asker
from slurm_agent_tools.terminal import at_terminal
from slurm_agent_tools.toolbox import reporting
from slurm_agent_tools.toolbox.desks import Opened

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
    settings = config.load()
    logs.configure(settings.log_level)
    asker.set(at_terminal)
    desks = Opened(settings)
    try:
        reply = await reporting.of_job(await desks.at(args.cluster), args.job_id)
    finally:
        await desks.close()
    _say(reply, as_json=args.json)
    return DONE if reply.report is not None else AGAIN


def _say(reply: ReportReply, *, as_json: bool) -> None:
    if as_json:
        printing.document(faces.document(reply), as_json=True)
    elif reply.report is not None:
        printing.lines(reply.report.text.split("\n"))
    else:
        printing.lines([reply.summary])
