"""The subcommand `connect`: MCP on standard input and output, with the site's service as the judge of submissions."""

from __future__ import annotations

import argparse
import os
import stat
from pathlib import Path

import anyio

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.mcp_server import serve
from slurm_agent_tools.settings import load
from slurm_agent_tools.transport.site_socket import SOCKET


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `connect`."""
    parser.description = (
        "Speak the Model Context Protocol on standard input and output, as `serve` does. Whether a job may be sent is"
        " the word of the site's service, whose ticket the controller asks for; everything else stays in this account."
    )
    parser.add_argument("--socket", type=Path, metavar="PATH", help=f"of the service (default: {SOCKET})")


def run(args: argparse.Namespace) -> int:
    """Serve; returns the exit code. Raises ConfigError where no service listens there."""
    settings = load()
    socket = args.socket or settings.site_socket or Path(SOCKET)
    if not _listens(socket):
        hint = "Name its socket with --socket, or work without a service: slurm-agent-tools serve"
        raise ConfigError("site_socket", str(socket), "is no socket of a site's service", hint=hint)
    anyio.run(serve, settings.model_copy(update={"site_socket": socket.absolute()}))
    return 0


def _listens(socket: Path) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(socket).st_mode)  # noqa: PTH116 - Path.stat would do the same
    except OSError:
        return False
