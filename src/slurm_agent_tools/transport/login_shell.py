r"""How a command travels through a login shell that nobody here knows, and how its output is told from that shell's.

The login shell gets one fixed line, the same text in sh, bash, zsh, csh, tcsh and fish: a POSIX sh takes its place and
reads one line of standard input. That line has only letters, digits and octal numbers; undone by `printf %b`, it is
the real command. What follows it on standard input is the command's own.

Before the command takes sh's place, sh prints a random mark and one word on both outputs. What start-up files printed
comes before the mark and is left out; a session without a mark ran nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# No backslash, newline, exclamation mark or quote inside the single quotes: csh and fish read those even there.
START = """exec /bin/sh -c 'IFS= read -r x && eval "$(printf %b "$x")"'"""

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./,:=+@")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_NOISE = 256 * 1024


def as_bytes(text: str) -> bytes:
    """The bytes of a word, those that are not UTF-8 as Python keeps them (PEP 383)."""
    return text.encode("utf-8", "surrogateescape")


def as_text(raw: bytes) -> str:
    """The way back."""
    return raw.decode("utf-8", "surrogateescape")


def quoted(word: str) -> bytes:
    """One word for a POSIX shell. ValueError where it holds a NUL, which no argument can."""
    raw = as_bytes(word)
    if b"\0" in raw:
        raise ValueError("an argument cannot hold a NUL")
    return b"'" + raw.replace(b"'", b"'\\''") + b"'"


def line(program: str, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, mark: str) -> bytes:
    """The one line that runs `program`, a path or a name to look for on env's PATH, with `argv[1:]` and only `env`.

    The word beside the mark is `ok`, `folder` where `cwd` cannot be entered, or `missing`. ValueError for what no
    argument can hold.
    """
    for name in env:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a variable")
    given = {b"m": mark, b"d": cwd or "", b"p": program, b"q": env.get("PATH", "")}
    parts = [
        *(name + b"=" + quoted(value) for name, value in given.items()),
        _FIND,
        b"exec /usr/bin/env -i " + b" ".join(quoted(f"{name}={value}") for name, value in env.items()),
        b' "$f" ' + b" ".join(quoted(word) for word in argv[1:]),
    ]
    return encoded(b"\n".join(parts[:-1]) + parts[-1]) + b"\n"


# Functions, aliases and builtins of sh count for nothing. env would take a path with `=` for a variable.
_FIND = b"""\
say() { printf '\\n%s %s\\n' "$m" "$1"; printf '\\n%s %s\\n' "$m" "$1" >&2; }
unset CDPATH
if [ -n "$d" ]; then cd -- "$d" 2>/dev/null || { say folder; exit 126; }; fi
set -f
f=
case $p in
*/*) f=$p ;;
*) IFS=:
for d in $q; do if [ -z "$f" ] && [ -n "$d" ] && [ -f "$d/$p" ] && [ -x "$d/$p" ]; then f=$d/$p; fi; done ;;
esac
case $f in *=*) f= ;; esac
if [ -f "$f" ] && [ -x "$f" ]; then say ok; else say missing; exit 126; fi"""


def encoded(text: bytes) -> bytes:
    """The text for `printf %b`: every byte that any shell could mind becomes an octal number."""
    return b"".join(bytes([byte]) if byte in _PLAIN else b"\\0%03o" % byte for byte in text)


def login_line(mark: str) -> bytes:
    """For a login shell without a command: prints the environment that it has made and who it runs for, then the mark.

    `id` is looked for by the PATH that the shell has made, as every command is that follows.
    """
    return f"exec /bin/sh -c 'echo; echo {mark} ok; /usr/bin/env -0; id -un; printf {mark}'\n".encode("ascii")


@dataclass(frozen=True, slots=True)
class LoginShell:
    """What a login shell has made: its variables, and the user's name, empty where it is not told."""

    environ: dict[str, str]
    user: str


def told(out: FramedOutput, mark: str) -> LoginShell | None:
    """What `login_line` printed; None where it is not whole."""
    whole, end, _ = bytes(out.data).rpartition(mark.encode("ascii"))
    raw, _, user = whole.rpartition(b"\0")
    return LoginShell(variables(raw), as_text(user).strip()) if out.word is not None and end else None


def variables(raw: bytes) -> dict[str, str]:
    """What `env -0` printed; functions that bash exports are left out."""
    pairs = (part.partition(b"=") for part in raw.split(b"\0"))
    found = {as_text(name): as_text(value) for name, _, value in pairs}
    return {name: value for name, value in found.items() if _NAME.fullmatch(name)}


class FramedOutput:
    """One output of a session: what comes after the line with the mark, up to `limit` bytes."""

    def __init__(self, mark: str, limit: int) -> None:
        self._mark, self._limit = re.compile(rb"^%s ([^\n]*)\n" % mark.encode(), re.MULTILINE), limit
        self.noise, self.data = bytearray(), bytearray()
        self.word: str | None = None  # what stood beside the mark
        self.full = False

    def feed(self, chunk: bytes) -> None:
        """Take what arrived."""
        if self.word is not None:
            self._keep(chunk)
            return
        self.noise += chunk
        found = self._mark.search(self.noise)
        if found is None:
            del self.noise[:-_NOISE]
            return
        self.word = as_text(found[1])
        rest = bytes(self.noise[found.end() :])
        del self.noise[found.start() :]
        self._keep(rest)

    def _keep(self, chunk: bytes) -> None:
        room = self._limit - len(self.data)
        self.data += chunk[:room]
        self.full = self.full or len(chunk) > room
