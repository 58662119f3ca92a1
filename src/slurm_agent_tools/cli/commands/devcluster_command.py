"""The subcommand `devcluster`: up, status, down, env."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

from slurm_agent_tools.devcluster import cgroups, definition, lifecycle, packages
from slurm_agent_tools.settings import devcluster_place

DONE, FAILED = 0, 1

UP = "slurm-agent-tools devcluster up --yes"
"""What texts tell to run: without --yes it asks before it installs packages, which an agent's shell cannot answer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define `devcluster up`, `status`, `down` and `env`."""
    parser.description = "A private real Slurm on this machine, for trying and testing."
    commands = parser.add_subparsers(dest="what", required=True, metavar="up|status|down|env")
    up = commands.add_parser("up", help="bring it up")
    up.add_argument("--yes", action="store_true", help="install missing packages without asking")
    up.add_argument("--sshd", action="store_true", help="with a login node: an sshd on loopback")
    up.add_argument("--base-port", type=int, metavar="N", help="ports from N+1 (default: the first free block)")
    up.add_argument("--slurm", choices=sorted(packages.RELEASES), help="another version than the distribution's own")
    shown = commands.add_parser("status", help="what runs; 0 when all of it does, else 1")
    shown.add_argument("--json", action="store_true", help="print one JSON document")
    down = commands.add_parser("down", help="end every process of it")
    down.add_argument("--wipe", action="store_true", help="also delete its folder")
    env = commands.add_parser("env", help="print export lines for a shell")
    for command in (up, shown, down, env):
        command.add_argument("--folder", type=Path, metavar="DIR", help="where it lives (SLURM_AGENT_DEVCLUSTER)")


async def run(args: argparse.Namespace) -> int:
    """Run one of them; returns the exit code."""
    if args.what == "up":
        cluster = await lifecycle.up(
            args.folder, base_port=args.base_port, slurm=args.slurm, ssh=args.sshd, yes=args.yes, say=_say
        )
        line = devcluster_place.export_line(cluster.conf, cluster.bin_dir)
        _print(f"to use it, run in the terminal in which you start your client: {line}")
        return DONE
    if args.what == "down":
        await lifecycle.down(args.folder, wipe=args.wipe, say=_say)
        return DONE
    if args.what == "env":
        return _env(args.folder)
    return await _status(args.folder, as_json=args.json)


def _env(folder: Path | None) -> int:
    cluster = lifecycle.find(folder)
    if cluster is None:
        there = "" if folder is None else f" --folder {shlex.quote(str(folder))}"
        raise definition.DevclusterError("the devcluster is not up", hint=f"run: {UP}{there}")
    for key, value in cluster.environment().items():
        _print(f"export {key}={shlex.quote(value)}")
    return DONE


async def _status(folder: Path | None, *, as_json: bool) -> int:
    status = await lifecycle.status(folder)
    if as_json:
        _print(json.dumps(asdict(status)))
        return DONE if status.up else FAILED
    _print("up" if status.up else "not up")
    for name, pid in status.daemons.items():
        _print(f"  {name:<20} {pid or 'not running'}")
    for node, state in status.nodes.items():
        _print(f"  {node:<20} {state}")
    if status.memory is not None:
        _print(f"memory limits: {cgroups.told(status.memory)}")
    return DONE if status.up else FAILED


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
