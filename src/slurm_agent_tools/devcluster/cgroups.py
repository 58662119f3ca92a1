"""How jobs can be held to their memory here: by control groups of version 1 or 2, or by asking every two seconds.

A machine may have the control groups of version 1, those of version 2, both, or none, writable or not, with systemd as
their owner or not. Slurm falls back by itself in no case: where the plugin that its configuration names cannot work,
slurmd ends. So the ways are listed here, strongest first, and `up` takes the first one with which slurmd comes up.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, MemoryLimits, is_root

# What Slurm's plugins for version 1 use: to track, to limit, to measure.
_HIERARCHIES = ("freezer", "memory", "cpuacct")

# Where slurmd of any version may have left folders.
_ALL_HIERARCHIES = (*_HIERARCHIES, "cpuset", "devices")

# pids is not used: Slurm 22.05 overlooks the last word of the kernel's list, which without it would be memory.
_CONTROLLERS = ("memory", "cpu", "cpuset", "pids")

_SLICE = "system.slice"

MEMORY, CORES, DEVICES = WALLS = ("memory", "cores", "devices")
"""What can be kept apart between jobs."""


class Way(StrEnum):
    """A way to limit memory, as slurmd is told about it."""

    V1 = "cgroup/v1"
    V2_BY_SYSTEMD = "cgroup/v2 in a scope of systemd"
    V2_ALONE = "cgroup/v2 without systemd"
    POLLING = "polling"

    @property
    def grouped(self) -> bool:
        """Whether the kernel holds jobs to their memory."""
        return self is not Way.POLLING

    @property
    def limits(self) -> str:
        """The word for it in answers."""
        return self.value.split(" ", 1)[0]


@dataclass(frozen=True, slots=True)
class Machine:
    """What is looked at: the file system below `root`, `/` but in tests, and whether this process is root."""

    root: Path = Path("/")
    privileged: bool = False

    @property
    def groups(self) -> Path:
        """Where control groups are mounted."""
        return self.root / "sys/fs/cgroup"


def here() -> Machine:
    """This machine, as this process meets it."""
    return Machine(privileged=is_root())


def ways(machine: Machine) -> list[tuple[Way, str]]:
    """The ways that may work, strongest first, each with its reason; the last one is polling, which always works."""
    if not machine.privileged:
        return [(Way.POLLING, "only root may make control groups for jobs")]
    mounted = _mounted(machine)
    if mounted.get("/sys/fs/cgroup", ("", False))[0] == "cgroup2":
        found, reason = _of_version_2(machine, writable=mounted["/sys/fs/cgroup"][1])
    else:
        found, reason = _of_version_1(machine, mounted)
    first = [] if found is None else [(found, reason)]
    return [*first, (Way.POLLING, reason)]


def _of_version_1(machine: Machine, mounted: dict[str, tuple[str, bool]]) -> tuple[Way | None, str]:
    usable = dict(mounted)
    missing = []
    for name in _HIERARCHIES:
        # Where one hierarchy has two controllers, a link stands for each: cpuacct -> cpu,cpuacct.
        path = (machine.groups / name).resolve()
        kind, writable = usable.get("/" + str(path.relative_to(machine.root.resolve())), ("", False))
        if kind != "cgroup" or not writable or not os.access(path, os.W_OK):
            missing.append(name)
    if missing:
        return None, f"no writable control groups for {', '.join(missing)} are mounted at /sys/fs/cgroup"
    return Way.V1, "control groups of version 1 are mounted and writable"


def _of_version_2(machine: Machine, *, writable: bool) -> tuple[Way | None, str]:
    top = machine.groups
    if not writable or not os.access(top, os.W_OK):
        return None, "the control groups of version 2 cannot be written here"
    if any(not line.startswith("0:") for line in _read(machine.root / "proc/self/cgroup").splitlines()):
        return None, "version 1 holds controllers of this machine too, which Slurm's plugin for version 2 refuses"
    if "memory" not in _read(top / "cgroup.controllers").split():
        return None, "the control groups of version 2 have no memory controller here"
    if not (machine.root / "run/systemd/system").is_dir():  # as sd_booted(3) has it
        return Way.V2_ALONE, "control groups of version 2 are mounted and writable, and no systemd owns them"
    if not (machine.root / "run/dbus/system_bus_socket").exists():
        return None, "systemd owns the control groups of version 2, and no D-Bus runs to ask it for some"
    return Way.V2_BY_SYSTEMD, "systemd gives each node a scope in the control groups of version 2"


def _mounted(machine: Machine) -> dict[str, tuple[str, bool]]:
    """Type and writability of what is mounted at each place; of several the last one is what is seen."""
    rows = (line.split() for line in _read(machine.root / "proc/self/mounts").splitlines())
    return {row[1]: (row[2], "rw" in row[3].split(",")) for row in rows if len(row) > 3}


def walls(way: Way, machine: Machine) -> tuple[str, ...]:
    """What a way can keep apart between jobs on this machine."""
    if way is Way.POLLING:
        return ()
    if way is not Way.V1:  # devices are held by a program in the kernel, which needs no controller
        cores = (CORES,) if "cpuset" in _read(machine.groups / "cgroup.controllers").split() else ()
        return (MEMORY, *cores, DEVICES)
    more = ((CORES, "cpuset"), (DEVICES, "devices"))
    return (MEMORY, *(wall for wall, name in more if os.access(machine.groups / name / "cgroup.procs", os.W_OK)))


def make_ready(way: Way, machine: Machine) -> None:
    """Make what slurmd takes for granted: without systemd, a slice with controllers. DevclusterError when refused."""
    if way is not Way.V2_ALONE:
        return
    try:
        (machine.groups / _SLICE).mkdir(exist_ok=True)
        for place in (machine.groups, machine.groups / _SLICE):
            offered = _read(place / "cgroup.controllers").split()
            for name in _CONTROLLERS:
                if name in offered and name not in _read(place / "cgroup.subtree_control").split():
                    (place / "cgroup.subtree_control").write_text(f"+{name}", encoding="ascii")
    except OSError as error:
        # In a container the top has processes in it, and the kernel lets no such group share out its controllers.
        # Moving somebody else's processes is not for us.
        put_away(machine)
        raise DevclusterError(
            f"the kernel gives its controllers to no group below the top: {error.strerror}"
        ) from error


def put_away(machine: Machine) -> None:
    """Remove the slice of `make_ready` when nothing is in it any more; systemd's own stays."""
    if not (machine.root / "run/systemd/system").is_dir():
        with contextlib.suppress(OSError):
            (machine.groups / _SLICE).rmdir()


def check(way: Way, cluster: Cluster, machine: Machine) -> None:
    """See that nodes which came up can limit memory; DevclusterError else."""
    if way in {Way.V2_ALONE, Way.V2_BY_SYSTEMD}:
        for node in cluster.nodes:
            shared = _read(_scope(machine, node) / "cgroup.subtree_control").split()
            if "memory" not in shared:
                raise DevclusterError(f"the jobs of node {node} get no memory controller")


def tops(nodes: Iterable[str], machine: Machine) -> list[Path]:
    """The control groups that the slurmd of each node may have made."""
    places = [machine.groups / kind / f"slurm_{node}" for node in nodes for kind in _ALL_HIERARCHIES]
    places += [_scope(machine, node) for node in nodes]
    return [place for place in places if place.is_dir()]


def _scope(machine: Machine, node: str) -> Path:
    return machine.groups / _SLICE / f"{node}_slurmstepd.scope"


def conf(way: Way, version: tuple[int, int], held: Collection[str] = (MEMORY,)) -> str:
    """The text of cgroup.conf for a version of Slurm, with the walls that are to hold."""
    if way is Way.POLLING:
        # `disabled` came with 24.05. Before it, the plugin for version 1 does nothing until one of its functions is
        # used, whereas the default looks at what is mounted and gives up.
        return f"CgroupPlugin={'disabled' if version >= (24, 5) else 'cgroup/v1'}\n"
    more = "IgnoreSystemd=yes\n" if way is Way.V2_ALONE else ""
    if way is Way.V2_BY_SYSTEMD and version >= (24, 5):
        more = "SystemdTimeout=10000\n"  # milliseconds; after its one second slurmd gives up on a busy machine
    return f"""\
CgroupPlugin={way.limits}
CgroupMountpoint=/sys/fs/cgroup
{more}ConstrainRAMSpace=yes
ConstrainSwapSpace=no
ConstrainCores={"yes" if CORES in held else "no"}
ConstrainDevices={"yes" if DEVICES in held else "no"}
AllowedRAMSpace=100
MinRAMSpace=8
"""


def record(cluster: Cluster, limits: MemoryLimits) -> None:
    """Keep what was chosen."""
    _file(cluster).write_text(json.dumps(asdict(limits)) + "\n", encoding="utf-8")


def recorded(cluster: Cluster) -> MemoryLimits | None:
    """What was chosen when the cluster was brought up; None when it never was, or the record is garbled."""
    try:
        body = json.loads(_file(cluster).read_text(encoding="utf-8"))
        return MemoryLimits(str(body["by"]), str(body["reason"]), tuple(map(str, body.get("walls", ()))))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def told(limits: MemoryLimits) -> str:
    """How memory is limited and why, for people."""
    if limits.by == Way.POLLING.limits:
        return f"polled every two seconds, because {limits.reason}"
    return f"enforced by the kernel ({limits.by}): {limits.reason}"


def _file(cluster: Cluster) -> Path:
    return cluster.folder / "run" / "memory.json"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
