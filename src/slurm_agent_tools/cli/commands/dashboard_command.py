"""The subcommand `dashboard`: pages of what runs, waits, is free, was decided and costs, for a browser."""

from __future__ import annotations

import argparse

from slurm_agent_tools.api import printing
from slurm_agent_tools.settings import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `dashboard`."""
    parser.description = (
        "Pages for a browser: what runs and waits, free and idle GPUs, jobs, decisions, campaigns, plans, cost. They"
        " only read, but that a passkey can approve there what waits for a person. It prints a link that works once,"
        " and ends with Control-C. Others come in with a token (slurm-agent-tools token new)."
    )
    parser.add_argument("--listen", metavar="WHERE", help="HOST:PORT of loopback, or unix:PATH; default: a free port")
    parser.add_argument("--cluster", metavar="NAME", help="the cluster of the settings")


async def run(args: argparse.Namespace) -> int:
    """Serve; returns the exit code. Raises AgentToolsError."""
    settings = load()
    settings.need_toolset("fleet", "dashboard")
    if args.listen is not None:
        settings = settings.model_copy(update={"http": settings.http.model_copy(update={"listen": args.listen})})
    from slurm_agent_tools.server.web.dashboard_server import serve_dashboard  # noqa: PLC0415 - after what may be wrong

    await serve_dashboard(settings, args.cluster, _told)
    return 0


def _told(link: str) -> None:
    printing.note(f"Open this link, it works once: {link}")
    printing.note("Control-C ends it.")
