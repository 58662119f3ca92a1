"""A ledger and its disk: what is told is on it; of a full one what is there is read, and only a change is an error."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.unit.store.test_ledger import ALICE, NOW, submission

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.store import database
from slurm_agent_tools.store.ledger import Store


class Disk:
    """Makes the opening of a ledger fail for want of room, until it is freed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full, self._use_wal = True, database._use_wal
        monkeypatch.setattr(database, "_use_wal", self.use)

    def use(self, db: sqlite3.Connection) -> None:
        if self.full:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        self._use_wal(db)


def kept(folder: Path) -> None:
    store = Store(folder)
    store.add(ALICE, submission("t1", job_id=7))
    store.close()


@pytest.mark.proves("on-disk-before-the-answer")
@pytest.mark.usefixtures("durable")
def test_the_ledger_waits_for_the_disk_at_every_change(tmp_path: Path):
    store = Store(tmp_path)
    (found,) = store._db.rows("PRAGMA synchronous", ())
    store.close()

    assert found[0] == 2  # FULL: with a log written ahead, NORMAL syncs at checkpoints alone


def test_what_is_there_is_read_by_a_new_process_and_a_change_says_that_the_disk_is_full(tmp_path, monkeypatch):
    kept(tmp_path)
    Disk(monkeypatch)
    store = Store(tmp_path)
    assert store.by_job(ALICE, 7).token == "t1"
    with pytest.raises(StorageError, match="the disk is full"):
        store.add(ALICE, submission("t2"))
    store.close()


def test_what_a_reader_cannot_note_down_is_no_error_and_is_told(tmp_path, monkeypatch):
    kept(tmp_path)
    Disk(monkeypatch)
    whole = Store(tmp_path)
    store = whole.for_reading()
    store.mark_read(ALICE, "status", NOW)
    assert (store.last_read(ALICE, "status"), whole.unwritten) == (None, None)
    assert "the disk is full" in store.unwritten.message
    assert store.update(store.by_job(ALICE, 7), seen="RUNNING").seen == "RUNNING"
    with pytest.raises(StorageError):
        whole.mark_read(ALICE, "status", NOW)
    whole.close()


def test_a_ledger_that_cannot_even_be_begun_is_empty(tmp_path, monkeypatch):
    Disk(monkeypatch)
    store = Store(tmp_path)
    assert (store.managed_ids(ALICE), store.lost) == (frozenset(), False)
    store.close()


def test_once_there_is_room_again_it_is_written(tmp_path, monkeypatch):
    kept(tmp_path)
    disk = Disk(monkeypatch)
    store = Store(tmp_path)
    disk.full = False
    store.mark_read(ALICE, "status", NOW)
    assert store.last_read(ALICE, "status") == NOW
    store.close()


OLDER = {
    4: ("DROP TABLE estimates",),
    3: ("DROP TABLE campaign_events",),
    2: (
        "DROP INDEX submissions_stage",
        *(
            f"ALTER TABLE submissions DROP COLUMN {name}"
            for name in ("work", "stage", "configuration", "parts", "passed", "stage_note")
        ),
    ),
}
"""What each version had not that the next one has."""


def made_older(folder: Path, version: int) -> None:
    with sqlite3.connect(folder / "ledger.sqlite3") as db:
        for number in range(4, version - 1, -1):
            for statement in OLDER[number]:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {version}")
    db.close()


@pytest.mark.proves("estimates-are-compared")
@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_ledger_of_an_older_version_is_read_where_there_is_no_room_to_bring_it_up(tmp_path, monkeypatch, version):
    kept(tmp_path)
    made_older(tmp_path, version)
    disk = Disk(monkeypatch)
    store = Store(tmp_path)
    assert [run.job_id for run in store.accepted(ALICE)] == [7]
    assert store.ended_estimates(ALICE) == []
    assert store.staged(ALICE) == []
    assert store.campaigns.listed(ALICE) == []
    with pytest.raises(StorageError, match="the disk is full"):
        store.add(ALICE, submission("t2"))
    disk.full = False
    store.add(ALICE, submission("t2", job_id=8))
    assert [run.job_id for run in Store(tmp_path).accepted(ALICE)] == [8, 7]
    store.close()


def test_an_older_ledger_elsewhere_that_cannot_be_brought_up_is_taken_over_as_far_as_it_knows(tmp_path, monkeypatch):
    kept(tmp_path / "old")
    made_older(tmp_path / "old", 2)
    mine = database._use_wal
    disk = Disk(monkeypatch)
    disk.full = False
    Store(tmp_path / "new").close()
    where = str(tmp_path / "old")
    monkeypatch.setattr(database, "_use_wal", lambda db: disk.use(db) if _of(db).startswith(where) else mine(db))
    disk.full = True
    store = Store(tmp_path / "new", others=[tmp_path / "old"])
    assert [run.job_id for run in store.accepted(ALICE)] == [7]
    assert store.ended_estimates(ALICE) == []
    store.close()


def _of(db: sqlite3.Connection) -> str:
    return str(db.execute("PRAGMA database_list").fetchone()["file"])


def test_another_fault_than_a_full_disk_is_still_an_error(tmp_path):
    (tmp_path / "ledger.sqlite3").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageError, match="damaged"):
        Store(tmp_path)


def test_a_ledger_that_was_deleted_is_begun_anew_and_known_to_be_lost(tmp_path):
    store = Store(tmp_path / "state")
    store.add(ALICE, submission("t1", job_id=7))
    for path in (tmp_path / "state").iterdir():
        path.unlink()
    assert (store.by_job(ALICE, 7), store.lost) == (None, True)
    assert store.for_reading().lost
    store.close()
