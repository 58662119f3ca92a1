"""One place per user that no setting moves: the lock of submissions, and which folders hold ledgers.

Another state folder must not be a way around the history of failures, a used approval or the lock.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.store.database import storage
from slurm_agent_tools.store.ledger_location import own_disk
from slurm_agent_tools.transport import safe_open

_HINT = "Check that the folder is writable and the disk is not full."

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
        raise StorageError(f"cannot make {folder}: {error.strerror}", hint=_HINT) from error
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
        yield all(_lock(held, folder) for folder in sorted({folder.resolve() for folder in folders}))


def _lock(held: ExitStack, folder: Path) -> bool:
    path = folder / _LOCK
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
        hint = f"Remove {path}: nothing is kept in it." if code == sqlite3.SQLITE_NOTADB else _HINT
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
