"""Detached processes: start, find again, signal and end them, each known by its pid and its start time."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import anyio

from slurm_agent_tools.devcluster import cgroups, hostname
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, run_as

_SLURM = {"slurmctld", "slurmscriptd", "slurmdbd", "slurmd", "slurmstepd"}

# The kernel keeps 15 letters of a name.
_OTHERS = {"munged", "mariadbd", "mariadb-install", "mariadb"}

# It keeps a scope of systemd alive for the steps of a node, and is meant to outlive slurmd.
_PLACEHOLDER = "slurmstepd infinity"

_OVER = {"X", "Z"}  # gone, or only waited for


def start(cluster: Cluster, name: str, user: str, argv: list[str], env: Mapping[str, str]) -> int:
    """Start a daemon in its own session, its output in log/NAME.out; record it at once. Returns its pid."""
    whole = hostname.seeing(cluster, name, run_as(user, argv))
    program = shutil.which(whole[0], path=cluster.search)
    if program is None:
        raise DevclusterError(f"{whole[0]} is not installed")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output(cluster, name)), flags, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    pid = os.posix_spawn(program, whole, dict(env), file_actions=actions, setsid=True)
    _record(cluster, name).write_text(f"{pid} {_stat(pid)[1]}\n", encoding="ascii")
    return pid


def output(cluster: Cluster, name: str) -> Path:
    """Where what a daemon prints goes."""
    return cluster.folder / "log" / f"{name}.out"


def running(cluster: Cluster, name: str) -> int | None:
    """The pid of a daemon that was started here and still runs."""
    try:
        pid, started = (int(word) for word in _record(cluster, name).read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return None
    state, since = _stat(pid)
    if not started or since != started:
        return None
    if state in _OVER:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        return None
    return pid


def send(cluster: Cluster, name: str, number: int) -> bool:
    """Send a signal to a daemon; False when it does not run."""
    pid = running(cluster, name)
    return pid is not None and kill(pid, number)


async def stop(cluster: Cluster, name: str, seconds: float = 10) -> None:
    """End a daemon: TERM, and KILL after `seconds`; DevclusterError when even that does not end it."""
    for number, limit in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
        if send(cluster, name, number) and await _until(lambda: running(cluster, name) is None, limit):
            break
    if running(cluster, name) is not None:
        raise DevclusterError(f"{name} cannot be ended")
    _record(cluster, name).unlink(missing_ok=True)


async def end_leftovers(cluster: Cluster) -> list[str]:
    """Kill what belongs to this cluster and has no living record, with its children; returns what was ended."""
    found = {pid: _command(pid) for pid in leftovers(cluster)}
    _end_groups(cluster, remove=False)
    for pid in reversed(trees(found)):
        kill(pid, signal.SIGKILL)
    await _until(lambda: not leftovers(cluster), 5)
    for _ in range(20):
        if not _end_groups(cluster, remove=True):
            break
        await anyio.sleep(0.1)
    return [f"{pid} {command}" for pid, command in found.items() if not command.endswith(_PLACEHOLDER)]


def leftovers(cluster: Cluster) -> list[int]:
    """Processes of this cluster: daemons and steps by SLURM_CONF, database and munge by folder, jobs by node."""
    return [pid for pid in _pids() if _belongs(cluster, pid)]


def steps(cluster: Cluster) -> list[int]:
    """The processes of Slurm that hold a job each, and live on without daemons."""
    found = [pid for pid in leftovers(cluster) if "slurmstepd" in {_text(pid, "comm").strip(), _program(pid)}]
    return [pid for pid in found if not _command(pid).endswith(_PLACEHOLDER)]


def _belongs(cluster: Cluster, pid: int) -> bool:
    if pid == os.getpid() or _stat(pid)[0] in _OVER:
        return False
    name, variables = _text(pid, "comm").strip(), _text(pid, "environ").split("\0")
    if f"TMPDIR={cluster.folder}/db/scratch" in variables:  # what makes the database is a script that starts others
        return True
    # A program that merely has SLURM_CONF set, such as a person's shell, is none of ours.
    if name in _OTHERS:
        return f"{cluster.folder}/" in _command(pid)
    ours = any(word.startswith(f"SLURM_CONF={cluster.folder}/etc/") for word in variables)
    if ours and (name in _SLURM or _program(pid) in _SLURM):
        return True
    nodes = {f"SLURMD_NODENAME={node}" for node in cluster.nodes}
    return not nodes.isdisjoint(variables)


def _record(cluster: Cluster, name: str) -> Path:
    return cluster.folder / "pids" / name


def _stat(pid: int) -> tuple[str, int]:
    """State, and start in clock ticks after boot; ("X", 0) when there is no such process."""
    fields = _text(pid, "stat").rpartition(")")[2].split()
    return (fields[0], int(fields[19])) if fields else ("X", 0)


def _text(pid: int, what: str) -> str:
    try:
        return Path(f"/proc/{pid}/{what}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _command(pid: int) -> str:
    return _text(pid, "cmdline").replace("\0", " ").strip()


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return ""


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 - names, not paths


def trees(roots: Iterable[int]) -> list[int]:
    """The processes and all that they started, parents first."""
    order: list[int] = []
    queue = list(roots)
    while queue:
        pid = queue.pop(0)
        if pid not in order:
            order.append(pid)
            queue += [int(child) for thread in _threads(pid) for child in _words(thread / "children")]
    return order


def _threads(pid: int) -> list[Path]:
    """None of a process that has ended: glob raises where it ends between its two looks."""
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except OSError:
        return []


def kill(pid: int, number: int) -> bool:
    """Send a signal; False when there is no such process, or it is another user's."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _end_groups(cluster: Cluster, *, remove: bool) -> bool:
    """Kill what is in the nodes' cgroups, then remove those; True while some are left."""
    machine = cgroups.here()
    tops = cgroups.tops(cluster.nodes, machine)
    for top in tops:
        for group, _, _ in os.walk(top, topdown=False):
            for pid in _words(Path(group) / "cgroup.procs"):
                kill(int(pid), signal.SIGKILL)
            if remove:
                with contextlib.suppress(OSError):
                    Path(group).rmdir()
    if remove:
        cgroups.put_away(machine)
    return any(top.is_dir() for top in tops)


async def _until(done: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        await anyio.sleep(0.05)
    return True
