"""Why a login failed, and what a person does about it: the errors of ours for those of asyncssh."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import asyncssh

from slurm_agent_tools.errors import AccessRefused, AgentToolsError, ConfigError, SlurmUnreachable
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport.ssh.identity_keys import Keys
from slurm_agent_tools.transport.ssh.known_hosts import KnownHostLine, KnownHosts
from slurm_agent_tools.transport.ssh.target import SshTarget, by_hand

_TRIED = "Too many authentication failures"  # as sshd says when MaxAuthTries is reached


class Distrusted(AccessRefused):
    """The host key is unknown, changed or revoked."""


class Unanswered(AccessRefused):
    """A code or password was asked for and nobody answered; the next caller may have somebody to ask."""


@dataclass(frozen=True, slots=True)
class FailedLogin:
    """What was seen of a login that failed. `key`: the host's, where it is not trusted; `silent`: nobody answered."""

    goal: SshTarget
    known: KnownHosts
    settings: ClusterSettings
    key: asyncssh.SSHKey | None
    silent: bool
    keys: Keys

    @property
    def hand(self) -> str:
        """The command with which a person tries the same."""
        return by_hand(self.goal, self.settings)


def login_error(error: Exception, seen: FailedLogin) -> AgentToolsError:
    """The error of ours that says what happened and what to do."""
    goal, where = seen.goal, f"{seen.goal.host}:{seen.goal.port}"
    if isinstance(error, asyncssh.HostKeyNotVerifiable | asyncssh.KeyExchangeFailed):
        return _distrusted(error, seen)
    if isinstance(error, asyncssh.PermissionDenied) or _TRIED in str(error):
        return _shut_out(seen, cut=_TRIED in str(error))
    if isinstance(error, socket.gaierror):
        return SlurmUnreachable(
            f"{goal.host} is not a name that this machine knows.", hint="Check `host`, the network and the VPN."
        )
    if isinstance(error, ValueError):
        return ConfigError("host", seen.settings.host, f"cannot be used: {error}", hint="Mend the SSH configuration.")
    what, more = sanitize.line(getattr(error, "strerror", None) or str(error) or type(error).__name__), ""
    if goal.command:
        what = "its ProxyCommand ended before the login"
    elif isinstance(error, asyncssh.ConnectionLost | ConnectionResetError):
        what = "it closed the connection before the login"
        more = "Too many may be logging in, or this address is shut out there; call again. "
    return SlurmUnreachable(f"{where} cannot be reached over SSH: {what}", hint=f"{more}Try `{seen.hand}`.")


def _distrusted(error: Exception, seen: FailedLogin) -> Distrusted:
    key, known, hand = seen.key, seen.known, seen.hand
    shown = "" if key is None else f" ({key.get_algorithm()} {key.get_fingerprint()})"
    if "revoked" in str(error):
        return Distrusted(
            f"The host key of {known.label} is revoked ({_places(known.revoking)}): somebody may use a stolen key.",
            hint="Ask the site's staff. Nothing is to be done here before they have given the host a new key.",
        )
    if key is not None and known.trusting():
        old = known.trusting()
        out = [f"`{shlex.join(['ssh-keygen', '-R', known.label, '-f', path])}`" for path in _files(old)]
        return Distrusted(
            f"The host key of {known.label} has changed{shown}: somebody may be in between. Known is "
            f"the one in {_places(old)}.",
            hint=f"Ask the site's staff. Only when they confirm this key: {', '.join(out)}, then once `{hand}`.",
        )
    if key is not None:
        return Distrusted(
            f"The host key of {known.label} is not known{shown}.",
            hint=f"A person has to run `{hand}` once, compare this fingerprint with the one that the site publishes, "
            "and answer yes.",
        )
    if "CA key" in str(error):
        return Distrusted(
            f"The certificate of {known.label} is of an authority that known_hosts does not name for it.",
            hint=f"Ask the site's staff for its line `@cert-authority`, then try `{hand}`.",
        )
    words = f"{known.label} shows no host key that is known for it, or has no common way to encrypt: {error}"
    return Distrusted(sanitize.line(words), hint=f"Run `{hand}` once by hand.")


def _places(lines: Sequence[KnownHostLine]) -> str:
    return ", ".join(list(dict.fromkeys(sanitize.line(str(line)) for line in lines))[:3])


def _files(lines: Sequence[KnownHostLine]) -> list[str]:
    return list(dict.fromkeys(str(line.path) for line in lines))


def _shut_out(seen: FailedLogin, *, cut: bool) -> AccessRefused:
    goal, hand = seen.goal, f"until `{seen.hand}` works"
    locked = seen.keys.locked[:1]
    why = "".join(f" {path} has a passphrase and is not in the SSH agent." for path in locked)
    load = f"Load it with `{shlex.join(['ssh-add', *locked])}` {hand}." if locked else ""
    if seen.silent:
        return Unanswered(
            f"{goal.spelled} asks for a code or a password, and nobody answered.{why}",
            hint=load
            or "Use a key (`ssh-add`, or IdentityFile in the SSH configuration), or a client that can ask you.",
        )
    if cut and seen.keys.held:
        return AccessRefused(
            f"{goal.spelled} let no more keys be tried: {seen.keys.held} of the SSH agent are offered first.",
            hint=f"Name the right one with `IdentityFile` and `IdentitiesOnly yes` in the SSH configuration {hand}.",
        )
    return AccessRefused(
        f"{goal.spelled} refused the login.{why}", hint=load or f"Load the right key (`ssh-add`) {hand}."
    )
