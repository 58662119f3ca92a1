"""The ledger's SQLite file: opening it, one change at a time."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.text import log_events, safe_open

VERSION = 5

_BEFORE_STAGES, _BEFORE_CAMPAIGNS, _BEFORE_ESTIMATES = _OLDER = (2, 3, 4)

_STAGES = ("work TEXT", "stage TEXT", "configuration TEXT", "parts TEXT", "passed INTEGER", "stage_note TEXT")

_STAGE_INDEX = "CREATE INDEX submissions_stage ON submissions (configuration) WHERE stage IS NOT NULL"

# What happened to each campaign, in order; a row is never changed.
_CAMPAIGN_EVENTS = """
    CREATE TABLE campaign_events (
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL, campaign TEXT NOT NULL,
        number INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, event TEXT NOT NULL,
        PRIMARY KEY (user, project, cluster, campaign, number)
    ) STRICT, WITHOUT ROWID
    """

# What was foretold of a submission, one row of each kind; what happened is in the submission itself.
_ESTIMATES = """CREATE TABLE estimates (
    token TEXT NOT NULL, kind TEXT NOT NULL, said TEXT NOT NULL, PRIMARY KEY (token, kind)) STRICT, WITHOUT ROWID"""

TABLES = (
    """
    CREATE TABLE submissions (
        token TEXT PRIMARY KEY,
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        idempotency_key TEXT NOT NULL,
        phase TEXT NOT NULL,
        created REAL NOT NULL, updated REAL NOT NULL,
        script_path TEXT NOT NULL, script_sha256 TEXT NOT NULL, request_sha256 TEXT NOT NULL,
        job_name TEXT NOT NULL, slots INTEGER NOT NULL, decision_id TEXT NOT NULL,
        run_id TEXT, job_id INTEGER, approval_id TEXT,
        requested TEXT NOT NULL, granted TEXT, stdout TEXT, stderr TEXT,
        estimated_start REAL, released REAL, delivered REAL,
        files TEXT NOT NULL, drift TEXT,
        seen TEXT, partition TEXT, started REAL, ended REAL, outcome TEXT, failed INTEGER,
        exit_code INTEGER, signal INTEGER, codes TEXT, run_seconds INTEGER, tasks INTEGER, usage TEXT,
        analysed REAL, category TEXT, diagnosis TEXT, cancellation TEXT,
        told TEXT,
        work TEXT, stage TEXT, configuration TEXT, parts TEXT, passed INTEGER, stage_note TEXT
    ) STRICT
    """,
    "CREATE INDEX submissions_owner ON submissions (user, project, cluster, created)",
    "CREATE INDEX submissions_key ON submissions (idempotency_key)",
    "CREATE INDEX submissions_job ON submissions (job_id)",
    "CREATE INDEX submissions_request ON submissions (request_sha256)",
    _STAGE_INDEX,
    # What a repeated call is answered with; nobody else reads it.
    "CREATE TABLE decided (token TEXT PRIMARY KEY, decision TEXT NOT NULL, advised TEXT) STRICT",
    """
    CREATE TABLE approvals (
        id TEXT PRIMARY KEY,
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        plan_sha256 TEXT NOT NULL, plan TEXT NOT NULL, job_name TEXT NOT NULL,
        created REAL NOT NULL, updated REAL NOT NULL, expires REAL NOT NULL,
        channel TEXT, granted REAL, granted_by TEXT, signature TEXT, used REAL, declined REAL, request TEXT
    ) STRICT
    """,
    "CREATE INDEX approvals_plan ON approvals (plan_sha256)",
    """
    CREATE TABLE reads (
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        what TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (user, project, cluster, what)
    ) STRICT
    """,
    # A path is one in its project: two projects may have the same.
    """
    CREATE TABLE results (
        path TEXT NOT NULL,
        user TEXT NOT NULL, project TEXT NOT NULL, cluster TEXT NOT NULL,
        name TEXT NOT NULL, status TEXT NOT NULL, job_id TEXT, at REAL NOT NULL,
        PRIMARY KEY (user, project, path)
    ) STRICT
    """,
    "CREATE INDEX results_owner ON results (user, project, cluster)",
    # The end of the decision log, as this ledger knows it: one row.
    """
    CREATE TABLE log_head (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        lines INTEGER NOT NULL, sha256 TEXT NOT NULL, mark TEXT NOT NULL, broken TEXT
    ) STRICT
    """,
    _CAMPAIGN_EVENTS,
    _ESTIMATES,
)

_DURABLE = "PRAGMA synchronous = FULL"  # what an answer told is there after the power failed

_LITTLE, _HEADER = 2**16, 100
"""Bytes: free ones of a disk that is full, and those at the front of every SQLite file that holds anything."""

_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})

_WAIT = 10.0  # seconds for which another process may keep the file locked

_log = log_events.get_logger()

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
    """One file, used by several threads and processes. Every change is committed before it returns.

    A file that was moved away, removed or replaced while it was open is opened anew: what is written to the old one
    would be lost to everybody else. `lost`: it was gone, and a new one was begun. Where the disk is full what is there
    can be read, and only a change is an error.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.sqlite3"
        self.guard = threading.RLock()
        self.lost = False
        self._full: StorageError | None = None
        self._db, self._file = self._opened()

    def _opened(self) -> tuple[sqlite3.Connection, tuple[int, int] | None]:
        """The file with its tables, and which one it is."""
        try:
            found = self._writable()
        except StorageError as error:
            if not _no_room(error, self.path):
                raise
            self._full = error
            return self._readable(), safe_open.identity(str(self.path))
        self._full = None
        return found

    def _readable(self) -> sqlite3.Connection:
        """What is there, as it is: other processes that write just now may know more. Without a file an empty one."""
        if _size(self.path) < _HEADER:
            db = _connect(":memory:")
            self._make_tables(db)
            return db
        found = opened_to_read(self.path)
        if found is None:
            raise self._full or StorageError(f"cannot use {self.path}")
        return _brought_up(found)

    def _writable(self) -> tuple[sqlite3.Connection, tuple[int, int] | None]:
        with storage(self.path.parent):
            safe_open.make_private(str(self.path.parent))
        with storage(self.path):
            self._check_whole()
            safe_open.touch_private(str(self.path))  # before anything is in it
            db = _connect(self.path.as_uri())
            try:
                self.path.chmod(0o600)
                db.execute(_DURABLE)
                _use_wal(db)
                self._make_tables(db)
            except BaseException:
                db.close()
                raise
        return db, safe_open.identity(str(self.path))

    def _check_whole(self) -> None:
        """SQLite takes a file without a header for a new ledger; where decisions were logged before, it was cut off.

        Another process may be making a new one just now. Raises StorageError.
        """
        log, end = self.path.with_name("decisions.jsonl"), time.monotonic() + 1
        while _size(log) and self.path.exists() and _size(self.path) < _HEADER:
            if time.monotonic() > end:
                raise StorageError(f"cannot use {self.path}: it is damaged: it was cut off", hint=_DAMAGED)
            time.sleep(0.02)

    def _current(self) -> sqlite3.Connection:
        """The file that has the name now. Raises StorageError."""
        now = safe_open.identity(str(self.path))
        if now != self._file or self._full is not None:
            if now != self._file:
                _log.warning("the ledger was moved or replaced and is opened anew", path=str(self.path))
            before = self._db
            self._db, self._file = self._opened()
            self.lost = self.lost or (now is None and self._full is None)
            before.close()
        return self._db

    def close(self) -> None:
        """Close the file."""
        with self.guard:
            self._db.close()

    def _make_tables(self, db: sqlite3.Connection) -> None:
        with _transaction(db):
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in TABLES:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {VERSION:d}")
            elif version > VERSION:
                told = f"the ledger {self.path} was written by a newer version"
                raise StorageError(told, hint="Update slurm-agent-tools.")
            elif version in _OLDER:
                _migrate(db, version)
            elif version < VERSION:
                told = f"the ledger {self.path} was written before the first release"
                hint = "Move it away, with the -wal and -shm files beside it, and call again. Jobs in Slurm go on."
                raise StorageError(told, hint=hint)

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """One transaction; within another of this thread a part of that."""
        with self.guard, storage(self.path):
            current = self._current()
            if self._full is not None:
                raise self._full
            with nullcontext(current) if current.in_transaction else _transaction(current) as db:
                yield db

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
        condition, more = ("", ()) if still is None else (f" AND {still[0]} IS ?", (still[1],))
        with self.change() as db:
            done = db.execute(
                f"UPDATE {table} SET {marks} WHERE {key} = ?{condition}",  # noqa: S608 - our own names
                (*row.values(), value, *more),
            )
            return done.rowcount == 1

    def rows(self, query: str, values: tuple[object, ...]) -> list[sqlite3.Row]:
        """The rows of one question."""
        with self.guard, storage(self.path):
            return self._current().execute(query, values).fetchall()

    @contextmanager
    def beside(self, other: Path) -> Iterator[sqlite3.Connection]:
        """The ledger in the folder `other` as the schema `other`, brought to this version where that can be written."""
        Database(other).close()
        with self.guard, storage(other):
            db = self._current()
            db.execute("ATTACH DATABASE ? AS other", (str(other / self.path.name),))
            try:
                yield db
            finally:
                db.execute("DETACH DATABASE other")


def _migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring a ledger of an older version to this one."""
    if version == _BEFORE_STAGES:
        for column in _STAGES:
            db.execute(f"ALTER TABLE submissions ADD COLUMN {column}")
        db.execute(_STAGE_INDEX)
    if version <= _BEFORE_CAMPAIGNS:
        db.execute(_CAMPAIGN_EVENTS)
    db.execute(_ESTIMATES)
    db.execute(f"PRAGMA user_version = {VERSION:d}")


def _brought_up(db: sqlite3.Connection) -> sqlite3.Connection:
    """A ledger of an older version that cannot be written now: its copy in memory, so that no question meets a gap."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version not in _OLDER:
        return db
    copy = _connect(":memory:")
    db.backup(copy)
    db.close()
    with _transaction(copy):
        _migrate(copy, version)
    return copy


def opened_to_read(path: Path) -> sqlite3.Connection | None:
    """The ledger as it is, for looking alone; None where it cannot be read."""
    for how in ("mode=ro", "mode=ro&immutable=1"):  # the first needs a file beside it that may not be there
        db = _connect(f"{path.as_uri()}?{how}")
        try:
            db.execute("SELECT count(*) FROM submissions").fetchall()
        except sqlite3.Error:
            db.close()
        else:
            return db
    return None


class _Connection(sqlite3.Connection):
    """Closed when nobody holds it any more, as a command that ends leaves it; Python 3.13 and newer warn otherwise."""

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # a file that could not be opened
            self.close()


def _connect(uri: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        uri, timeout=_WAIT, check_same_thread=False, isolation_level=None, uri=uri != ":memory:", factory=_Connection
    )
    db.row_factory = sqlite3.Row
    return db


def _no_room(error: StorageError, path: Path) -> bool:
    cause = error.__cause__
    code = getattr(cause, "sqlite_errorcode", -1) & 0xFF
    return code == sqlite3.SQLITE_FULL or getattr(cause, "errno", 0) in _ROOM or _full(path)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _use_wal(db: sqlite3.Connection) -> None:
    """Of two processes that open a new file at once SQLite refuses one without letting it wait (measured)."""
    end = time.monotonic() + _WAIT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # on a full disk SQLite may have ended it by itself
            db.execute("ROLLBACK")
        raise


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """What goes wrong with a file here is a StorageError that says what, and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", -1) & 0xFF
        if code == sqlite3.SQLITE_IOERR and _full(path):  # the file of shared memory could not grow
            code = sqlite3.SQLITE_FULL
        if "not decode to UTF-8" in str(error) or "malformed database schema" in str(error):
            code = sqlite3.SQLITE_CORRUPT  # the message itself would hold what is damaged
        cause, hint = _CAUSES.get(code, (str(error), _HINT))
        raise StorageError(f"cannot use {path}: {cause}", hint=hint) from error
    except UnicodeDecodeError as error:  # in a message of SQLite
        raise StorageError(f"cannot use {path}: it is damaged", hint=_DAMAGED) from error
    except OSError as error:
        raise StorageError(f"cannot use {path}: {error.strerror or error}", hint=_HINT) from error


def _full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path if path.is_dir() else path.parent).free < _LITTLE
    except OSError:
        return False
