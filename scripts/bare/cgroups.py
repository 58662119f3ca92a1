"""A system's own cgroups: one child of ours in each hierarchy of this machine, which is all that the system sees.

Whatever a killed run leaves lies below these children, so that the next run finds it and takes it away. A child is
named by the process that made it: while that process runs, nobody else touches it, empty or not.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

LAYOUTS = ("v1", "hybrid", "v2", "tmpfs", "none")
_PREFIX = "slurm-bare-"
_TOP = Path("/sys/fs/cgroup")


def hierarchies() -> dict[str, Path]:
    """Where each hierarchy of this machine is mounted; the key of v2 is empty, of others their controllers."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    ours = [line.split(":", 2)[1] for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()]
    found = {}
    for controllers in ours:
        for _, place, kind, options, *_ in mounts:
            wanted = set(controllers.split(","))
            if kind == ("cgroup" if controllers else "cgroup2") and (
                not controllers or wanted <= set(options.split(","))
            ):
                found.setdefault(controllers, Path(place))
    return found


def layout() -> str:
    """What this machine has: one of LAYOUTS."""
    kinds = hierarchies()
    if kinds.get("") == _TOP:
        return "v2"
    if any("memory" in controllers.split(",") for controllers in kinds):
        return "hybrid" if "" in kinds else "v1"
    return "none"


def why_not(wanted: str) -> str:
    """Why this machine cannot show a layout; empty when it can."""
    kinds = hierarchies()
    if wanted in {"v1", "hybrid"} and not any("memory" in controllers.split(",") for controllers in kinds):
        return "this machine has no cgroup v1 with the controller of memory"
    if wanted in {"v2", "hybrid"} and "" not in kinds:
        return "this machine has no cgroup v2"
    return ""


def make() -> list[Path]:
    """A child in each hierarchy that can be written."""
    made = []
    for place in hierarchies().values():
        child = place / f"{_PREFIX}{os.getpid()}"
        with contextlib.suppress(OSError):
            child.mkdir()
            made.append(child)
            for name in ("cpuset.mems", "cpuset.cpus"):  # empty ones of v1 let no process in
                if (child / "cgroup.clone_children").exists() and (child / name).exists():
                    shutil.copyfile(place / name, child / name)
    return made


def enter(children: list[Path]) -> None:
    """Put this process into them."""
    for child in children:
        (child / "cgroup.procs").write_text(f"{os.getpid()}\n", encoding="ascii")


def sweep() -> None:
    """Remove this process's children, and those of runs that were killed, once they hold no process any more."""
    for place in hierarchies().values():
        for child in place.glob(f"{_PREFIX}*"):
            number = child.name.removeprefix(_PREFIX)
            own = number == str(os.getpid())
            # A run beside this one has made its child before any process is in it, and Slurm in there does the same.
            if not own and Path("/proc", number).exists():
                continue
            for _ in range(50 if own else 1):  # processes that were killed go soon
                for folder, _, _ in os.walk(child, topdown=False):
                    with contextlib.suppress(OSError):
                        Path(folder).rmdir()
                if not child.exists():
                    break
                time.sleep(0.1)
