"""Each daemon of the cluster: how it is started, when it is ready, what it said last."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Mapping

import anyio

from slurm_agent_tools.devcluster import hostname, processes
from slurm_agent_tools.devcluster.config_files import owner
from slurm_agent_tools.devcluster.definition import SEARCH, Cluster, DevclusterError, is_root, me
from slurm_agent_tools.devcluster.folders import DAEMONS
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.process import EndedProcess

# A full devcluster's slurmctld saves its state on the way out. mariadbd loses a TERM that comes while it starts, and no
# second one ends it; its pages survive a KILL.
_PATIENCE = {"slurmctld": 60.0, "slurmdbd": 30.0, "mariadbd": 5.0}


def environment(cluster: Cluster) -> dict[str, str]:
    """The whole environment of daemons and of the commands that set them up."""
    return {"LANG": "C.UTF-8", **cluster.environment(), "PATH": cluster.search}


async def call(
    cluster: Cluster, argv: list[str], seconds: float = 10, more: Mapping[str, str] | None = None
) -> EndedProcess:
    """Run one of Slurm's or the database's commands for this cluster, with `more` in its environment."""
    return await process.run(argv, env={**environment(cluster), **(more or {})}, timeout=seconds)


async def start(cluster: Cluster, name: str) -> None:
    """Start a daemon unless it runs, without waiting for it."""
    if processes.running(cluster, name) is None:
        user, argv, more = _daemon(cluster, name)
        processes.start(cluster, name, user, argv, {**environment(cluster), **more})


async def ready(cluster: Cluster, name: str) -> None:
    """Wait until a started daemon answers; DevclusterError with its last words when it ends or does not."""
    ask = _question(cluster, name)
    end = time.monotonic() + 30
    while answer := await ask():
        if processes.running(cluster, name) is None:
            raise DevclusterError(f"{name} ended\n{last_words(cluster, name)}")
        if time.monotonic() > end:
            raise DevclusterError(f"{name} does not answer: {answer}\n{last_words(cluster, name)}")
        await anyio.sleep(0.1)


async def version(cluster: Cluster) -> tuple[int, int]:
    """The year and the month of the cluster's Slurm. DevclusterError when it does not tell."""
    told = (await call(cluster, ["slurmd", "-V"])).stdout.decode(errors="replace")
    found = re.search(r"\b(\d+)\.(\d+)\.", told)
    if found is None:
        raise DevclusterError(f"slurmd -V tells no version: {told.strip()[:100]}")
    return int(found[1]), int(found[2])


async def stop(cluster: Cluster, name: str) -> None:
    """End a daemon; one that stands still is woken first."""
    processes.send(cluster, name, signal.SIGCONT)
    await processes.stop(cluster, name, _PATIENCE.get(name, 10.0))


def known(cluster: Cluster, name: str) -> str:
    """The name, when this cluster has such a daemon; InputError else."""
    if name not in cluster.daemons:
        raise InputError("name", name, f"must be one of {', '.join(cluster.daemons)}")
    return name


def last_words(cluster: Cluster, name: str) -> str:
    """The last lines of what a daemon printed or logged, each file named."""
    files = [processes.output(cluster, name), cluster.folder / "log" / f"{name}.log"]
    if name == "munged":
        files.append(cluster.folder / "munge" / "munged.log")
    parts: list[str] = []
    for file in files:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()[-12:] if file.is_file() else []
        parts += [f"-- {file}", *lines] if lines else []
    return "\n".join(parts)


def _daemon(cluster: Cluster, name: str) -> tuple[str, list[str], dict[str, str]]:
    """User, argument vector and more environment of a daemon."""
    folder = cluster.folder
    if name == "munged":
        return "munge" if is_root() else me(), _munged(cluster), {}
    if name == "mariadbd":
        return "mysql" if is_root() else me(), _mariadbd(cluster), {}
    if name == "slurmdbd":
        # libmariadb takes its default socket from this, so no TCP port and no password are needed.
        return owner(), ["slurmdbd", "-D"], {"MYSQL_UNIX_PORT": str(folder / "db" / "mysqld.sock")}
    if name == "slurmctld":
        # -i goes over errors in the state files: what cannot be read of a workstation's is lost to somebody.
        over = ["-i"] if cluster.machine is None else []
        return owner(), ["slurmctld", "-D", *over, *_conf(cluster)], {}
    if name == "sshd":
        # sshd starts itself again for each connection, and wants its whole path for that.
        program = shutil.which(name, path=SEARCH) or name
        return me(), [program, "-D", "-e", "-f", str(folder / "ssh" / "sshd_config")], {}
    steps = [] if cluster.bin_dir is None else ["-d", str(cluster.bin_dir / "slurmstepd")]
    return me(), ["slurmd", "-D", "-N", name.removeprefix("slurmd."), *steps, *_conf(cluster)], {}


def _conf(cluster: Cluster) -> list[str]:
    path = cluster.folder / "etc" / DAEMONS
    return ["-f", str(path)] if path.exists() else []


def _munged(cluster: Cluster) -> list[str]:
    place = cluster.folder / "munge"
    # munged wants its socket's folders open to all. Those of an ordinary user are often closed, and nobody else has to
    # reach it; the key and its folder are closed by us.
    force = [] if is_root() else ["--force"]
    return [
        "munged", "--foreground", *force, f"--key-file={place}/munge.key",
        f"--socket={cluster.folder}/run/munge/munge.sock",
        f"--pid-file={place}/munged.pid", f"--log-file={place}/munged.log", f"--seed-file={place}/munged.seed",
        "--num-threads=4",
    ]  # fmt: skip


def _mariadbd(cluster: Cluster) -> list[str]:
    place = cluster.folder / "db"
    return [
        "mariadbd", "--no-defaults", f"--datadir={place}/data", f"--socket={place}/mysqld.sock", "--skip-networking",
        f"--pid-file={place}/mariadbd.pid", "--innodb-buffer-pool-size=256M", "--innodb-log-file-size=64M",
        "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=2", "--max-allowed-packet=16M",
        "--skip-log-bin", "--performance-schema=OFF", "--sync-frm=OFF",
    ]  # fmt: skip


def _question(cluster: Cluster, name: str) -> Callable[[], Awaitable[str]]:
    """Asks a daemon for a sign of life; empty when it gave one, else what came instead."""
    if name.startswith("slurmd."):
        return lambda: _listening(hostname.loopback(), cluster.nodes[name.removeprefix("slurmd.")])
    if name == "sshd":
        return lambda: _listening("127.0.0.1", cluster.ssh_port)
    argv = {
        "munged": ["munge", "-S", str(cluster.folder / "run/munge/munge.sock"), "-n"],
        "mariadbd": ["mariadb-admin", "--no-defaults", "-S", str(cluster.folder / "db/mysqld.sock"), "ping"],
        "slurmdbd": ["sacctmgr", "-n", "show", "cluster"],
        "slurmctld": ["scontrol", "ping"],
    }[name]

    async def answered() -> str:
        ended = await call(cluster, argv, 5)
        if ended.exit_code == 0 and b"DOWN" not in ended.stdout:
            return ""
        return (ended.stderr + ended.stdout).decode(errors="replace").strip()[-500:] or "no answer"

    return answered


async def _listening(address: str, port: int) -> str:
    """A slurmd listens on the address of the machine's name alone, which may be 127.0.1.1."""
    try:
        stream = await anyio.connect_tcp(address, port)
    except OSError as error:
        return str(error)
    await stream.aclose()
    return ""
