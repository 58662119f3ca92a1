"""What a caller's ledger takes over from the ledgers of the same user in other folders."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from slurm_agent_tools.store.database import Database

_TABLES = {"submissions": "token", "approvals": "id", "estimates": "token, kind"}
"""Each with its key."""


def adopt(database: Database, folder: Path) -> None:
    """Copy the rows of the ledger in `folder`, of two with one key the newer. Raises StorageError.

    A column or a table that only an older version of that ledger lacks is not known there.
    """
    with database.beside(folder) as db:
        for table, key in _TABLES.items():
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
