"""A bare Debian in a folder: made, entered as often as wanted, thrown away.

FOLDER/system        as the distribution's smallest, with Python, make, git and certificates, and a clone in /src
FOLDER/layers/NAME   what was changed in there since, when it was to be kept
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cgroups
import clients

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ca-certificates", "python3", "make", "git")
NEWCOMER = "newcomer"  # an ordinary user, with a clone of their own
LOOPBACK = "127.0.1.1"  # what Debian's installer lets a machine's name stand for
_SEARCH = "/usr/sbin:/usr/bin:/sbin:/bin"
_NEEDED = {"mmdebstrap": "mmdebstrap", "git": "git", "unshare": "util-linux", "setpriv": "util-linux"}


class CannotBeMadeError(Exception):
    """No bare system on this machine; the message says why."""


@dataclass(frozen=True)
class View:
    """What a command in the system meets: its user, the machine's cgroups and name, and which changes stay."""

    user: str = "root"
    cgroup: str | None = None  # one of cgroups.LAYOUTS; None: as this machine has them
    address: str = LOOPBACK  # what the name of the machine stands for
    over: str | None = None  # begin with the changes of this layer
    layer: str | None = None  # keep the changes in this one; None: throw them away


def make(folder: Path) -> None:
    """Make the system in an empty folder, with a clone of what is committed here. CannotBeMadeError."""
    _prepare()
    _try_mounts(folder)
    system = folder / "system"
    argv = [
        "mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", *_apt_options(),
        "", str(system), *_sources(),
    ]  # fmt: skip
    _done(argv)
    _done(["chroot", str(system), "useradd", "--create-home", "--shell", "/bin/bash", NEWCOMER])
    _clone(folder, system)
    binds = clients.configure(system, {system / "root": 0, system / "home" / NEWCOMER: _newcomer(system)})
    (folder / "binds").write_text("".join(f"{place}\n" for place in binds), encoding="utf-8")


def remove(folder: Path) -> None:
    """Delete it, and what is left of the cgroups of runs that ended."""
    shutil.rmtree(folder, ignore_errors=False)
    cgroups.sweep()


def enter(folder: Path, argv: list[str], view: View, variables: Mapping[str, str] | None = None) -> int:
    """Run a command in the system, in the clone of its user, until it ends; its exit code.

    When it has ended, or this process is killed, so has everything that it started; no mount is left.
    """
    layout = view.cgroup or cgroups.layout()
    if reason := cgroups.why_not(layout):
        raise CannotBeMadeError(reason)
    with tempfile.TemporaryDirectory(prefix="entered-", dir=folder) as name:
        upper = folder / "layers" / view.layer if view.layer else Path(name) / "layer"
        for part in (upper / "changes", upper / "work", Path(name) / "point"):
            part.mkdir(parents=True, exist_ok=True)
        if view.over:
            (upper / "over").write_text(view.over, encoding="utf-8")
        words = [
            *("setpriv", "--pdeathsig", "KILL"),
            *("unshare", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--fork", "--kill-child=KILL"),
            *("bash", str(Path(__file__).with_name("enter.sh")), f"{name}/point", _lower(folder, upper)),
            *(str(upper / "changes"), str(upper / "work"), layout, view.address, str(folder / "binds"), "--"),
            *_as_user(view.user, variables or {}),
            *argv,
        ]
        children = cgroups.make()
        process = subprocess.Popen(words, preexec_fn=lambda: cgroups.enter(children))  # noqa: PLW1509 - one thread
        try:
            return process.wait()
        finally:
            process.kill()
            process.wait()
            cgroups.sweep()


def command_line(folder: Path, argv: Sequence[str], view: View, variables: Mapping[str, str]) -> list[str]:
    """How a process of its own does what `enter` does; scripts/bare/__main__.py reads it."""
    told = {"--cgroup": view.cgroup, "--over": view.over, "--layer": view.layer}
    options = [word for option, value in told.items() if value is not None for word in (option, value)]
    options += [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
    words = ["enter", str(folder), "--user", view.user, "--host-address", view.address, *options, "--", *argv]
    return [sys.executable, str(Path(__file__).parent), *words]


def _as_user(user: str, variables: Mapping[str, str]) -> list[str]:
    """The start of a command line: the clone of that user, the user, and a fresh environment."""
    home, clone = ("/root", "/src") if user == "root" else (f"/home/{user}", f"/home/{user}/src")
    fresh = {"PATH": _SEARCH, "HOME": home, "USER": user, "LANG": "C.UTF-8"} | clients.variables() | dict(variables)
    switch = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
    return ["env", "-i", "-C", clone, *(f"{key}={value}" for key, value in fresh.items()), *switch]


def _lower(folder: Path, upper: Path) -> str:
    """The folders below a layer, the nearest first, in the words of overlayfs."""
    found, layer = [], upper
    while (layer / "over").exists():
        layer = folder / "layers" / (layer / "over").read_text(encoding="utf-8")
        found.append(str(layer / "changes"))
    return ":".join([*found, str(folder / "system")])


def _prepare() -> None:
    """Have the programs that are needed."""
    if os.geteuid() != 0:
        raise CannotBeMadeError("only root can make one")
    missing = sorted({package for program, package in _NEEDED.items() if shutil.which(program) is None})
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise CannotBeMadeError(f"{', '.join(missing)} is not installed")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wait = ["-o", "DPkg::Lock::Timeout=300"]
    _done(["apt-get", "update", "-q"], env)
    _done(["apt-get", "install", "-y", "-q", "--no-install-recommends", *wait, *missing], env)


def _try_mounts(folder: Path) -> None:
    """Namespaces and an overlay, of which containers often have none."""
    with tempfile.TemporaryDirectory(prefix="tried-", dir=folder) as name:
        for part in ("lower", "upper", "work", "point"):
            (Path(name) / part).mkdir()
        options = f"lowerdir={name}/lower,upperdir={name}/upper,workdir={name}/work"
        spaces = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--fork", "--kill-child=KILL"]
        _done([*spaces, "mount", "-t", "overlay", "-o", options, "none", f"{name}/point"])


def _sources() -> list[str]:
    """The files of this machine's own package sources: those of its distribution, not what was added."""
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    ours = next(shlex.split(line.partition("=")[2])[0] for line in lines if line.startswith("ID="))
    words = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(SOURCESENTRY)", "Created-By: Packages"]
    rows = [row.partition("|") for row in _done(words).splitlines()]
    files = [entry.rpartition(":")[0] for origin, _, entry in rows if origin.lower() == ours]
    if not files:
        raise CannotBeMadeError("apt knows no packages of this distribution; run: apt-get update")
    return list(dict.fromkeys(files))


def _apt_options() -> list[str]:
    """How this machine reaches its package sources, where that is configured."""
    lines = _done(["apt-config", "dump"]).splitlines()
    wanted = ("Acquire::http::", "Acquire::https::", "Acquire::Check-Valid-Until")
    return [f"--aptopt={line}" for line in lines if line.startswith(wanted)]


def _clone(folder: Path, system: Path) -> None:
    """What is committed, once for root and once for the ordinary user."""
    # A checkout of another user is refused by git unless a configuration says that it is meant.
    trust = folder / "gitconfig"
    trust.write_text("[safe]\n\tdirectory = *\n", encoding="utf-8")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": str(trust)}
    _done(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(system / "src")], env)
    theirs = system / "home" / NEWCOMER / "src"
    shutil.copytree(system / "src", theirs, symlinks=True)
    number = _newcomer(system)
    for place, folders, files in os.walk(theirs):
        for name in (".", *folders, *files):
            os.chown(Path(place) / name, number, number, follow_symlinks=False)


def _newcomer(system: Path) -> int:
    """The number of the ordinary user and of their group."""
    lines = (system / "etc/passwd").read_text(encoding="utf-8").splitlines()
    return next(int(line.split(":")[2]) for line in lines if line.startswith(f"{NEWCOMER}:"))


def _done(argv: list[str], env: Mapping[str, str] | None = None) -> str:
    """What a command printed. CannotBeMadeError with its last words when it failed."""
    ended = subprocess.run(argv, env=env, check=False, capture_output=True, text=True)
    if ended.returncode != 0:
        tail = "\n".join((ended.stdout + ended.stderr).strip().splitlines()[-10:])
        raise CannotBeMadeError(f"{shlex.join(argv[:2])} failed: {tail}")
    return ended.stdout
