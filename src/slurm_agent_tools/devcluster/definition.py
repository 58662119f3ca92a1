"""What a private cluster is: its folder, its ports, its names. Nothing here starts or stops anything.

There are two kinds: the devcluster, whose nodes claim what no machine has, and the workstation, this machine as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from slurm_agent_tools.devcluster.machine_facts import Kept, MachineGpu, MachineNode
from slurm_agent_tools.errors import AgentToolsError, InputError, StorageError
from slurm_agent_tools.settings import devcluster_place

# The daemons look for their helpers in sbin, which an ordinary user's PATH lacks.
SEARCH = "/usr/sbin:/usr/bin:/sbin:/bin"

_SOCKET_LIMIT = 100  # sun_path holds 108 bytes

_BLOCKS = range(17000, 31001, 1000)  # below the range of outgoing ports, which starts at 32768

OF_WORKSTATIONS = range(16000, 9000, -1000)
"""Base ports of workstations, apart from those of devclusters: one that is down is not stepped on."""

_NODES = (("gpu", 2), ("cpu", 2), ("spec", 1))


class DevclusterError(AgentToolsError):
    """The private cluster could not be installed, started or stopped; the message ends with the log's last lines."""

    code = "devcluster_failed"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A private Slurm: everything it has lies in `folder`; `user` is the ordinary user who submits, in `project`.

    `machine`: what this machine really has, where the cluster is that and claims nothing.
    """

    folder: Path
    base_port: int
    user: str
    bin_dir: Path | None = None  # of another Slurm than the distribution's
    machine: MachineNode | None = None

    @property
    def name(self) -> str:
        """What Slurm calls it."""
        return "devcluster" if self.machine is None else "workstation"

    @property
    def conf(self) -> Path:
        """The path of its slurm.conf."""
        return self.folder / "etc" / "slurm.conf"

    @property
    def hosts(self) -> Path:
        """The /etc/hosts of its daemons; there only where the machine's own would let them listen beyond loopback."""
        return self.folder / "etc" / "hosts"

    @property
    def project(self) -> Path:
        """The folder in which `user` works."""
        return self.folder / "home" / self.user / "project"

    @property
    def nodes(self) -> dict[str, int]:
        """The port of each node. cgroup folders are named by node, so names hold letters made from the base port."""
        prefix = letters(self.base_port)
        if self.machine is not None:
            first = OF_WORKSTATIONS[0] == self.base_port
            return {"workstation" if first else f"{prefix}workstation": self.base_port + 101}
        names = [f"{prefix}{kind}{number:02d}" for kind, count in _NODES for number in range(1, count + 1)]
        return {name: self.base_port + 101 + place for place, name in enumerate(names)}

    @property
    def accounting(self) -> bool:
        """Whether it was brought up with slurmdbd."""
        return (self.folder / "etc" / "slurmdbd.conf").exists()

    @property
    def daemons(self) -> list[str]:
        """The names of its daemons, in the order of their start."""
        stored = ["mariadbd", "slurmdbd"] if self.accounting else []
        login = ["sshd"] if (self.folder / "ssh" / "sshd_config").exists() else []
        return ["munged", *stored, "slurmctld", *(f"slurmd.{node}" for node in self.nodes), *login]

    @property
    def ssh_port(self) -> int:
        """Where its sshd listens, if it has one."""
        return self.base_port + 22

    @property
    def release(self) -> str | None:
        """The version of Slurm that was asked for; None is the distribution's own."""
        return None if self.bin_dir is None else self.bin_dir.parent.name

    @property
    def search(self) -> str:
        """Where its daemons and the commands that set it up are looked for."""
        return SEARCH if self.bin_dir is None else f"{self.bin_dir}:{SEARCH}"

    def environment(self) -> dict[str, str]:
        """The variables that point Slurm's commands at this cluster; PATH where they are not the distribution's."""
        found = {"SLURM_CONF": str(self.conf)}
        if self.bin_dir is not None:
            found["PATH"] = f"{self.bin_dir}:{os.environ.get('PATH', SEARCH)}"
        return found

    def as_user(self, argv: Sequence[str], user: str | None = None) -> list[str]:
        """The argument vector that runs `argv` as `user` (default: the submitting one)."""
        return run_as(user or self.user, argv)


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """Who ends a job over its memory: the kernel (`by` cgroup/v1 or cgroup/v2) or Slurm, by `polling`; and why so.

    `walls`: what the kernel keeps apart between jobs, of memory, cores and devices.
    """

    by: str
    reason: str
    walls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """`up`: it was brought up and each daemon runs. Daemons with pid or None; nodes with Slurm's word for each."""

    up: bool
    daemons: dict[str, int | None]
    nodes: dict[str, str]
    memory: MemoryLimits | None = None


def is_root() -> bool:
    """Whether this process may start daemons under other users."""
    return os.geteuid() == 0


def me() -> str:
    """The name of the user of this process."""
    return pwd.getpwuid(os.geteuid()).pw_name


def run_as(user: str, argv: Sequence[str]) -> list[str]:
    """`argv` under another user when this process may do that, else as it is."""
    if not is_root() or user == "root":
        return list(argv)
    group = str(pwd.getpwnam(user).pw_gid)
    return ["setpriv", "--reuid", user, "--regid", group, "--init-groups", *argv]


def readable_by(user: str, path: Path) -> bool:
    """Whether owner, groups and mode let a user, who may not be there yet, enter every folder above and read it."""
    uid, groups = -1, set[int]()
    with contextlib.suppress(KeyError):
        entry = pwd.getpwnam(user)
        uid, groups = entry.pw_uid, set(os.getgrouplist(user, entry.pw_gid))

    def may(place: Path, bit: int) -> bool:
        found = place.stat()
        shift = 6 if found.st_uid == uid else 3 if found.st_gid in groups else 0
        return bool(found.st_mode >> shift & bit)

    real = path.resolve()
    return all(may(parent, 1) for parent in real.parents) and may(real, 4)


def letters(base_port: int) -> str:
    """Two letters for a whole thousand, else four; different for different base ports."""
    number, length = (base_port // 1000, 2) if base_port % 1000 == 0 else (base_port, 4)
    text = ""
    for _ in range(length):
        number, digit = divmod(number, 26)
        text = chr(ord("a") + digit) + text
    return text


def checked(folder: Path | None) -> Path:
    """The folder as an absolute path that sockets and slurm.conf can hold; InputError else."""
    path = (folder or devcluster_place.folder()).resolve()
    if len(os.fsencode(path / "run/munge/munge.sock")) > _SOCKET_LIMIT:
        raise InputError("folder", str(path), "too long for the path of a socket; give a shorter one")
    if any(not (letter.isalnum() or letter in "/._-") for letter in str(path)):
        raise InputError("folder", str(path), "use letters, digits, dot, dash and underscore only")
    return path


def save(cluster: Cluster) -> None:
    """Record the cluster in its folder."""
    body = {
        "folder": str(cluster.folder), "base_port": cluster.base_port, "user": cluster.user,
        "bin_dir": None if cluster.bin_dir is None else str(cluster.bin_dir),
        "machine": None if cluster.machine is None else asdict(cluster.machine),
    }  # fmt: skip
    target = cluster.folder / "cluster.json"
    draft = target.with_suffix(".new")
    draft.write_text(json.dumps(body) + "\n", encoding="utf-8")
    draft.replace(target)


def recorded(folder: Path) -> Cluster | None:
    """The cluster that was made in this folder, up or not. StorageError when its record is garbled."""
    path = folder / "cluster.json"
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        port, user = int(body["base_port"]), str(body["user"])
        named = body.get("bin_dir")
        return Cluster(folder, port, user, None if named is None else Path(named), _machine(body.get("machine")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from error


def _machine(body: Mapping[str, Any] | None) -> MachineNode | None:
    if body is None:
        return None
    lists = {"gpus": tuple(MachineGpu(**gpu) for gpu in body["gpus"])}
    lists |= {name: tuple(body[name]) for name in ("reserved", "unread")}
    return MachineNode(**{**body, **lists, "kept": Kept(**body["kept"])})


@contextlib.contextmanager
def ports(wanted: int | None, before: int | None, among: Sequence[int] = _BLOCKS) -> Iterator[int]:
    """A base port to use inside the block: the wanted one, else the earlier one, else the first free one.

    InputError for a number that cannot be one; DevclusterError when all are taken.
    """
    if wanted is not None and not 1024 <= wanted <= 64000:
        raise InputError("base_port", wanted, "must be from 1024 to 64000")
    blocks = [before or among[0], *among] if wanted is None else [wanted]
    for base in blocks:
        with _marked(base) as ours:
            if ours and not _taken(base):
                yield base
                return
    words = f"from {min(among)} to {max(among)}" if wanted is None else f"at {wanted}"
    raise DevclusterError(f"no free block of ports {words}", hint="give another --base-port")


@contextlib.contextmanager
def _marked(base: int) -> Iterator[bool]:
    """Mark a block of ports against another `up` until its daemons listen; the kernel drops the mark with us."""
    with socket.socket(socket.AF_UNIX) as mark:
        try:
            mark.bind(f"\0slurm-agent-devcluster-{base}")
        except OSError:
            yield False
        else:
            yield True


def _taken(base: int) -> bool:
    return not all(_bindable(port) for port in (base + 1, base + 2, base + 22, *range(base + 101, base + 106)))


def _bindable(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
