"""The seam on this machine: Slurm's own commands, the local file system, the system's clock."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat as modes
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import structlog

from slurm_agent_tools import process
from slurm_agent_tools.config import Settings
from slurm_agent_tools.errors import SlurmMissing, StorageError
from slurm_agent_tools.slurm.runner import Completed, Stat

_PASSED = ("PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "TZ")
_log = structlog.get_logger()
T = TypeVar("T")


class LocalRunner:
    """Runs commands in an environment built from an allow-list, so that SQUEUE_FORMAT and its kin change nothing."""

    def __init__(self, settings: Settings) -> None:
        self._bin_dir = settings.slurm.bin_dir
        self._base = {name: os.environ[name] for name in _PASSED if name in os.environ}
        # SLURM_BITSTR_LEN=0: squeue cuts the ids of a long pending array in the middle unless told not to.
        self._base |= {"LC_ALL": "C.UTF-8", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
        if settings.slurm.conf is not None:
            self._base["SLURM_CONF"] = str(settings.slurm.conf)

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = 10.0,  # noqa: ASYNC109 - the limit of the command
        max_output: int = 64 * 2**20,
    ) -> Completed:
        """Run one command; `env` is added to the allow-list. Raises SlurmMissing."""
        program = self._find(argv[0])
        try:
            ended = await process.run(
                [program, *argv[1:]], stdin=stdin, env=self._base | dict(env or {}), cwd=cwd, timeout=timeout,
                max_output=max_output,
            )  # fmt: skip
        except OSError as error:
            raise SlurmMissing(
                f"{argv[0]} cannot be run: {error.strerror}", hint="Check slurm.bin_dir and the project folder."
            ) from error
        _log.debug("slurm command", command=argv[0], words=list(argv[1:3]), exit_code=ended.exit_code,
                   seconds=round(ended.seconds, 4))  # fmt: skip
        return Completed(tuple(argv), ended.exit_code, ended.stdout, ended.stderr, ended.seconds, ended.truncated)

    def _find(self, name: str) -> str:
        if self._bin_dir is not None:
            path = self._bin_dir / name
            if os.access(path, os.X_OK):
                return str(path)
        else:
            found = shutil.which(name, path=self._base.get("PATH"))
            if found is not None:
                return found
        raise SlurmMissing(
            f"{name} is not installed here", hint="Work on a machine with Slurm's commands, or set slurm.bin_dir."
        )


class LocalFiles:
    """Files of this machine, read and written in worker threads."""

    async def stat(self, path: str) -> Stat | None:
        """Follows links; None when there is nothing."""
        return await _threaded(path, lambda: _stat(path))

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes | None:
        """Bytes from `offset`; None when there is nothing, or a pipe."""
        return await _threaded(path, lambda: _read(path, offset, size))

    async def write_new(self, path: str, data: bytes, *, mode: int = 0o600) -> bool:
        """Write atomically, never over an existing file: False when the name is taken."""
        return await _threaded(path, lambda: _write_new(Path(path), data, mode))

    async def make_folder(self, path: str) -> None:
        """Make a folder and those above it; one that is there is fine."""
        await _threaded(path, lambda: Path(path).mkdir(parents=True, exist_ok=True))

    async def list(self, folder: str) -> list[str] | None:
        """Names in a folder, sorted; None when there is none."""
        return await _threaded(folder, lambda: sorted(os.listdir(folder)) if os.path.isdir(folder) else None)  # noqa: PTH208, PTH112

    async def real_path(self, path: str) -> str:
        """Absolute, every link resolved, also for what does not exist yet."""
        return await _threaded(path, lambda: os.path.realpath(path))


class SystemClock:
    """The system's clock."""

    def now(self) -> datetime:
        """UTC now."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)


async def _threaded(path: str, work: Callable[[], T]) -> T:
    try:
        return await anyio.to_thread.run_sync(work)
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise StorageError(
            f"{path}: {what}", hint="Check the path, its permissions and the free disk space."
        ) from error


def _stat(path: str) -> Stat | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - Path.stat would do the same
    except (FileNotFoundError, NotADirectoryError):
        return None
    kind = "file" if modes.S_ISREG(found.st_mode) else "dir" if modes.S_ISDIR(found.st_mode) else "other"
    return Stat(found.st_size, kind, datetime.fromtimestamp(found.st_mtime, UTC))


def _read(path: str, offset: int, size: int | None) -> bytes | None:
    try:
        # O_NONBLOCK: a pipe that took the place of a file would let the reader wait for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with open(handle, "rb") as file:  # noqa: PTH123
        if modes.S_ISFIFO(os.fstat(handle).st_mode):
            return None
        file.seek(offset)
        return file.read() if size is None else file.read(size)


def _write_new(path: Path, data: bytes, mode: int) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name[:100]}.{secrets.token_hex(4)}.tmp"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path, follow_symlinks=False)  # fails where the name is taken, unlike rename
    except FileExistsError:
        return False
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
    return True
