"""The subcommand `serve`: speak MCP on standard input and output until the client closes them."""

from __future__ import annotations

import argparse

import anyio

from slurm_agent_tools import config
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.mcp import serve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `serve`."""
    parser.description = "Speak the Model Context Protocol on standard input and output; logs go to standard error."
    parser.add_argument("--http", action="store_true", help="streamable HTTP: not in this version")


def run(args: argparse.Namespace) -> int:
    """Serve; returns the exit code. What is wrong with the settings is raised."""
    if args.http:
        raise InputError(
            "http",
            "--http",
            "is not offered by this version",
            hint="Serve over stdio; from afar through `ssh -T HOST`.",
        )
    anyio.run(serve, config.load())
    return 0
