"""The devcluster's own login node: OpenSSH's sshd on loopback, its keys and known_hosts in the folder."""

from __future__ import annotations

import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from slurm_agent_tools.devcluster import accounting_database, folders, processes, slurm_daemons
from slurm_agent_tools.devcluster.definition import SEARCH, Cluster, DevclusterError, is_root, me
from slurm_agent_tools.transport import process

NAME = "sshd"

_PARTS = Path("/run/sshd")  # where root's sshd shuts its unprivileged part in (sshd(8))


@dataclass(frozen=True, slots=True)
class LoginNode:
    """What a client needs: `ssh -F config HOST` logs the user in."""

    host: str
    port: int
    config: Path
    known_hosts: Path
    key: Path


def login_node(cluster: Cluster) -> LoginNode:
    """The client's side of this cluster's sshd, up or not."""
    folder = cluster.folder / "ssh"
    return LoginNode("devcluster", cluster.ssh_port, folder / "config", folder / "known_hosts", folder / "id_ed25519")


async def up(cluster: Cluster) -> LoginNode:
    """Start sshd and wait until it answers. As an ordinary user it lets in that user alone. DevclusterError."""
    if shutil.which("sshd", path=SEARCH) is None:
        raise DevclusterError("sshd is not installed", hint="run: sudo apt-get install openssh-server")
    with folders.written_by_us():
        await write(cluster)
        await slurm_daemons.start(cluster, NAME)
    await slurm_daemons.ready(cluster, NAME)
    return login_node(cluster)


async def write(cluster: Cluster) -> None:
    """Make keys and configuration; keys that are there stay."""
    folder = cluster.folder / "ssh"
    _make(folder)
    host, key = folder / "host_ed25519", login_node(cluster).key
    for path in (host, key):
        if not _there(path):
            await _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)])
    folders.give(key, cluster.user)
    public = host.with_suffix(".pub").read_text(encoding="ascii").split()
    _put(folder / "known_hosts", f"[127.0.0.1]:{cluster.ssh_port} {public[0]} {public[1]}\n")
    if not _there(folder / "authorized_keys"):
        _put(folder / "authorized_keys", key.with_suffix(".pub").read_text(encoding="ascii"))
    _put(folder / "config", client_config(cluster))
    if is_root():
        _make(_PARTS)
        for user in accounting_database.USERS:
            if _locked(user):
                await _run(["usermod", "-p", "*", user])
    _put(folder / "sshd_config", server_config(cluster))


async def stop(cluster: Cluster) -> None:
    """End sshd and every session of it."""
    open_sessions = sessions(cluster)
    await slurm_daemons.stop(cluster, NAME)
    for pid in reversed(open_sessions):
        processes.kill(pid, signal.SIGKILL)


async def restart(cluster: Cluster) -> None:
    """As a login node that is rebooted: all sessions end, then it answers again."""
    await stop(cluster)
    await up(cluster)


def sessions(cluster: Cluster) -> list[int]:
    """The processes below sshd: one for each connection, then what runs in it; parents first."""
    pid = processes.running(cluster, NAME)
    return [] if pid is None else processes.trees([pid])[1:]


def server_config(cluster: Cluster) -> str:
    """sshd_config(5). Without PAM, so that it works for an ordinary user; keys only."""
    folder = cluster.folder / "ssh"
    users = accounting_database.USERS if is_root() else (me(),)
    head = f"""\
Port {cluster.ssh_port}
ListenAddress 127.0.0.1
HostKey {folder}/host_ed25519
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
AllowUsers {" ".join(users)}
MaxStartups 100:30:200
PrintMotd no
UseDNS no
X11Forwarding no
AllowAgentForwarding no
Subsystem sftp internal-sftp
"""
    set_up = " ".join(f"{name}={value}" for name, value in cluster.environment().items())
    homes = {user: cluster.folder / "home" / user for user in users if is_root()}
    if not homes:
        return head + f"SetEnv {set_up}\n"
    return head + "".join(f"Match User {user}\n  SetEnv {set_up} HOME={home}\n" for user, home in homes.items())


def client_config(cluster: Cluster) -> str:
    """ssh_config(5) for clients on this machine."""
    found = login_node(cluster)
    return f"""\
Host {found.host}
  HostName 127.0.0.1
  Port {found.port}
  User {cluster.user}
  IdentityFile {found.key}
  IdentitiesOnly yes
  UserKnownHostsFile {found.known_hosts}
  StrictHostKeyChecking yes
"""


def _make(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)


def _there(path: Path) -> bool:
    return path.exists()


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)


def _locked(user: str) -> bool:
    """Without PAM sshd refuses accounts whose password is `!`; `*` means as well that no password fits."""
    shadow = Path("/etc/shadow").read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.startswith(f"{user}:!:") for line in shadow)


async def _run(argv: list[str]) -> None:
    ended = await process.run(argv, env={"PATH": SEARCH}, timeout=30)
    if ended.exit_code != 0:
        raise DevclusterError(f"{argv[0]} failed: {ended.stderr.decode(errors='replace').strip()}")
