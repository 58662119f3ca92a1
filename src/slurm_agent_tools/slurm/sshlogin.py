"""Opening one SSH connection: whose host keys count, who is asked for a code, and what to do when it fails.

asyncssh is loaded with this file: 290 ms, so only by the first use of a host.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import asyncssh

from slurm_agent_tools import trust
from slurm_agent_tools.config import ClusterSettings
from slurm_agent_tools.errors import AccessRefused, AgentToolsError, ConfigError, SlurmUnreachable
from slurm_agent_tools.slurm.runner import AskPerson
from slurm_agent_tools.slurm.sshtarget import Hop, Target, by_hand, first, known_keys, options, target

_JUMPS = 8
_ASKED = 3  # times that one login may ask the person


class Distrusted(AccessRefused):
    """The host key is unknown, changed or revoked."""


class Unanswered(AccessRefused):
    """A code or password was asked for and nobody answered; the next caller may have somebody to ask."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection, and those to the jump hosts that it goes through."""

    connection: asyncssh.SSHClientConnection
    through: tuple[asyncssh.SSHClientConnection, ...]

    @property
    def alive(self) -> bool:
        """Whether nothing has closed it, as far as is known."""
        return not self.connection.is_closed()

    def leave(self) -> None:
        """End all of them without waiting."""
        for each in (self.connection, *reversed(self.through)):
            each.close()

    async def close(self) -> None:
        """End all of them; one that does not answer is cut."""
        for each in (self.connection, *reversed(self.through)):
            each.close()
            with anyio.move_on_after(1):
                await each.wait_closed()
                continue
            each.abort()


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
                trust.line(title), trust.visible(text), [(trust.line(prompt), echo) for prompt, echo in prompts]
            )
        finally:
            self._limit.deadline = anyio.current_time() + left
        if answers is None or len(answers) != len(prompts):
            self.silent = True
            return None
        return list(answers)


class _Client(asyncssh.SSHClient):
    """Answers what a server asks while it lets somebody in. A host key that is not known is never taken."""

    def __init__(self, target: Target, person: Person) -> None:
        self._target, self._person = target, person
        self.key: asyncssh.SSHKey | None = None  # the host's, where it was not trusted

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        self.key = key
        return False

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
        return await self._person.answer(title, "\n".join(part for part in (name, instructions) if part), prompts)

    async def password_auth_requested(self) -> str | None:
        answers = await self._person.answer(f"SSH login to {self._target.spelled}", "", [("Password: ", False)])
        return answers[0] if answers else None


async def opened(settings: ClusterSettings, ask: AskPerson | None) -> Opened:
    """Connect and log in. Raises SlurmUnreachable, AccessRefused and ConfigError; nothing was sent then."""
    through: list[asyncssh.SSHClientConnection] = []
    found: Opened | None = None
    try:
        with anyio.move_on_after(settings.connect_timeout) as limit:
            found = Opened(await _open(first(settings), settings, Person(ask, limit), through), tuple(through))
    finally:
        if found is None:
            for each in through:
                each.abort()
    if found is None:
        raise SlurmUnreachable(
            f"{settings.host} did not let us in within {settings.connect_timeout:.0f} s.",
            hint=f"Try `ssh {settings.host}`; behind a slow network raise connect_timeout.",
        )
    return found


async def _open(
    hop: Hop, settings: ClusterSettings, person: Person, through: list[asyncssh.SSHClientConnection], depth: int = 0
) -> asyncssh.SSHClientConnection:
    """Open a hop through those that it names; they are added to `through`."""
    goal = target(hop, settings)
    tunnel: asyncssh.SSHClientConnection | None = None
    jumps = [jump for jump in goal.jumps if jump.host != hop.host]  # `Host *` with a ProxyJump means the jump host too
    if depth > _JUMPS:
        raise ConfigError("ProxyJump", hop.host, "goes in a circle", hint="Mend it in the SSH configuration.")
    for jump in jumps:
        tunnel = await _open(jump, settings, person, through, depth + 1) if tunnel is None else (
            await _connect(jump, target(jump, settings), settings, person, tunnel)
        )  # fmt: skip
        through.append(tunnel)
    return await _connect(hop, goal, settings, person, tunnel)


async def _connect(
    hop: Hop,
    goal: Target,
    settings: ClusterSettings,
    person: Person,
    tunnel: asyncssh.SSHClientConnection | None,
) -> asyncssh.SSHClientConnection:
    known = known_keys(goal)
    client = _Client(goal, person)
    try:
        return await asyncssh.connect(
            hop.host, options=options(hop, settings), tunnel=tunnel, known_hosts=known, client_factory=lambda: client
        )
    except (asyncssh.Error, OSError, ValueError) as error:
        raise _told(error, goal, client, person, settings, known) from error


def _told(
    error: Exception,
    goal: Target,
    client: _Client,
    person: Person,
    settings: ClusterSettings,
    known: asyncssh.SSHKnownHosts,
) -> AgentToolsError:
    """The error of ours that says what happened and what to do."""
    where = f"{goal.host}:{goal.port}"
    if isinstance(error, asyncssh.HostKeyNotVerifiable | asyncssh.KeyExchangeFailed):
        return _distrusted(error, goal, client, settings, known)
    if isinstance(error, asyncssh.PermissionDenied):
        return _shut_out(goal, person, settings)
    if isinstance(error, socket.gaierror):
        return SlurmUnreachable(
            f"{goal.host} is not a name that this machine knows.", hint="Check `host`, the network and the VPN."
        )
    if isinstance(error, ValueError):
        return ConfigError("host", settings.host, f"cannot be used: {error}", hint="Mend the SSH configuration.")
    what = trust.line(getattr(error, "strerror", None) or str(error) or type(error).__name__)
    return SlurmUnreachable(f"{where} cannot be reached over SSH: {what}", hint=f"Try `{by_hand(goal, settings)}`.")


def _distrusted(
    error: Exception, goal: Target, client: _Client, settings: ClusterSettings, known: asyncssh.SSHKnownHosts
) -> Distrusted:
    port = goal.port if goal.port != asyncssh.DEFAULT_PORT else None
    trusted = asyncssh.match_known_hosts(known, goal.name, "", port)[0]
    key = client.key
    shown = "" if key is None else f" ({key.get_algorithm()} {key.get_fingerprint()})"
    label = goal.name if port is None else f"[{goal.name}]:{port}"
    if key is not None and trusted:
        kept = ", ".join(str(path) for path in goal.files if path.exists())
        return Distrusted(
            f"The host key of {label} has changed{shown}: somebody may be in between.",
            hint=f"Ask the site's staff. Only when they confirm this key: `ssh-keygen -R '{label}' -f {kept}`, then "
            f"`{by_hand(goal, settings)}` once by hand.",
        )
    if key is not None:
        return Distrusted(
            f"The host key of {label} is not known{shown}.",
            hint=f"A person has to run `{by_hand(goal, settings)}` once, compare this fingerprint with the one that "
            "the site publishes, and answer yes.",
        )
    words = f"{label} has no host key of a kind that is known for it, or no common way to encrypt: {error}"
    return Distrusted(trust.line(words), hint=f"Run `{by_hand(goal, settings)}` once by hand.")


def _shut_out(goal: Target, person: Person, settings: ClusterSettings) -> AccessRefused:
    if person.silent:
        return Unanswered(
            f"{goal.spelled} asks for a code or a password, and nobody answered.",
            hint="Use a key (`ssh-add`, or IdentityFile in the SSH configuration), or a client that can ask you.",
        )
    return AccessRefused(
        f"{goal.spelled} refused the login.",
        hint=f"Load the right key (`ssh-add`) until `{by_hand(goal, settings)}` works.",
    )
