"""A cluster behind a login node: commands, files and surroundings over one SSH connection.

Nothing here or below needs a POSIX system on this side. asyncssh is loaded by the first use.
"""

from __future__ import annotations

import contextlib
import posixpath
import secrets
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import anyio

from slurm_agent_tools.errors import ConfigError, SlurmMissing, SlurmUnreachable
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.text import log_events, sanitize
from slurm_agent_tools.transport import login_shell
from slurm_agent_tools.transport.base import (
    SLURM_COMMANDS,
    Channel,
    Completed,
    LoginEnvironment,
    OnOutput,
    command_environment,
)
from slurm_agent_tools.transport.ssh.connection import SshConnection
from slurm_agent_tools.transport.ssh.sftp_files import SshFiles

if TYPE_CHECKING:
    import asyncssh

    from slurm_agent_tools.transport.ssh.session import ShellSession


_LOGIN_SECONDS = 30.0  # a site's profile may load modules from a slow file system

_STREAM_PIECE = 2**16

_log = log_events.get_logger()


class SshRunner:
    """Runs commands there, in an environment built from the allow-list that the local runner has."""

    def __init__(self, link: SshConnection, environ: Callable[[], Awaitable[Mapping[str, str]]]) -> None:
        self._link, self._environ = link, environ
        self._slurm = link.settings.slurm

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = 10.0,  # noqa: ASYNC109 - the limit of the command; connecting has its own
        max_output: int = 64 * 2**20,
        on_output: OnOutput | None = None,  # noqa: ARG002 - the way here takes longer than reading it
    ) -> Completed:
        """Run one command. Raises SlurmMissing; SlurmUnreachable and AccessRefused only when nothing was sent.

        A connection that is lost after that is told as a time limit is: whether it was carried out is not known.
        """
        mark = secrets.token_hex(12)
        wanted = command_environment(await self._environ(), self._slurm.conf) | dict(env or {})
        line = login_shell.line(self._program(argv[0]), argv, wanted, cwd, mark)
        async with self._link.session(login_shell.START, max_output, mark) as session:
            start = time.monotonic()
            try:
                session.send(line + stdin)
            except OSError as error:
                raise SlurmUnreachable(f"{self._link.host} closed the connection.", hint="Call again.") from error
            with anyio.move_on_after(timeout):
                await session.over.wait()
            if not session.over.is_set():
                await session.kill()
                code = None
            else:
                code = session.code
        seconds = time.monotonic() - start
        out, err = session.out, session.err
        _log.debug("slurm command", command=argv[0], words=list(argv[1:3]), exit_code=code, host=self._link.host,
                   seconds=round(seconds, 4))  # fmt: skip
        if code is not None:
            _started(argv[0], code, out, bytes(err.data or err.noise), self._link.host)
        return Completed(tuple(argv), code, bytes(out.data), bytes(err.data), seconds, out.full or err.full)

    async def joined(self, argv: Sequence[str], channel: Channel, *, cwd: str) -> tuple[int | None, bytes]:
        """Run a command whose input and output are the channel's; its exit code and its last words.

        None as exit code where the connection was lost. Raises as `run`.
        """
        mark = secrets.token_hex(12)
        wanted = command_environment(await self._environ(), self._slurm.conf)
        line = login_shell.line(self._program(argv[0]), argv, wanted, cwd, mark)
        err = login_shell.FramedOutput(mark, 2**16)
        async with self._link.process(login_shell.START) as process:
            process.stdin.write(line)
            out = await _begun(process.stdout, mark)
            if out.word == "ok":
                async with anyio.create_task_group() as group:
                    group.start_soon(_forward, channel, process.stdin)
                    group.start_soon(_collect, process.stderr, err)
                    await channel.write(bytes(out.data))
                    while data := await _more(process.stdout):
                        await channel.write(data)
                    group.cancel_scope.cancel()
            channel.end()
            with anyio.move_on_after(10):
                await process.wait_closed()
            code = process.returncode
        if code is not None:
            _started(argv[0], code, out, bytes(err.data or err.noise), self._link.host)
        return code, bytes(err.data)

    def _program(self, name: str) -> str:
        if self._slurm.bin_dir is not None and name in SLURM_COMMANDS:
            return (self._slurm.bin_dir / name).as_posix()
        return name


async def _begun(stdout: asyncssh.SSHReader[bytes], mark: str) -> login_shell.FramedOutput:
    """What a command has printed so far, once it has begun or its shell has ended."""
    out = login_shell.FramedOutput(mark, 2**30)
    while out.word is None and (data := await _more(stdout)):
        out.feed(data)
    return out


async def _more(reader: asyncssh.SSHReader[bytes]) -> bytes:
    """What came next; nothing at the end, also where the connection was lost: then there is no exit code."""
    import asyncssh  # noqa: PLC0415 - loaded by now

    try:
        return await reader.read(_STREAM_PIECE)
    except (OSError, asyncssh.Error):
        return b""


async def _forward(channel: Channel, stdin: asyncssh.SSHWriter[bytes]) -> None:
    import asyncssh  # noqa: PLC0415

    with contextlib.suppress(OSError, asyncssh.Error):  # it ended: its exit code tells the rest
        while True:
            stdin.write(await channel.read())
            await stdin.drain()


async def _collect(stderr: asyncssh.SSHReader[bytes], err: login_shell.FramedOutput) -> None:
    while data := await _more(stderr):
        err.feed(data)


def _started(name: str, code: int, out: login_shell.FramedOutput, errors: bytes, host: str) -> None:
    """Raises SlurmUnreachable where the login shell ran nothing, SlurmMissing where there is no such program."""
    if out.word is None:
        words = sanitize.line(login_shell.as_text(bytes(out.noise + errors)).strip())[-300:] or f"it ended with {code}"
        raise SlurmUnreachable(f"The login shell on {host} ran no command: {words}", hint=f"Try `ssh {host} true`.")
    # env says so when the kernel cannot run what it found (env(1): 126 and 127).
    if out.word == "folder":
        raise SlurmMissing(f"{name} cannot be run: no such folder", hint="Check slurm.bin_dir and the project folder.")
    if out.word == "missing" or (code in {126, 127} and errors.startswith(b"/usr/bin/env: ")):
        raise SlurmMissing(f"{name} is not installed on {host}", hint="Set slurm.bin_dir, or name another login node.")


def _failed(session: ShellSession) -> str:
    """How a login went wrong, with the shell's last words."""
    words = sanitize.line(login_shell.as_text(bytes(session.out.noise + session.err.noise)).strip())[-300:]
    if not session.ended.is_set():
        return f"did not get through its start-up files within {_LOGIN_SECONDS:.0f} s: {words or 'it printed nothing'}"
    if session.code is None:
        return f"was cut off while it started: {words or 'the connection is closed'}"
    return f"ran no command: {words or f'it ended with {session.code} and printed nothing'}"


class SshTransport:
    """A login node. Nothing is read or connected before the first use."""

    def __init__(self, name: str, settings: ClusterSettings) -> None:
        self.name, self.settings = name, settings
        self.link = SshConnection(settings)
        self.files = SshFiles(self.link)
        self.runner = SshRunner(self.link, self.environ)
        self._lock, self._asking = anyio.Lock(), anyio.Lock()
        self._key: str | None = None
        self._login_shell: login_shell.LoginShell | None = None
        self._around: LoginEnvironment | None = None

    @property
    def key(self) -> str:
        """ssh:USER@HOST:PORT as the SSH configuration has them, which is read once. Raises ConfigError."""
        if self._key is None:
            from slurm_agent_tools.transport.ssh import target  # noqa: PLC0415 - loads asyncssh

            self._key = f"ssh:{target.key(self.settings)}"
        return self._key

    async def login_environment(self) -> LoginEnvironment:
        """Asked once, then remembered. Raises SlurmUnreachable, AccessRefused, StorageError and ConfigError."""
        async with self._asking:
            if self._around is None:
                shell = await self._shell()
                if not shell.user:
                    self._login_shell = None  # whoever knows the names there may answer the next call
                    hint = "Try `id -un` there."
                    raise SlurmUnreachable(f"{self.link.host} does not tell the user's name.", hint=hint)
                self._around = LoginEnvironment(shell.user, await self._root(shell.environ), shell.environ)
        return self._around

    async def environ(self) -> Mapping[str, str]:
        """What the login shell makes of the environment: a site's Slurm is often on PATH only by its profile."""
        return (await self._shell()).environ

    async def _shell(self) -> login_shell.LoginShell:
        async with self._lock:
            if self._login_shell is None:
                self._login_shell = await self._login()
        return self._login_shell

    async def close(self) -> None:
        """End the connection."""
        await self.link.close()

    async def _login(self) -> login_shell.LoginShell:
        mark = secrets.token_hex(12)
        async with self.link.session(None, 2**22, mark) as session:
            session.send(login_shell.login_line(mark))
            with anyio.move_on_after(_LOGIN_SECONDS):
                # What start-up files leave running keeps the session open; all that counts may be there before.
                await session.ended.wait()
                if login_shell.told(session.out, mark) is None:
                    await session.over.wait()
        found = login_shell.told(session.out, mark)
        if found is None or not found.environ.get("PATH"):
            raise SlurmUnreachable(
                f"The login shell on {self.link.host} {_failed(session)}",
                hint=f"Look at what `ssh {self.link.host}` does at login.",
            )
        return found

    async def _root(self, environ: Mapping[str, str]) -> str:
        written = str(self.settings.remote_root)
        named = "" if written == "~" else written.removeprefix("~/")
        root = await self.files.real_path(posixpath.join(environ.get("HOME", "/"), named))
        found = await self.files.stat(root)
        if found is None or found.kind != "dir":
            # Quoted twice: ssh hands its words to a shell there.
            make = shlex.quote(shlex.join(["mkdir", "-p", root])) if shlex.quote(root) != root else f"mkdir -p {root}"
            raise ConfigError(
                f"clusters.{self.name}.remote_root", written, f"is not a folder on {self.link.host}",
                hint=f"Make it: ssh {self.link.host} {make}" if found is None else "Name a folder.",
            )  # fmt: skip
        return root
