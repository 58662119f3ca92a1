"""Opening one SSH connection: whose host keys count, who is asked for a code, and what to do when it fails.

asyncssh is loaded with this file: 290 ms, so only by the first use of a host.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio.to_thread
import asyncssh

from slurm_agent_tools.errors import ConfigError, SlurmUnreachable
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.base import AskPerson
from slurm_agent_tools.transport.process import environment
from slurm_agent_tools.transport.ssh.identity_keys import Keys
from slurm_agent_tools.transport.ssh.known_hosts import KnownHosts
from slurm_agent_tools.transport.ssh.login_failure import FailedLogin, login_error
from slurm_agent_tools.transport.ssh.ssh_config import HostValues
from slurm_agent_tools.transport.ssh.target import JUMPS, SshHop, SshTarget, first, found, options, target

_ASKED = 3  # times that one login may ask the person


@dataclass
class LoginRoute:
    """All that one login opens: connections to the jump hosts in order, and what a ProxyCommand runs."""

    jumps: list[asyncssh.SSHClientConnection] = field(default_factory=list)
    commands: list[process.ConnectedProcess] = field(default_factory=list)

    def end(self) -> None:
        """End the commands."""
        while self.commands:
            self.commands.pop().end()


@dataclass(frozen=True, slots=True)
class OpenedConnection:
    """A connection, and what it goes through."""

    connection: asyncssh.SSHClientConnection
    way: LoginRoute

    @property
    def alive(self) -> bool:
        """Whether nothing has closed it, as far as is known."""
        return not self.connection.is_closed()

    def leave(self) -> None:
        """End all of them without waiting."""
        for each in (self.connection, *reversed(self.way.jumps)):
            each.close()
        self.way.end()

    async def close(self) -> None:
        """End all of them; one that does not answer is cut."""
        for each in (self.connection, *reversed(self.way.jumps)):
            each.close()
            with anyio.move_on_after(1):
                await each.wait_closed()
                continue
            each.abort()
        self.way.end()


class Person:
    """Answers for one login. `silent`: somebody should have answered and nobody did."""

    def __init__(self, ask: AskPerson | None, limit: anyio.CancelScope) -> None:
        self._ask, self._limit, self._asked = ask, limit, 0
        self.silent = False

    async def answer(self, title: str, text: str, prompts: Sequence[tuple[str, bool]]) -> list[str] | None:
        """The answers, None to go without. The time that a person takes is not the host's."""
        if not prompts:
            return []
        if self._ask is None or self.silent or self._asked >= _ASKED:
            self.silent = self.silent or self._ask is None
            return None
        self._asked += 1
        left = self._limit.deadline - anyio.current_time()
        self._limit.deadline = float("inf")
        try:
            answers = await self._ask(
                sanitize.line(title),
                sanitize.visible(text),
                [(sanitize.line(prompt), echo) for prompt, echo in prompts],
            )
        finally:
            self._limit.deadline = anyio.current_time() + left
        if answers is None or len(answers) != len(prompts):
            self.silent = True
            return None
        return list(answers)


class _Client(asyncssh.SSHClient):
    """Answers what a server asks while it lets somebody in. A host key that is not known is never taken."""

    def __init__(self, target: SshTarget, person: Person, keys: Keys) -> None:
        self._target, self.person, self.keys = target, person, keys
        self.key: asyncssh.SSHKey | None = None  # the host's, where it was not trusted

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        self.key = key
        return False

    async def public_key_auth_requested(self) -> list[asyncssh.SSHKeyPair]:
        return await self.keys.offered()

    def kbdint_auth_requested(self) -> str:
        return ""

    async def kbdint_challenge_received(
        self,
        name: str,
        instructions: str,
        lang: str,  # noqa: ARG002
        prompts: Sequence[tuple[str, bool]],
    ) -> list[str] | None:
        title = f"SSH login to {self._target.spelled}"
        return await self.person.answer(title, "\n".join(part for part in (name, instructions) if part), prompts)

    async def password_auth_requested(self) -> str | None:
        answers = await self.person.answer(f"SSH login to {self._target.spelled}", "", [("Password: ", False)])
        return answers[0] if answers else None


async def opened(settings: ClusterSettings, ask: AskPerson | None) -> OpenedConnection:
    """Connect and log in. Raises SlurmUnreachable, AccessRefused and ConfigError; nothing was sent then."""
    way, made = LoginRoute(), None
    try:
        with anyio.move_on_after(settings.connect_timeout) as limit:
            made = OpenedConnection(await _open(first(settings), settings, Person(ask, limit), way), way)
    finally:
        if made is None:
            for each in way.jumps:
                each.abort()
            way.end()
    if made is None:
        raise SlurmUnreachable(
            f"{settings.host} did not let us in within {settings.connect_timeout:.0f} s.",
            hint=f"Try `ssh {settings.host}`; behind a slow network raise connect_timeout.",
        )
    return made


async def _open(
    hop: SshHop, settings: ClusterSettings, person: Person, way: LoginRoute, depth: int = 0
) -> asyncssh.SSHClientConnection:
    """Open a hop through those that it names; they are added to `way`."""
    said = await asked(hop, settings)
    goal = target(hop, settings, said)
    tunnel: asyncssh.SSHClientConnection | None = None
    if depth > JUMPS:
        raise ConfigError("ProxyJump", hop.host, "goes in a circle", hint="Mend it in the SSH configuration.")
    for jump in goal.jumps:
        tunnel = await _open(jump, settings, person, way, depth + 1) if tunnel is None else (
            await _connect(jump, await asked(jump, settings), settings, person, way, tunnel)
        )  # fmt: skip
        way.jumps.append(tunnel)
    return await _connect(hop, said, settings, person, way, tunnel)


async def asked(hop: SshHop, settings: ClusterSettings) -> HostValues:
    """What the SSH configuration says about a hop. Raises ConfigError and SlurmUnreachable."""
    return await anyio.to_thread.run_sync(found, hop, settings)


async def _connect(
    hop: SshHop,
    said: HostValues,
    settings: ClusterSettings,
    person: Person,
    way: LoginRoute,
    tunnel: asyncssh.SSHClientConnection | None,
) -> asyncssh.SSHClientConnection:
    """Log in to a hop. The SSH configuration is read once for it: it may run commands (`Match exec`)."""
    goal = target(hop, settings, said)
    keys, known = Keys(said), KnownHosts(goal)
    client = _Client(goal, person, keys)
    chosen = options(hop, settings, said)
    more: dict[str, object] = {}
    try:
        more["server_host_key_algs"] = known.kinds((said.one("hostkeyalgorithms") or "").split(","))
        line = said.one("proxycommand")
        if line is not None and tunnel is None and os.name == "posix":
            way.commands.append(process.connected(said.filled(line), env=environment()))
            more["sock"] = way.commands[-1].sock
        return await asyncssh.connect(
            goal.host, options=chosen, tunnel=tunnel, known_hosts=known,
            client_factory=lambda: client, **more,
        )  # fmt: skip
    except (asyncssh.Error, OSError, ValueError) as error:
        seen = FailedLogin(goal, known, settings, client.key, client.person.silent, keys)
        raise login_error(error, seen) from error
    finally:
        keys.close()
