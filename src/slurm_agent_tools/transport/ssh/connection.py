"""One SSH connection to a cluster: shared by all callers, kept alive, opened again with back-off, closed when idle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import anyio

from slurm_agent_tools.errors import AccessRefused, SlurmError, SlurmUnreachable, StorageError
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.text import log_events
from slurm_agent_tools.transport.base import asker

if TYPE_CHECKING:
    import asyncssh

    from slurm_agent_tools.transport.ssh.session import ShellSession
    from slurm_agent_tools.transport.ssh.ssh_login import OpenedConnection


_SESSIONS = 8  # sshd allows ten on one connection unless told otherwise (sshd_config(5), MaxSessions); SFTP is one more

_LONGEST = 60.0

_REST = 30.0  # seconds without use after which the SFTP session is opened anew

_log = log_events.get_logger()

T = TypeVar("T")


class Crowded(SlurmUnreachable):
    """The host allows no further session on the connection now."""


def pause(failures: int) -> float:
    """Seconds to wait after so many failed attempts in a row: 1, 2, 4 ... 60."""
    return min(_LONGEST, 2.0 ** min(failures - 1, 10)) if failures > 0 else 0.0


class SshConnection:
    """The connection. Nothing happens before the first use."""

    def __init__(self, settings: ClusterSettings, now: Callable[[], float] = time.monotonic) -> None:
        self.settings, self._now = settings, now
        self._lock = anyio.Lock()
        self._slots = anyio.CapacityLimiter(_SESSIONS)
        self._opened: OpenedConnection | None = None
        self._users = 0
        self._timer: asyncio.TimerHandle | None = None
        self._failures = 0
        self._failed: tuple[float, SlurmError] | None = None
        self._sftp: tuple[asyncssh.SSHClientConnection, asyncssh.SFTPClient] | None = None
        self._sftp_lock = anyio.Lock()
        self._readers, self._read = 0, now()

    @property
    def host(self) -> str:
        """As the settings name it."""
        return str(self.settings.host)

    @asynccontextmanager
    async def session(self, command: str | None, out: int, mark: str) -> AsyncIterator[ShellSession]:
        """A session that runs a line in the login shell, None for a login shell that reads its input.

        Raises SlurmUnreachable, AccessRefused and ConfigError: then no byte of input was sent.
        """
        from slurm_agent_tools.transport.ssh.session import ShellSession  # noqa: PLC0415 - loads asyncssh

        async with self._using(), self._slots:
            session = await self._admitted(lambda connection: ShellSession.open(connection, command, out, mark))
            try:
                yield session
            finally:
                session.end()

    @asynccontextmanager
    async def process(self, command: str) -> AsyncIterator[asyncssh.SSHClientProcess[bytes]]:
        """A session whose input and output are streams, for what is too large to be held. Raises as `session`."""

        async def open_one(connection: asyncssh.SSHClientConnection) -> asyncssh.SSHClientProcess[bytes]:
            return await connection.create_process(command, encoding=None, request_pty=False)

        async with self._using(), self._slots:
            process = await self._admitted(open_one)
            try:
                yield process
            finally:
                process.close()

    @asynccontextmanager
    async def files(self) -> AsyncIterator[asyncssh.SFTPClient]:
        """The one SFTP session of the connection. Raises as `session`, and StorageError where SFTP is off."""
        async with self._using():
            async with self._sftp_lock:
                # Only what is opened anew shows whether the connection still lives; a request on it would just wait.
                if not self._readers and self._now() - self._read > _REST:
                    self.forget_files()
                connection = await self.connect()
                if self._sftp is None or self._sftp[0] is not connection:
                    self._sftp = await self._admitted(_sftp)
                sftp = self._sftp[1]
            self._readers += 1
            try:
                yield sftp
            finally:
                self._readers, self._read = self._readers - 1, self._now()

    def forget_files(self) -> None:
        """Open a new SFTP session for the next use."""
        if self._sftp is not None:
            self._sftp[1].exit()
        self._sftp = None

    async def close(self) -> None:
        """End the connection; the next use opens a new one."""
        async with self._lock:
            await self._drop()

    async def connect(self) -> asyncssh.SSHClientConnection:
        """The open connection, opened if need be. Raises SlurmUnreachable, AccessRefused and ConfigError."""
        async with self._lock:
            if self._opened is None or not self._opened.alive:
                await self._drop()
                self._opened = await self._open()
            return self._opened.connection

    async def _open(self) -> OpenedConnection:
        from slurm_agent_tools.transport.ssh import login_failure, ssh_login  # noqa: PLC0415 - loads asyncssh

        self._still_failed()
        begun = self._now()
        try:
            found = await ssh_login.opened(self.settings, asker.get())
        except login_failure.Unanswered:
            raise  # the next caller may have somebody to ask
        except (SlurmUnreachable, AccessRefused) as error:
            # Whoever mends known_hosts tries at once; a login that fails often may be locked out.
            self._failures = 1 if isinstance(error, login_failure.Distrusted) else self._failures + 1
            self._failed = (self._now() + pause(self._failures), error)
            _log.info("ssh connection failed", host=self.host, failures=self._failures, error=error.message)
            raise
        self._failures, self._failed = 0, None
        _log.info("ssh connection opened", host=self.host, seconds=round(self._now() - begun, 3))
        return found

    def _still_failed(self) -> None:
        """Fifty callers of a host that is away do not each wait for it."""
        if self._failed is not None and self._now() < self._failed[0]:
            error = self._failed[1]
            raise type(error)(error.message, hint=error.hint)

    async def _drop(self) -> None:
        gone, self._opened, self._sftp = self._opened, None, None
        self._rest()
        if gone is not None:
            with anyio.CancelScope(shield=True):
                await gone.close()

    async def _admitted(self, work: Callable[[asyncssh.SSHClientConnection], Awaitable[T]]) -> T:
        """Open a session; where the host allows fewer at once than we thought, wait until another one has ended."""
        end = self._now() + self.settings.connect_timeout
        while True:
            try:
                return await self._try(work)
            except Crowded:
                if self._now() > end:
                    raise
                if self._users == 1:
                    self.forget_files()  # the only other session is ours and at rest
                await anyio.sleep(0.05)

    async def _try(self, work: Callable[[asyncssh.SSHClientConnection], Awaitable[T]]) -> T:
        """Open something on the connection. Nothing was sent yet, so one that turns out to be gone is replaced once.

        Not one that was opened just now: a host that hangs up at once would have a person type a second code.
        """
        import asyncssh  # noqa: PLC0415

        rested = self._opened
        connection = await self.connect()
        for last in (rested is None or rested.connection is not connection, True):
            try:
                # Cut short, it would leave a session open there that counts.
                with anyio.fail_after(self.settings.connect_timeout, shield=True):
                    return await work(connection)
            except TimeoutError as error:
                connection.abort()  # a laptop that has slept: nobody told it that the connection is gone
                if last:
                    raise SlurmUnreachable(f"{self.host} does not answer any more.", hint="Call again.") from error
            except (asyncssh.Error, OSError) as error:
                if not connection.is_closed() and isinstance(error, asyncssh.ChannelOpenError):
                    raise Crowded(
                        f"{self.host} refused another session: {error.reason}", hint="Its sshd allows few; call again."
                    ) from error
                if last:
                    raise SlurmUnreachable(
                        f"{self.host} closed the connection: {error}",
                        hint=f"Call again, or see what `ssh {self.host}` says.",
                    ) from error
            connection = await self.connect()
        raise AssertionError  # pragma: no cover - the second round returns or raises

    @asynccontextmanager
    async def _using(self) -> AsyncIterator[None]:
        self._users += 1
        self._rest()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users and self._opened is not None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self.settings.idle_seconds, self._idle)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _idle(self) -> None:
        """Called by the timer, outside of any task."""
        if not self._users and self._opened is not None:
            _log.info("ssh connection idle, closed", host=self.host)
            self._opened.leave()
            self._opened, self._sftp = None, None


async def _sftp(connection: asyncssh.SSHClientConnection) -> tuple[asyncssh.SSHClientConnection, asyncssh.SFTPClient]:
    import asyncssh  # noqa: PLC0415

    try:
        return connection, await connection.start_sftp_client(path_encoding=None)
    except (asyncssh.SFTPError, asyncssh.ChannelOpenError) as error:
        off = isinstance(error, asyncssh.SFTPError) or error.code == asyncssh.OPEN_REQUEST_SESSION_FAILED
        if connection.is_closed() or not off:
            raise
        raise StorageError(
            "SFTP is switched off on the login node, and logs are read with it.",
            hint="Ask its staff for `Subsystem sftp internal-sftp` in sshd_config, or name another login node.",
        ) from error
