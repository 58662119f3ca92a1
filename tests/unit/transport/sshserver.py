"""A login node in the test's own process: asyncssh's server on loopback, which runs commands as this user."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.transport.ssh.connection import SshConnection


@dataclass
class Node:
    """What the server does, and what it saw."""

    folder: Path
    code: str = ""  # asked for after no key fits
    profile: str = ""  # run by every shell first
    sftp: bool | Callable[[asyncssh.SSHServerChannel[bytes]], asyncssh.SFTPServer] = True
    streams: bool = False  # a command gets its input as it comes, as by a real sshd
    hangs_up: bool = False  # as soon as somebody is in
    port: int = 0
    logins: int = 0
    now: int = 0
    most: int = 0
    open: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    certificate: asyncssh.SSHCertificate | None = None  # of the host key
    host_key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))

    def settings(self, **more: object) -> ClusterSettings:
        """Settings of a client that knows this server's key, and has its user's key unless a code is asked for."""
        words = ["Host node", "HostName 127.0.0.1", f"Port {self.port}", "User me", "IdentityAgent none"]
        words += [f"IdentityFile {self.folder / 'key'}"] if not self.code else ["PubkeyAuthentication no"]
        config = self.folder / "config"
        config.write_text("\n  ".join(words) + "\n")
        plain = {"host": "node", "ssh_config": config, "known_hosts": self.known(), "remote_root": str(self.folder)}
        return ClusterSettings.model_validate(plain | more)

    def known(self, key: asyncssh.SSHKey | None = None) -> Path:
        """A known_hosts file with the server's key, or another one."""
        text = (key or self.host_key).export_public_key().decode()
        path = self.folder / "known_hosts"
        path.write_text(f"[127.0.0.1]:{self.port} {text}")
        return path

    def cut(self) -> None:
        """As when the network breaks."""
        for connection in self.open:
            connection.abort()


class _Server(asyncssh.SSHServer):
    def __init__(self, node: Node) -> None:
        self._node = node

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._node.open.append(conn)

    def auth_completed(self) -> None:
        self._node.logins += 1
        if self._node.hangs_up:
            asyncio.get_running_loop().call_soon(self._node.open[-1].abort)

    def kbdint_auth_supported(self) -> bool:
        return bool(self._node.code)

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str):
        return "Two factors", "Look at your \x1b[31mphone", "", [("Code: ", False)]

    def validate_kbdint_response(self, username: str, responses) -> bool:
        return list(responses) == [self._node.code]


async def _run(node: Node, process: asyncssh.SSHServerProcess[bytes]) -> None:
    node.now += 1
    node.most = max(node.most, node.now)
    try:
        command = process.command
        shell = ["sh", "-c", f"{node.profile}\n{command}"] if command else ["sh", "-c", f"{node.profile}\nexec sh"]
        if node.streams:
            await _stream(process, shell)
            return
        with tempfile.TemporaryFile() as given:  # a pipe would break where a shell reads nothing
            given.write(await process.stdin.read())
            given.seek(0)
            inner = await asyncio.create_subprocess_exec(*shell, stdin=given, stdout=-1, stderr=-1)
        try:
            out, err = await inner.communicate()
            process.stdout.write(out)
            process.stderr.write(err)
            process.exit(inner.returncode or 0)
        finally:
            if inner.returncode is None:
                inner.kill()
                await inner.wait()
    finally:
        node.now -= 1


async def _stream(process: asyncssh.SSHServerProcess[bytes], shell: list[str]) -> None:
    inner = await asyncio.create_subprocess_exec(*shell, stdin=-1, stdout=-1, stderr=-1)
    assert inner.stdin is not None
    given = asyncio.create_task(_pump(process.stdin, inner.stdin))
    try:
        await asyncio.gather(_pump(inner.stdout, process.stdout), _pump(inner.stderr, process.stderr))
        process.exit(await inner.wait())
    finally:
        given.cancel()
        if inner.returncode is None:
            inner.kill()
            await inner.wait()


async def _pump(source: Any, target: Any) -> None:
    with suppress(OSError, asyncssh.Error):  # one of both went away
        while data := await source.read(2**16):
            target.write(data)
            await target.drain()
        if isinstance(target, asyncio.StreamWriter):
            target.close()


@asynccontextmanager
async def running(node: Node) -> AsyncIterator[Node]:
    """The server, up."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(str(node.folder / "key"))
    key.write_public_key(str(node.folder / "authorized"))
    acceptor = await asyncssh.listen(
        "127.0.0.1", node.port, server_host_keys=[(node.host_key, node.certificate)], server_factory=lambda: _Server(node), encoding=None,
        authorized_client_keys=None if node.code else str(node.folder / "authorized"), sftp_factory=node.sftp,
        process_factory=lambda process: _run(node, process),
    )  # fmt: skip
    node.port = acceptor.get_port()
    try:
        yield node
    finally:
        acceptor.close()
        node.cut()
        await acceptor.wait_closed()


async def connects(settings: ClusterSettings) -> None:
    """Open a connection and close it."""
    link = SshConnection(settings)
    await link.connect()
    await link.close()
