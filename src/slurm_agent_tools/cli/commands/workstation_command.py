"""The subcommand `workstation`: up, status, down, env, enable, disable."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict

from slurm_agent_tools import units
from slurm_agent_tools.api import printing
from slurm_agent_tools.cli.commands import workstation_unit
from slurm_agent_tools.devcluster import cgroups, definition, machine_facts, packages, workstation
from slurm_agent_tools.devcluster.machine_facts import Kept, MachineNode
from slurm_agent_tools.devcluster.workstation import WorkstationStatus
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.settings import workstation_place

DONE, FAILED = 0, 1

_MIB = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define `workstation up`, `status`, `down`, `env`, `enable` and `disable`."""
    parser.description = "This machine as a cluster of one node: its cores, its memory, its GPUs, and nothing else."
    commands = parser.add_subparsers(dest="what", required=True, metavar="up|status|down|env|enable|disable")
    up = commands.add_parser("up", help="bring it up, or start what of it does not run; jobs go on")
    up.add_argument("--yes", action="store_true", help="install missing packages without asking")
    up.add_argument("--keep-cores", type=int, metavar="N", help="for you: no job gets them (default: 1 of 4 or more)")
    up.add_argument("--keep-memory", metavar="SIZE", help="for you, as 4G (default: a tenth, at most 8G)")
    up.add_argument("--slurm", choices=sorted(packages.RELEASES), help="another version than the distribution's own")
    shown = commands.add_parser("status", help="what runs, on what, and what does not hold; 0 when all runs, else 1")
    shown.add_argument("--json", action="store_true", help="print one JSON document")
    down = commands.add_parser("down", help="stop it; its state stays")
    jobs = down.add_mutually_exclusive_group()
    jobs.add_argument("--keep-jobs", dest="jobs", action="store_const", const="keep", help="those that run go on")
    jobs.add_argument("--end-jobs", dest="jobs", action="store_const", const="end", help="those that run are cancelled")
    down.add_argument("--wipe", action="store_true", help="also delete its folder: queue, accounting and all")
    commands.add_parser("env", help="print export lines for a shell")
    commands.add_parser("enable", help="start it with the machine: write a unit of systemd")
    commands.add_parser("disable", help="remove that unit; what runs goes on")


async def run(args: argparse.Namespace) -> int:
    """Run one of them; returns the exit code."""
    if args.what == "up":
        if workstation_place.is_root():
            printing.note(workstation.FOR_OTHERS)
        kept = Kept(args.keep_cores, _mebibytes(args.keep_memory))
        cluster = await workstation.up(kept=kept, slurm=args.slurm, yes=args.yes, say=printing.note)
        printing.lines([*_has(cluster.machine), *workstation.notes(cluster)])
        return DONE
    if args.what == "down":
        await workstation.down(jobs=args.jobs, wipe=args.wipe, say=printing.note)
        return DONE
    if args.what in {"enable", "disable"}:
        printing.lines(await (workstation_unit.enable() if args.what == "enable" else workstation_unit.disable()))
        return DONE
    found = await workstation.status()
    return _env(found) if args.what == "env" else _status(found, as_json=args.json)


def _mebibytes(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return units.parse_memory(text) // _MIB
    except (ValueError, InputError) as error:
        raise InputError("keep_memory", text, "is no amount of memory", hint="Write 4G or 500M.") from error


def _env(found: WorkstationStatus) -> int:
    if found.cluster is None or not found.status.up:
        raise definition.DevclusterError("the workstation is not up", hint=f"run: {workstation.UP}")
    printing.lines(f"export {key}={shlex.quote(value)}" for key, value in found.cluster.environment().items())
    return DONE


def _status(found: WorkstationStatus, *, as_json: bool) -> int:
    if as_json:
        machine = found.cluster.machine if found.cluster else None
        body = {
            **asdict(found.status),
            "folder": str(found.folder),
            "machine": asdict(machine) if machine else None,
            "notes": list(found.notes),
        }
        printing.lines([json.dumps(body)])
    else:
        printing.lines(_told(found))
    return DONE if found.status.up else FAILED


def _told(found: WorkstationStatus) -> Iterator[str]:
    """What runs, on what, and what does not hold, for people."""
    yield "up" if found.status.up else f"not up; run: {workstation.UP}"
    for name, pid in found.status.daemons.items():
        yield f"  {name:<20} {pid or 'not running'}"
    for node, state in found.status.nodes.items():
        yield f"  {node:<20} {state}"
    yield from _has(found.cluster.machine if found.cluster else None)
    if found.status.memory is not None:
        yield f"memory limits: {cgroups.told(found.status.memory)}"
    for note in found.notes:
        yield f"mind: {note}"


def _has(machine: MachineNode | None) -> list[str]:
    """What jobs can have, for people."""
    if machine is None:
        return []
    kept = f"{len(machine.reserved)} CPUs and {machine.kept_memory} MiB are kept for you"
    lines = [f"for jobs: {machine.usable} CPUs, {machine.memory} MiB, {len(machine.gpus)} GPUs; {kept}"]
    return [*lines, *(f"  {_gpu(gpu)}" for gpu in machine.gpus)]


def _gpu(gpu: machine_facts.MachineGpu) -> str:
    memory = "memory not known" if gpu.memory_bytes is None else units.human_memory(gpu.memory_bytes)
    return f"{gpu.type}: {gpu.model}, {memory}, {gpu.file}"
