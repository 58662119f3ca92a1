"""Bring the private cluster up, take it down, look at it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal as signals
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import anyio

from slurm_agent_tools.devcluster import (
    accounting_database,
    cgroups,
    definition,
    folders,
    hostname,
    login_node,
    packages,
    processes,
    slurm_daemons,
    workers,
)
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, Status

Say = Callable[[str], None]

_LEAP = 1000
"""After a crash the numbers of jobs begin so much higher: slurmctld writes its state every five seconds, and would give
those of the jobs that it lost to others."""


async def up(
    folder: Path | None = None,
    *,
    base_port: int | None = None,
    slurm: str | None = None,
    extra_conf: str = "",
    accounting: bool = True,
    ssh: bool = False,
    yes: bool = False,
    say: Say = print,
) -> Cluster:
    """Bring a cluster up, ready for jobs; one that is up is returned as it is.

    `slurm`: one of releases.RELEASES instead of the distribution's version. `extra_conf` holds lines of slurm.conf
    that win over the default ones. `ssh`: with a login node, an sshd on loopback. DevclusterError when it cannot be
    done; then nothing of it is left running.
    """
    where = definition.checked(folder)
    wanted = None if packages.checked_release(slurm) is None else packages.programs(str(slurm))
    present = find(where)
    if present is not None and (await status(where)).up:
        _same(present, wanted)
        if ssh:
            await login_node.up(present)
        say(f"already up in {where}")
        return present
    await hostname.check()
    unpack = wanted is not None and not wanted.is_dir()
    await packages.ensure_packages(accounting=accounting, yes=yes, say=say, release=unpack, ssh=ssh)
    if slurm is not None:
        await packages.ensure_release(slurm, say)
    with folders.written_by_us():
        claim(where)
    with locked(where), folders.written_by_us():
        before = await _cleaned(where, say)
        if before is not None:
            _same(before, wanted)
        with definition.ports(base_port, before.base_port if before else None) as base:
            cluster = Cluster(
                where, base, accounting_database.USERS[0] if definition.is_root() else definition.me(), wanted
            )
            definition.save(cluster)
            try:
                await bring(cluster, accounting=accounting, extra=extra_conf, say=say)
                if ssh:
                    await login_node.up(cluster)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await take(cluster)
                raise
    return cluster


async def down(folder: Path | None = None, *, wipe: bool = False, say: Say = print) -> None:
    """End every process of the cluster; `wipe` also deletes its folder."""
    where = definition.checked(folder)
    cluster = definition.recorded(where)
    if cluster is None:
        say(f"no devcluster in {where}")
        return
    owned(where)
    with locked(where):
        for line in await take(cluster):
            say(f"ended a left-over process: {line}")
        if wipe:
            shutil.rmtree(where)
    say("down" + (f", and {where} is deleted" if wipe else f"; its state stays in {where}"))
    if wipe and os.environ.get("SLURM_CONF") == str(cluster.conf):
        say("this terminal still names it: run `unset SLURM_CONF`")


async def status(folder: Path | None = None) -> Status:
    """What runs; all empty when there is no cluster in the folder."""
    cluster = definition.recorded(definition.checked(folder))
    if cluster is None:
        return Status(up=False, daemons={}, nodes={})
    pids = {name: processes.running(cluster, name) for name in cluster.daemons}
    states = await workers.node_states(cluster) if pids["slurmctld"] else {}
    begun = stamp(cluster).exists()
    memory = cgroups.recorded(cluster) if begun else None
    return Status(up=begun and None not in pids.values(), daemons=pids, nodes=states, memory=memory)


def find(folder: Path | None = None) -> Cluster | None:
    """The cluster in the folder if it was brought up and something of it still runs."""
    cluster = definition.recorded(definition.checked(folder))
    if cluster is None or not stamp(cluster).exists():
        return None
    return cluster if any(processes.running(cluster, name) for name in cluster.daemons) else None


async def start_daemon(cluster: Cluster, name: str) -> None:
    """Start slurmctld, slurmdbd, slurmd.NODE or another daemon again and wait until it answers."""
    with folders.written_by_us():
        await slurm_daemons.start(cluster, slurm_daemons.known(cluster, name))
    await slurm_daemons.ready(cluster, name)
    if name == "slurmctld" and stamp(cluster).exists():
        await workers.heard_of(cluster)


async def stop_daemon(cluster: Cluster, name: str) -> None:
    """End one daemon in order; the rest runs on."""
    await slurm_daemons.stop(cluster, slurm_daemons.known(cluster, name))


async def signal_daemon(cluster: Cluster, name: str, signal: int) -> None:
    """Send a signal to one daemon; DevclusterError when it does not run."""
    if not processes.send(cluster, slurm_daemons.known(cluster, name), signal):
        raise DevclusterError(f"{name} does not run")


def _same(present: Cluster, wanted: Path | None) -> None:
    """A state that one version of Slurm left may not suit another."""
    if present.bin_dir != wanted:
        held = "the distribution's Slurm" if present.release is None else f"Slurm {present.release}"
        raise DevclusterError(
            f"{present.folder} holds a cluster of {held}", hint="give another --folder, or `devcluster down --wipe` it"
        )


def stamp(cluster: Cluster) -> Path:
    """The file that is there while the cluster is meant to be up."""
    return cluster.folder / "run" / "up"


def claim(folder: Path) -> None:
    """Make the folder, or see that it is ours: `down --wipe` deletes all that is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    owned(folder)
    names = {entry.name for entry in folder.iterdir()} - {"lock"}
    if names and "cluster.json" not in names and not names <= {"cluster.new"}:
        raise DevclusterError(f"{folder} holds other things than a private cluster", hint="give an empty folder")
    folder.chmod(0o755)


def owned(folder: Path) -> None:
    """Refuse another user's folder: what its records say is trusted when processes are ended."""
    if folder.stat().st_uid != os.geteuid():
        raise DevclusterError(
            f"{folder} belongs to another user", hint="run this as that user, or give another --folder"
        )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one process at a time bring up or take down; the kernel drops the lock of one that is killed."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise DevclusterError(f"another process is bringing {folder} up or down") from error
    finally:
        os.close(handle)


async def _cleaned(folder: Path, say: Say) -> Cluster | None:
    """End what an earlier run left; returns that cluster."""
    before = definition.recorded(folder)
    if before is not None and (
        any(processes.running(before, name) for name in before.daemons) or processes.leftovers(before)
    ):
        say("cleaning up after an earlier run")
        await take(before)
    return before


def closed_to_demo() -> Path | None:
    """What of this program the user as whom root's demo works cannot read; None where the demo can work."""
    unread = folders.unread_by(accounting_database.USERS[0]) if definition.is_root() else []
    return unread[0] if unread else None


def open_to_demo() -> None:
    """Raises DevclusterError where the demo cannot work, before anything is brought up for it."""
    if closed := closed_to_demo():
        raise DevclusterError(
            f"the demo works as an ordinary user, who cannot read {closed}",
            hint="Run `make demo` in a clone that every user can read (not below /root), or work as an ordinary user.",
        )


async def bring(cluster: Cluster, *, accounting: bool, extra: str, say: Say) -> None:
    """Start every daemon of a cluster whose folder is claimed and locked."""
    begun = time.monotonic()
    say(f"bringing up a private Slurm in {cluster.folder}, ports from {cluster.base_port}")
    folders.prepare(cluster)
    settings = workers.SlurmSetup(accounting, extra, await slurm_daemons.version(cluster))
    ways = cgroups.ways(cgroups.here())
    workers.configure(cluster, settings, ways[0][0])
    if cluster.machine is None:
        await folders.people(cluster, accounting_database.USERS, say)
    await start_daemon(cluster, "munged")
    if accounting:
        await accounting_database.database(cluster)
        await accounting_database.daemon(cluster)
        await accounting_database.members(cluster)
    if cluster.machine is not None and stamp(cluster).exists():  # nobody took it down
        settings = replace(settings, extra=f"{extra}FirstJobId={await accounting_database.last_job(cluster) + _LEAP}\n")
    limits = await workers.up(cluster, settings, ways, say)
    cgroups.record(cluster, limits)
    await workers.partitions(cluster, "UP")  # `down` leaves them DOWN in the saved state
    stamp(cluster).touch()
    say(f"memory limits: {cgroups.told(limits)}")
    say(f"ready after {time.monotonic() - begun:.1f} s: SLURM_CONF={cluster.conf}")


async def take(cluster: Cluster) -> list[str]:
    """Stop everything in order; returns the left-over processes that had to be killed."""
    stamp(cluster).unlink(missing_ok=True)
    if processes.send(cluster, "slurmctld", signals.SIGCONT):
        await workers.end_jobs(cluster)
    await login_node.stop(cluster)
    await stop_daemons(cluster)
    ended = await processes.end_leftovers(cluster)
    _remove_sockets(cluster)
    return ended


async def stop_daemons(cluster: Cluster) -> None:
    """Stop the daemons in order; jobs go on."""
    slurmds = [f"slurmd.{node}" for node in cluster.nodes]
    for name in slurmds:
        processes.send(cluster, name, signals.SIGCONT)
        processes.send(cluster, name, signals.SIGTERM)
    for name in (*slurmds, "slurmctld", "slurmdbd", "mariadbd", "munged"):
        await slurm_daemons.stop(cluster, name)


def _remove_sockets(cluster: Cluster) -> None:
    for socket in ("run/munge/munge.sock", "run/munge/munge.sock.lock", "db/mysqld.sock"):
        (cluster.folder / socket).unlink(missing_ok=True)
