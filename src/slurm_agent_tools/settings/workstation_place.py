"""Where this machine's own Slurm lies, and whether there is one: found without anything written by hand.

An ordinary user's lies in the state folder, root's in /var/lib, where every user of the machine finds it. A record in
it counts when it is the user's own or root's.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

NAME = "workstation"
"""The cluster's name in the settings and in Slurm."""

VARIABLE = "SLURM_AGENT_WORKSTATION"

MACHINES = Path("/var/lib/slurm-agent-tools/workstation")

RECORD = "cluster.json"

_OTHERS = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf")

_LARGEST = 2**20  # bytes of a record


@dataclass(frozen=True, slots=True)
class WorkstationPlace:
    """A workstation that was brought up, now or earlier; `bin_dir` of another Slurm than the distribution's."""

    folder: Path
    bin_dir: Path | None = None

    @property
    def conf(self) -> Path:
        """Its slurm.conf."""
        return self.folder / "etc" / "slurm.conf"


def is_root() -> bool:
    """Whether this process is root's."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def offered() -> str:
    """The words of our command that give this user a Slurm on this machine: a workstation runs no jobs of root."""
    return "devcluster up --yes" if is_root() else "workstation up"


def offer() -> str:
    """The same within a hint."""
    what = "to try things as root on a private Slurm" if is_root() else "to make this machine a cluster of its own"
    return f"{what}, run: slurm-agent-tools {offered()}"


def state_home() -> Path:
    """XDG_STATE_HOME, else ~/.local/state."""
    named = os.environ.get("XDG_STATE_HOME", "")
    return Path(named) if named.startswith("/") else Path.home() / ".local" / "state"


def folder() -> Path:
    """Where this user brings one up: SLURM_AGENT_WORKSTATION, else root's place or the user's state folder."""
    if named := os.environ.get(VARIABLE):
        return Path(named).absolute()
    return MACHINES if is_root() else state_home() / "slurm-agent-tools" / NAME


def find() -> WorkstationPlace | None:
    """The workstation of this user, else that of the machine; None where there is none."""
    for place in dict.fromkeys([folder(), folder() if os.environ.get(VARIABLE) else MACHINES]):
        found = recorded(place)
        if found is not None:
            return found
    return None


def other_slurm() -> bool:
    """Whether this machine has the configuration of another Slurm, as far as files tell."""
    return bool(os.environ.get("SLURM_CONF")) or any(Path(path).exists() for path in _OTHERS)


def recorded(place: Path) -> WorkstationPlace | None:
    """The private cluster whose record this user or root wrote into a folder, up or not; None where there is none."""
    path = place / RECORD
    try:
        if path.stat().st_uid not in {0, os.geteuid()}:
            return None
        with path.open("rb") as file:
            body = json.loads(file.read(_LARGEST))
        named = body.get("bin_dir")
        return WorkstationPlace(place, None if named is None else Path(named))
    except (OSError, ValueError, AttributeError, TypeError):  # a garbled one is told by `workstation status`
        return None
