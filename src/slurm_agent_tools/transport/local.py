"""The seam on this machine: Slurm's own commands, the local file system, the system's clock."""

from __future__ import annotations

import errno
import getpass
import os
import posixpath
import secrets
import shutil
import stat as modes
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TypeVar

import anyio.to_thread

from slurm_agent_tools.errors import SlurmMissing, SlurmUnconfigured, StorageError
from slurm_agent_tools.settings import Settings, SlurmSettings
from slurm_agent_tools.text import log_events, safe_open
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.base import (
    SLURM_COMMANDS,
    Completed,
    LoginEnvironment,
    OnOutput,
    Runner,
    Stat,
    command_environment,
)

_log = log_events.get_logger()

T = TypeVar("T")

_NO_FILE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO}  # the last: a pipe that nobody reads
_LOOKS = 20
_UNCONFIGURED = b": Could not establish a configuration source"


class LocalRunner:
    """Runs commands in an environment built from an allow-list, so that SQUEUE_FORMAT and its kin change nothing."""

    def __init__(self, settings: Settings) -> None:
        self._bin_dir = settings.slurm.bin_dir
        self._base = command_environment(os.environ, settings.slurm.conf)
        self._base["PATH"] = process.search_path(os.environ.get("PATH", os.defpath), settings.project_root)

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = 10.0,  # noqa: ASYNC109 - the limit of the command
        max_output: int = 64 * 2**20,
        on_output: OnOutput | None = None,
    ) -> Completed:
        """Run one command; `env` is added to the allow-list. Raises SlurmMissing and SlurmUnconfigured."""
        program = self._find(argv[0])
        try:
            ended = await process.run(
                [program, *argv[1:]], stdin=stdin, env=self._base | dict(env or {}), cwd=cwd, timeout=timeout,
                max_output=max_output, on_output=on_output,
            )  # fmt: skip
        except OSError as error:
            raise SlurmMissing(
                f"{argv[0]} cannot be run: {error.strerror}", hint="Check slurm.bin_dir and the project folder."
            ) from error
        _log.debug("slurm command", command=argv[0], words=list(argv[1:3]), exit_code=ended.exit_code,
                   seconds=round(ended.seconds, 4))  # fmt: skip
        if ended.exit_code and argv[0] in SLURM_COMMANDS and _UNCONFIGURED in ended.stderr:
            self._tell_unconfigured()
        return Completed(tuple(argv), ended.exit_code, ended.stdout, ended.stderr, ended.seconds, ended.truncated)

    def _tell_unconfigured(self) -> None:
        """Raises SlurmUnconfigured where nothing names a configuration; one that is named may come back by itself."""
        from slurm_agent_tools.settings import devcluster_place, workstation_place  # noqa: PLC0415 - for this failure alone

        if "SLURM_CONF" not in self._base and not workstation_place.other_slurm():
            raise SlurmUnconfigured(
                "Slurm's commands find no configuration: SLURM_CONF is not set for this process, and this machine has"
                " no /etc/slurm/slurm.conf.",
                hint=devcluster_place.where_unconfigured(),
            )

    def _find(self, name: str) -> str:
        if self._bin_dir is not None and name in SLURM_COMMANDS:
            path = self._bin_dir / name
            if os.access(path, os.X_OK):
                return str(path)
        else:
            found = shutil.which(name, path=self._base["PATH"])
            if found is not None:
                return found
        from slurm_agent_tools.settings import devcluster_place, workstation_place  # noqa: PLC0415 - for this failure alone

        raise SlurmMissing(
            f"{name} is not installed here",
            hint=f"{devcluster_place.hint()}On Linux, {workstation_place.offer()}."
            " Else work on a machine with Slurm's commands, or set slurm.bin_dir.",
        )


class LocalFiles:
    """Files of this machine, read and written in worker threads."""

    async def stat(self, path: str) -> Stat | None:
        """Follows links; None when there is nothing."""
        return await _threaded(path, lambda: _stat(path))

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes | None:
        """Bytes from `offset`; None when there is no regular file. Links in the path are not followed."""
        found = await _threaded(path, lambda: _read(path, [(offset, size)]))
        return None if found is None else found[0]

    async def read_parts(self, path: str, parts: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """Several parts (offset, size) of one regular file, opened once; None when there is none."""
        return await _threaded(path, lambda: _read(path, parts))

    async def write_new(self, path: str, data: bytes, *, mode: int = 0o600) -> bool:
        """Write atomically, never over an existing file: False when the name is taken."""
        return await _threaded(path, lambda: _write_new(path, data, mode))

    async def append(self, path: str, data: bytes) -> bool:
        """Add at the end of a regular file of one name, all or nothing; False where there is none."""
        return await _threaded(path, lambda: _append(path, data))

    async def write_over(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Write a whole file in place of the file that is there, in one step: nobody ever sees half of it."""
        await _threaded(path, lambda: _write_over(path, data, mode))

    async def move_over(self, path: str, target: str, *, mode: int = 0o600) -> None:
        """Give a whole file in the same folder the name `target`, in place of the file that is there, in one step."""
        await _threaded(path, lambda: _move_over(path, target, mode))

    async def link_over(self, path: str, leads: str) -> None:
        """Make a symbolic link in place of the file or link that is there, in one step."""
        await _threaded(path, lambda: _link_over(path, leads))

    async def remove(self, path: str) -> bool:
        """Remove one file or link, never a folder; False where there is none."""
        return await _threaded(path, lambda: safe_open.remove(path))

    async def make_folder(self, path: str) -> None:
        """Make a folder and those above it; one that is there is fine."""
        await _threaded(path, lambda: _make_folder(path))

    async def list(self, folder: str) -> list[str] | None:
        """Names in a folder, sorted; None when there is none."""
        return await _threaded(folder, lambda: sorted(os.listdir(folder)) if os.path.isdir(folder) else None)  # noqa: PTH208, PTH112

    async def real_path(self, path: str) -> str:
        """Absolute, every link resolved, also for what does not exist yet."""
        return await _threaded(path, lambda: _resolved(path))


class LocalTransport:
    """This machine."""

    def __init__(self, settings: Settings, slurm: SlurmSettings) -> None:
        self.runner: Runner = LocalRunner(settings.model_copy(update={"slurm": slurm}))
        self.files = LocalFiles()
        self._root, self._conf = settings.project_root, slurm.conf

    @property
    def key(self) -> str:
        """The path of the configuration file, which is known also while Slurm does not answer."""
        named = self._conf or os.environ.get("SLURM_CONF")
        return str(Path(named).resolve()) if named else "default"

    def notes(self) -> tuple[str, ...]:
        """What does not hold here, a sentence each: nothing is known of a Slurm that others run."""
        return ()

    def refused(self) -> str:
        """What this user can do instead, where it is known that the cluster refuses its jobs; else empty."""
        return ""

    async def login_environment(self) -> LoginEnvironment:
        """This process's own user, the project folder and the environment."""
        return LoginEnvironment(user_name(), str(self._root.resolve()), dict(os.environ))

    async def close(self) -> None:
        """Nothing is held."""


def user_name() -> str:
    """The process's own user, as Slurm names it; the environment's USER and LOGNAME are only words."""
    try:
        import pwd  # noqa: PLC0415 - not everywhere
    except ImportError:
        return getpass.getuser()
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


class SystemClock:
    """The system's clock."""

    def now(self) -> datetime:
        """UTC now."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)


def _resolved(path: str) -> str:
    """Of a link that is exchanged for a file meanwhile realpath fails with EINVAL, since it looks at a name twice."""
    for _ in range(_LOOKS):
        try:
            return os.path.realpath(path)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
    return os.path.realpath(path)


async def _threaded(path: str, work: Callable[[], T]) -> T:
    try:
        return await anyio.to_thread.run_sync(work)
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if isinstance(error, OSError) and error.errno == errno.ELOOP:  # links were resolved before
            what = "a link took its place meanwhile"
        raise StorageError(
            f"{path}: {what}", hint="Check the path, its permissions and the free disk space."
        ) from error


def _anothers(found: os.stat_result) -> bool:
    """Whether a file is one of several names of another user's file: it may lie anywhere, and be anything of theirs.

    One's own file, and one of root's that can be read, is open to whoever could make such a name.
    """
    ours = {0, os.geteuid()} if hasattr(os, "geteuid") else {found.st_uid}
    return found.st_nlink > 1 and modes.S_ISREG(found.st_mode) and found.st_uid not in ours


def _stat(path: str) -> Stat | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - Path.stat would do the same
    except (FileNotFoundError, NotADirectoryError):
        return None
    kind = "file" if modes.S_ISREG(found.st_mode) else "dir" if modes.S_ISDIR(found.st_mode) else "other"
    kind = "linked" if _anothers(found) else kind
    version = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
    return Stat(found.st_size, kind, datetime.fromtimestamp(found.st_mtime, UTC), found.st_uid, found.st_mode, version)


def _read(path: str, parts: Sequence[tuple[int, int | None]]) -> list[bytes] | None:
    """Parts (offset, size) of a regular file, None for its rest; None where there is none."""
    file = _opened(path)
    if file is None:
        return None
    found = []
    with file:
        for offset, size in parts:
            file.seek(offset)
            found.append(file.read(-1 if size is None else size))
    return found


def _opened(path: str) -> BinaryIO | None:
    """A regular file, open to read; None where there is none."""
    try:
        handle = safe_open.open_file(path)
    except (FileNotFoundError, NotADirectoryError, safe_open.NotStored):
        return None
    if _anothers(os.fstat(handle)):
        os.close(handle)
        return None
    return open(handle, "rb")  # noqa: PTH123 - the callers close it


def _write_new(path: str, data: bytes, mode: int) -> bool:
    place, name = posixpath.split(path)
    draft = f".{name[:100]}.{secrets.token_hex(4)}.tmp"
    with safe_open.folder(place, make=True) as folder:
        nameless = safe_open.create_nameless(folder, mode)
        if nameless is not None:
            with open(nameless, "wb") as file:  # noqa: PTH123
                _fill(file, data)
                return safe_open.name_it(folder, file.fileno(), name)
        with safe_open.dropped(folder, draft):
            with open(safe_open.create(folder, draft, mode), "wb") as file:  # noqa: PTH123
                _fill(file, data)
            return safe_open.take(folder, draft, name)


def _draft(name: str) -> str:
    return f".{name[:50]}.{secrets.token_hex(4)}.tmp"


def _write_over(path: str, data: bytes, mode: int) -> None:
    place, name = posixpath.split(path)
    draft = _draft(name)
    with safe_open.folder(place, make=True) as folder, safe_open.dropped(folder, draft):
        with open(safe_open.create(folder, draft, mode), "wb") as file:  # noqa: PTH123
            _fill(file, data)
        safe_open.replace(folder, draft, name)


def _move_over(path: str, target: str, mode: int) -> None:
    place, name = posixpath.split(path)
    with safe_open.folder(place, make=False) as folder:
        safe_open.permit(folder, name, mode)
        safe_open.replace(folder, name, posixpath.basename(target))


def _link_over(path: str, leads: str) -> None:
    place, name = posixpath.split(path)
    draft = _draft(name)
    with safe_open.folder(place, make=True) as folder, safe_open.dropped(folder, draft):
        safe_open.link(folder, draft, leads)
        safe_open.replace(folder, draft, name)


def _fill(file: BinaryIO, data: bytes) -> None:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _append(path: str, data: bytes) -> bool:
    try:
        handle = safe_open.open_end(path)
    except OSError as error:
        if error.errno in _NO_FILE:
            return False
        raise
    try:
        found = os.fstat(handle)
        if not modes.S_ISREG(found.st_mode) or found.st_nlink > 1:  # a second name may lie anywhere
            return False
        before = found.st_size
        try:
            _write(handle, data)
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, before)
            raise
    finally:
        os.close(handle)
    return True


def _write(handle: int, data: bytes) -> None:
    """In one call, so that two writers do not mix. Raises OSError where not all of it fits."""
    if os.write(handle, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _make_folder(path: str) -> None:
    with safe_open.folder(path, make=True):
        pass
