"""What a project has on each side, told by hashes: here by looking, there by programs of the system."""

from __future__ import annotations

import hashlib
import os
import posixpath
import shlex
import stat as modes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slurm_agent_tools.backends.sync_plan import (
    PART,
    RULES_FILE,
    SyncEntry,
    SyncKind,
    SyncRules,
    folders_above,
    matches,
    read_rules,
    starts,
)
from slurm_agent_tools.errors import ConfigError, StorageError
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.transport.base import Completed, Files, Runner
from slurm_agent_tools.transport.login_shell import as_bytes, as_text

MOST_NAMES = 200_000

_MINUTES = 600.0  # seconds for one command over many files

_RULES_BYTES = 2**20

_LEAST, _MOST = 2**14, 2**20  # bytes that are read at once


@dataclass(frozen=True, slots=True)
class SyncSide:
    """A project's folder on one side: absolute, links resolved."""

    files: Files
    root: str
    runner: Runner

    def path(self, name: str) -> str:
        """The absolute path of a name in it."""
        return posixpath.join(self.root, name)


# --- This side --------------------------------------------------------------------------------------------------------


def rules_of(project: str) -> SyncRules:
    """What the project's rules file says. Raises ConfigError."""
    path = Path(project, RULES_FILE)
    try:
        return read_rules(safe_open.read(path, _RULES_BYTES, within=Path(project)).decode("utf-8"))
    except FileNotFoundError:
        return SyncRules()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(RULES_FILE, None, f"cannot be used: {why}", hint="Mend that file.") from error


def local_names(root: str, patterns: Sequence[str]) -> list[str]:
    """Files and links that the patterns name, sorted; no linked folder is entered. StorageError for too many."""
    found: set[str] = set()
    for start in starts(patterns):
        top = Path(root, start)
        if top.is_symlink() or not top.is_dir():
            found |= {start} if os.path.lexists(top) else set()
            continue
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name != ".git"]
            linked = [name for name in folders if Path(folder, name).is_symlink()]
            found |= {posixpath.relpath(posixpath.join(folder, name), root) for name in (*files, *linked)}
            _bounded(found)
    return sorted(name for name in found if matches(patterns, name))


def _bounded(names: Iterable[str]) -> None:
    if sum(1 for _ in names) > MOST_NAMES:
        raise StorageError(f"there are more than {MOST_NAMES} files", hint="Name fewer in paths or in the patterns.")


def local_states(root: str, names: Iterable[str], *, hashed: bool = True) -> dict[str, SyncEntry]:
    """What is here under the names, and the folders on the way that are none. Raises StorageError."""
    inside: dict[str, list[str]] = {}
    for name in names:
        inside.setdefault(posixpath.dirname(name), []).append(name)
    found: dict[str, SyncEntry | None] = {}
    for folder, members in inside.items():
        way = list(folders_above(f"{folder}/")) if folder else []
        found |= {above: local_state(root, above, hashed=False) for above in way if above not in found}
        if all((above := found[one]) is not None and above.kind == "dir" for one in way):
            found |= _members(root, folder, members, hashed=hashed)
        else:  # the system says of each what is in its way
            found |= {name: local_state(root, name, hashed=hashed) for name in members}
    return {name: entry for name, entry in found.items() if entry is not None}


def _members(root: str, folder: str, names: Sequence[str], *, hashed: bool) -> dict[str, SyncEntry | None]:
    """What is here under names of one folder, which is opened once for all. Raises StorageError."""
    try:
        with safe_open.folder(posixpath.join(root, folder), make=False) as where:
            return {name: _state(where, name, hashed=hashed) for name in names}
    except (FileNotFoundError, NotADirectoryError):
        return dict.fromkeys(names)
    except OSError as error:
        raise _unreadable(folder, error) from error


def local_state(root: str, name: str, *, hashed: bool) -> SyncEntry | None:
    """What is here under one name; None where there is nothing. Raises StorageError."""
    return _state(safe_open.OpenFolder(None, posixpath.join(root, posixpath.dirname(name))), name, hashed=hashed)


def _state(where: safe_open.OpenFolder, path: str, *, hashed: bool) -> SyncEntry | None:
    """`where`: the folder that holds it, which need not be open."""
    name = where.name(posixpath.basename(path))
    try:
        state = os.stat(name, dir_fd=where.handle, follow_symlinks=False)
        leads = os.readlink(name, dir_fd=where.handle) if modes.S_ISLNK(state.st_mode) else None
        made = _entry(path, state.st_mode, state.st_size, leads)
        if made.kind != "file" or not hashed:
            return made
        is_open = where.handle is not None
        return _with_hash(made, safe_open.open_stored(where, name) if is_open else safe_open.open_file(name))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(name: str, error: OSError) -> StorageError:
    return StorageError(f"{name}: {error.strerror}", hint="Check the file and its permissions.")


def _entry(name: str, mode: int, size: int, leads: str | None = None) -> SyncEntry:
    kinds: dict[int, SyncKind] = {modes.S_IFREG: "file", modes.S_IFDIR: "dir", modes.S_IFLNK: "link"}
    return SyncEntry(name, kinds.get(modes.S_IFMT(mode), "other"), size, bool(mode & modes.S_IXUSR), leads=leads)


def _with_hash(entry: SyncEntry, handle: int) -> SyncEntry:
    """The same with the hash of the file that is open, and as many bytes as went into it. Its handle is closed."""
    digest, size = hashlib.sha256(), 0
    piece = min(max(entry.size + 1, _LEAST), _MOST)  # room for all of it, and no more: most are small
    with open(handle, "rb", buffering=0) as file:
        while data := file.read(piece):
            digest.update(data)
            size += len(data)
    return SyncEntry(entry.path, "file", size, entry.executable, digest.hexdigest())


# --- The other side: programs that every login node has, by argument vectors; names go in on standard input -----------

_STAT = ("xargs", "-0", "-r", "stat", "--printf=%f %s %n\\0", "--")
_HASH = ("xargs", "-0", "-r", "sha256sum", "-z", "--")
_EMPTY = ("xargs", "-0", "-r", "rmdir", "--")
_LEADS = ("xargs", "-0", "-r", "readlink", "-z", "--")

# These scripts are ours and the same for all files: what they read are their arguments. They open nothing but files.
# What a transfer may have left is looked for in the folder itself and in those that are named, not below them.
_LEFT = (
    f'exec find "$@" -mindepth 1 -maxdepth 2 -type d ! -name {PART} -prune -o ! -type d -mmin +60 '
    f"'(' -name '.*.tmp' -o -name '.*{PART}' -o -path '*/{PART}/*' ')' -print0"
)
_LOOK = (
    '{ printf "./\\0"; for path do if [ -d "$path" ] && [ ! -L "$path" ]; then printf "./%s\\0" "$path"; fi; done; }'
    f' | xargs -0 sh -c {shlex.quote(_LEFT)} sh | xargs -0 -r stat --printf="%f %s %n\\0" --; '
    'stat --printf="%f %s %n\\0" -- "$@"; for path do if [ -f "$path" ] && [ ! -L "$path" ];'
    ' then printf "%s\\0" "$path"; fi; done | xargs -0 -r sha256sum -z --'
)
_BOTH = ("xargs", "-0", "-r", "sh", "-c", _LOOK, "sh")

_DIGEST = 64

_PREFIX = ("sh", "-c", 'head -c "$1" -- "$2" | sha256sum', "sh")


async def remote_states(
    runner: Runner, root: str, names: Iterable[str], *, sizes: Mapping[str, int] | None = None
) -> dict[str, SyncEntry]:
    """What is there under the names, and the folders on the way, in one command where no link is among them.

    Beside them what transfers left in these folders an hour ago and longer, which `leftovers` tells apart.
    `sizes`: a file of another size is not hashed, in a command of its own.
    """
    wanted = sorted({path for name in names for path in (*folders_above(name), name)})
    printed = (await _asked(runner, root, _STAT if sizes is not None else _BOTH, wanted)).stdout
    found, digests = _states(printed)
    if sizes is not None:
        digests = await hashes(runner, root, [one.path for one in found.values() if sizes.get(one.path) == one.size
                                              and one.kind == "file" and _plain_way(one.path, found)])  # fmt: skip
    links = [entry.path for entry in found.values() if entry.kind == "link"]
    leads = (await _asked(runner, root, _LEADS, links)).stdout.split(b"\0")[:-1] if links else []
    if len(leads) != len(links):
        raise StorageError("links changed there meanwhile", hint="Call again.")
    told = dict(zip(links, map(as_text, leads), strict=True))
    return {
        path: SyncEntry(
            path, one.kind, one.size, one.executable, digests.get(path) if _plain_way(path, found) else None,
            told.get(path),
        )
        for path, one in found.items()
    }  # fmt: skip


def _plain_way(path: str, found: Mapping[str, SyncEntry]) -> bool:
    """Whether only folders are on the way to a path, no link."""
    return all(above in found and found[above].kind == "dir" for above in folders_above(path))


def _states(printed: bytes) -> tuple[dict[str, SyncEntry], dict[str, str]]:
    """What stat printed, and between that what sha256sum did: its first word is longer than any mode."""
    found, digests = dict[str, SyncEntry](), dict[str, str]()
    for row in printed.split(b"\0")[:-1]:
        first, rest = row.split(b" ", 1)  # what was found, and not asked for, begins with ./
        if len(first) == _DIGEST:
            digests[as_text(rest[1:])] = first.decode("ascii")
        else:
            size, name = rest.split(b" ", 1)
            name = name.removeprefix(b"./")
            found[as_text(name)] = _entry(as_text(name), int(first, 16), int(size))
    return found, digests


async def hashes(runner: Runner, root: str, names: Sequence[str]) -> dict[str, str]:
    """The SHA-256 of files there, in one command; what cannot be read has none. Raises SlurmError."""
    printed = (await _asked(runner, root, _HASH, names)).stdout if names else b""
    rows = (row.split(b"  ", 1) for row in printed.split(b"\0")[:-1])
    return {as_text(row[1]): row[0].decode("ascii") for row in rows}


async def prefix_hash(side: SyncSide, name: str, size: int) -> str | None:
    """The SHA-256 of the first bytes of a file there, for one that grows while it is read."""
    done = await side.runner.run([*_PREFIX, str(size), side.path(name)], timeout=_MINUTES)
    words = done.stdout.split()
    return words[0].decode("ascii") if done.exit_code == 0 and words else None


async def remote_names(runner: Runner, root: str, patterns: Sequence[str]) -> list[str]:
    """Files there that the patterns name, sorted; no link is followed. StorageError for too many."""
    tops = [f"./{start}" for start in starts(patterns)]
    argv = ["find", "-P", *tops, "-name", ".git", "-prune", "-o", "-type", "f", "-printf", "%p\\0"]
    done = await runner.run(argv, cwd=root, timeout=_MINUTES)
    _whole(done)
    names = {posixpath.normpath(as_text(name)) for name in done.stdout.split(b"\0")[:-1]}
    _bounded(names)
    return sorted(name for name in names if matches(patterns, name))


async def remove_empty(runner: Runner, root: str, folders: Sequence[str]) -> None:
    """Remove folders that are empty there, and leave the others. Raises SlurmError."""
    await _asked(runner, root, _EMPTY, folders)


async def _asked(runner: Runner, root: str, argv: Sequence[str], names: Sequence[str]) -> Completed:
    done = await runner.run(argv, stdin=b"".join(as_bytes(name) + b"\0" for name in names), cwd=root, timeout=_MINUTES)
    _whole(done)
    return done


def _whole(done: Completed) -> None:
    """Names that are not there make these programs end with a number; only what was cut off is no answer."""
    if done.timed_out or done.truncated or done.exit_code in {125, 126, 127}:
        words = done.stderr.decode("utf-8", "replace").strip()[-200:]
        raise StorageError(f"{done.argv[0]} gave no whole answer there: {words}", hint="Call again, or name fewer.")
