"""What ~/.ssh/config says about one host, read as OpenSSH reads it (ssh_config(5)): the first value found counts.

asyncssh's own reader gives up at lines that ssh takes: a comment behind a value, `ConnectTimeout 30s`, an `=` in a
command, a condition that it does not know.
"""

from __future__ import annotations

import getpass
import glob
import hashlib
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slurm_agent_tools import process
from slurm_agent_tools.slurm.ssh import words

_DEEPEST = 16  # files that include each other
_KEPT = frozenset(
    {"addressfamily", "bindaddress", "canonicaldomains", "canonicalizefallbacklocal", "canonicalizehostname",
     "canonicalizemaxdots", "casignaturealgorithms", "certificatefile", "ciphers", "compression",
     "globalknownhostsfile", "gssapiauthentication", "gssapidelegatecredentials", "gssapikeyexchange", "hostname",
     "hostkeyalgorithms", "hostkeyalias", "identitiesonly", "identityagent", "identityfile",
     "kbdinteractiveauthentication", "kexalgorithms", "macs", "passwordauthentication", "port",
     "preferredauthentications", "proxycommand", "proxyjump", "pubkeyauthentication", "sendenv", "setenv", "tag",
     "user", "userknownhostsfile"}
)  # fmt: skip
_OLD = {"challengeresponseauthentication": "kbdinteractiveauthentication"}
_ADDED = frozenset({"certificatefile", "identityfile", "sendenv"})
_FIRST_OF = frozenset({"proxycommand", "proxyjump"})  # whichever stands first
_FLAGS = {"yes": True, "true": True, "no": False, "false": False}


class BadLine(ValueError):
    """A line that cannot be read; says which."""


@dataclass(frozen=True, slots=True)
class Found:
    """The values for one host by keyword in small letters; `name` is the host as the person names it."""

    name: str
    host: str
    port: int
    user: str
    values: Mapping[str, Sequence[str]]

    def one(self, keyword: str) -> str | None:
        """The value; None where there is none, or `none`."""
        given = self.values.get(keyword, ("none",))[0]
        return None if given.lower() == "none" else given

    def some(self, keyword: str) -> list[str] | None:
        """All values, none of them for `none`; None where nothing is said."""
        given = self.values.get(keyword)
        return None if given is None else [each for each in given if each.lower() != "none"]

    def flag(self, keyword: str) -> bool | None:
        """yes or no; None where nothing is said, or something in between."""
        return _FLAGS.get(self.values.get(keyword, ("",))[0].lower())

    def path(self, text: str) -> str:
        """A path with its tokens, variables and home folder. ValueError."""
        return words.placed(self.filled(text))

    def filled(self, text: str) -> str:
        """A text with its tokens. ValueError."""
        here, jump = socket.gethostname(), self.one("proxyjump") or ""
        port, known = str(self.port), self.one("hostkeyalias") or self.name
        whole = hashlib.sha1(f"{here}{self.host}{port}{self.user}{jump}".encode(), usedforsecurity=False).hexdigest()
        tokens = {"C": whole, "L": here.partition(".")[0], "d": str(Path.home()), "h": self.host, "j": jump, "k": known,
                  "l": here, "n": self.name, "p": port, "r": self.user, "u": getpass.getuser()}  # fmt: skip
        return words.expanded(text, tokens | ({"i": str(os.getuid())} if hasattr(os, "getuid") else {}))


def read(path: Path | None, name: str, user: str | None, port: int | None, whole: str | None = None) -> Found:
    """Read the file, or the usual one where it is None. Raises ValueError, and OSError for a file that was named.

    `whole` is the name with its domain where CanonicalizeHostname has found one; then Host looks at that, too.
    """
    given = {key: [str(value)] for key, value in (("user", user), ("port", port)) if value is not None}
    look = _Look(name, given)
    usual = Path.home() / ".ssh" / "config"
    if path is not None or os.access(usual, os.R_OK):
        look.file(path or usual)
        if whole is not None or look.twice:
            look.again(whole)
            look.file(path or usual)
    return look.found()


class _Look:
    """One host's values, filled file by file."""

    def __init__(self, name: str, values: dict[str, list[str]]) -> None:
        self._name, self._values = name, values
        self._looked, self._holding = name, {"all"}
        self.twice = False  # something asks for a second reading

    def again(self, whole: str | None) -> None:
        """The second reading: what was found counts, and Host looks at the real name."""
        if whole is not None:
            self._values["hostname"] = [whole.replace("%", "%%")]
        self._looked = self.found().host
        self._holding = {"all", "final"} | ({"canonical"} if whole is not None else set())

    def found(self) -> Found:
        """What is known by now. ValueError."""
        port = self._values.get("port", ["22"])[0]
        if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise ValueError(f"Port {port} is not a number from 1 to 65535")
        host = words.expanded(self._values.get("hostname", [self._name])[0], {"h": self._name})
        user = self._values.get("user", [""])[0] or getpass.getuser()
        return Found(self._name, host, int(port), user, self._values)

    def file(self, path: Path, depth: int = 0) -> None:
        """Read one file and what it includes."""
        if depth > _DEEPEST:
            raise BadLine(f"{path}: files include each other")
        holds = True
        for number, keyword, rest in words.lines(path):
            try:
                if keyword == "host":
                    holds = words.fits(words.split(rest), self._looked)
                elif keyword == "match":
                    holds = self._match(words.conditions(words.split(rest)))
                elif holds and keyword == "include":
                    self._include(words.split(rest), depth)
                elif holds and _OLD.get(keyword, keyword) in _KEPT:
                    self._keep(_OLD.get(keyword, keyword), rest)
            except BadLine:
                raise
            except ValueError as error:
                raise BadLine(f"{path} line {number}: {error}") from error

    def _keep(self, keyword: str, rest: str) -> None:
        given = [rest] if keyword == "proxycommand" else words.split(rest)
        if not given or not given[0]:
            raise ValueError(f"{keyword} has no value")
        if keyword in _ADDED:
            now = self._values.setdefault(keyword, [])
            now += [each for each in given if each not in now]
        elif keyword not in _FIRST_OF or not _FIRST_OF & self._values.keys():
            self._values.setdefault(keyword, given)

    def _include(self, patterns: Sequence[str], depth: int) -> None:
        for pattern in patterns:
            place = Path.home() / ".ssh" / words.placed(pattern)
            for path in sorted(glob.glob(str(place))):  # noqa: PTH207 - an absolute pattern has no folder to start from
                if Path(path).is_file():
                    self.file(Path(path), depth + 1)

    def _match(self, given: Sequence[tuple[bool, str, str]]) -> bool:
        self.twice = self.twice or any(name in {"canonical", "final"} for _, name, _ in given)
        return all(self._holds(negated, name, value) for negated, name, value in given)

    def _holds(self, negated: bool, name: str, value: str) -> bool:
        """Whether a condition holds. One that is not known here does not, nor does its opposite."""
        if name in {"all", "canonical", "final"}:
            return (name in self._holding) is not negated
        found = self.found()
        if name == "exec":
            return process.succeeds(found.filled(value)) is not negated
        looked = {"host": found.host, "originalhost": self._name, "user": found.user, "localuser": getpass.getuser(),
                  "tagged": found.one("tag") or ""}  # fmt: skip
        if name not in looked:
            return False
        small = name.endswith("host")
        text, patterns = (looked[name].lower(), value.lower()) if small else (looked[name], value)
        return words.fits(patterns.split(","), text) is not negated
