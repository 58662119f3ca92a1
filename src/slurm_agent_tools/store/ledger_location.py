"""Where the ledger may lie, and the one place per user where ledgers are known and submissions locked.

SQLite's shared memory does not work on a network file system: records would be lost.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from slurm_agent_tools.errors import ConfigError, StorageError
from slurm_agent_tools.store.database import Database, storage
from slurm_agent_tools.text import log_events, safe_open

_MOUNTS = Path("/proc/self/mounts")

_LOCAL = Path("/var/tmp")  # noqa: S108 - kept over a restart, and checked to be ours

_NETWORK = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
        "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "wekafs",
    }
)  # fmt: skip

_NETWORK_FUSE = frozenset({"beegfs", "ceph", "ceph-fuse", "cvmfs2", "glusterfs", "juicefs", "rclone", "s3fs", "sshfs"})

_HINT = "Set SLURM_AGENT_STATE_DIR to a folder on a local disk."

_log = log_events.get_logger()


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the mount table: where, and which kind of file system."""

    path: str
    kind: str


@dataclass(frozen=True, slots=True)
class LedgerFolder:
    """The folder of the ledger; `note` says why it is not the usual one."""

    folder: Path
    note: str | None = None


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """The lines of /proc/mounts, in the order in which they were mounted."""
    rows = [line.split(" ") for line in text.splitlines()]
    return tuple(Mount(_plain(row[1]), row[2]) for row in rows if len(row) > 2)


def _plain(path: str) -> str:
    """Blanks and the like stand in the table as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def network(path: str, mounts: Sequence[Mount]) -> str | None:
    """The kind of the network file system that holds an absolute path; None where it is a local one or not known."""
    inside = [mount for mount in mounts if f"{path}/".startswith(f"{mount.path.rstrip('/')}/")]
    longest = max((len(mount.path) for mount in inside), default=0)
    kind = next((mount.kind for mount in reversed(inside) if len(mount.path) == longest), "")
    return kind if kind in _NETWORK or kind.removeprefix("fuse.") in _NETWORK_FUSE else None


def own_disk(folder: Path, otherwise: Path, *, mounts: Sequence[Mount] | None = None, temporary: Path = _LOCAL) -> Path:
    """The folder; one on a network file system, where locks may not work, gives way to a private one in `temporary`.

    Where that is on a network file system as well, `otherwise`. Raises ConfigError.
    """
    table = _table() if mounts is None else mounts
    if network(os.path.realpath(folder), table) is None:
        return folder
    if network(os.path.realpath(temporary), table) is not None:
        return otherwise
    return _private(_named(temporary), _HINT)


def choose(
    state_dir: Path, *, given: bool, mounts: Sequence[Mount] | None = None, temporary: Path = _LOCAL
) -> LedgerFolder:
    """The folder for the ledger. Raises ConfigError for one of others, or on a network file system if `given`.

    The usual one moves to a private one in `temporary`. Without a mount table (macOS, Windows) every folder is taken.
    """
    table = _table() if mounts is None else mounts
    kind = network(os.path.realpath(state_dir), table)
    if kind is None:
        _check_ours(state_dir)
        return LedgerFolder(state_dir)
    if given or network(os.path.realpath(temporary), table) is not None:
        problem = f"lies on a network file system ({kind}), where a crash could lose records"
        raise ConfigError("state_dir", str(state_dir), problem, hint=_HINT)
    folder = _private(_named(temporary), _HINT)
    note = (
        f"The ledger is in {folder}, because {state_dir} lies on a network file system ({kind})."
        " It knows only of what was done on this machine."
    )
    _log.warning("ledger moved", folder=str(folder), instead_of=str(state_dir), file_system=kind)
    return LedgerFolder(folder, note)


def _table() -> tuple[Mount, ...]:
    try:
        return parse_mounts(_MOUNTS.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        return ()


def _named(temporary: Path) -> Path:
    return temporary / f"slurm-agent-tools-{_user()}"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _private(folder: Path, hint: str) -> Path:
    """Make the folder, or see that nobody else made it: everybody may write where it lies. Raises ConfigError."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise ConfigError("state_dir", str(folder), f"cannot be made: {error.strerror}", hint=hint) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != _user() or status.st_mode & 0o077:
        raise ConfigError("state_dir", str(folder), "is not a private folder of this user", hint=hint)
    return folder


def _check_ours(folder: Path) -> None:
    """Raises ConfigError for a folder in which somebody else could exchange the ledger; root works in anybody's."""
    if not hasattr(os, "getuid") or not folder.is_dir():
        return
    status = folder.stat()
    if status.st_uid not in {0, _user()} and _user() != 0:
        raise ConfigError("state_dir", str(folder), "belongs to another user", hint=_HINT)
    if status.st_mode & stat.S_IWOTH:
        raise ConfigError("state_dir", str(folder), "can be written by everybody", hint=f"Run: chmod go-rwx {folder}")


# --- One place per user that no setting moves: the lock of submissions, and which folders hold ledgers ----------------

# Another state folder must not be a way around the history of failures, a used approval or the lock.


_FULL_DISK_HINT = "Check that the folder is writable and the disk is not full."

_LOCK = "submit-lock.sqlite3"


def anchor(state_dir: Path) -> Path:
    """`~/.local/state/slurm-agent-tools`, made when absent; `state_dir` itself for a user without a home folder.

    For a home on a network file system it is the user's folder on this machine. Raises StorageError and ConfigError.
    """
    if not Path.home().is_dir():
        return state_dir
    folder = own_disk(Path.home() / ".local" / "state" / "slurm-agent-tools", state_dir)
    try:
        safe_open.make_private(str(folder))
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error.strerror}", hint=_FULL_DISK_HINT) from error
    return folder


def register(place: Path, state_dir: Path) -> tuple[Path, ...]:
    """Note that a ledger lies in `state_dir`; returns the other folders that hold one. Raises StorageError."""
    mine = str(state_dir.resolve())
    if place.resolve() == state_dir.resolve() and not (place / "folders.sqlite3").exists():
        return ()
    with _database(place / "folders.sqlite3") as db:
        db.execute("CREATE TABLE IF NOT EXISTS folders (path TEXT PRIMARY KEY, at REAL NOT NULL) STRICT")
        db.execute("INSERT OR REPLACE INTO folders VALUES (?, ?)", (mine, time.time()))
        listed = [Path(row[0]) for row in db.execute("SELECT path FROM folders WHERE path <> ? ORDER BY path", (mine,))]
        gone = [path for path in listed if not (path / "ledger.sqlite3").exists()]
        db.executemany("DELETE FROM folders WHERE path = ?", [(str(path),) for path in gone])
    usual = () if str(place.resolve()) == mine or not (place / "ledger.sqlite3").exists() else (place,)
    return tuple(dict.fromkeys((*usual, *(path for path in listed if path not in gone))))


@contextmanager
def submission_lock(*folders: Path) -> Iterator[bool]:
    """Try to be the only process of this user that submits; yields False when another one is. Freed by a crash.

    All of the folders are locked: two processes with another home but one ledger are kept apart as well.
    SQLite's own file lock, because it works wherever the ledger works.
    """
    with ExitStack() as held:
        yield all(_lock(held, folder, _LOCK) for folder in sorted({folder.resolve() for folder in folders}))


@contextmanager
def named_lock(folder: Path, name: str) -> Iterator[bool]:
    """Try to be the only process that holds the lock of this file name; yields False when another one does."""
    with ExitStack() as held:
        yield _lock(held, folder.resolve(), name)


def _lock(held: ExitStack, folder: Path, name: str) -> bool:
    path = folder / name
    with storage(folder):
        safe_open.make_private(str(folder))  # it may have been removed while a server runs
        safe_open.touch_private(str(path))
        db = sqlite3.connect(path, timeout=0, isolation_level=None)
    held.callback(db.close)
    try:
        db.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        code = error.sqlite_errorcode & 0xFF
        if code == sqlite3.SQLITE_BUSY:
            return False
        if code == sqlite3.SQLITE_FULL:
            raise StorageError(f"cannot use {folder}: the disk is full", hint=_FULL_DISK_HINT) from error
        hint = f"Remove {path}: nothing is kept in it." if code == sqlite3.SQLITE_NOTADB else _FULL_DISK_HINT
        raise StorageError(f"cannot lock {folder}: {error}", hint=hint) from error
    return True


@contextmanager
def _database(path: Path) -> Iterator[sqlite3.Connection]:
    with storage(path):
        safe_open.touch_private(str(path))
        db = sqlite3.connect(path, timeout=10)
        try:
            with db:
                yield db
        finally:
            db.close()


# --- What a ledger takes over from those of the same user in other folders --------------------------------------------


_TAKEN_OVER = {"submissions": "token", "approvals": "id", "estimates": "token, kind"}
"""Each with its key."""


def take_over(database: Database, folder: Path) -> None:
    """Copy the rows of the ledger in `folder`, of two with one key the newer. Raises StorageError.

    A column or a table that only an older version of that ledger lacks is not known there.
    """
    with database.beside(folder) as db:
        for table, key in _TAKEN_OVER.items():
            there = _columns(db, f"other.table_info({table})")
            names = [name for name in _columns(db, f"main.table_info({table})") if name in there]
            if names:
                db.execute(_copy(table, key, names))


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    """Of `main.table_info(NAME)` or the same of another file; none where it has no such table."""
    return [row["name"] for row in db.execute(f"PRAGMA {table}")]


def _copy(table: str, key: str, names: Sequence[str]) -> str:
    listed, keys = ", ".join(names), key.split(", ")
    new = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    newer = f"DO UPDATE SET {new} WHERE excluded.updated > {table}.updated" if "updated" in names else "DO NOTHING"
    return (
        f"INSERT INTO main.{table} ({listed}) SELECT {listed} FROM other.{table} WHERE true"  # noqa: S608 - our own names
        f" ON CONFLICT ({key}) {newer}"
    )
