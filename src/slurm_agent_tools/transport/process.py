"""The one file that starts local processes: Slurm's commands, shfmt, git, rsync, ssh-keygen, `ssh -G`, `ProxyCommand`.

Programs are looked for where the project chooses none.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Self

import anyio
import anyio.lowlevel
from anyio.abc import ByteReceiveStream, Process


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """A process that ended; `exit_code` None when the time limit ended it."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    truncated: bool


_LAST_OUTPUT = 2.0
"""Seconds to read what a process had printed before it was told to stop."""


async def run(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str],
    cwd: str | None = None,
    timeout: float = 10.0,  # noqa: ASYNC109 - the process group is ended in order when it passes
    max_output: int = 64 * 2**20,
    limits: Mapping[str, int] | None = None,
    stop: anyio.Event | None = None,
    on_output: Callable[[bytes], None] | None = None,
) -> EndedProcess:
    """Run an argument vector in its own session, bounded in time and output. FileNotFoundError when it is not there.

    `limits`: bytes of data (RLIMIT_DATA) and seconds of the processor (RLIMIT_CPU), where the system has them (Linux).
    At the time limit, once `stop` is set, or when the caller is cancelled, the whole process group is killed and waited
    for.
    """
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        pipe = stack.enter_context(_WidePipe()) if on_output is not None and os.name == "posix" else None
        process = await _begun(argv, env, cwd, limits or {}, pipe)
        out, err = _Sink(max_output, on_output), _Sink(2**20)
        timed_out = True
        try:
            with anyio.move_on_after(timeout) as limit:
                async with anyio.create_task_group() as group, anyio.create_task_group() as watch:
                    group.start_soon(_feed, process, stdin)
                    group.start_soon(_drain, process.stdout if pipe is None else pipe, out)
                    group.start_soon(_drain, process.stderr, err)
                    if stop is not None:
                        watch.start_soon(_end_at, stop, process, limit)
                    await process.wait()
                    watch.cancel_scope.cancel()
                timed_out = False
        finally:
            await _finish(process, kill=timed_out)
    ended = timed_out or (stop is not None and stop.is_set())
    return EndedProcess(
        None if ended else process.returncode,
        out.data.getvalue(), err.data.getvalue(), time.monotonic() - start, out.full or err.full,
    )  # fmt: skip


async def _begun(
    argv: Sequence[str], env: Mapping[str, str], cwd: str | None, limits: Mapping[str, int], pipe: _WidePipe | None
) -> Process:
    """The process, with its limits before it is told anything."""
    with anyio.CancelScope(shield=True):  # cancelled half-way, a process that has begun would be nobody's
        process = await anyio.open_process(
            list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE if pipe is None else pipe.written,
            stderr=subprocess.PIPE, env=dict(env), cwd=cwd, start_new_session=True,
        )  # fmt: skip
    if pipe is not None:
        pipe.written.close()
    if limits and sys.platform == "linux":
        with contextlib.suppress(ProcessLookupError, ImportError):
            import resource  # noqa: PLC0415 - not there on Windows

            for name, most in limits.items():
                resource.prlimit(process.pid, getattr(resource, name), (most, most))
    return process


class _WidePipe:
    """A pipe for a megabyte, so that who prints does not wait for who reads, however busy that one is. POSIX alone."""

    def __enter__(self) -> Self:
        read, write = os.pipe()
        self._read, self.written = open(read, "rb", buffering=0), open(write, "wb", buffering=0)  # noqa: PTH123
        os.set_blocking(read, False)
        with contextlib.suppress(ImportError, AttributeError, OSError):  # the usual 64 KiB do as well
            import fcntl  # noqa: PLC0415 - not there on Windows

            fcntl.fcntl(read, fcntl.F_SETPIPE_SZ, 2**20)
        return self

    def __exit__(self, *_: object) -> None:
        self._read.close()
        self.written.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (data := self._read.read(2**16)) != b"":
            if data is None:
                await anyio.wait_readable(self._read)
            else:
                yield data
                await anyio.lowlevel.checkpoint()


async def _end_at(stop: anyio.Event, process: Process, limit: anyio.CancelScope) -> None:
    """What it had printed before is still read: no longer than this, as another program may hold its output open."""
    await stop.wait()
    _kill(process)
    limit.deadline = min(limit.deadline, anyio.current_time() + _LAST_OUTPUT)


def answered(argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None) -> EndedProcess:
    """Run a short question, without `env` in our own environment, and block until it has answered. OSError as `run`.

    At the time limit the whole process group is killed. Errors go to a file: what was left running with them open is
    not waited for.
    """
    start = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env, start_new_session=True
        ) as process:
            try:
                out, _ = process.communicate(timeout=timeout)
            except BaseException as error:
                _kill(process)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                return EndedProcess(None, b"", b"", time.monotonic() - start, truncated=False)
        errors.seek(0)
        return EndedProcess(process.returncode, out, errors.read(2**16), time.monotonic() - start, truncated=False)


@dataclass(frozen=True, slots=True)
class ConnectedProcess:
    """A process whose input and output are the other end of `sock`."""

    sock: socket.socket
    _process: subprocess.Popen[bytes]

    def end(self) -> None:
        """End it, and what it has started. The socket is its user's."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)


def connected(line: str, *, env: Mapping[str, str] | None = None) -> ConnectedProcess:
    """Start a line of the person's own SSH configuration in their shell (ssh_config(5), ProxyCommand). POSIX alone.

    What it says on standard error is left out: nobody is there to read it.
    """
    ours, theirs = socket.socketpair()
    argv = [os.environ.get("SHELL") or "/bin/sh", "-c", f"exec {line}"]
    with theirs:
        try:
            process = subprocess.Popen(
                argv,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                env=env,
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
    return ConnectedProcess(ours, process)


# What rsync starts as its remote shell: it says what is to be run there, and passes everything between rsync and us. It
# ends when the other side has ended, as ssh does; what is left of rsync's output then holds nobody up.
_PASSING = (
    'exec 3<"$SLURM_AGENT_IN" 4>"$SLURM_AGENT_OUT" 5<&0;'
    ' printf "%s\\0" "$#" "$@" >&4;'
    " cat <&5 >&4 2>/dev/null 3<&- 5<&- & exec cat <&3 4>&- 5<&-"
)

REMOTE_SHELL = f"/bin/sh -c '{_PASSING}' sh"
"""For rsync's option -e, beside the environment of a `ShellPipes`. Nothing in it comes from outside."""


class ShellPipes:
    """Two named pipes in a private folder: the channel between us and what rsync starts as its remote shell. POSIX."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="slurm-agent-")
        paths = [os.path.join(self._folder.name, name) for name in ("in", "out")]  # noqa: PTH118
        for path in paths:
            os.mkfifo(path, 0o600)
        # Open at both ends: neither waits for the other, and only closing `in` ends it.
        self._in, self._out = (os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC) for path in paths)
        self.environment = {"PATH": _SYSTEM_PATH, "SLURM_AGENT_IN": paths[0], "SLURM_AGENT_OUT": paths[1]}
        self._rest = b""

    async def words(self) -> list[str]:
        """What is to be run there, as words; the first is the host. Asked once, before anything is read."""
        begun = b""
        while True:
            begun += await self._next()
            count, *words = begun.split(b"\0")
            if words and len(words) > int(count):
                self._rest = b"\0".join(words[int(count) :])
                return [os.fsdecode(word) for word in words[: int(count)]]

    async def read(self) -> bytes:
        """See Channel."""
        rest, self._rest = self._rest, b""
        return rest or await self._next()

    async def _next(self) -> bytes:
        while True:
            try:
                return os.read(self._out, 2**16)
            except BlockingIOError:
                await anyio.wait_readable(self._out)

    async def write(self, data: bytes) -> None:
        """See Channel."""
        left = memoryview(data)
        while left and self._in >= 0:
            try:
                left = left[os.write(self._in, left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._in)

    def end(self) -> None:
        """See Channel."""
        if self._in >= 0:
            os.close(self._in)
            self._in = -1

    def close(self) -> None:
        """Let go of both, and of their folder."""
        self.end()
        os.close(self._out)
        self._folder.cleanup()


@dataclass(slots=True)
class _Sink:
    """What a stream brought, up to a limit in bytes; `full` once there was more."""

    limit: int
    told: Callable[[bytes], None] | None = None
    data: BytesIO = field(default_factory=BytesIO)  # which gives its bytes without a copy
    full: bool = False


async def _feed(process: Process, data: bytes) -> None:
    if process.stdin is None:  # pragma: no cover - always a pipe
        return
    # A command that does not read its input closes the pipe early; its exit code tells the rest.
    with contextlib.suppress(
        BrokenPipeError, ConnectionResetError, anyio.BrokenResourceError, anyio.ClosedResourceError
    ):
        if data:
            await process.stdin.send(data)
    await process.stdin.aclose()


async def _drain(stream: ByteReceiveStream | _WidePipe | None, sink: _Sink) -> None:
    if stream is None:  # pragma: no cover - always a pipe
        return
    async for chunk in stream:
        room = sink.limit - sink.data.tell()
        sink.data.write(chunk[:room])
        sink.full = sink.full or len(chunk) > room
        if sink.told is not None:
            sink.told(chunk[:room])


def _kill(process: Process | subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:  # Windows: the first process alone
        process.kill()


async def _finish(process: Process, *, kill: bool) -> None:
    if kill:  # also when the first process has ended: a child of it may hold the output open
        _kill(process)
    with anyio.CancelScope(shield=True):
        await process.wait()
        await process.aclose()


# --- Where programs are looked for: nowhere that the project could put them -------------------------------------------


_SYSTEM_PATH = "/usr/bin:/bin"


def search_path(path: str, project: Path) -> str:
    """A PATH for what we start, without folders of the project and its repository; where none is left, the system's."""
    return os.pathsep.join(_outside(path, project)) or _SYSTEM_PATH  # an empty PATH would be the working folder


def program(name: str, project: Path | None = None) -> str | None:
    """Where a program is by our own PATH without the folders of the project, which is where we run unless it is named.

    None where it is nowhere.
    """
    folders = _outside(os.environ.get("PATH", os.defpath), project or Path())
    found = shutil.which(name, path=os.pathsep.join(folders))
    # Windows looks into the working folder first, whatever it is told.
    return found if found is not None and Path(found).is_absolute() else None


def environment() -> dict[str, str]:
    """Our own environment for what runs lines of the person's, which find their programs outside of where we run."""
    return {**os.environ, "PATH": search_path(os.environ.get("PATH", os.defpath), Path())}


def machine() -> str:
    """The system, its release and its C library. platform.platform() would run `uname`, from anywhere on PATH."""
    here, library = platform.uname(), "".join(platform.libc_ver())
    return "-".join([here.system, here.release, here.machine, *(["with", library] if library else [])])


def _outside(path: str, project: Path) -> list[str]:
    """Folders of a PATH that are absolute and, with links resolved, outside the project and the work tree around it.

    What lies there may be written by anybody who may write a job's script.
    """
    root = _work_tree(project.resolve())
    places = (place for place in path.split(os.pathsep) if Path(place).is_absolute())
    return [place for place in places if not _resolved(place).is_relative_to(root)]


def _work_tree(project: Path) -> Path:
    """The outermost folder above the project in which a repository of git begins; the project where there is none.

    One that holds the person's home or the system's programs is not the project's: all programs may lie in it.
    """
    trees = [tree for tree in project.parents if os.path.lexists(tree / ".git")]
    whole = [*map(Path, _SYSTEM_PATH.split(os.pathsep)), _home()] if trees else []
    return next((tree for tree in reversed(trees) if not any(one.is_relative_to(tree) for one in whole)), project)


def _home() -> Path:
    """The home folder by the system's list of users: HOME is set by whoever sets PATH."""
    try:
        import pwd  # noqa: PLC0415 - not on Windows

        return Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
    except (ImportError, KeyError, OSError, RuntimeError):
        return Path.home()


def _resolved(place: str) -> Path:
    try:
        return Path(place).resolve()
    except (OSError, RuntimeError):  # links in a circle
        return Path(place)
