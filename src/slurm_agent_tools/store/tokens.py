"""Bearer tokens: who may call the server over HTTP, and what for.

A token is `sat_ID_SECRET`. The secret is 256 random bits, so a plain hash cannot be turned round, and a slow one would
only slow every request down. The file holds hashes alone. It is read anew for every request: what is made or revoked
counts at once.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.store.database import storage
from slurm_agent_tools.transport.private_files import writable_by_others

Scope = Literal["scrape", "read", "write"]
"""`scrape`: only what monitoring reads, no tool; `read`: looking; `write`: submitting and saving too."""

MAX_DAYS = 3650

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")

_TOKEN = re.compile(r"sat_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")

_TABLE = (
    "CREATE TABLE IF NOT EXISTS tokens (name TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, sha256 TEXT NOT NULL,"
    " scope TEXT NOT NULL, created REAL NOT NULL, expires REAL) STRICT"
)

_COLUMNS = "name, id, sha256, scope, created, expires"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token; not the token itself."""

    name: str
    id: str
    sha256: str
    scope: Scope
    created: datetime
    expires: datetime | None

    def expired(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.expires is not None and now >= self.expires


class Tokens:
    """The tokens of one state folder, in a file that only its user can read. Methods raise StorageError."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.path = folder, folder / "tokens.sqlite3"

    def new(self, name: str, scope: Scope, days: int | None = None) -> str:
        """Make a token and return it; it is not kept anywhere. Raises InputError for a bad or taken name."""
        if not _NAME.fullmatch(name):
            hint = "Use up to 64 letters, digits and the signs . _ @ - and begin with a letter or digit."
            raise InputError("name", name, "is no name for a token", hint=hint)
        if days is not None and not 1 <= days <= MAX_DAYS:
            raise InputError("days", days, f"is not from 1 to {MAX_DAYS}", hint="Leave it out for a lasting token.")
        now = datetime.now(UTC)
        ends = None if days is None else (now + timedelta(days=days)).timestamp()
        token = f"sat_{secrets.token_hex(8)}_{secrets.token_urlsafe(32)}"
        row = (name, token[4:20], _hash(token), scope, now.timestamp(), ends)
        with self._open() as db:
            made = db.execute(f"INSERT OR IGNORE INTO tokens ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608
            if made.rowcount != 1:
                hint = f"Choose another, or first: slurm-agent-tools token revoke {name}"
                raise InputError("name", name, "has a token already", hint=hint)
        return token

    def all(self) -> list[Token]:
        """Every token, expired ones too, by name."""
        return self._rows("ORDER BY name")

    def current(self) -> list[Token]:
        """Those that count now."""
        now = datetime.now(UTC)
        return [token for token in self.all() if not token.expired(now)]

    def revoke(self, name: str) -> None:
        """Forget a token. Raises InputError where there is none of that name."""
        known = False
        if self.path.exists():
            with self._open() as db:
                known = db.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount == 1
        if not known:
            raise InputError("name", name, "names no token", hint="See: slurm-agent-tools token list")

    def find(self, token: str) -> Token | None:
        """The record of a token as a client sent it, expired or not; None for one that is not known here."""
        parts = _TOKEN.fullmatch(token)
        found = self._rows("WHERE id = ?", parts[1]) if parts else []
        kept = found[0].sha256 if found else "0" * 64
        same = hmac.compare_digest(kept, _hash(token))
        return found[0] if found and same else None

    def _rows(self, rest: str, *values: str) -> list[Token]:
        if not self.path.exists():
            return []
        with self._open() as db:
            rows = db.execute(f"SELECT {_COLUMNS} FROM tokens {rest}", values).fetchall()  # noqa: S608 - constants
        return [_token(row) for row in rows]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with storage(self.path):
            if not self.path.exists():
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # private before anything is in it
            self._ours()
            db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=10)
            try:
                with db:
                    db.execute(_TABLE)
                    yield db
            finally:
                db.close()

    def _ours(self) -> None:
        """Who could write the file could let anybody in. Raises StorageError, OSError."""
        for path, mode in ((self._folder, 700), (self.path, 600)):
            if writable_by_others(path):
                problem = f"cannot use {path}: it is not yours alone, so anybody could have put tokens there"
                raise StorageError(problem, hint=f"See whose it is; if it is yours: chmod {mode} {path}")


def _token(row: tuple[str, str, str, Scope, float, float | None]) -> Token:
    name, known, sha256, scope, created, expires = row
    ends = None if expires is None else datetime.fromtimestamp(expires, UTC)
    return Token(name, known, sha256, scope, datetime.fromtimestamp(created, UTC), ends)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
