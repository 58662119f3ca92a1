"""One session on a connection: the output of one login shell, told apart from what its start-up files print."""

from __future__ import annotations

import contextlib
from typing import Any

import anyio
import asyncssh

from slurm_agent_tools.transport.login_shell import FramedOutput

_ERRORS = 2**20


class ShellSession(asyncssh.SSHClientSession[bytes]):
    """Collects both outputs, bounded. `ended`: the shell has, its children may hold the outputs open until `over`."""

    def __init__(self, out: int, mark: str) -> None:
        self.out, self.err = FramedOutput(mark, out), FramedOutput(mark, _ERRORS)
        self.over, self.ended = anyio.Event(), anyio.Event()
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None

    @classmethod
    async def open(
        cls, connection: asyncssh.SSHClientConnection, command: str | None, out: int, mark: str
    ) -> ShellSession:
        """Start the login shell there. No byte of input is sent yet."""
        session = cls(out, mark)
        await connection.create_session(lambda: session, command, encoding=None, request_pty=False)
        return session

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None where none was told."""
        return None if self._channel is None else self._channel.get_returncode()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """Called by asyncssh."""
        self._channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Called by asyncssh."""
        (self.out if datatype is None else self.err).feed(data)

    def exit_status_received(self, status: int) -> None:  # noqa: ARG002
        """Called by asyncssh."""
        self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Called by asyncssh, also in order."""
        self.ended.set()
        self.over.set()

    def send(self, data: bytes) -> None:
        """Give it all of its input. OSError when it is closed already; then nothing was sent."""
        if self._channel is None:
            raise BrokenPipeError
        self._channel.write(data)
        self._channel.write_eof()

    async def kill(self) -> None:
        """End what runs there, as far as the host lets us: sshd passes the signal to the process group."""
        with contextlib.suppress(OSError, asyncssh.Error):
            self._signal("KILL")
            with anyio.move_on_after(1, shield=True):
                await self.over.wait()

    def end(self) -> None:
        """Close the channel; what still runs there is killed."""
        if self._channel is not None and not self.over.is_set():
            with contextlib.suppress(OSError, asyncssh.Error):
                self._signal("KILL")
            self._channel.abort()

    def _signal(self, name: str) -> None:
        channel: Any = self._channel
        channel.send_signal(name)
