"""The subcommand `fleet`: the sections of get_fleet as tables, once or redrawn."""

from __future__ import annotations

import argparse
import sys
from typing import Any, get_args

import anyio

from slurm_agent_tools.api import brief, printing, render, serialize
from slurm_agent_tools.api.toolbox import Toolbox, closed_after
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.toolset_arguments import FleetSection
from slurm_agent_tools.settings import load
from slurm_agent_tools.text import log_events

MIXED = True

DONE, FAILED = 0, 1

_NEED = ("gpu_memory", "gpus", "memory", "constraint", "time_limit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `fleet`."""
    parser.description = (
        "The cluster at a glance: what there is, what is free or idle, what it costs, who waits, what needs a look."
        " Changes nothing."
    )
    sections = get_args(FleetSection)
    parser.add_argument("section", nargs="*", metavar="SECTION", help=f"only these: {', '.join(sections)}")
    parser.add_argument("--match", metavar="WHAT", help="which tier a job fits: gpus=2,gpu_memory=40G,memory=100G")
    parser.add_argument("--watch", action="store_true", help="redraw it until Ctrl-C")
    parser.add_argument("--seconds", type=float, default=15.0, metavar="N", help="with --watch: between two looks (15)")
    parser.add_argument("--cluster", metavar="NAME", help="the cluster of the settings")
    parser.add_argument("--full", action="store_true", help="with all fields")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


async def run(args: argparse.Namespace) -> int:
    """Look and print; 1 where a section could not be read. Raises AgentToolsError."""
    settings = load()
    settings.need_toolset("fleet", "fleet")
    if args.watch and (args.json or not sys.stdout.isatty()):
        raise InputError("--watch", True, "redraws a terminal", hint="Leave it out, or call it from a terminal.")
    if args.seconds < 1:
        raise InputError("--seconds", args.seconds, "is below 1", hint="Slurm is shared: 15 is a good pause.")
    log_events.configure(settings.log_level)
    ask = serialize.parse(serialize.BY_NAME["get_fleet"], _asked(args))
    async with closed_after(Toolbox.open(settings)) as toolbox:
        while True:
            reply: Any = await toolbox.call("get_fleet", ask)
            body = brief.answer(reply, ask)
            if args.json:
                printing.document(body, as_json=True)
            else:
                printing.show(render.pieces(body), anew=args.watch)
            if not args.watch:
                return FAILED if reply.status == "partial" else DONE
            await anyio.sleep(args.seconds)


def _asked(args: argparse.Namespace) -> dict[str, object]:
    """The arguments of get_fleet. Raises InputError."""
    asked: dict[str, object] = {"cluster": args.cluster} if args.cluster else {}
    asked |= {"sections": args.section} if args.section else {}
    asked |= {"match": serialize.named_values("--match", args.match, _NEED)} if args.match is not None else {}
    return asked | ({"detail": "full"} if args.full else {})
