"""Write a ledger with a record of each kind, as SQL: one file of each version of the schema is kept in `ledgers`.

When the version rises, before it does: python -m tests.unit.store.written_ledger > tests/unit/store/ledgers/vN.sql
The files of earlier versions were written by this program with the sources of then.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from slurm_agent_tools.models.decision import Decision, PolicyUsed
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Approval, Decided, Owner, Submission

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ALICE = Owner("alice", "/home/alice/p", "default")


def submission(token: str, **changes: object) -> Submission:
    """One that was begun; `changes` say what became of it."""
    plain = Submission(
        token=token, idempotency_key=f"key-{token}", phase="intent", created=NOW, updated=NOW, script_path="a.sh",
        script_sha256="s", request_sha256="r", job_name="a", slots=1, decision_id="d",
    )  # fmt: skip
    return replace(plain, **changes)  # type: ignore[arg-type]


def fill(store: Store) -> None:
    """One of each."""
    ended = {
        "outcome": "COMPLETED",
        "run_seconds": 90,
        "started": NOW,
        "ended": NOW + timedelta(seconds=90),
        "failed": False,
    }
    wanted = Resources(partition="gpu", gpus=2, memory_bytes=2**34)
    decided = Decided(Decision("d", "allow", PolicyUsed("1", "0" * 64)))
    store.add(ALICE, submission("ended", phase="released", job_id=7, requested=wanted, **ended), decided)
    store.add(ALICE, submission("open", files={"train.py": "0" * 64}))
    store.approvals.ask(
        ALICE,
        Approval(
            id="yes",
            plan_sha256="p",
            plan="text",
            job_name="big",
            created=NOW,
            updated=NOW,
            expires=NOW + timedelta(days=1),
        ),
    )
    store.mark_read(ALICE, "status", NOW)
    store.add_result(ALICE, "results/a.json", name="a", status="success", job_id="7", at=NOW)


def dump(path: Path) -> Iterator[str]:
    """The file as SQL, its version too."""
    db = sqlite3.connect(path)
    yield from db.iterdump()
    yield f"PRAGMA user_version = {db.execute('PRAGMA user_version').fetchone()[0]:d};"
    db.close()


def main() -> int:
    """Print it."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "state")
        fill(store)
        store.close()
        sys.stdout.write("\n".join([*dump(store.path), ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
