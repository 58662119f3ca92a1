"""A ledger of each version that there was, as it was written then, is brought up to date with all that it knows."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.unit.store.written_ledger import ALICE, NOW, dump, fill, submission

from slurm_agent_tools.store import database
from slurm_agent_tools.store.ledger import Store

LEDGERS = Path(__file__).parent / "ledgers"
VERSIONS = sorted(int(path.stem[1:]) for path in LEDGERS.glob("v*.sql"))


def restored(folder: Path, version: int) -> Path:
    """The file as it lay there."""
    folder.mkdir(mode=0o700)
    path = folder / "ledger.sqlite3"
    db = sqlite3.connect(path)
    db.executescript((LEDGERS / f"v{version}.sql").read_text())
    db.close()
    return path


def schema(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Tables with their columns as (name, kind, ...) without their place, and indices."""
    db = sqlite3.connect(path)
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")]
    found = {name: sorted(row[1:] for row in db.execute(f"PRAGMA table_info({name})")) for name in names}
    db.close()
    return found


def test_there_is_a_file_of_every_version_that_can_be_brought_up_and_of_this_one() -> None:
    assert [*database._OLDER, database.VERSION] == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_ledger_as_it_was_written_then_keeps_every_record(tmp_path: Path, version: int) -> None:
    restored(tmp_path / "state", version)
    store = Store(tmp_path / "state")
    ended = store.by_job(ALICE, 7)

    assert ended is not None
    assert (ended.phase, ended.outcome, ended.run_seconds, ended.requested.gpus) == ("released", "COMPLETED", 90, 2)
    assert (decided := store.decided("ended")) is not None
    assert decided.decision.verdict == "allow"
    assert store.by_key(ALICE, "key-open") == submission("open", files={"train.py": "0" * 64})
    assert (asked := store.approvals.find(ALICE, "yes")) is not None
    assert (asked.job_name, asked.plan, asked.granted) == ("big", "text", None)
    assert store.last_read(ALICE, "status") == NOW
    store.add(ALICE, submission("new", job_id=8, stage="smoke", configuration="c"))
    assert [one.job_id for one in store.accepted(ALICE)] == [8, 7]
    store.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_brought_up_has_the_tables_of_a_new_one(tmp_path: Path, version: int) -> None:
    old, new = restored(tmp_path / "old", version), Store(tmp_path / "new")
    Store(old.parent).close()
    new.close()

    assert schema(old) == schema(new.path)


def test_the_file_of_this_version_is_what_is_written_today(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    fill(store)
    store.close()

    assert "\n".join(dump(store.path)) + "\n" == (LEDGERS / f"v{database.VERSION}.sql").read_text()
