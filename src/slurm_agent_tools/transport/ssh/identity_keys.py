"""The keys that a login offers, in OpenSSH's order: of the agent those that IdentityFile names, then its others, files.

With IdentitiesOnly the agent's others are left out (ssh_config(5)).
"""

from __future__ import annotations

import os
from pathlib import Path

import asyncssh
from asyncssh.sk import sk_available

from slurm_agent_tools.transport.ssh.ssh_config import HostValues, at_home


class Keys:
    """The keys for one login, looked for when they are asked for.

    `locked` are the files that have a passphrase and no key in the agent, `held` counts what the agent offers.
    """

    def __init__(self, found: HostValues) -> None:
        self._found = found
        self._agent: asyncssh.SSHAgentClient | None = None
        self._told = False
        self.locked: list[str] = []
        self.held = 0

    async def offered(self) -> list[asyncssh.SSHKeyPair]:
        """All of them at the first time, then none. ValueError for a path that cannot be."""
        if self._told:
            return []
        self._told = True
        paths = [self._found.path(text) for text in self._found.some("identityfile")]
        wanted = {blob: path for path in paths for blob in _public(path)}
        held = await self._of_agent()
        first = [pair for pair in held if pair.public_data in wanted]
        others = [] if self._found.flag("identitiesonly") else [pair for pair in held if pair not in first]
        self.held = len(first) + len(others)
        known = {wanted[pair.public_data] for pair in first}
        return [*first, *others, *(pair for path in paths if path not in known for pair in self._file(path))]

    def close(self) -> None:
        """Let go of the agent."""
        if self._agent is not None:
            self._agent.close()

    async def _of_agent(self) -> list[asyncssh.SSHKeyPair]:
        """What the agent holds; nothing where there is none."""
        named = self._found.values.get("identityagent", ("SSH_AUTH_SOCK",))[0]
        if named.lower() == "none":
            return []
        if named == "SSH_AUTH_SOCK" or named.startswith("$"):
            path = os.environ.get(named.strip("${}"), "")
        else:
            path = at_home(named)
        try:
            self._agent = await asyncssh.connect_agent(path)
            return list(await self._agent.get_keys())
        except (OSError, ValueError):
            return []

    def _file(self, path: str) -> list[asyncssh.SSHKeyPair]:
        """The key of a file, its certificate first; nothing where there is none that can be used."""
        certificates = [self._found.path(text) for text in self._found.some("certificatefile")]
        try:
            pairs = list(
                asyncssh.load_keypairs([path], certlist=[each for each in certificates if Path(each).is_file()])
            )
            return [pair for pair in pairs if sk_available or not pair.algorithm.startswith(b"sk-")]
        except OSError:
            return []
        except asyncssh.KeyImportError as error:
            if str(error).startswith("Passphrase"):
                self.locked.append(path)
            return []


def _public(path: str) -> list[bytes]:
    """The public parts of an identity, by which the agent knows it: of the file itself, or beside it."""
    found: list[bytes] = []
    for name in (path, f"{path}.pub"):
        try:
            found.append(asyncssh.read_public_key(name).public_data)
        except (OSError, asyncssh.KeyImportError):
            continue
    for name in (path, f"{path}-cert.pub"):
        try:
            found.append(asyncssh.read_certificate(name).public_data)
        except (OSError, asyncssh.KeyImportError):
            continue
    return found
