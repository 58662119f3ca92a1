"""Submissions as records of jobs: what was asked, and how it ended once that was seen."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime

from slurm_agent_tools.models.job import Usage
from slurm_agent_tools.models.remembered_job import JobRecord
from slurm_agent_tools.models.request import Resources
from slurm_agent_tools.store.column_text import from_text
from slurm_agent_tools.store.database import Database
from slurm_agent_tools.store.submissions import Owner

# A result may be saved for a task of the job.
_RESULT = """
    SELECT path FROM results AS r
    WHERE r.user = s.user AND r.project = s.project AND r.cluster = s.cluster
    AND (r.job_id = CAST(s.job_id AS TEXT) OR r.job_id GLOB s.job_id || '[_+]*')
    ORDER BY r.at DESC LIMIT 1
"""


def read(
    db: Database, owner: Owner, stated: Mapping[str, str | None], *, since: datetime | None, limit: int
) -> list[JobRecord]:
    """The records of a caller's jobs, newest first. `stated`: column -> value that it must have, None for any."""
    wanted = {column: value for column, value in stated.items() if value is not None}
    conditions = "".join(f" AND s.{column} = ?" for column in wanted)
    rows = db.rows(
        f"SELECT s.*, ({_RESULT}) AS result_path FROM submissions AS s"  # noqa: S608 - our own column names
        " WHERE s.user = ? AND s.project = ? AND s.cluster = ? AND s.job_id IS NOT NULL AND s.created >= ?"
        f"{conditions} ORDER BY s.created DESC, s.job_id DESC LIMIT ?",
        (owner.user, owner.project, owner.cluster, since.timestamp() if since else 0.0, *wanted.values(), limit),
    )
    return [_record(row) for row in rows]


def untold(db: Database, owner: Owner, *, since: datetime, limit: int) -> list[tuple[str, JobRecord]]:
    """(token, record) of jobs of which a memory server was not told, or not of their end; oldest first."""
    rows = db.rows(
        f"SELECT s.*, ({_RESULT}) AS result_path FROM submissions AS s"  # noqa: S608 - a constant
        " WHERE s.user = ? AND s.project = ? AND s.cluster = ? AND s.job_id IS NOT NULL AND s.created >= ?"
        " AND s.phase IN ('released', 'cancelled') AND (s.told IS NULL OR s.told <> s.outcome)"
        " ORDER BY s.created, s.job_id LIMIT ?",
        (owner.user, owner.project, owner.cluster, since.timestamp(), limit),
    )
    return [(row["token"], _record(row)) for row in rows]


def _record(row: sqlite3.Row) -> JobRecord:
    usage = row["usage"]
    return JobRecord(
        job_id=str(row["job_id"]),
        cluster=row["cluster"],
        project=row["project"],
        user=row["user"],
        name=row["job_name"],
        script_path=row["script_path"],
        script_sha256=row["script_sha256"],
        requested=from_text(Resources, row["requested"]),
        submitted=datetime.fromtimestamp(row["created"], UTC),
        state=_state(row),
        partition=row["partition"],
        run_id=row["run_id"],
        started=_time(row["started"]),
        ended=_time(row["ended"]),
        exit_code=row["exit_code"],
        signal=row["signal"],
        category=None if row["category"] == row["outcome"] else row["category"],  # not diagnosed, or nothing to tell
        usage=None if usage is None else from_text(Usage, usage),
        result_path=row["result_path"],
        tasks=row["tasks"] or 1,
    )


def _state(row: sqlite3.Row) -> str:
    """Its end, else what was last seen of it; one that was cancelled before it was released has no other end."""
    never_ran = "CANCELLED" if row["phase"] == "cancelled" else None
    return str(row["outcome"] or never_ran or row["seen"] or "UNKNOWN")


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
