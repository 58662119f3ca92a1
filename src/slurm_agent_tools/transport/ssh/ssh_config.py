"""What ~/.ssh/config says about one host, read as OpenSSH reads it (ssh_config(5)): the first value found counts.

asyncssh's own reader gives up at lines that ssh takes: a comment behind a value, `ConnectTimeout 30s`, an `=` in a
command, a condition that it does not know.
"""

from __future__ import annotations

import getpass
import glob
import hashlib
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slurm_agent_tools.transport import process

_BLANK = " \t\r\f"

_TOKEN = re.compile(r"%(.?)")

_VARIABLE = re.compile(r"\$\{(.*?)\}")

_ALONE = frozenset({"all", "canonical", "final"})  # conditions without a value


def lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """(number, keyword in small letters, the rest of the line). OSError."""
    text = path.read_bytes().decode("utf-8", "surrogateescape").removeprefix("\ufeff")  # as editors on Windows write
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"([^\s=\"#]+)[ \t]*=?[ \t]*(.*)", line.strip(_BLANK))
        if found is not None:
            yield number, found[1].lower(), found[2]


def split(text: str) -> list[str]:
    """Split at blanks; quotes hold together, a backslash keeps a quote, a blank or itself, `#` ends. ValueError."""
    found: list[str] = []
    word: str | None = None
    quote, place = "", 0
    while place < len(text):
        char, after = text[place], text[place + 1 : place + 2]
        place += 1
        if char == "\\" and after and (after in "\\\"'" or (after == " " and not quote)):
            word, place = (word or "") + after, place + 1
        elif char == quote:
            quote = ""
        elif not quote and char in "\"'":
            word, quote = word or "", char
        elif not quote and char in _BLANK:
            found, word = found if word is None else [*found, word], None
        elif not quote and char == "#" and word is None:
            break
        else:
            word = (word or "") + char
    if quote:
        raise ValueError("a quote is not closed")
    return found if word is None else [*found, word]


def fits(patterns: Sequence[str], text: str) -> bool:
    """Whether a pattern fits and none that is negated does."""
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return any(_fits(each, text) for each in wanted) and not any(_fits(each, text) for each in unwanted)


def _fits(pattern: str, text: str) -> bool:
    parts = ({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def conditions(given: Sequence[str]) -> list[tuple[bool, str, str]]:
    """What Match names, as (negated, name, value). ValueError."""
    found: list[tuple[bool, str, str]] = []
    rest = list(given)
    while rest:
        name, _, value = rest.pop(0).partition("=")
        negated, name = name.startswith("!"), name.removeprefix("!").lower()
        if name not in _ALONE:
            if not value and rest[:1] == ["="]:
                rest.pop(0)
            if not value and not rest:
                raise ValueError(f"Match {name} has no value")
            value = value or rest.pop(0)
        found.append((negated, name, value))
    if not found:
        raise ValueError("Match has no condition")
    return found


def expanded(text: str, tokens: Mapping[str, str]) -> str:
    """Put in what %h and its kin stand for. ValueError for one that is not known."""

    def known(found: re.Match[str]) -> str:
        if found[1] == "%":
            return "%"
        if found[1] not in tokens:
            raise ValueError(f"{found[0]} stands for nothing here")
        return tokens[found[1]]

    return _TOKEN.sub(known, text)


def placed(text: str) -> str:
    """A path with its ${VARIABLES} and home folder. ValueError."""

    def known(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise ValueError(f"the variable {found[1]} is not set")
        return os.environ[found[1]]

    return os.path.expanduser(_VARIABLE.sub(known, text))  # noqa: PTH111 - Path would drop a last slash and raise


# --- What ~/.ssh/config says about one host, read as OpenSSH reads it (ssh_config(5)): the first value found counts ---


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
class HostValues:
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
        return placed(self.filled(text))

    def filled(self, text: str) -> str:
        """A text with its tokens. ValueError."""
        here, jump = socket.gethostname(), self.one("proxyjump") or ""
        port, known = str(self.port), self.one("hostkeyalias") or self.name
        whole = hashlib.sha1(f"{here}{self.host}{port}{self.user}{jump}".encode(), usedforsecurity=False).hexdigest()
        tokens = {"C": whole, "L": here.partition(".")[0], "d": str(Path.home()), "h": self.host, "j": jump, "k": known,
                  "l": here, "n": self.name, "p": port, "r": self.user, "u": getpass.getuser()}  # fmt: skip
        return expanded(text, tokens | ({"i": str(os.getuid())} if hasattr(os, "getuid") else {}))


def read(path: Path | None, name: str, user: str | None, port: int | None, whole: str | None = None) -> HostValues:
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

    def found(self) -> HostValues:
        """What is known by now. ValueError."""
        port = self._values.get("port", ["22"])[0]
        if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise ValueError(f"Port {port} is not a number from 1 to 65535")
        host = expanded(self._values.get("hostname", [self._name])[0], {"h": self._name})
        user = self._values.get("user", [""])[0] or getpass.getuser()
        return HostValues(self._name, host, int(port), user, self._values)

    def file(self, path: Path, depth: int = 0) -> None:
        """Read one file and what it includes."""
        if depth > _DEEPEST:
            raise BadLine(f"{path}: files include each other")
        holds = True
        for number, keyword, rest in lines(path):
            try:
                if keyword == "host":
                    holds = fits(split(rest), self._looked)
                elif keyword == "match":
                    holds = self._match(conditions(split(rest)))
                elif holds and keyword == "include":
                    self._include(split(rest), depth)
                elif holds and _OLD.get(keyword, keyword) in _KEPT:
                    self._keep(_OLD.get(keyword, keyword), rest)
            except BadLine:
                raise
            except ValueError as error:
                raise BadLine(f"{path} line {number}: {error}") from error

    def _keep(self, keyword: str, rest: str) -> None:
        given = [rest] if keyword == "proxycommand" else split(rest)
        if not given or not given[0]:
            raise ValueError(f"{keyword} has no value")
        if keyword in _ADDED:
            now = self._values.setdefault(keyword, [])
            now += [each for each in given if each not in now]
        elif keyword not in _FIRST_OF or not _FIRST_OF & self._values.keys():
            self._values.setdefault(keyword, given)

    def _include(self, patterns: Sequence[str], depth: int) -> None:
        for pattern in patterns:
            place = Path.home() / ".ssh" / placed(pattern)
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
        return fits(patterns.split(","), text) is not negated
