"""The packages that the devcluster needs, and their installation on Debian and Ubuntu."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio

from slurm_agent_tools.devcluster.definition import SEARCH, DevclusterError, is_root
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.transport import process

_HERE = Path(__file__).parent

TABLE, SCRIPT = _HERE / "packages.txt", _HERE / "install_packages.sh"

_LINE = ["sudo", "apt-get", "install", "-y", "--no-install-recommends", "--no-remove"]


@dataclass(frozen=True, slots=True)
class Need:
    """A program, or a file by its whole path with wildcards, and the package that brings it."""

    kind: str  # cluster, accounting, login, release, launchers, traces, pbs, metrics or browser
    program: str
    package: str

    def met(self) -> bool:
        """Whether this machine has it."""
        if self.program.startswith("/"):
            return any(Path("/").glob(self.program.lstrip("/")))
        return shutil.which(self.program, path=SEARCH) is not None


def needs() -> list[Need]:
    """All rows of the table that set-up reads as well."""
    rows = [line.split() for line in TABLE.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return [Need(*row[:3]) for row in rows]


def missing_packages(*, accounting: bool, release: bool = False, ssh: bool = False) -> list[str]:
    """The packages that are not there, without repetition; `release`: also those that unpack another Slurm."""
    wanted = {"cluster": True, "accounting": accounting, "release": release, "login": ssh}
    return list(dict.fromkeys(need.package for need in needs() if wanted.get(need.kind, False) and not need.met()))


async def ensure_packages(
    *, accounting: bool, yes: bool, say: Callable[[str], None], release: bool = False, ssh: bool = False
) -> None:
    """Install what is missing, after asking; DevclusterError with the line to run when this process may not.

    The services that come with the packages are neither started nor enabled.
    """
    packages = missing_packages(accounting=accounting, release=release, ssh=ssh)
    if not packages:
        return
    line = " ".join([*_LINE, *packages])
    if not is_root() or shutil.which("apt-get", path=SEARCH) is None:
        raise DevclusterError(f"these packages are missing: {' '.join(packages)}", hint=f"run: {line}")
    say(f"will install with apt-get: {' '.join(packages)} (up to 600 MB with what they need)")
    say("their services are neither started nor enabled")
    if not yes and not await _agreed():
        raise DevclusterError("nothing was installed", hint=f"run: {line}, or repeat with --yes")
    await _install(packages)
    still = missing_packages(accounting=accounting, release=release, ssh=ssh)
    if still:
        raise DevclusterError(f"apt-get said yes but these are still missing: {' '.join(still)}")


async def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    answer = await anyio.to_thread.run_sync(input, "Install them? [y/N] ")
    return answer.strip().lower() in {"y", "yes"}


async def _install(packages: list[str]) -> None:
    env = {**os.environ, "PATH": SEARCH}
    ended = await process.run(["sh", str(SCRIPT), *packages], env=env, timeout=1800)
    if ended.exit_code != 0:
        tail = (ended.stdout + ended.stderr).decode(errors="replace").strip().splitlines()[-15:]
        raise DevclusterError("\n".join([f"apt-get could not install {' '.join(packages)}:", *tail]))


# --- Debian's packages, unpacked into a folder and run from there -----------------------------------------------------


# The versions and Debian's releases that hold them.
RELEASES = {"24.11": "trixie", "26.05": "sid"}

_PACKAGES = (
    "slurmctld", "slurmd", "slurm-client", "slurmdbd", "slurm-wlm-mysql-plugin", "slurm-wlm-basic-plugins",
)  # fmt: skip

_PROGRAMS = (
    "slurmctld", "slurmd", "slurmdbd", "slurmstepd",
    "sacct", "sacctmgr", "salloc", "sattach", "sbatch", "sbcast", "scancel", "scontrol", "sdiag", "sinfo", "sprio",
    "squeue", "sreport", "srun", "sshare", "sstat",
)  # fmt: skip

Say = Callable[[str], None]


def default_cache() -> Path:
    """SLURM_AGENT_DEVCLUSTER_RELEASES, else a folder under /var/tmp (root) or ~/.cache."""
    named = os.environ.get("SLURM_AGENT_DEVCLUSTER_RELEASES")
    if named:
        return Path(named).absolute()
    if is_root():
        return Path("/var/tmp/slurm-agent-devcluster-releases")  # noqa: S108 - its owner is looked at
    return Path.home() / ".cache" / "slurm-agent-devcluster-releases"


def checked_release(version: str | None) -> str | None:
    """The version when it is one of those; InputError else."""
    if version is not None and version not in RELEASES:
        raise InputError("slurm", version, f"must be one of {', '.join(RELEASES)}, or left out")
    return version


def programs(version: str) -> Path:
    """The folder of a version's programs, there or not."""
    return default_cache().resolve() / version / "bin"


def plugins(bin_dir: Path) -> Path:
    """Where the plugins of these programs are."""
    found = sorted(bin_dir.parent.glob("lib/*/slurm-wlm"))
    if not found:
        raise DevclusterError(f"{bin_dir.parent} holds no plugins of Slurm", hint="delete it, it is made again")
    return found[0]


async def ensure_release(version: str, say: Say) -> Path:
    """Build a version unless it is there; returns the folder of its programs. DevclusterError when it cannot be."""
    ready = programs(version)
    if ready.is_dir() and ready.stat().st_uid in {0, os.geteuid()}:
        return ready
    with _locked(ready.parents[1]):
        if not ready.is_dir():
            begun = time.monotonic()
            say(f"unpacking Slurm {version} from Debian {RELEASES[version]} into {ready.parent}, once")
            await _build(version, ready.parent)
            say(f"unpacked after {time.monotonic() - begun:.0f} s")
    return ready


@contextlib.contextmanager
def _locked(cache: Path) -> Iterator[None]:
    """One process at a time builds, in a folder of our own: its programs are run as root."""
    cache.mkdir(parents=True, exist_ok=True)
    if cache.stat().st_uid != os.geteuid():
        raise DevclusterError(f"{cache} belongs to another user", hint="set SLURM_AGENT_DEVCLUSTER_RELEASES")
    cache.chmod(0o755)
    handle = os.open(cache / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


async def _build(version: str, target: Path) -> None:
    draft = target.with_name(f"{version}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    try:
        await _done(_unpacking(version, draft / "all", await _archive()))
        (draft / "all/usr/lib").rename(draft / "lib")
        (draft / "bin").mkdir()
        for name in _PROGRAMS:
            shutil.copy(_found(draft / "all", name), draft / "bin" / name)
        await _done(_patching(draft, target))
        shutil.rmtree(draft / "all")
        draft.rename(target)
        await _same(version, target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _unpacking(version: str, where: Path, archive: str) -> list[str]:
    # The extract variant unpacks packages and runs nothing of them. A release that is never frozen may be served with
    # an expired date by a mirror that lags; its signatures are checked all the same.
    return [
        "mmdebstrap", "--quiet", "--variant=extract", "--mode=chrootless", "--format=directory",
        '--aptopt=APT::Install-Recommends "false"', '--aptopt=Acquire::Check-Valid-Until "false"',
        f"--include={','.join(_PACKAGES)}", RELEASES[version], str(where), archive,
    ]  # fmt: skip


def _found(root: Path, name: str) -> Path:
    """A program; Debian names some of them after the variant of the package."""
    places = [root / "usr" / folder / spelled for folder in ("bin", "sbin") for spelled in (name, f"{name}-wlm")]
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise DevclusterError(f"Debian's packages of Slurm hold no {name}")
    return found


def _patching(draft: Path, target: Path) -> list[str]:
    """Loader and libraries by their final path. RPATH and not RUNPATH: plugins find their libraries by it too."""
    plugin = plugins(draft / "bin").relative_to(draft)
    libraries = plugin.parent
    loader = sorted((draft / libraries).glob("ld-linux*.so.*"))
    if not loader:
        raise DevclusterError("Debian's packages hold no loader for this machine")
    return [
        "patchelf", "--set-interpreter", str(target / libraries / loader[0].name), "--force-rpath",
        "--set-rpath", f"{target / plugin}:{target / libraries}", *(str(draft / "bin" / name) for name in _PROGRAMS),
    ]  # fmt: skip


async def _archive() -> str:
    """The address of Debian's archive that this machine uses."""
    words = ["apt-get", "indextargets", "--format", "$(LABEL)|$(REPO_URI)", "Created-By: Packages"]
    rows = (await _done(words)).splitlines()
    for row in rows:
        label, _, address = row.partition("|")
        if label == "Debian":
            return address
    raise DevclusterError(
        "apt knows no archive of Debian on this machine", hint="leave --slurm out to use the distribution's own"
    )


async def _same(version: str, target: Path) -> None:
    """A release that is never frozen may hold another version by now."""
    said = await _done([str(target / "bin/slurmctld"), "-V"])
    if not said.startswith(f"slurm-wlm {version}.") and not said.startswith(f"slurm {version}."):
        shutil.rmtree(target)
        raise DevclusterError(f"Debian {RELEASES[version]} holds {said.strip()} and no {version} any more")


async def _done(argv: list[str]) -> str:
    env = {"PATH": SEARCH, "LANG": "C.UTF-8", "HOME": "/nonexistent"}
    try:
        ended = await process.run(argv, env=env, timeout=1800)
    except FileNotFoundError as error:
        raise DevclusterError(f"{argv[0]} is not installed") from error
    if ended.exit_code != 0:
        tail = (ended.stdout + ended.stderr).decode(errors="replace").strip().splitlines()[-15:]
        raise DevclusterError("\n".join([f"{argv[0]} failed:", *tail]))
    return ended.stdout.decode(errors="replace")
