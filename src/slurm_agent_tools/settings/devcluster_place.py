"""Where this user's devcluster lies, and whether it runs: hints name a Slurm that is there before one that could be.

Its folder and /proc tell it; Slurm is not asked.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from slurm_agent_tools.settings import workstation_place
from slurm_agent_tools.settings.setting_sources import user_file

VARIABLE = "SLURM_AGENT_DEVCLUSTER"

ROOTS = Path("/var/tmp/slurm-agent-devcluster")  # noqa: S108 - only root writes in it once it is made


def folder() -> Path:
    """Where this user brings one up: SLURM_AGENT_DEVCLUSTER, else a folder under /var/tmp (root) or ~/.cache."""
    if named := os.environ.get(VARIABLE):
        return Path(named).absolute()
    return ROOTS if workstation_place.is_root() else Path.home() / ".cache" / "slurm-agent-devcluster"


def export_line(conf: Path, bin_dir: Path | None) -> str:
    """What a shell is told so that commands and clients which it starts afterwards use a private cluster."""
    path = "" if bin_dir is None else f' PATH={shlex.quote(str(bin_dir))}:"$PATH"'
    return f"export SLURM_CONF={shlex.quote(str(conf))}{path}"


def unused() -> str | None:
    """The line that points a shell at the devcluster that runs; None where none does, or this process has its conf."""
    where = folder().resolve()
    found = workstation_place.recorded(where)
    if found is None or os.environ.get("SLURM_CONF") == str(found.conf) or not _runs(where):
        return None
    return export_line(found.conf, found.bin_dir)


def hint() -> str:
    """What stands before other advice where no Slurm is found: how to use the devcluster that runs; else empty."""
    line = unused()
    if line is None:
        return ""
    return (
        f"A devcluster runs on this machine: to use it, run `{line}` in the terminal in which you start your client; "
        "a client that hands no environment on takes it from `env` in its own file, "
        f"or put `conf` below [slurm] into {user_file()}. "
    )


def where_unconfigured() -> str:
    """What helps where Slurm's commands find no configuration: mostly the client kept SLURM_CONF from its server."""
    there = hint().strip()
    return there or (
        "If your terminal exports SLURM_CONF, a client that hands no environment on takes it from `env` in its own"
        f" file, or put `conf` below [slurm] into {user_file()}; for a cluster behind a login node, write"
        f" [clusters.NAME] there. Else, {workstation_place.offer()}"
    )


def of_terminal(conf: Path | None) -> str:
    """What a client's server may lack of a cluster that works here: SLURM_CONF, where no setting says the same."""
    if conf is not None or "SLURM_CONF" not in os.environ:
        return ""
    line = json.dumps({"SLURM_CONF": os.environ["SLURM_CONF"]})[1:-1]
    needs = f"a client that hands no environment on needs `{line}` in `env` of its own file."
    return f" SLURM_CONF is this terminal's: {needs}"


def _runs(where: Path) -> bool:
    """Whether it was brought up and its controller lives: a number that another process got since does not count."""
    try:
        pid, began = (where / "pids" / "slurmctld").read_text(encoding="ascii").split()
        fields = Path(f"/proc/{int(pid)}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return (where / "run" / "up").exists() and where.stat().st_uid == os.geteuid() and fields[19] == began
    except (OSError, ValueError, IndexError, AttributeError):  # the last: no geteuid on Windows
        return False
