"""The decision log as a file of lines: a cut-off line spoils no other one."""

from __future__ import annotations

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


def numbers(path: Path) -> list[object]:
    return [item["n"] for item in decision_log.read(path).entries]


def test_a_line_that_was_cut_off_is_ended_by_the_next_one(tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    for number in (1, 2):
        append(log, number)
    log.write_bytes(log.read_bytes()[:-10])
    assert (numbers(log), decision_log.read(log).damaged) == ([1], 0)  # perhaps it is still being written
    append(log, 3)
    assert (numbers(log), decision_log.read(log).damaged) == ([1, 3], 1)


def test_reading_goes_on_from_where_it_stopped(tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    assert decision_log.read(log) == decision_log.LogEntries([], 0, 0)
    append(log, 1)
    place = decision_log.read(log).place
    assert decision_log.read(log, place) == decision_log.LogEntries([], place, 0)
    append(log, 2)
    assert [item["n"] for item in decision_log.read(log, place).entries] == [2]


@pytest.mark.parametrize("line", [b"no json", b"[1]", b'{"n": 1}', b"\xff\xfe", b'{"at": "x"'])
def test_a_line_that_is_no_entry_counts_as_damaged(tmp_path: Path, line: bytes):
    log = tmp_path / "decisions.jsonl"
    log.write_bytes(line + b"\n")
    append(log, 2)
    assert (numbers(log), decision_log.read(log).damaged) == ([2], 1)


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
    assert (numbers(log), decision_log.read(log).damaged) == ([1, 3], 1)


def test_a_log_that_is_a_folder_is_a_clear_error(tmp_path: Path):
    (tmp_path / "decisions.jsonl").mkdir()
    with pytest.raises(StorageError, match="cannot use"):
        append(tmp_path / "decisions.jsonl", 1)
    with pytest.raises(StorageError, match="cannot use"):
        decision_log.read(tmp_path / "decisions.jsonl")
