"""The decision log as a chain of hashes: what was changed is told, and a crash is no such thing."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.store.test_decision_log import entry, numbers

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.store import decision_log
from slurm_agent_tools.store.ledger import Store

chained = pytest.mark.proves("log-is-a-chain")


class Log:
    """A ledger with its decision log, whose lines a test changes."""

    def __init__(self, folder: Path, lines: int = 0) -> None:
        self.folder, self.path = folder, folder / "decisions.jsonl"
        for number in range(lines):
            self.add(number)

    def add(self, number: int) -> None:
        with closing(Store(self.folder)) as store:
            store.log_decision(entry(number))

    def problem(self) -> str | None:
        with closing(Store(self.folder)) as store:
            return store.log_problem()

    @property
    def lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines(keepends=True)

    @lines.setter
    def lines(self, lines: list[bytes]) -> None:
        self.path.write_bytes(b"".join(lines))

    def breaks(self) -> list[int]:
        """Where `policy log --verify` finds that something was changed."""
        return [line for line, _ in decision_log.verified(self.path)[0].breaks]


CHANGES = {
    "the first line is taken out": (lambda lines: lines[1:], 1),
    "a line is taken out": (lambda lines: lines[:2] + lines[3:], 3),
    "several are": (lambda lines: lines[:1] + lines[4:], 2),
    "the last line is taken out": (lambda lines: lines[:-1], 5),
    "the last three are": (lambda lines: lines[:-3], 3),
    "all are": (lambda _: [], 1),
    "a line is changed": (lambda lines: [*lines[:1], lines[1].replace(b'"n":1', b'"n":7'), *lines[2:]], 3),
    "the last line is changed": (lambda lines: [*lines[:-1], lines[-1].replace(b'"n":4', b'"n":7')], 5),
    "a line becomes junk": (lambda lines: [*lines[:2], b"x" * (len(lines[2]) - 1) + b"\n", *lines[3:]], 4),
    "two lines change places": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2),
    "a line is put in": (lambda lines: [*lines[:2], b'{"at":"2026","n":9}\n', *lines[2:]], 3),
    "a line is there twice": (lambda lines: [*lines[:2], lines[1], *lines[2:]], 3),
    "a line is put at the end": (lambda lines: [*lines, b'{"at":"2026","n":9}\n'], 6),
}  # fmt: skip


@chained
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_told_by_the_next_call_and_for_good(tmp_path: Path, change: str):
    log = Log(tmp_path, 5)
    assert (log.problem(), log.breaks()) == (None, [])
    how, line = CHANGES[change]
    log.lines = how(log.lines)

    assert log.breaks()[0] == line
    told = log.problem()
    assert told is not None
    assert told.startswith(f"line {line} ")
    (tell,) = [one for one in map(json.loads, log.lines[len(how([b""] * 5)) :]) if one["event"] == "log-broken"]
    assert tell["what"] == told
    for number in (5, 6):  # what comes behind mends nothing, and takes nothing back
        log.add(number)
        assert log.problem() == told
        assert log.breaks()[0] in {line, line + 1}  # where the last line was changed, the next does not follow it
    assert [one["event"] for one in map(json.loads, log.lines[-2:]) if "event" in one] == []


@chained
def test_a_change_that_keeps_size_and_time_is_told_as_well(tmp_path: Path):
    log = Log(tmp_path, 5)
    before = log.path.stat()
    with log.path.open("r+b") as file:
        file.write(log.lines[0].replace(b'"n":0', b'"n":7'))
    os.utime(log.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert log.problem().startswith("line 2 does not follow")


@chained
def test_a_log_that_is_gone_is_told(tmp_path: Path):
    log = Log(tmp_path, 3)
    log.path.unlink()
    assert log.problem() == "line 1 is missing: the last 3 of 3 lines were taken out"
    log.add(3)
    assert log.breaks() == [1]


@chained
def test_the_lines_of_an_older_version_are_not_taken_for_a_break_and_the_first_link_holds_the_last_of_them(tmp_path):
    old = [json.dumps(entry(number)).encode() + b"\n" for number in range(3)]
    log = Log(tmp_path)
    log.lines = old
    log.add(3)
    found, head = decision_log.verified(log.path)
    assert (log.problem(), found.before, found.begins, found.lines, head.lines) == (None, 3, 4, 1, 1)
    log.lines = [*log.lines[:2], *log.lines[3:]]
    assert log.problem() == "line 3 does not follow the line before: a line was changed, taken out or put in"


@chained
def test_a_log_without_its_ledger_is_verified_by_itself_and_that_is_said(tmp_path: Path):
    log = Log(tmp_path, 4)
    for name in ("ledger.sqlite3", "ledger.sqlite3-wal", "ledger.sqlite3-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    found, head = decision_log.verified(log.path)
    assert (found.lines, found.breaks, head) == (4, [], None)
    log.lines = log.lines[:1] + log.lines[2:]
    assert log.breaks() == [2]
    assert log.problem().startswith("line 2 ")


@chained
def test_an_untouched_log_is_not_read_again(tmp_path: Path, monkeypatch):
    log = Log(tmp_path, 3)
    monkeypatch.setattr(decision_log, "walk", lambda *_, **__: pytest.fail("the log was read"))
    log.add(3)
    assert log.problem() is None


@chained
def test_a_log_that_is_begun_anew_is_kept_and_goes_on(tmp_path: Path):
    log = Log(tmp_path, 5)
    log.lines = log.lines[:2] + log.lines[3:]
    told = log.problem()
    with closing(Store(tmp_path)) as store:
        kept = store.log.begin_anew("ada")
        assert store.log_problem() is None
    (first,) = map(json.loads, log.lines)
    assert (first["event"], first["continues"], first["what"], first["user"]) == ("begun", kept.name, told, "ada")
    assert decision_log.verified(kept)[0].breaks[0][0] == 3
    log.add(5)
    assert (log.breaks(), log.problem()) == ([], None)
    log.lines = log.lines[1:]
    assert log.problem().startswith("line 1 does not begin a log")


@chained
@pytest.mark.parametrize(
    ("make", "told"),
    [
        (os.mkfifo, "it is no plain file"),
        (lambda path: path.symlink_to("/dev/zero"), "it is no plain file"),
        (lambda path: path.symlink_to(path.with_name("other.txt")), "it is no plain file"),
        (lambda path: os.truncate(path.touch() or path, 2**40), "it is larger than 512 MB"),
    ],
    ids=["a pipe", "a device", "a link to another file", "a file without end"],
)
def test_a_log_that_would_never_end_holds_up_nobody(tmp_path: Path, make, told: str):
    log = Log(tmp_path, 2)
    other = tmp_path / "other.txt"
    other.write_text("of somebody\n")
    log.path.unlink()
    make(log.path)
    assert log.problem() == told
    with pytest.raises(StorageError, match=told):
        log.add(2)
    with pytest.raises(StorageError, match=told):
        decision_log.verified(log.path)
    with pytest.raises(StorageError, match=told):
        list(decision_log.read(log.path))
    with closing(Store(tmp_path)) as store:
        store.log.begin_anew("ada")
        assert store.log_problem() is None
    log.add(3)
    assert (log.breaks(), [one["event"] for one in map(json.loads, log.lines[:1])]) == ([], ["begun"])
    assert other.read_text() == "of somebody\n"


@chained
@pytest.mark.parametrize("line", [b"[" * 200_000, b"9" * 200_000, b'{"at":' * 50_000, b"\0" * 1000])
def test_a_line_that_no_reader_likes_is_one_that_was_cut_off(tmp_path: Path, line: bytes):
    log = Log(tmp_path, 2)
    log.lines = [*log.lines, line + b"\n"]
    assert (log.problem(), log.breaks(), decision_log.verified(log.path)[0].cut_off) == (None, [], [3])


@chained
def test_a_line_too_long_to_be_ours_is_passed_over(tmp_path: Path, monkeypatch):
    log = Log(tmp_path, 2)
    monkeypatch.setattr(decision_log, "_LONGEST", 100)
    log.lines = [*log.lines, b"x" * 350 + b"\n", b"y" * 99 + b"\n"]
    found = decision_log.verified(log.path)[0]
    assert (found.cut_off, found.lines) == ([1, 2, 3, 4], 0)


@chained
def test_of_very_many_breaks_the_first_are_named(tmp_path: Path):
    log = Log(tmp_path, 1)
    log.lines = [*log.lines, *[b'{"at":"2026"}\n'] * 5000]
    assert log.breaks() == list(range(2, 1002))


def begun(log: Log, **changes: object) -> bytes:
    """The first line of a log that goes on from another one, as anybody can write it who reads the log."""
    last = hashlib.sha256(log.lines[-1].rstrip(b"\n")).hexdigest()
    said = {"before": "0" * 64, "at": "2026", "event": "begun", "continues": "kept.jsonl", "continues_sha256": last}
    return json.dumps(said | changes).encode() + b"\n"


@chained
@pytest.mark.parametrize("kept", ["nothing", "the last line", "all but one line", "a changed line", "itself"])
def test_a_log_that_only_says_that_it_goes_on_from_another_one_is_told(tmp_path: Path, kept: str):
    log = Log(tmp_path, 5)
    whole, line = log.lines, begun(log, **({"continues": log.path.name} if kept == "itself" else {}))
    left = {
        "the last line": whole[-1:], "all but one line": whole[1:],
        "a changed line": [whole[0].replace(b'"n":0', b'"n":7'), *whole[1:]],
    }  # fmt: skip
    if kept in left:
        (tmp_path / "kept.jsonl").write_bytes(b"".join(left[kept]))
    log.lines = [line]

    assert "is missing: the last 4 of 5 lines were taken out" in (log.problem() or "")


@chained
@pytest.mark.parametrize("name", ["", "/dev/zero", "a\0b", "..", "x" * 5000])
def test_a_log_that_goes_on_from_what_is_no_name_of_a_log_is_told(tmp_path: Path, name: str):
    log = Log(tmp_path, 5)
    log.lines = [begun(log, continues=name)]
    assert "is missing" in (log.problem() or "")


@chained
def test_a_log_that_was_begun_anew_before_a_crash_goes_on_from_the_kept_one(tmp_path: Path):
    log = Log(tmp_path, 5)
    (tmp_path / "kept.jsonl").write_bytes(b"".join(log.lines))
    log.lines = [begun(log)]
    assert (log.breaks(), log.problem()) == ([], None)


# --- crashes and several writers: no false alarm -----------------------------------------------------------------------


def head_of(folder: Path) -> tuple[int, str]:
    with closing(sqlite3.connect(folder / "ledger.sqlite3")) as db:
        return db.execute("SELECT lines, sha256 FROM log_head").fetchone()


@chained
@pytest.mark.parametrize("torn", [b"", b'{"before":"abc","at"', b"\xff\xfe"])
def test_a_crash_between_the_line_and_the_ledger_is_no_break(tmp_path: Path, monkeypatch, torn: bytes):
    log = Log(tmp_path, 3)
    with monkeypatch.context() as patch:
        patch.setattr(decision_log, "_KEEP", "INSERT INTO killed VALUES (1, ?, ?, ?, ?)")
        with pytest.raises(StorageError, match="killed"):
            log.add(3)
    assert (len(log.lines), head_of(tmp_path)[0]) == (4, 3)
    with log.path.open("ab") as file:
        file.write(torn)
    assert (log.breaks(), log.problem()) == ([], None)
    log.add(4)
    whole = [number for number in numbers(log.path) if number is not None]
    assert (whole, log.breaks(), log.problem(), head_of(tmp_path)[0]) == ([0, 1, 2, 3, 4], [], None, 5)


@chained
def test_a_line_that_lacks_only_its_end_counts_and_is_followed(tmp_path: Path, monkeypatch):
    log = Log(tmp_path, 2)
    with monkeypatch.context() as patch:
        patch.setattr(decision_log, "_KEEP", "INSERT INTO killed VALUES (1, ?, ?, ?, ?)")
        with pytest.raises(StorageError, match="killed"):
            log.add(2)
    log.path.write_bytes(log.path.read_bytes()[:-1])
    log.add(3)
    assert (numbers(log.path), log.breaks(), log.problem()) == ([0, 1, 2, 3], [], None)


WRITERS = """
import os, sys
from pathlib import Path
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner
def insisting(act, *words):
    while True:
        try:
            return act(*words)
        except StorageError as error:  # on a busy machine the other two may keep it locked for long
            assert "keeps it locked" in str(error)
def write(name):
    store, number = insisting(Store, Path(sys.argv[1])), 0
    while True:
        entry = {"at": "2026-11-21T12:00:00+00:00", "n": f"{name}-{number}", "more": "x" * 500}
        insisting(store.log_decision, entry)
        assert store.log_problem() is None
        os.write(1, f"{os.getpid()}\\n".encode())
        number += 1
for turn in sys.stdin:
    for name in "abc":
        if os.fork() == 0:
            write(turn.strip() + name)
    ended = [os.wait()[1] for name in "abc"]
    os.write(1, f"over {ended}\\n".encode())
"""


@chained
def test_writers_at_once_that_are_killed_at_any_moment_raise_no_alarm(tmp_path: Path):
    log = Log(tmp_path, 1)
    done = 0
    command = [sys.executable, "-c", WRITERS, str(tmp_path)]  # all begin alike, so what they load is loaded once
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, **pipes) as starter:
        try:
            for turn in range(3):
                print(turn, file=starter.stdin, flush=True)
                writers: set[str] = set()
                while len(writers) < 3:
                    writers.add(line := starter.stdout.readline())
                    assert line.strip().isdecimal(), line  # one that ended is no writer any more
                    done += 1
                time.sleep(0.05 + turn * 0.037)
                for writer in writers:
                    os.kill(int(writer), signal.SIGKILL)
                while (line := starter.stdout.readline()) in writers:
                    done += 1
                assert line == f"over {3 * [signal.SIGKILL.value]}\n"
                assert log.breaks() == []
        finally:
            os.killpg(starter.pid, signal.SIGKILL)
    log.add(9)
    assert (log.breaks(), log.problem()) == ([], None)
    assert len(numbers(log.path)) >= done
    assert head_of(tmp_path)[0] == len(log.lines) - len(decision_log.verified(log.path)[0].cut_off)
