"""Bring the private cluster up, take it down, look at it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal as signals
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio

from slurm_agent_tools.devcluster import accounting as stored
from slurm_agent_tools.devcluster import daemons, install, layout, nodes, place, releases, services, sshd
from slurm_agent_tools.devcluster.place import Cluster, DevclusterError, Status

Say = Callable[[str], None]


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
    where = place.checked(folder)
    wanted = None if releases.checked(slurm) is None else releases.programs(str(slurm))
    present = find(where)
    if present is not None and (await status(where)).up:
        _same(present, wanted)
        if ssh:
            await sshd.up(present)
        say(f"already up in {where}")
        return present
    unpack = wanted is not None and not wanted.is_dir()
    await install.ensure(accounting=accounting, yes=yes, say=say, release=unpack, ssh=ssh)
    if slurm is not None:
        await releases.ensure(slurm, say)
    _claim(where)
    with _locked(where):
        before = await _cleaned(where, say)
        if before is not None:
            _same(before, wanted)
        with place.ports(base_port, before.base_port if before else None) as base:
            cluster = Cluster(where, base, stored.USERS[0] if place.is_root() else place.me(), wanted)
            place.save(cluster)
            try:
                await _bring(cluster, accounting=accounting, extra=extra_conf, say=say)
                if ssh:
                    await sshd.up(cluster)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await _take(cluster)
                raise
    return cluster


async def down(folder: Path | None = None, *, wipe: bool = False, say: Say = print) -> None:
    """End every process of the cluster; `wipe` also deletes its folder."""
    where = place.checked(folder)
    cluster = place.recorded(where)
    if cluster is None:
        say(f"no devcluster in {where}")
        return
    _owned(where)
    with _locked(where):
        for line in await _take(cluster):
            say(f"ended a left-over process: {line}")
        if wipe:
            shutil.rmtree(where)
    say("down" + (f", and {where} is deleted" if wipe else f"; its state stays in {where}"))


async def status(folder: Path | None = None) -> Status:
    """What runs; all empty when there is no cluster in the folder."""
    cluster = place.recorded(place.checked(folder))
    if cluster is None:
        return Status(up=False, daemons={}, nodes={})
    pids = {name: daemons.running(cluster, name) for name in cluster.daemons}
    states = await nodes.states(cluster) if pids["slurmctld"] else {}
    return Status(up=_stamp(cluster).exists() and None not in pids.values(), daemons=pids, nodes=states)


def find(folder: Path | None = None) -> Cluster | None:
    """The cluster in the folder if it was brought up and something of it still runs."""
    cluster = place.recorded(place.checked(folder))
    if cluster is None or not _stamp(cluster).exists():
        return None
    return cluster if any(daemons.running(cluster, name) for name in cluster.daemons) else None


async def start_daemon(cluster: Cluster, name: str) -> None:
    """Start slurmctld, slurmdbd, slurmd.NODE or another daemon again and wait until it answers."""
    await services.start(cluster, services.known(cluster, name))
    await services.ready(cluster, name)
    if name == "slurmctld" and _stamp(cluster).exists():
        await nodes.heard_of(cluster)


async def stop_daemon(cluster: Cluster, name: str) -> None:
    """End one daemon in order; the rest runs on."""
    await services.stop(cluster, services.known(cluster, name))


async def signal_daemon(cluster: Cluster, name: str, signal: int) -> None:
    """Send a signal to one daemon; DevclusterError when it does not run."""
    if not daemons.send(cluster, services.known(cluster, name), signal):
        raise DevclusterError(f"{name} does not run")


def _same(present: Cluster, wanted: Path | None) -> None:
    """A state that one version of Slurm left may not suit another."""
    if present.bin_dir != wanted:
        held = "the distribution's Slurm" if present.release is None else f"Slurm {present.release}"
        raise DevclusterError(
            f"{present.folder} holds a cluster of {held}", hint="give another --folder, or `devcluster down --wipe` it"
        )


def _stamp(cluster: Cluster) -> Path:
    return cluster.folder / "run" / "up"


def _claim(folder: Path) -> None:
    """Make the folder, or see that it is ours: `down --wipe` deletes all that is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    _owned(folder)
    names = {entry.name for entry in folder.iterdir()} - {"lock"}
    if names and "cluster.json" not in names and not names <= {"cluster.new"}:
        raise DevclusterError(f"{folder} holds other things than a devcluster", hint="give an empty --folder")
    folder.chmod(0o755)


def _owned(folder: Path) -> None:
    """Refuse another user's folder: what its records say is trusted when processes are ended."""
    if folder.stat().st_uid != os.geteuid():
        raise DevclusterError(
            f"{folder} belongs to another user", hint="run this as that user, or give another --folder"
        )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
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
    before = place.recorded(folder)
    if before is not None and (
        any(daemons.running(before, name) for name in before.daemons) or daemons.leftovers(before)
    ):
        say("cleaning up after an earlier run")
        await _take(before)
    return before


async def _bring(cluster: Cluster, *, accounting: bool, extra: str, say: Say) -> None:
    begun = time.monotonic()
    say(f"bringing up a private Slurm in {cluster.folder}, ports from {cluster.base_port}")
    layout.prepare(cluster, accounting=accounting, extra=extra)
    await layout.people(cluster, stored.USERS, say)
    await start_daemon(cluster, "munged")
    if accounting:
        await stored.database(cluster)
        await stored.daemon(cluster)
        await stored.members(cluster)
    await start_daemon(cluster, "slurmctld")
    for node in cluster.nodes:
        await services.start(cluster, f"slurmd.{node}")
    await nodes.fit(cluster)
    await nodes.partitions(cluster, "UP")  # `down` leaves them DOWN in the saved state
    _stamp(cluster).touch()
    say(f"ready after {time.monotonic() - begun:.1f} s: SLURM_CONF={cluster.conf}")


async def _take(cluster: Cluster) -> list[str]:
    """Stop everything in order; returns the left-over processes that had to be killed."""
    _stamp(cluster).unlink(missing_ok=True)
    if daemons.send(cluster, "slurmctld", signals.SIGCONT):
        await nodes.end_jobs(cluster)
    await sshd.stop(cluster)
    workers = [f"slurmd.{node}" for node in cluster.nodes]
    for name in workers:
        daemons.send(cluster, name, signals.SIGCONT)
        daemons.send(cluster, name, signals.SIGTERM)
    for name in (*workers, "slurmctld", "slurmdbd", "mariadbd", "munged"):
        await services.stop(cluster, name)
    ended = await daemons.end_leftovers(cluster)
    for socket in ("run/munge/munge.sock", "run/munge/munge.sock.lock", "db/mysqld.sock"):
        (cluster.folder / socket).unlink(missing_ok=True)
    return ended
