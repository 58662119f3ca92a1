"""The ledger's SQLite file: opening, migrating, one change at a time."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.ledger.schema import MIGRATIONS

_HINT = "Check that the folder is writable and the disk is not full, or set SLURM_AGENT_STATE_DIR."


class Database:
    """One file, used by several threads and processes. Every change is committed before it returns."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.sqlite3"
        self.guard = threading.Lock()
        with storage(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=10, check_same_thread=False, isolation_level=None)
            self.path.chmod(0o600)
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._migrate()

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
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

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
    """What goes wrong with a file here is a StorageError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StorageError(f"cannot use {path}: {error}", hint=_HINT) from error
