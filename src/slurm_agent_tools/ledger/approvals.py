"""Questions to a person and the answers: each counts for one exact plan, for a while, and once."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

from slurm_agent_tools.ledger.database import Database
from slurm_agent_tools.ledger.records import Approval, Owner
from slurm_agent_tools.ledger.rows import from_row, to_row


class Approvals:
    """The approvals in one ledger. Raises StorageError."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def ask(self, owner: Owner, approval: Approval) -> None:
        """Write the question down, so that a person can answer it."""
        row = to_row(approval) | {"user": owner.user, "project": owner.project, "cluster": owner.cluster}
        names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
        with self._db.change() as db:
            db.execute(f"INSERT INTO approvals ({names}) VALUES ({marks})", row)  # noqa: S608 - our own column names

    def find(self, owner: Owner, approval_id: str) -> Approval | None:
        """One question of this user, from any project."""
        found = self._db.rows("SELECT * FROM approvals WHERE id = ? AND user = ?", (approval_id, owner.user))
        return from_row(Approval, found[0]) if found else None

    def open(self, owner: Owner, plan_sha256: str | None = None) -> list[Approval]:
        """This caller's questions that were not used, declined or forgotten, newest first; for one plan if named."""
        found = self._db.rows(
            "SELECT * FROM approvals WHERE user = ? AND project = ? AND cluster = ? AND used IS NULL"
            " AND declined IS NULL AND expires > ? AND (? IS NULL OR plan_sha256 = ?) ORDER BY created DESC",
            (owner.user, owner.project, owner.cluster, datetime.now(UTC).timestamp(), plan_sha256, plan_sha256),
        )
        return [from_row(Approval, row) for row in found]

    def declined(self, owner: Owner, plan_sha256: str, since: datetime) -> bool:
        """Whether a person said no to this plan since then."""
        found = self._db.rows(
            "SELECT 1 FROM approvals WHERE user = ? AND project = ? AND cluster = ?"
            " AND plan_sha256 = ? AND declined > ?",
            (owner.user, owner.project, owner.cluster, plan_sha256, since.timestamp()),
        )
        return bool(found)

    def update(self, approval: Approval, **changes: object) -> Approval:
        """Write changed fields and return it as it is now."""
        now = replace(approval, updated=datetime.now(UTC), **changes)  # type: ignore[arg-type]
        self._db.alter("approvals", "id", approval.id, to_row(now, {"updated", *changes}))
        return now

    def give_back(self, approval_id: str) -> None:
        """Nothing was sent: it can be used after all. A yes at the client, which is not kept as granted, cannot."""
        now = datetime.now(UTC).timestamp()
        with self._db.change() as db:
            db.execute(
                "UPDATE approvals SET used = NULL, updated = ? WHERE id = ? AND granted IS NOT NULL", (now, approval_id)
            )


def use(db: sqlite3.Connection, approval_id: str) -> bool:
    """Mark it used; False where it was used or declined before. Of two at once, one gets it."""
    now = datetime.now(UTC).timestamp()
    done = db.execute(
        "UPDATE approvals SET used = ?, updated = ? WHERE id = ? AND used IS NULL AND declined IS NULL",
        (now, now, approval_id),
    )
    return done.rowcount == 1
