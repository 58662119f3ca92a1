"""What goes between a project here and its folder on a cluster, and what never does: names, secrets, links. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from slurm_agent_tools.text import sanitize

RULES_FILE = ".slurm-agent-sync"
"""Beside the files that git tracks: what else goes there, what comes back, and what stays."""

PART = ".slurm-agent-part"
"""How the names end of files that are not whole yet."""

BRINGS = ("logs", "results", "checkpoints", "slurm-*.out")
"""What comes back where neither the call nor the rules file says."""

# --- Patterns, and the file that holds them ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SyncRules:
    """What a rules file says: patterns of what is `sent` beside tracked files, `brought` back, and `left` alone."""

    sent: tuple[str, ...] = ()
    brought: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def leave_alone(self, path: str) -> bool:
        """Whether a name is no part of it: git's own, files that are not whole yet, what the rules leave out."""
        parts = path.split("/")
        return ".git" in parts or any(part.endswith(PART) for part in parts) or matches(self.left, path)


def read_rules(text: str) -> SyncRules:
    """One pattern a line: sent as it stands, brought back behind `pull:`, left out behind `!`. Raises ValueError."""
    found: dict[str, list[str]] = {"sent": [], "brought": [], "left": []}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        kind = "left" if words.startswith("!") else "brought" if words.startswith("pull:") else "sent"
        try:
            found[kind].append(pattern(words.removeprefix("!").removeprefix("pull:").strip()))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return SyncRules(**{kind: tuple(patterns) for kind, patterns in found.items()})


def pattern(text: str) -> str:
    """A pattern or a name as it is compared: relative to the project. Raises ValueError for one that leaves it."""
    normal = posixpath.normpath(text) if text.strip() else ""
    if not normal or "\0" in normal:
        raise ValueError("name a file or a pattern")
    if normal.startswith("/") or ".." in text.split("/"):
        raise ValueError(f"{text} leaves the project: name what is inside, without a leading / and without ..")
    return normal


def is_name(text: str) -> bool:
    """Whether a pattern stands for one name only."""
    return not set("*?[") & set(text)


def matches(patterns: Iterable[str], path: str) -> bool:
    """Whether one of the patterns names a path, or a folder above it. `*` ends at a slash, `**` does not."""
    return any(_expression(one).fullmatch(path) is not None for one in patterns)


def starts(patterns: Iterable[str]) -> list[str]:
    """The folders or files below which everything lies that the patterns can name, none of them below another."""
    found: list[str] = []
    for one in patterns:
        parts = one.split("/")
        plain = [part for index, part in enumerate(parts) if all(is_name(each) for each in parts[: index + 1])]
        found.append("/".join(plain) or ".")
    return sorted({one for one in found if not any(one != above and _below(one, above) for above in found)})


def _below(path: str, folder: str) -> bool:
    return folder in {".", path} or path.startswith(f"{folder}/")


@cache
def _expression(one: str) -> re.Pattern[str]:
    if one == ".":
        return re.compile(r".*", re.DOTALL)
    *folders, last = one.split("/")
    made = "".join("(?:.*/)?" if part == "**" else f"{_piece(part)}/" for part in folders)
    made += ".+" if last == "**" else _piece(last)
    return re.compile(f"(?s:{made}(?:/.*)?)")


def _piece(part: str) -> str:
    """One name of a path: `*` and `?` stop at a slash, `[ab]` and `[!ab]` stand for one character."""
    made, at = "", 0
    while at < len(part):
        end = part.find("]", at + 2) if part[at] == "[" else -1
        if end > 0:
            inner = part[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            made += f"(?!/)[^{inner[1:]}]" if inner.startswith("!") else f"(?!/)[{inner.replace('^', chr(92) + '^')}]"
            at = end
        else:
            made += {"*": "[^/]*", "?": "[^/]"}.get(part[at], re.escape(part[at]))
        at += 1
    return made


# --- What must never leave this machine -------------------------------------------------------------------------------

_SECRET_NAMES = re.compile(
    r"\.env(?:\.(?!example$|sample$|template$|dist$).+)?|.+\.env|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|[._]netrc|\.pgpass"
    r"|\.git-credentials|\.htpasswd|\.vault-token|kaggle\.json|.+\.(?:p12|pfx|kdbx|jks|keystore|ppk)",
    re.IGNORECASE,
)

_SECRET_PLACES = re.compile(
    r"(?:^|/)(?:\.aws/credentials|\.docker/config\.json|\.kube/config|\.ssh/(?!config$|known_hosts$).+(?<!\.pub)"
    r"|\.config/gcloud/.+|\.gnupg/.+)$"
)

_KINDS = frozenset(
    {"private-key", "netrc", "own-token", "github", "gitlab", "hugging-face", "slack", "package-host", "model-host"}
)

_KEY_LENGTH = 150  # characters; a text that only names the first line of a key is none

LOOKED_AT = 256 * 2**10
"""Bytes at the beginning of a file in which secrets are looked for."""


def secret_name(path: str) -> str | None:
    """Why a file is taken for a secret by its name; None for one that is not."""
    name = posixpath.basename(path)
    if _SECRET_NAMES.fullmatch(name) or _SECRET_PLACES.search(path):
        return "by its name it holds secrets"
    return None


def secret_content(beginning: bytes) -> str | None:
    """Why a file is taken for a secret by what it begins with; None for one that is not."""
    text = beginning[:LOOKED_AT].decode("utf-8", "replace")
    lowered = text.lower()
    for row in sanitize.ROWS:
        if row.id in _KINDS and any(word in lowered for word in row.words):
            for match in re.finditer(row.source, text):
                if row.id != "private-key" or len(match[0]) > _KEY_LENGTH:
                    return f"it holds what looks like a secret ({row.id})"
    return None


# --- What is where, and what has to move ------------------------------------------------------------------------------

SyncKind = Literal["file", "link", "dir", "other"]


@dataclass(frozen=True, slots=True)
class SyncEntry:
    """One name on one side. `size` in bytes; `sha256` None where it was not needed; `leads`: where a link does."""

    path: str
    kind: SyncKind
    size: int = 0
    executable: bool = False
    sha256: str | None = None
    leads: str | None = None


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A name that is not touched, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What has to move, what stays as it is, and what is refused."""

    moves: tuple[SyncEntry, ...] = ()
    unchanged: int = 0
    refused: tuple[KeptFile, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all that has to move."""
        return sum(entry.size for entry in self.moves)


def folders_above(path: str) -> Iterator[str]:
    """The folders on the way to a path, from the top."""
    parts = path.split("/")[:-1]
    yield from ("/".join(parts[: index + 1]) for index in range(len(parts)))


def leads_out(path: str, leads: str) -> bool:
    """Whether a link in the project leads out of it; an absolute one leads somewhere else on the other side."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), leads))
    return leads.startswith("/") or target == ".." or target.startswith("../")


def sendable(entry: SyncEntry) -> str | None:
    """Why a name of the project is not sent; None where it may be."""
    why = secret_name(entry.path)
    if why is None and entry.kind == "link" and leads_out(entry.path, entry.leads or "/"):
        why = "it is a link that leads out of the project"
    if why is None and entry.kind == "dir":
        why = "it is a folder of another repository"
    if why is None and entry.kind == "other":
        why = "it is neither a file nor a link"
    return why


def plan_push(here: Sequence[SyncEntry], there: Mapping[str, SyncEntry]) -> SyncPlan:
    """What has to go there. `there` has the folders on the way too."""
    moves, refused, unchanged = [], [], 0
    for entry in here:
        why = sendable(entry) or _in_the_way(entry.path, there, "there")
        found = there.get(entry.path)
        if why is not None:
            refused.append(KeptFile(entry.path, why))
        elif found is not None and alike(entry, found):
            unchanged += 1
        else:
            moves.append(entry)
    return SyncPlan(tuple(moves), unchanged, tuple(refused))


def alike(one: SyncEntry, other: SyncEntry) -> bool:
    """Whether both sides have the same under a name."""
    if one.kind != other.kind:
        return False
    if one.kind == "link":
        return one.leads == other.leads
    return one.sha256 is not None and one.sha256 == other.sha256 and one.executable == other.executable


def plan_pull(
    names: Sequence[str],
    there: Mapping[str, SyncEntry],
    here: Mapping[str, SyncEntry],
    *,
    tracked: frozenset[str],
    named: frozenset[str],
    protected: Mapping[str, str],
) -> SyncPlan:
    """What comes back of the `names`. What git tracks is only overwritten where it is `named`.

    Both sides have the folders on the way too. `protected`: path -> the pattern of the policy that protects it.
    """
    moves, refused, unchanged = [], [], 0
    for entry in (there[name] for name in names if name in there):
        found = here.get(entry.path)
        if found is not None and found.sha256 is not None and found.sha256 == entry.sha256:
            unchanged += 1
            continue
        why = _in_the_way(entry.path, there, "there") or _in_the_way(entry.path, here, "here")
        if why is None and entry.path == RULES_FILE:
            why = "it says what goes there and what comes back: it is changed here alone"
        if why is None and entry.path in protected:
            why = f"the policy protects it by `{protected[entry.path]}`"
        if why is None and entry.path in tracked and entry.path not in named:
            why = "git tracks it and it differs here: name exactly this file in paths to overwrite it"
        if why is None:
            moves.append(entry)
        else:
            refused.append(KeptFile(entry.path, why))
    return SyncPlan(tuple(moves), unchanged, tuple(refused))


_LEFT = re.compile(rf"\.(.{{0,50}})\.(?:[0-9a-f]{{8}}\.tmp|[0-9a-f]{{12}}{re.escape(PART)})", re.DOTALL)


def leftovers(names: Iterable[str], there: Mapping[str, SyncEntry]) -> list[str]:
    """What broken transfers of these names left there, beside them, by exactly the names that a transfer gives them.

    What one of the names is, or what lies behind a link, is none.
    """
    whole = frozenset(names)
    begun = {(posixpath.dirname(name), posixpath.basename(name)[:50]) for name in whole}
    found = []
    for path, entry in there.items():
        folder, name = posixpath.split(path)
        above, last = posixpath.split(folder)
        match = _LEFT.fullmatch(name)
        ours = (folder, match[1]) in begun if match is not None else False
        ours = ours or (last == PART and posixpath.join(above, name) in whole)
        plain = all(one.endswith(PART) or (one in there and there[one].kind == "dir") for one in folders_above(path))
        if ours and plain and path not in whole and entry.kind in {"file", "link"}:
            found.append(path)
    return sorted(found)


def _in_the_way(path: str, side: Mapping[str, SyncEntry], where: str) -> str | None:
    """Why nothing can be written under a path: what is on the way to it on that side, or has its name."""
    for folder in folders_above(path):
        found = side.get(folder)
        if found is not None and found.kind != "dir":
            return f"{folder} is a {found.kind if found.kind != 'other' else 'special file'} {where}, not a folder"
    found = side.get(path)
    if found is not None and found.kind in {"dir", "other"}:
        return f"a {'folder' if found.kind == 'dir' else 'special file'} has this name {where}"
    return None
