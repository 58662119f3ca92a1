"""One place per user that no setting moves: the lock of submissions, and which folders hold ledgers.

Another state folder must not be a way around the history of failures, a used approval or the lock.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.ledger.database import storage
from slurm_agent_tools.slurm import opening

_HINT = "Check that the folder is writable and the disk is not full."


def anchor(state_dir: Path) -> Path:
    """`~/.local/state/slurm-agent-tools`, made when absent; `state_dir` itself for a user without a home folder."""
    folder = Path.home() / ".local" / "state" / "slurm-agent-tools"
    if not Path.home().is_dir():
        return state_dir
    try:
        opening.make_private(str(folder))
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
def submission_lock(folder: Path) -> Iterator[bool]:
    """Try to be the only process of this user that submits; yields False when another one is. Freed by a crash.

    SQLite's own file lock, because it works wherever the ledger works.
    """
    with storage(folder):
        opening.touch_private(str(folder / "submit-lock.sqlite3"))
        db = sqlite3.connect(folder / "submit-lock.sqlite3", timeout=0, isolation_level=None)
    try:
        try:
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise StorageError(f"cannot lock {folder}: {error}", hint=_HINT) from error
            yield False
            return
        yield True
    finally:
        db.close()


@contextmanager
def _database(path: Path) -> Iterator[sqlite3.Connection]:
    with storage(path):
        opening.touch_private(str(path))
        db = sqlite3.connect(path, timeout=10)
        try:
            with db:
                yield db
        finally:
            db.close()
