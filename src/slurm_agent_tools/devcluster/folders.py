"""The folder of the cluster: its directories, owners, keys, fake devices and configuration files."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from slurm_agent_tools.devcluster import config_files, hostname
from slurm_agent_tools.devcluster.config_files import Choices
from slurm_agent_tools.devcluster.definition import SEARCH, Cluster, DevclusterError, is_root, readable_by
from slurm_agent_tools.transport import process

_OPEN = ("", "etc", "run", "run/munge", "log", "pids", "spool")

DAEMONS = "daemons.conf"

_LARGEST_LOG = 50 * 2**20  # bytes of a log that goes on at the next start

_CLOSED = ("state", "munge")


@contextlib.contextmanager
def written_by_us() -> Iterator[None]:
    """Whatever the caller's umask is: nobody else writes what is made meanwhile, and the cluster's users can read it.

    A record of ours says which processes are ended; what is for fewer readers is closed by itself.
    """
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def prepare(cluster: Cluster) -> None:
    """Make the directories, the key and the logs."""
    claimed = () if cluster.machine else ("dev", "home")  # what stands for devices and for people
    for name in (*_OPEN, *claimed, *_CLOSED):
        path = cluster.folder / name
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700 if name in _CLOSED or (not name and private(cluster)) else 0o755)
    for node in cluster.nodes:
        (cluster.folder / "spool" / node).mkdir(exist_ok=True)
    give(cluster.folder / "state", "slurm")
    give(cluster.folder / "munge", "munge")
    give(cluster.folder / "run/munge", "munge")
    _key(cluster.folder / "munge/munge.key")
    for log in (cluster.folder / "log").glob("*.log"):
        if log.stat().st_size > _LARGEST_LOG:  # nobody looks after the logs of a workstation
            log.replace(log.with_suffix(".log.old"))
    for name in ("slurmctld.log", "slurmdbd.log"):
        log = cluster.folder / "log" / name
        log.touch()
        give(log, "slurm")


def private(cluster: Cluster) -> bool:
    """Whether the cluster is for its own user alone: an ordinary user's workstation cannot run the jobs of others."""
    return cluster.machine is not None and not is_root()


def configure(cluster: Cluster, choices: Choices, cgroup_conf: str) -> None:
    """Write the whole configuration anew; nothing of an earlier one stays."""
    hostname.prepare(cluster)
    write(cluster, "slurm.conf", config_files.slurm_conf(cluster, choices, clients=True))
    if config_files.apart():
        write(cluster, DAEMONS, config_files.slurm_conf(cluster, choices))
    else:
        (cluster.folder / "etc" / DAEMONS).unlink(missing_ok=True)
    if config_files.prolog(cluster):
        write(cluster, "prolog", config_files.prolog(cluster), 0o755)
    if cluster.machine is None:
        write(cluster, "gres.conf", config_files.gres_conf(cluster, _devices(cluster)))
    else:
        write(cluster, "gres.conf", config_files.gres_files(cluster.machine))
    write(cluster, "cgroup.conf", cgroup_conf)
    if choices.accounting:
        file = write(cluster, "slurmdbd.conf", config_files.slurmdbd_conf(cluster), 0o600)
        give(file, "slurm")
    else:
        (cluster.folder / "etc/slurmdbd.conf").unlink(missing_ok=True)


def write(cluster: Cluster, name: str, text: str, mode: int = 0o644) -> Path:
    """Write a file of etc/."""
    path = cluster.folder / "etc" / name
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
    path.chmod(mode)
    return path


def give(path: Path, user: str) -> None:
    """Make `user` the owner, when this process is root; else everything belongs to its own user."""
    if is_root():
        shutil.chown(path, user, pwd.getpwnam(user).pw_gid)


async def people(cluster: Cluster, users: tuple[str, ...], say: Callable[[str], None]) -> None:
    """Make the users who submit (root only), their homes in the folder, and the project."""
    users = users if is_root() else (cluster.user,)
    if absent := [user for user in users if not _exists(user)]:
        who = " and ".join(absent)
        say(f"making {who}: ordinary users whom the demo and tests work as; your own jobs need no other user than you")
    for user in users:
        home = cluster.folder / "home" / user
        if not _exists(user):
            await _add(user, home)
        home.mkdir(exist_ok=True)
        give(home, user)
        home.chmod(0o700)
        if is_root():
            _profile(cluster, home)
    cluster.project.mkdir(exist_ok=True)
    give(cluster.project, cluster.user)
    if unread := unread_by(cluster.user):
        say(f"mind: the demo works as {cluster.user}, who cannot read {unread[0]}, and would fail; you can work")


def unread_by(user: str) -> list[Path]:
    """What a user would need of this program and cannot read, as where root installed it below /root."""
    return [path for path in (Path(sys.prefix), Path(__file__)) if not readable_by(user, path)]


def _profile(cluster: Cluster, home: Path) -> None:
    """Login shells begin with the system's PATH; as on many clusters, the profile puts another Slurm before it."""
    if cluster.bin_dir is not None:
        with contextlib.suppress(FileExistsError), (home / ".profile").open("x", encoding="utf-8") as file:
            file.write(f'PATH="{cluster.bin_dir}:$PATH"\nexport PATH\n')


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


async def _add(user: str, home: Path) -> None:
    argv = ["useradd", "-M", "-U", "-d", str(home), "-s", "/bin/bash", user]
    ended = await process.run(argv, env={"PATH": SEARCH}, timeout=30)
    if ended.exit_code != 0:
        raise DevclusterError(f"useradd {user} failed: {ended.stderr.decode(errors='replace').strip()}")


def _key(path: Path) -> None:
    if not path.exists() or not path.stat().st_size:
        path.touch(0o600)
        path.write_bytes(secrets.token_bytes(128))
    path.chmod(0o600)
    give(path, "munge")


def _devices(cluster: Cluster) -> str:
    """The path, less its number, of eight character devices: slurmd only looks at them and never opens one."""
    ours = cluster.folder / "dev" / "fakegpu"
    try:
        for number in range(8):
            path = Path(f"{ours}{number}")
            if not path.is_char_device():
                path.unlink(missing_ok=True)  # a plain file of an earlier configuration
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        if Path("/dev/tty7").is_char_device():
            return "/dev/tty"
        # Plain files: jobs run, but CUDA_VISIBLE_DEVICES is not set for them.
        for number in range(8):
            Path(f"{ours}{number}").touch()
    return str(ours)
