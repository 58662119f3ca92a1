"""The address that the daemons listen on: the one in 127/8 that the machine's name stands for, or is made to, for them.

A daemon of Slurm that shall not listen everywhere listens on the address of the machine's name, and nowhere else. In
containers and on cloud machines that name stands for an address of a network. There the daemons, and they alone, see a
/etc/hosts of their own.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from slurm_agent_tools.devcluster.definition import SEARCH, Cluster, DevclusterError
from slurm_agent_tools.transport import process

_HOSTS, _SCRIPT = Path("/etc/hosts"), Path(__file__).with_name("with_hosts.sh")


def stands_for() -> str:
    """The IPv4 address of this machine's name, or `nothing`."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "nothing"


def is_loopback() -> bool:
    """Whether the name of this machine stands for an address in 127/8."""
    return stands_for().startswith("127.")


def loopback() -> str:
    """The address in 127/8 that the daemons listen on."""
    return stands_for() if is_loopback() else "127.0.0.1"


async def check() -> None:
    """DevclusterError, with the line to add, where the daemons can be given no address in 127/8."""
    if is_loopback():
        return
    ended = await process.run(["sh", str(_SCRIPT), str(_HOSTS), "true"], env={"PATH": SEARCH}, timeout=30)
    if ended.exit_code != 0:
        name = socket.gethostname()
        raise DevclusterError(
            f"the name of this machine, {name}, stands for {stands_for()}, and a private Slurm is on loopback only",
            hint=f"put the line `127.0.0.1 {name}` at the top of /etc/hosts",
        )


def own_hosts(text: str, name: str) -> str:
    """The text of /etc/hosts with a name that stands for 127.0.0.1 alone."""
    ours = dict.fromkeys([name, name.split(".", maxsplit=1)[0]])
    lines = [f"127.0.0.1 {' '.join(ours)}"]
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        kept = [other for other in names if other not in ours]
        lines += [" ".join([address, *kept])] if kept else []
    return "\n".join(lines) + "\n"


def prepare(cluster: Cluster) -> None:
    """Write the hosts file that the daemons see, or take one away that is not needed any more."""
    if is_loopback():
        cluster.hosts.unlink(missing_ok=True)
        return
    text = _HOSTS.read_text(encoding="utf-8", errors="replace")
    cluster.hosts.write_text(own_hosts(text, socket.gethostname()), encoding="utf-8")
    cluster.hosts.chmod(0o644)


def seeing(cluster: Cluster, name: str, argv: Sequence[str]) -> list[str]:
    """The argument vector of a daemon, with its own hosts file where there is one. The process stays the same one."""
    if not name.startswith("slurm") or not cluster.hosts.exists():
        return list(argv)
    return ["sh", str(_SCRIPT), str(cluster.hosts), *argv]
