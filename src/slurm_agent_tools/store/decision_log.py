"""The decision log: lines of JSON that are only ever added, each with the hash of the line before.

The ledger keeps how many lines there are and the hash of the last. So a line that was taken out, put in or changed is
found. A line that was cut off by a crash or a full disk spoils no other one, and is not taken for that.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.store.database import Database, opened_to_read, storage
from slurm_agent_tools.text import log_events
from slurm_agent_tools.text.safe_open import CLOSED, NO_LINK, NO_WAIT, sync_folder
from slurm_agent_tools.transport.base import Clock

Entry = dict[str, object]

NOTHING = "0" * 64
"""What the first line of a log has in place of the hash of the line before."""

BEGUN, BROKEN = "begun", "log-broken"
"""Events of the log itself: it goes on from another file; it was found changed."""

_ITSELF = CLOSED | NO_LINK  # a link would lead lines into another file

_LARGEST, _LONGEST, _ENTRY, _MOST = 512 * 2**20, 2 * 2**20, 2**20, 1000
"""Bytes of a log, of one of its lines and of one of ours; breaks that are named."""

_ANEW = "Begin the log anew with `slurm-agent-tools policy log --begin-anew`, which keeps this one."

_HEAD = "SELECT lines, sha256, mark, broken FROM log_head"
_KEEP = "INSERT OR REPLACE INTO log_head VALUES (1, ?, ?, ?, ?)"

_log = log_events.get_logger()


@dataclass(frozen=True, slots=True)
class LogLine:
    """What one line says, None where it is damaged, and the place in bytes behind it."""

    entry: Entry | None
    end: int


@dataclass(frozen=True, slots=True)
class LogHead:
    """What the ledger keeps of the log. `lines`: those of the chain; `sha256`: of the last one.

    `mark`: the file's number, size and times when it was written last; one that has them still was not touched.
    `broken`: what was found changed, until a person begins the log anew.
    """

    lines: int
    sha256: str
    mark: str
    broken: str | None = None


@dataclass(slots=True)
class LogWalk:
    """What all lines of a log say. Numbers of lines count from 1.

    `begins`: the first line of the chain; `before`: whole lines ahead of it, which an older version wrote. `lines` and
    `sha256`: as in LogHead, `breaks`: (line, what is wrong there). `cut_off`: lines that a crash cut off; of both the
    first thousand. `seen`: whether the line with the hash `wanted` is there. `last`: the number of the last line.
    `continues`: the name under which the log before was kept, where the first line says so.
    """

    begins: int | None = None
    before: int = 0
    lines: int = 0
    sha256: str = NOTHING
    breaks: list[tuple[int, str]] = field(default_factory=list)
    cut_off: list[int] = field(default_factory=list)
    wanted: str | None = None
    seen: bool = False
    last: int = 0
    continues: str | None = None

    def add(self, number: int, line: bytes) -> None:
        """The next line, without its end."""
        entry = _parse(line)
        if entry is None:
            if line and len(self.cut_off) < _MOST:
                self.cut_off.append(number)
            return
        before, sha256 = entry.get("before"), hashlib.sha256(line).hexdigest()
        if before is None and self.begins is None:
            self.before += 1
        elif before is None:
            self._broken(number, "was put in: it has no hash of the line before")
            return
        else:
            self._follow(number, str(before), entry)
            self.lines += 1
            self.seen = self.seen or sha256 == self.wanted
        self.sha256, self.last = sha256, number

    def _follow(self, number: int, before: str, entry: Entry) -> None:
        if before != self.sha256:
            what = "does not follow the line before: a line was changed, taken out or put in"
            self._broken(number, what if number > 1 else "does not begin a log: lines before it were taken out")
        if self.begins is None:
            self.begins = number
            self.continues = str(entry.get("continues")) if entry.get("event") == BEGUN else None

    def _broken(self, number: int, what: str) -> None:
        if len(self.breaks) < _MOST:
            self.breaks.append((number, what))

    def against(self, head: LogHead | None) -> None:
        """Look for the line that the ledger knows as the last one."""
        if head is None or head.lines == 0 or self.seen:
            return
        missing = head.lines - self.lines
        if missing > 0:
            self.breaks.append((self.last + 1, f"is missing: the last {missing} of {head.lines} lines were taken out"))
        else:
            self.breaks.append((self.last, "is not the line that was written"))

    @property
    def broken(self) -> str | None:
        """The first break in words."""
        return None if not self.breaks else "line {} {}".format(*min(self.breaks))


def walk(path: Path, head: LogHead | None, *, torn: bool = False) -> LogWalk:
    """All lines of the log, compared with what the ledger has of it. Raises StorageError.

    `torn`: a last line without an end is one, since nobody writes it just now.
    """
    found = LogWalk(wanted=None if head is None else head.sha256)
    if path.exists():
        with storage(path), _opened(path) as file:
            for number, line in enumerate(_lines(file), 1):
                if line.endswith(b"\n") or torn:
                    found.add(number, line.rstrip(b"\n"))
    if head is not None and found.continues is not None and not found.seen:
        found.seen = _goes_on(path.parent / Path(found.continues).name, head)
    found.against(head)
    return found


def _goes_on(kept: Path, head: LogHead) -> bool:
    """Whether the log that the ledger knows was kept whole there: so it is after a crash while a new one was begun.

    That a first line says so is not enough: everybody can compute the hash that it has to name.
    """
    try:
        before = walk(kept, None, torn=True)
    except (StorageError, OSError, ValueError):  # the name is not ours
        return False
    return (before.lines, before.sha256, before.breaks) == (head.lines, head.sha256, [])


def append(path: Path, entries: Sequence[Mapping[str, object]], head: LogHead | None, at: datetime) -> LogHead:
    """Add lines; on disk before this returns. Nobody else may write meanwhile. Raises StorageError.

    What a full disk or a crash cut off before is ended first, so that it stays the only line that is lost. A log that
    was changed since it was written says so in a line of its own, once.
    """
    if head is None:
        known = look(path, head) if path.exists() else LogHead(0, NOTHING, "none")
    else:
        known = head if head.mark == mark(path) else look(path, head)
    if known.broken is not None and (head is None or head.broken is None):
        entries = [{"at": at.isoformat(), "event": BROKEN, **_ITS_OWN, "what": known.broken}, *entries]
    if not entries:
        return known
    lines, last = b"", known.sha256
    for entry in entries:
        line, last = _line(entry, last)
        lines += line
    with storage(path):
        fresh = not path.exists()
        _add(path, lines)
        if fresh:
            sync_folder(path.parent)
    return LogHead(known.lines + len(entries), last, mark(path), known.broken)


_ITS_OWN = {"decision": None, "tool": "decision log", "verdict": "none"}


def look(path: Path, head: LogHead | None) -> LogHead:
    """What the log holds, with the hash that the next line has to name: of a log that was changed, the ledger's."""
    seen, found = mark(path), walk(path, head, torn=True)
    lost = head is not None and head.lines > 0 and not found.seen
    sha256 = head.sha256 if head is not None and lost else found.sha256
    return LogHead(found.lines, sha256, seen, (None if head is None else head.broken) or found.broken)


def begin_anew(path: Path, head: LogHead | None, at: datetime, by: str) -> tuple[Path, LogHead]:
    """Keep the log under another name, and begin one that names it. Nobody else may write. Raises StorageError."""
    try:
        known = look(path, head)
    except StorageError as error:
        known = replace(head or LogHead(0, NOTHING, "none"), broken=error.message)
    with storage(path):
        kept = path.with_name(f"{path.stem}-{at:%Y%m%d-%H%M%S}{path.suffix}")
        os.link(path, kept)  # fails where there is one of that name
        entry = {
            "at": at.isoformat(), "event": BEGUN, **_ITS_OWN, "user": by, "continues": kept.name,
            "continues_lines": known.lines, "continues_sha256": known.sha256, "what": known.broken,
        }  # fmt: skip
        new = path.with_name(f".{path.name}.{os.getpid()}")
        new.unlink(missing_ok=True)
        line, sha256 = _line(entry, NOTHING)
        _add(new, line)
        new.replace(path)
        sync_folder(path.parent)
    return kept, LogHead(1, sha256, mark(path))


def unreadable(path: Path) -> str | None:
    """Why the log is nothing that can be read in bounded time; None where it can, or where there is none."""
    try:
        return _odd(path.lstat())
    except OSError:
        return None


def _odd(found: os.stat_result) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "it is no plain file"
    return f"it is larger than {_LARGEST // 2**20} MB" if found.st_size > _LARGEST else None


def _opened(path: Path) -> BinaryIO:
    """The log to be read. Raises StorageError for a link, and for a pipe or a device, which never ends; and OSError."""
    _refuse(path, unreadable(path))
    file = os.fdopen(os.open(path, os.O_RDONLY | _ITSELF | NO_WAIT), "rb")
    try:
        _refuse(path, _odd(os.fstat(file.fileno())))  # it may be another one by now
    except StorageError:
        file.close()
        raise
    return file


def _refuse(path: Path, problem: str | None) -> None:
    if problem is not None:
        raise StorageError(f"cannot use {path}: {problem}", hint=_ANEW)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Its lines with their ends; of one that is too long to be ours only that there is one."""
    while line := file.readline(_LONGEST):
        rest = line
        while len(rest) == _LONGEST and not rest.endswith(b"\n"):
            rest = file.readline(_LONGEST)
            line = b"?\n" if rest.endswith(b"\n") else b"?"
        yield line


def mark(path: Path) -> str:
    """What changes with every write to the file, also one that sets its time back."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return "none"
    return f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def _line(entry: Mapping[str, object], before: str) -> tuple[bytes, str]:
    """The line of an entry, and its hash."""
    line = _json({"before": before} | dict(entry))
    if len(line) > _ENTRY:
        line = _json({"before": before} | _shortened(entry))
    return line + b"\n", hashlib.sha256(line).hexdigest()


def _shortened(entry: Mapping[str, object]) -> Entry:
    """The entry with the length and hash in place of its longest values: a line that is too long is read by nobody."""
    shorter, said = dict(entry), {name: _json(value) for name, value in entry.items()}
    while sum(map(len, said.values())) > _ENTRY // 2:  # the names and marks between them are the rest
        name = max(said, key=lambda name: len(said[name]))
        shorter[name] = {"left_out_bytes": len(said[name]), "sha256": hashlib.sha256(said[name]).hexdigest()}
        said[name] = b""
    return shorter


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=str).encode()


def _add(path: Path, lines: bytes) -> None:
    """Write at the end, after ending a last line that has no end."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _ITSELF, 0o600)
    try:
        size = os.fstat(handle).st_size
        os.lseek(handle, max(size - 1, 0), os.SEEK_SET)
        whole = b"\n" + lines if size and os.read(handle, 1) != b"\n" else lines
        if os.write(handle, whole) != len(whole):
            raise StorageError(f"the decision log {path} took only part of a line", hint="Free disk space.")
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path, start: int = 0) -> Iterator[LogLine]:
    """The whole lines from `start` on, one at a time; one that is still being written is left for later.

    Raises StorageError.
    """
    if not path.exists():
        return
    with storage(path), _opened(path) as file:
        file.seek(start)
        for line in _lines(file):
            if len(line) > 1 and line.endswith(b"\n"):
                yield LogLine(_parse(line), file.tell())


def _parse(line: bytes) -> Entry | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and "at" in entry else None


# --- The log with what the ledger has of it ---------------------------------------------------------------------------


class DecisionLog:
    """The decision log of one ledger; `path` is its file. One process at a time writes. Raises StorageError."""

    def __init__(self, db: Database, path: Path, clock: Clock) -> None:
        self._db, self.path, self._clock = db, path, clock

    def add(self, *entries: Mapping[str, object]) -> str | None:
        """Append lines, and return what was found changed. Without any this only looks.

        The lines come first, then what the ledger has of them: after a crash between both they follow all the same.
        """
        with self._db.change() as db:
            rows = db.execute(_HEAD).fetchall()
            before = LogHead(*rows[0]) if rows else None
            after = append(self.path, entries, before, self._clock.now())
            db.execute(_KEEP, astuple(after))
        if after.broken is not None and (before is None or before.broken is None):
            _log.warning("the decision log was changed", path=str(self.path), what=after.broken)
        return after.broken

    def problem(self) -> str | None:
        """What was found changed. A log that nobody touched since it was written is not read for that."""
        if (odd := unreadable(self.path)) is not None:
            return odd
        rows = self._db.rows(_HEAD, ())
        head = LogHead(*rows[0]) if rows else None
        if head is None and not self.path.exists():
            return None
        return head.broken if head is not None and head.mark == mark(self.path) else self.add()

    def begin_anew(self, by: str) -> Path:
        """Keep the log under another name, which is returned, and begin a new one."""
        with self._db.change() as db:
            rows = db.execute(_HEAD).fetchall()
            kept, head = begin_anew(self.path, LogHead(*rows[0]) if rows else None, self._clock.now(), by)
            db.execute(_KEEP, astuple(head))
        return kept


def verified(path: Path) -> tuple[LogWalk, LogHead | None]:
    """All lines of a log, compared with what the ledger beside it has; None where that has nothing. Writes nothing.

    What others write meanwhile is no break: then the ledger is asked again. Raises StorageError.
    """
    head = _kept(path)
    while True:
        found, before, head = walk(path, head), head, _kept(path)
        if found.broken is None or head == before:
            return found, before


def _kept(path: Path) -> LogHead | None:
    ledger = path.with_name("ledger.sqlite3")
    with storage(ledger):
        db = opened_to_read(ledger) if ledger.exists() else None
        if db is None:
            return None
        with closing(db):
            there = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'log_head'").fetchall()
            rows = db.execute(_HEAD).fetchall() if there else []
            return LogHead(*rows[0]) if rows else None
