"""The ledger's SQLite file: opening, migrating, one change at a time."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.ledger.schema import MIGRATIONS
from slurm_agent_tools.slurm import opening

_LITTLE = 2**16
_HINT = "Check that the folder is writable and the disk is not full, or set SLURM_AGENT_STATE_DIR."
_DAMAGED = (
    "Move the file away, with the -wal and -shm beside it, and call again: jobs in Slurm go on,"
    " but what the ledger knew of them is lost."
)
_CLOSED = "it or its folder is not writable"
_CAUSES = {
    sqlite3.SQLITE_FULL: ("the disk is full", "Free disk space, then call again."),
    sqlite3.SQLITE_READONLY: (_CLOSED, _HINT),
    sqlite3.SQLITE_CANTOPEN: (_CLOSED, _HINT),
    sqlite3.SQLITE_BUSY: ("another process keeps it locked", "Call again in a minute."),
    sqlite3.SQLITE_NOTADB: ("it is damaged: not a database", _DAMAGED),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", _DAMAGED),
}


class Database:
    """One file, used by several threads and processes. Every change is committed before it returns."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.sqlite3"
        self.guard = threading.Lock()
        with storage(folder):
            opening.make_private(str(folder))
        with storage(self.path):
            opening.touch_private(str(self.path))  # before anything is in it
            self._db = sqlite3.connect(self.path, timeout=10, check_same_thread=False, isolation_level=None)
            try:
                self.path.chmod(0o600)
                self._db.row_factory = sqlite3.Row
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._migrate()
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Close the file."""
        with self.guard:
            self._db.close()

    def _migrate(self) -> None:
        with self.change() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > len(MIGRATIONS):
                raise StorageError(
                    f"the ledger {self.path} was written by a newer version", hint="Update slurm-agent-tools."
                )
            for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
                for statement in filter(str.strip, statements.split(";")):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number:d}")

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        with self.guard, storage(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # on a full disk SQLite may have ended it by itself
                    self._db.execute("ROLLBACK")
                raise

    def probe(self) -> None:
        """Write something that changes nothing."""
        with self.change() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            db.execute(f"PRAGMA user_version = {version:d}")

    def alter(
        self, table: str, key: str, value: str, row: Mapping[str, object], still: tuple[str, object] | None = None
    ) -> bool:
        """Write these columns of one row and no others; with `still` only where that column has that value."""
        marks = ", ".join(f"{name} = ?" for name in row)
        condition, more = ("", ()) if still is None else (f" AND {still[0]} = ?", (still[1],))
        with self.change() as db:
            done = db.execute(
                f"UPDATE {table} SET {marks} WHERE {key} = ?{condition}",  # noqa: S608 - our own names
                (*row.values(), value, *more),
            )
            return done.rowcount == 1

    def rows(self, query: str, values: tuple[object, ...]) -> list[sqlite3.Row]:
        """The rows of one question."""
        with self.guard, storage(self.path):
            return self._db.execute(query, values).fetchall()

    def adopt(self, folder: Path, tables: Mapping[str, str]) -> None:
        """Copy rows from the ledger in another folder, the newer of two with one key. `tables`: name -> key."""
        Database(folder).close()  # brings it to this version
        with self.guard, storage(folder):
            self._db.execute("ATTACH DATABASE ? AS other", (str(folder / self.path.name),))
            try:
                for table, key in tables.items():
                    self._db.execute(self._copy(table, key))
            finally:
                self._db.execute("DETACH DATABASE other")

    def _copy(self, table: str, key: str) -> str:
        names = [row["name"] for row in self._db.execute(f"PRAGMA main.table_info({table})")]
        listed, new = ", ".join(names), ", ".join(f"{name} = excluded.{name}" for name in names if name != key)
        return (
            f"INSERT INTO main.{table} ({listed}) SELECT {listed} FROM other.{table} WHERE true"  # noqa: S608 - our own names
            f" ON CONFLICT ({key}) DO UPDATE SET {new} WHERE excluded.updated > {table}.updated"
        )


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """What goes wrong with a file here is a StorageError that says what, and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", -1) & 0xFF
        if code == sqlite3.SQLITE_IOERR and _full(path):  # the file of shared memory could not grow
            code = sqlite3.SQLITE_FULL
        cause, hint = _CAUSES.get(code, (str(error), _HINT))
        raise StorageError(f"cannot use {path}: {cause}", hint=hint) from error
    except OSError as error:
        raise StorageError(f"cannot use {path}: {error.strerror or error}", hint=_HINT) from error


def _full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path if path.is_dir() else path.parent).free < _LITTLE
    except OSError:
        return False
