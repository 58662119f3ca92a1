"""The packages that the devcluster needs, and their installation on Debian and Ubuntu."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio

from slurm_agent_tools import process
from slurm_agent_tools.devcluster import releases
from slurm_agent_tools.devcluster.place import SEARCH, DevclusterError, is_root

_BASE = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "scontrol": "slurm-wlm", "munged": "munge"}
_STORED = {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server", "mariadb-install-db": "mariadb-server"}
_LOGIN = {"sshd": "openssh-server", "ssh-keygen": "openssh-client"}
POLICY = Path("/usr/sbin/policy-rc.d")
_PLUGIN = "slurm-wlm-mysql-plugin"  # slurmdbd needs it and only recommends it
# --no-remove: MariaDB and MySQL exclude each other, and a database that is there must stay.
_INSTALL = ["apt-get", "install", "-y", "--no-install-recommends", "--no-remove"]
_SERVICES = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "munged": "munge",
    "slurmdbd": "slurmdbd",
    "mariadbd": "mariadb",
    "sshd": "ssh",
}
_GUARD = "#!/bin/sh\n# Made by slurm-agent-tools while it installs packages: no service is started.\nexit 101\n"


def missing(*, accounting: bool, release: bool = False, ssh: bool = False) -> list[str]:
    """The packages that are not there, without repetition; `release`: also those that unpack another Slurm."""
    wanted = _BASE | (_STORED if accounting else {}) | (releases.TOOLS if release else {}) | (_LOGIN if ssh else {})
    packages = [package for program, package in wanted.items() if shutil.which(program, path=SEARCH) is None]
    if accounting and not any(Path("/usr/lib").glob("*/slurm*/accounting_storage_mysql.so")):
        packages.append(_PLUGIN)
    return list(dict.fromkeys(packages))


async def ensure(
    *, accounting: bool, yes: bool, say: Callable[[str], None], release: bool = False, ssh: bool = False
) -> None:
    """Install what is missing, after asking; DevclusterError with the line to run when this process may not.

    The services that come with the packages are neither started nor enabled.
    """
    packages = missing(accounting=accounting, release=release, ssh=ssh)
    if not packages:
        return
    line = " ".join(["sudo", *_INSTALL, *packages])
    if not is_root() or shutil.which("apt-get", path=SEARCH) is None:
        raise DevclusterError(f"these packages are missing: {' '.join(packages)}", hint=f"run: {line}")
    say(f"will install with apt-get: {' '.join(packages)} (up to 600 MB with what they need)")
    say("their services are neither started nor enabled")
    if not yes and not await _agreed():
        raise DevclusterError("nothing was installed", hint=f"run: {line}, or repeat with --yes")
    services = [service for program, service in _SERVICES.items() if shutil.which(program, path=SEARCH) is None]
    with _nothing_started():
        await _root(["apt-get", "update"])
        try:
            await _root([*_INSTALL, *packages])
        finally:
            await _disable(services)
    still = missing(accounting=accounting, release=release, ssh=ssh)
    if still:
        raise DevclusterError(f"apt-get said yes but these are still missing: {' '.join(still)}")


async def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    answer = await anyio.to_thread.run_sync(input, "Install them? [y/N] ")
    return answer.strip().lower() in {"y", "yes"}


@contextlib.contextmanager
def _nothing_started() -> Iterator[None]:
    """Packages ask /usr/sbin/policy-rc.d before they start a service (Debian's invoke-rc.d); 101 means: do not."""
    # One with our words was left by a run that was killed.
    if POLICY.exists() and POLICY.read_text(encoding="utf-8", errors="replace") != _GUARD:
        yield
        return
    POLICY.write_text(_GUARD, encoding="ascii")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)


async def _disable(services: list[str]) -> None:
    """Packages enable their services for the next start of the machine; take that back for those that came now."""
    for link in links(services):
        link.unlink(missing_ok=True)
    with anyio.CancelScope(shield=True):
        for name in _scripts(services):
            await _root(["update-rc.d", name, "disable"])


def links(services: list[str], units: Path = Path("/etc/systemd/system")) -> list[Path]:
    """The links by which systemd's services are enabled: wanted ones and other names, not a mask (systemctl(1))."""
    names = {f"{name}.service" for name in services}
    return [path for path in sorted(units.rglob("*.service")) if path.is_symlink() and path.readlink().name in names]


def _scripts(services: list[str]) -> list[str]:
    return [name for name in services if Path(f"/etc/init.d/{name}").exists()]


async def _root(argv: list[str]) -> None:
    env = {**os.environ, "PATH": SEARCH, "DEBIAN_FRONTEND": "noninteractive"}
    ended = await process.run(argv, env=env, timeout=1800)
    if ended.exit_code != 0:
        tail = (ended.stdout + ended.stderr).decode(errors="replace").strip().splitlines()[-15:]
        raise DevclusterError("\n".join([f"{' '.join(argv)} failed:", *tail]))
