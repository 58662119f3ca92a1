"""What the SSH configuration says about one host: the OpenSSH client is asked (ssh(1), -G), so it means what ssh does.

`ssh -G` connects to nothing. As any `ssh` does, it runs what `Match exec` names, and asks name servers where
CanonicalizeHostname wants that.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.process import environment, program

_FLAGS = {"yes": True, "true": True, "no": False, "false": False}

_NAME = re.compile(r"[\w.:@%+\[\]][\w.:@%+\[\]\\-]*")  # neither an option nor more than a word, for ssh and for a shell

_TOKEN = re.compile(r"%(.?)")

_VARIABLE = re.compile(r"\$\{(.*?)\}")

_ENDED = re.compile(r": terminating, \d+ bad configuration options$")  # ssh's last line, after the one that says why

_WORDS = 400  # letters of what ssh says


class NoClient(ValueError):
    """The OpenSSH client is not installed."""


class NoAnswer(ValueError):
    """No name server knows the host, or ssh did not come to an end."""


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

    def some(self, keyword: str) -> list[str]:
        """All values, none of them for `none`."""
        return [each for each in self.values.get(keyword, ()) if each.lower() != "none"]

    def flag(self, keyword: str) -> bool | None:
        """yes or no; None where nothing is said, or something in between."""
        return _FLAGS.get(self.values.get(keyword, ("",))[0].lower())

    def files(self, keyword: str) -> list[Path]:
        """The paths of a line that names several. ssh writes them without quotes: each new one begins at a root."""
        paths: list[str] = []
        for word in (self.one(keyword) or "").split(" "):
            if paths and re.match(r"[/~\\]|[A-Za-z]:[/\\]|none$", word) is None:
                paths[-1] += f" {word}"
            else:
                paths.append(word)
        return [Path(at_home(path)) for path in paths if path not in {"", "none"}]

    def path(self, text: str) -> str:
        """A path with its home folder, tokens and ${VARIABLES}: ssh leaves those of keys as written. ValueError."""

        def known(match: re.Match[str]) -> str:
            if match[1] not in os.environ:
                raise ValueError(f"the variable {match[1]} is not set")
            return os.environ[match[1]]

        return _VARIABLE.sub(known, self.filled(at_home(text)))

    def filled(self, text: str) -> str:
        """A text with its tokens (ssh_config(5), TOKENS). ValueError for one that is not known."""
        here, (account, home) = socket.gethostname(), _account()
        known_as = self.one("hostkeyalias") or self.name
        tokens = {"%": "%", "L": here.partition(".")[0], "d": home, "h": self.host, "k": known_as, "l": here,
                  "n": self.name, "p": str(self.port), "r": self.user, "u": account}  # fmt: skip
        if hasattr(os, "getuid"):
            tokens["i"] = str(os.getuid())

        def known(match: re.Match[str]) -> str:
            if match[1] not in tokens:
                raise ValueError(f"{match[0]} stands for nothing here")
            return tokens[match[1]]

        return _TOKEN.sub(known, text)


def read(
    path: Path | None, name: str, user: str | None, port: int | None, *, seconds: float, canonical: bool = True
) -> HostValues:
    """Ask ssh about a host; None for the person's own file and the machine's. Raises ValueError with ssh's words.

    With `canonical` False no name server is asked, whatever CanonicalizeHostname says.
    """
    for each in (name, user):
        if each is not None and _NAME.fullmatch(each) is None:
            raise ValueError(f"{each!r} is more than a name")
    words = [_client(), "-G", "-T"]
    words += ["-F", str(path)] if path is not None else []
    words += ["-l", user] if user is not None else []
    words += ["-p", str(port)] if port is not None else []
    words += [] if canonical else ["-o", "CanonicalizeHostname=no"]
    done = process.answered([*words, "--", name], timeout=seconds, env=environment())
    if done.exit_code != 0:
        raise _failed(done, seconds)
    return _parsed(name, done.stdout.decode("utf-8", "surrogateescape"))


def _client() -> str:
    """Where ssh is. Not in a folder that depends on where we run: what lies in a project is not the person's ssh."""
    found = program("ssh")
    if found is None:
        raise NoClient("ssh is in no folder of PATH")
    return found


def _failed(done: process.EndedProcess, seconds: float) -> ValueError:
    if done.exit_code is None:
        return NoAnswer(
            f"`ssh -G` did not end within {seconds:.0f} s: what `Match exec` runs, or a name server, is slow"
        )
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    said = "; ".join(sanitize.line(line.strip()) for line in lines if line.strip() and _ENDED.search(line) is None)
    kind = NoAnswer if "Could not resolve host" in said else ValueError
    return kind(said[-_WORDS:] or f"`ssh -G` ended with {done.exit_code}")


def _parsed(name: str, text: str) -> HostValues:
    values: dict[str, list[str]] = {}
    for line in text.split("\n"):
        keyword, _, rest = line.rstrip("\r").partition(" ")
        values.setdefault(keyword.lower(), []).append(rest)
    if not {"hostname", "user", "port"} <= values.keys() or not values["port"][0].isdecimal():
        raise ValueError("`ssh -G` names no host, user and port: it is no OpenSSH of 6.8 or later")
    named = values.get("host", [name])[0]  # less the user of USER@HOST
    return HostValues(named, values["hostname"][0], int(values["port"][0]), values["user"][0], values)


def at_home(text: str) -> str:
    """A path with the home folder in place of ~, as ssh takes it: the account's, whatever HOME says."""
    tilde, slash, rest = text.partition("/")
    if tilde == "~":
        return f"{_account()[1]}{slash}{rest}"
    return os.path.expanduser(text)  # noqa: PTH111 - Path would drop a last slash and raise


def _account() -> tuple[str, str]:
    """The name and home folder of whom this process runs for."""
    try:
        import pwd  # noqa: PLC0415 - not on Windows
    except ImportError:
        return getpass.getuser(), str(Path.home())
    found = pwd.getpwuid(os.getuid())
    return found.pw_name, found.pw_dir
