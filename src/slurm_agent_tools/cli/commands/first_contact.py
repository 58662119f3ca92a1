"""What the command says by itself: what it is, what this machine and this folder have, and what to do next here.

Nothing is asked of Slurm or over the network: files, settings and PATH tell it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slurm_agent_tools import __version__
from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.settings import LOCAL, Settings, devcluster_place, load, workstation_place
from slurm_agent_tools.settings.setting_sources import FILE_NAME, user_file

_DAEMONS = ("slurmctld", "slurmd", "munged")

_WHERE = os.pathsep.join([os.defpath, "/usr/local/sbin", "/usr/sbin", "/sbin"])
"""Beside PATH: a user's own lacks the folders of daemons."""


@dataclass(frozen=True, slots=True)
class MachineState:
    """What was found: a word for the case, a sentence for a person, and the steps that come next."""

    case: str
    found: str
    steps: tuple[tuple[str, str], ...]


def lines() -> Iterator[str]:
    """What a person reads who types nothing but the command's name."""
    yield f"slurm-agent-tools {__version__}: lets coding agents use Slurm, within a policy."
    yield "An agent's client starts it as an MCP server (serve); people use the same tools as commands."
    try:
        settings = load()
    except AgentToolsError as error:
        yield f"\nHere:  the settings cannot be read: {error.message}"
        yield from _steps([("doctor", "what to correct, and where"), ("--help", "every command")])
        return
    set_up = (settings.project_root / FILE_NAME).is_file()
    state = machine(settings)
    yield f"\nThis machine:  {state.found}"
    root = settings.project_root
    yield f"This folder:   {root} is {'set up for agents' if set_up else f'not set up yet: no {FILE_NAME}'}"
    folder = [("init", "set up this folder: policy, client files, an example")] if not set_up else []
    yield from _steps([*state.steps, *folder, ("--help", "every command")])


def _steps(steps: list[tuple[str, str]]) -> Iterator[str]:
    yield "\nNext:"
    width = max(len(words) for words, _ in steps)
    for words, about in steps:
        yield f"  slurm-agent-tools {words:<{width}}   {about}"


def machine(settings: Settings) -> MachineState:
    """Which of the cases this machine is: clusters in the settings, a Slurm, a private one, its parts, or nothing."""
    usual, far = settings.cluster, {name: one.host for name, one in settings.clusters.items() if one.host}
    ask = ("doctor", "does all of it work? what does not, and what to do")
    look = ("get_status", "jobs, queue, GPUs, and whether to submit now")
    if far:
        named = ", ".join(f"{name} (over SSH: {host})" for name, host in sorted(far.items()))
        step = ("sync push", "bring this folder's files to the cluster")
        return MachineState("login", f"its settings name the cluster {named}", (ask, step, look))
    if usual == workstation_place.NAME:
        from slurm_agent_tools.devcluster import workstation  # noqa: PLC0415 - most machines are none

        down = workstation.asleep(settings.clusters[usual].slurm)
        up = [("workstation up", "bring its Slurm up, which is down")] if down else []
        return MachineState("workstation", "it is a cluster of its own (workstation)", (*up, ask, look))
    if place := _slurm(settings):
        return MachineState("slurm", f"Slurm's commands are in {place}", (ask, look))
    if devcluster_place.unused():
        use = ("devcluster env", "the line that points this terminal, and a client started from it, at that Slurm")
        return MachineState(
            "devcluster", "a devcluster runs on it, which this terminal does not use yet", (use, ask, look)
        )
    root, words = workstation_place.is_root(), workstation_place.offered()
    private = (words, "a private Slurm to try things on; a workstation runs no jobs of root")
    write = ("doctor", f"for a cluster behind a login node, after writing [clusters.NAME] into {user_file()}")
    if all(_program(name) for name in _DAEMONS):
        own = (words, "make this machine a cluster of its own, with its cores, memory and GPUs")
        return MachineState(
            "parts", "no cluster, but all that one of its own needs", (private if root else own, *_demo(), write)
        )
    own = (words, "make it a cluster of its own; says first which packages it needs")
    return MachineState(
        "nothing", "no Slurm here, and no cluster in the settings", (*_demo(), private if root else own, write)
    )


def _demo() -> list[tuple[str, str]]:
    """The step that plays the demo; none where root's would fail, as an ordinary user cannot read this program."""
    demo = ("demo", "the whole way in two minutes, on a private Slurm that it takes down again")
    if not workstation_place.is_root():
        return [demo]
    from slurm_agent_tools.devcluster import lifecycle  # noqa: PLC0415 - for root alone; it needs POSIX

    return [demo] if lifecycle.closed_to_demo() is None else []


def _slurm(settings: Settings) -> Path | None:
    """Where sbatch is for the cluster that is meant by itself."""
    meant = settings.clusters.get(settings.cluster or LOCAL)
    slurm = meant.slurm if meant is not None else settings.slurm
    if slurm.bin_dir is not None:
        return slurm.bin_dir if (slurm.bin_dir / "sbatch").exists() else None
    sbatch = shutil.which("sbatch")
    configured = slurm.conf is not None or workstation_place.other_slurm()
    return Path(sbatch).parent if sbatch and configured else None


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=_WHERE)
