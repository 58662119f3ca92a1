"""The host keys that known_hosts names, as OpenSSH counts them (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import asyncssh
from asyncssh.public_key import get_certificate_algs, get_public_key_algs

from slurm_agent_tools.text import safe_open
from slurm_agent_tools.transport.ssh.target import SshTarget

_LARGEST = 16 * 2**20  # bytes; sites list thousands of hosts

Keys = tuple[list[asyncssh.SSHKey], list[asyncssh.SSHKey], list[asyncssh.SSHKey]]  # trusted, of authorities, revoked


@dataclass(frozen=True, slots=True)
class KnownHostLine:
    """One line that names this host."""

    path: Path
    number: int
    keys: Keys

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


class KnownHosts:
    """What all files say about one host. Without a line nobody is trusted."""

    def __init__(self, goal: SshTarget) -> None:
        plain = goal.port == asyncssh.DEFAULT_PORT
        self.label = goal.name if plain else f"[{goal.name}]:{goal.port}"
        rows = list(_rows(goal.files))
        exact, loose = _lines(rows, self.label), [] if plain else _lines(rows, goal.name)
        # As ssh does it: a key without the port counts where none is known with it. What is revoked is so for both.
        self.lines = exact if any(line.keys[0] or line.keys[1] for line in exact) else exact + loose
        self.revoking = [line for line in exact + loose if line.keys[2]]

    @property
    def authorities(self) -> list[asyncssh.SSHKey]:
        """Keys that sign the host's certificate."""
        return [key for line in self.lines for key in line.keys[1]]

    def trusting(self) -> list[KnownHostLine]:
        """The lines with a key of the host itself."""
        return [line for line in self.lines if line.keys[0]]

    def kinds(self, allowed: Sequence[str]) -> list[str]:
        """Of the kinds of host keys that ssh would take, in its order: those that are known first.

        The others follow: a person who compares fingerprints has to see the key that ssh shows. ValueError for none.
        """
        able = {name.decode("ascii") for name in (*get_certificate_algs(), *get_public_key_algs())}
        taken = [name for name in allowed if name in able]
        signed = [name for name in taken if "-cert-" in name]
        mine = {name.decode("ascii") for key in self(self.label, "", None)[0] for name in key.sig_algorithms}
        plain = [name for name in taken if name not in signed]
        plain.sort(key=lambda name: name not in mine)
        if not plain:
            raise ValueError(f"HostKeyAlgorithms names only what is not known here: {','.join(allowed)}")
        return [*(signed if self.authorities else ()), *plain]

    def __call__(self, host: str, addr: str, port: int | None) -> Keys:  # noqa: ARG002
        """For asyncssh. The address counts for nothing: whoever rules the names could choose it."""
        return (
            [key for line in self.lines for key in line.keys[0]],
            self.authorities,
            [key for line in self.revoking for key in line.keys[2]],
        )


def _rows(files: Sequence[Path]) -> Iterator[tuple[Path, int, asyncssh.SSHKnownHosts]]:
    """Each line by itself; one that cannot be read counts for nothing, as ssh has it."""
    for path in files:
        try:
            text = safe_open.read(path, _LARGEST).decode("utf-8", "replace")
        except OSError:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            with suppress(ValueError):
                yield path, number, asyncssh.import_known_hosts(line)


def _lines(rows: Sequence[tuple[Path, int, asyncssh.SSHKnownHosts]], label: str) -> list[KnownHostLine]:
    found = []
    for path, number, row in rows:
        trusted, authorities, revoked, *_ = asyncssh.match_known_hosts(row, label, "", None)
        if trusted or authorities or revoked:
            found.append(KnownHostLine(path, number, (list(trusted), list(authorities), list(revoked))))
    return found
