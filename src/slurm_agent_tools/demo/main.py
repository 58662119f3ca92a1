"""Bring a devcluster up, play the demo on it, take it down again."""

from __future__ import annotations

import argparse
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp import Client

from slurm_agent_tools import devcluster, printing
from slurm_agent_tools.demo import stage, steps
from slurm_agent_tools.demo.paper import Paper
from slurm_agent_tools.devcluster import Cluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `demo`."""
    parser.description = "Show the whole way on a private real Slurm: 0 when all that our tools say is what Slurm says."
    parser.add_argument("--yes", action="store_true", help="install missing packages without asking")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where the cluster lives (SLURM_AGENT_DEVCLUSTER)")


async def run(args: argparse.Namespace) -> int:
    """Play it; 0 when every check agreed, else 1. DevclusterError where there can be no cluster."""
    # A closed terminal or a plain kill must take the cluster down just as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    paper = Paper()
    async with _cluster(args.folder, yes=args.yes, keep=args.keep) as cluster:
        place = await stage.make(cluster)
        printing.lines([f"project of the user {cluster.user}: {place.project}"])
        async with Client(place.server()) as client:
            await steps.play(steps.Guest(client, place, paper))
    return paper.end()


@asynccontextmanager
async def _cluster(folder: Path | None, *, yes: bool, keep: bool) -> AsyncIterator[Cluster]:
    """The cluster that is up, which stays, or one that is brought up now and ended in every case."""
    present = devcluster.find(folder)
    cluster = await devcluster.up(folder, yes=yes, say=_say)
    try:
        yield cluster
    finally:
        if present is None and not keep:
            with anyio.CancelScope(shield=True):
                await devcluster.down(folder, say=_say)
        else:
            _say(f"the cluster stays up; end it with: slurm-agent-tools devcluster down --folder {cluster.folder}")


def _say(line: str) -> None:
    printing.lines([line])
