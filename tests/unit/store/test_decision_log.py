"""The decision log as a file of lines: a cut-off line spoils no other one."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.store import decision_log
from slurm_agent_tools.store.submissions import Owner

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OWNER = Owner("ada", "/project", "cluster")


def entry(number: int) -> dict[str, object]:
    return {"at": "2026-11-21T12:00:00+00:00", "n": number}


def append(path: Path, number: int, head: decision_log.LogHead | None = None) -> decision_log.LogHead:
    return decision_log.append(path, [entry(number)], head, NOW)


def numbers(path: Path, start: int = 0) -> list[object]:
    """What the whole lines from a place on say; None for a damaged one."""
    return [line.entry and line.entry["n"] for line in decision_log.read(path, start)]


def test_a_line_that_was_cut_off_is_ended_by_the_next_one(tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    for number in (1, 2):
        append(log, number)
    log.write_bytes(log.read_bytes()[:-10])
    assert numbers(log) == [1]  # perhaps it is still being written
    append(log, 3)
    assert numbers(log) == [1, None, 3]


def test_reading_goes_on_from_where_it_stopped(tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    assert numbers(log) == []
    append(log, 1)
    (first,) = decision_log.read(log)
    assert (first.end, numbers(log, first.end)) == (log.stat().st_size, [])
    append(log, 2)
    append(log, 3)
    assert numbers(log, first.end) == [2, 3]
    assert [line.end for line in decision_log.read(log, first.end)][-1] == log.stat().st_size


@pytest.mark.parametrize("line", [b"no json", b"[1]", b'{"n": 1}', b"\xff\xfe", b'{"at": "x"'])
def test_a_line_that_is_no_entry_counts_as_damaged(tmp_path: Path, line: bytes):
    log = tmp_path / "decisions.jsonl"
    log.write_bytes(line + b"\n")
    append(log, 2)
    assert numbers(log) == [None, 2]


@pytest.mark.proves("on-disk-before-the-answer")
def test_an_entry_and_the_name_of_a_new_log_are_on_disk_before_it_returns(tmp_path, monkeypatch):
    synced: list[str] = []
    fsync = os.fsync

    def seen(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", seen)
    log = tmp_path / "decisions.jsonl"
    append(log, 1)
    assert synced == [str(log), str(tmp_path)]
    append(log, 2)
    assert synced == [str(log), str(tmp_path), str(log)]


@pytest.mark.proves("on-disk-before-the-answer")
def test_a_disk_that_takes_only_part_of_a_line_is_an_error_and_the_rest_stays_readable(tmp_path, monkeypatch):
    log = tmp_path / "decisions.jsonl"
    append(log, 1)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, data: write(handle, data[:5]))
        with pytest.raises(StorageError, match="only part of a line"):
            append(log, 2)
    append(log, 3)
    assert numbers(log) == [1, None, 3]


def test_a_log_that_is_a_folder_is_a_clear_error(tmp_path: Path):
    (tmp_path / "decisions.jsonl").mkdir()
    with pytest.raises(StorageError, match="cannot use"):
        append(tmp_path / "decisions.jsonl", 1)
    with pytest.raises(StorageError, match="cannot use"):
        numbers(tmp_path / "decisions.jsonl")


def test_an_entry_that_would_be_too_long_to_read_again_keeps_its_place_in_the_chain(tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    long = ["x" * 8000] * 2000
    head = decision_log.append(log, [entry(1) | {"args": long, "rules": [{"id": "gpus"}] * 9}, entry(2)], None, NOW)
    first, second = (line.entry for line in decision_log.read(log))
    text = json.dumps(long, separators=(",", ":")).encode()

    assert first["args"] == {"left_out_bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    assert (first["rules"], first["n"], second["n"]) == ([{"id": "gpus"}] * 9, 1, 2)
    assert decision_log.walk(log, head).broken is None


def test_an_entry_of_ordinary_length_is_written_whole(tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    append(log, 1)
    decision_log.append(log, [entry(2) | {"args": ["x" * 900_000]}], None, NOW)

    assert [line.entry.get("args") for line in decision_log.read(log)] == [None, ["x" * 900_000]]


def test_of_many_long_values_as_many_are_left_out_as_it_takes(tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    decision_log.append(log, [entry(1) | {name: name * 300_000 for name in "abcd"}], None, NOW)
    (line,) = decision_log.read(log)

    assert sorted(type(line.entry[name]).__name__ for name in "abcd") == ["dict", "dict", "dict", "str"]
    assert log.stat().st_size < 2**20
