"""The ledger: one SQLite file in the user's state folder, and the append-only decision log beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.job import EndedEstimate, JobRecord
from slurm_agent_tools.store import submissions
from slurm_agent_tools.store.database import Database
from slurm_agent_tools.store.decision_log import DecisionLog
from slurm_agent_tools.store.ledger_location import take_over
from slurm_agent_tools.store.submissions import (
    OPEN_PHASES,
    Approval,
    Comparison,
    Decided,
    Owner,
    Submission,
    from_row,
    to_row,
    to_text,
    use,
)
from slurm_agent_tools.transport.base import Clock
from slurm_agent_tools.transport.local import SystemClock

if TYPE_CHECKING:
    from slurm_agent_tools.store.campaign_events import CampaignLedger

# --- Questions to a person and the answers: each counts for one exact plan, for a while, and once ---------------------


class Approvals:
    """The approvals in one ledger. Raises StorageError."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock

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

    def open(self, owner: Owner, plan_sha256: str | None = None, *, texts: bool = True) -> list[Approval]:
        """This caller's questions that were not used, declined or forgotten, newest first; for one plan if named."""
        names = (item.name for item in fields(Approval))
        read = "*" if texts else ", ".join("'' AS plan" if name == "plan" else name for name in names)
        found = self._db.rows(
            f"SELECT {read} FROM approvals WHERE user = ? AND project = ? AND cluster = ? AND used IS NULL"  # noqa: S608 - our own column names
            " AND declined IS NULL AND expires > ? AND (? IS NULL OR plan_sha256 = ?) ORDER BY created DESC",
            (owner.user, owner.project, owner.cluster, self._clock.now().timestamp(), plan_sha256, plan_sha256),
        )
        return [from_row(Approval, row) for row in found]

    def waiting(self, user: str) -> int:
        """How many questions of a user wait for an answer, in all projects."""
        asked = "SELECT count(*) FROM approvals WHERE user = ? AND granted IS NULL AND declined IS NULL AND expires > ?"
        return int(self._db.rows(asked, (user, self._clock.now().timestamp()))[0][0])

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
        now = replace(approval, updated=self._clock.now(), **changes)  # type: ignore[arg-type]
        self._db.alter("approvals", "id", approval.id, to_row(now, {"updated", *changes}))
        return now

    def grant(self, approval: Approval, **changes: object) -> bool:
        """Write a yes to exactly this text; False where another stands there by now."""
        now = replace(approval, updated=self._clock.now(), **changes)  # type: ignore[arg-type]
        row, still = to_row(now, {"updated", *changes}), ("plan", approval.plan)
        return self._db.alter("approvals", "id", approval.id, row, still)

    def use(self, approval_id: str) -> bool:
        """Use a yes up, which is no submission's; False where that was done before."""
        with self._db.change() as db:
            return use(db, approval_id, self._clock.now())

    def signatures(self, owner: Owner, channel: str) -> list[str]:
        """What proved each yes that this user gave by this way, in all projects."""
        asked = "SELECT signature FROM approvals WHERE user = ? AND channel = ? AND signature IS NOT NULL"
        return [str(row[0]) for row in self._db.rows(asked, (owner.user, channel))]

    def give_back(self, approval_id: str) -> None:
        """Nothing was sent: it can be used after all. A yes at the client, which is not kept as granted, cannot."""
        now = self._clock.now().timestamp()
        with self._db.change() as db:
            db.execute(
                "UPDATE approvals SET used = NULL, updated = ? WHERE id = ? AND granted IS NOT NULL", (now, approval_id)
            )


class Store:
    """Records of one user's submissions, reads and results. Every method commits before it returns.

    Safe to call from several threads and processes. `place` is where the lock of submissions lies; `others` are the
    folders of this user's other ledgers; `note` is what a person should know of the place; `clock`: when a record was
    changed, and what has expired. Raises StorageError.
    """

    def __init__(
        self,
        folder: Path,
        *,
        place: Path | None = None,
        others: Sequence[Path] = (),
        note: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.folder, self.place, self.others, self.note = folder, place or folder, tuple(others), note
        self.decisions = folder / "decisions.jsonl"
        self._db = Database(folder)
        self.reads = False
        self.unwritten: StorageError | None = None
        self._clock = clock or SystemClock()
        self.approvals = Approvals(self._db, self._clock)
        self.log = DecisionLog(self._db, self.decisions, self._clock)
        self.adopt()

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self._db.path

    @property
    def lost(self) -> bool:
        """Whether the file was gone under a running process, and a new one was begun."""
        return self._db.lost

    @property
    def campaigns(self) -> CampaignLedger:
        """What happened to campaigns."""
        from slurm_agent_tools.store.campaign_events import CampaignLedger  # noqa: PLC0415 - most calls meet none

        return CampaignLedger(self._db, self._clock)

    def for_reading(self) -> Store:
        """The same ledger for a tool that only reads: what it cannot note down is no error, but in `unwritten`."""
        made = copy(self)
        made.reads, made.unwritten = True, None
        return made

    def _noted(self, write: Callable[[], bool | str | None]) -> bool:
        """What a write tells; for a tool that only reads also where it fails."""
        try:
            return write() is not False
        except StorageError as error:
            if not self.reads:
                raise
            self.unwritten = error
            return True

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def adopt(self) -> None:
        """Take over what this user's ledgers in other folders know: another folder is no way around a failure."""
        for folder in self.others:
            if (folder / self.path.name).exists():
                take_over(self._db, folder)

    def probe(self) -> None:
        """Raises StorageError where nothing can be written now."""
        self._db.probe()

    # --- submissions ---------------------------------------------------------------------------------------

    def add(self, owner: Owner, submission: Submission, decided: Decided | None = None) -> bool:
        """Write the intent, before sbatch runs, and use up its approval; False where that is not there to be used."""
        record = to_row(submission) | {"user": owner.user, "project": owner.project, "cluster": owner.cluster}
        names, marks = ", ".join(record), ", ".join(f":{name}" for name in record)
        with self._db.change() as db:
            if submission.approval_id is not None and not use(db, submission.approval_id, self._clock.now()):
                return False
            db.execute(f"INSERT INTO submissions ({names}) VALUES ({marks})", record)  # noqa: S608 - our own column names
            if decided is not None:
                advised = None if decided.advised is None else to_text(decided.advised)
                kept = (submission.token, to_text(decided.decision), advised)
                db.execute("INSERT INTO decided VALUES (?, ?, ?)", kept)
                told = [(submission.token, one.kind, to_text(one)) for one in decided.foretold]
                db.executemany("INSERT INTO estimates VALUES (?, ?, ?)", told)
            return True

    def decided(self, token: str) -> Decided | None:
        """What was decided on a submission."""
        return submissions.decided(self._db, token)

    def ended_estimates(self, owner: Owner, limit: int = 1000) -> list[EndedEstimate]:
        """What was foretold of this caller's jobs, and what happened; the newest last."""
        return submissions.ended_estimates(self._db, owner, limit)

    def update(self, submission: Submission, **changes: object) -> Submission:
        """Write changed fields of a submission and return it as it is now."""
        now = replace(submission, updated=self._clock.now(), **changes)  # type: ignore[arg-type]
        row = to_row(now, {"updated", *changes})
        self._noted(partial(self._db.alter, "submissions", "token", submission.token, row))
        return now

    def advance(self, submission: Submission, **changes: object) -> Submission | None:
        """The same where nobody else settled its phase meanwhile; None where somebody did."""
        now = replace(submission, updated=self._clock.now(), **changes)  # type: ignore[arg-type]
        row = to_row(now, {"updated", *changes})
        still = ("phase", submission.phase)
        done = self._noted(partial(self._db.alter, "submissions", "token", submission.token, row, still))
        return now if done else None

    def deliver(self, token: str) -> None:
        """Note that the caller got its answer: from now on the same request without a key is a new one."""
        now = self._clock.now().timestamp()
        row = {"delivered": now, "updated": now}
        self._noted(partial(self._db.alter, "submissions", "token", token, row))

    def by_key(self, owner: Owner, key: str) -> Submission | None:
        """The newest submission of this caller with an idempotency key."""
        return next(iter(self._owned(owner, "AND idempotency_key = ? ORDER BY created DESC LIMIT 1", key)), None)

    def undelivered(self, owner: Owner, request_sha256: str, *, since: datetime, begun: datetime) -> Submission | None:
        """The newest submission of the same request whose caller never got "submitted".

        Released ones that changed since `since`, and those begun since `begun` whose fate is not settled.
        """
        marks = ", ".join("?" for _ in OPEN_PHASES)
        rest = (
            "AND request_sha256 = ? AND (phase = 'released' AND delivered IS NULL AND updated >= ?"
            f" OR phase IN ({marks}) AND created >= ?) ORDER BY created DESC LIMIT 1"
        )
        values = (request_sha256, since.timestamp(), *OPEN_PHASES, begun.timestamp())
        return next(iter(self._owned(owner, rest, *values)), None)

    def together(self, writes: Sequence[Callable[[], object]]) -> None:
        """Carry out writes of this ledger, in order, as one: all of them are there after a crash, or none."""

        def write_all() -> None:
            with self._db.change():
                for write in writes:
                    write()

        self._noted(write_all)

    def by_jobs(self, owner: Owner, ids: Collection[int]) -> dict[int, Submission]:
        """The submissions of this caller that became these jobs, by the job's number."""
        return submissions.of_jobs(self._db, owner, ids)

    def by_job(self, owner: Owner, job_id: int) -> Submission | None:
        """The submission of this caller that became a job."""
        return next(iter(self._owned(owner, "AND job_id = ? ORDER BY created DESC LIMIT 1", job_id)), None)

    def managed_ids(self, owner: Owner) -> frozenset[int]:
        """Ids of all jobs that this user submitted through the guard on this cluster, from any project."""
        rows = self._db.rows(
            "SELECT job_id FROM submissions WHERE user = ? AND cluster = ? AND job_id IS NOT NULL",
            (owner.user, owner.cluster),
        )
        return frozenset(row["job_id"] for row in rows)

    def released(self, owner: Owner, ids: Collection[int]) -> list[tuple[str, Submission]]:
        """The submissions of this user on this cluster that became these jobs, each with its project."""
        return submissions.released(self._db, owner, ids)

    def note_drift(self, submission: Submission, found: Comparison) -> bool:
        """Remember what a job was found to be; False when somebody else noted something meanwhile."""
        before = None if submission.drift is None else to_text(submission.drift)
        row, still = {"drift": to_text(found)}, ("drift", before)
        return self._noted(partial(self._db.alter, "submissions", "token", submission.token, row, still))

    def open_submissions(self, owner: Owner, *, lost_since: datetime | None = None) -> list[Submission]:
        """Submissions of this user on this cluster, from any project, that are not settled; oldest first.

        With `lost_since`, also those that were given up or refused since then.
        """
        return submissions.unsettled(self._db, owner, lost_since)

    def accepted(self, owner: Owner, limit: int = 200) -> list[Submission]:
        """Submissions of this caller that Slurm took, newest first."""
        return self._owned(owner, "AND job_id IS NOT NULL ORDER BY created DESC LIMIT ?", limit)

    def unended(self, owner: Owner, *, before: datetime, limit: int = 1000) -> list[Submission]:
        """Released jobs of this caller whose end is not known, but for those that Slurm was found to have forgotten."""
        rest = (
            "AND phase = 'released' AND job_id IS NOT NULL AND outcome IS NULL AND seen IS NOT 'UNKNOWN'"
            " AND updated < ? ORDER BY created DESC LIMIT ?"
        )
        return self._owned(owner, rest, before.timestamp(), limit)

    def history(
        self,
        owner: Owner,
        *,
        name: str | None = None,
        script_sha256: str | None = None,
        script_path: str | None = None,
        run_id: str | None = None,
        since: datetime | None = None,
        limit: int = 500,
    ) -> list[JobRecord]:
        """What is remembered of this caller's jobs, newest first; of all that is stated, everything must be so."""
        stated = {"job_name": name, "script_sha256": script_sha256, "script_path": script_path, "run_id": run_id}
        return submissions.read(self._db, owner, stated, since=since, limit=limit)

    def untold(self, owner: Owner, *, since: datetime, limit: int) -> list[tuple[str, JobRecord]]:
        """(token, record) of jobs of which a memory server was not told, or not of their end; oldest first."""
        return submissions.untold(self._db, owner, since=since, limit=limit)

    def told(self, token: str, state: str) -> None:
        """Note that a memory server was told of a job that was in this state."""
        self._db.alter("submissions", "token", token, {"told": state})

    def sent_since(self, owner: Owner, since: datetime) -> list[Submission]:
        """Submissions of this user on this cluster, from any project, that Slurm took or may have taken."""
        query = "SELECT * FROM submissions WHERE user = ? AND cluster = ? AND created >= ? AND phase NOT IN (?, ?, ?)"
        rows = self._db.rows(query, (owner.user, owner.cluster, since.timestamp(), "refused", "lost", "cancelled"))
        return [from_row(Submission, row) for row in rows]

    def staged(
        self, owner: Owner, *, configuration: str | None = None, script_path: str | None = None, limit: int = 500
    ) -> list[Submission]:
        """The stages of this caller that were tried, newest first; of a configuration or a script where one is named.

        Those that Slurm refused, never had, or dropped before they ran, are left out.
        """
        rest = (
            "AND stage IS NOT NULL AND phase NOT IN ('refused', 'lost', 'cancelled')"
            " AND ((? IS NULL AND ? IS NULL) OR configuration = ? OR script_path = ?)"
            " ORDER BY created DESC, rowid DESC LIMIT ?"
        )
        return self._owned(owner, rest, configuration, script_path, configuration, script_path, limit)

    def _owned(self, owner: Owner, rest: str, *values: object) -> list[Submission]:
        rows = self._db.rows(
            f"SELECT * FROM submissions WHERE user = ? AND project = ? AND cluster = ? {rest}",  # noqa: S608 - constants
            (owner.user, owner.project, owner.cluster, *values),
        )
        return [from_row(Submission, row) for row in rows]

    # --- reads and results -----------------------------------------------------------------------------------

    def mark_read(self, owner: Owner, what: str, at: datetime) -> None:
        """Remember that this caller read `what`: `status`, or `job:ID`."""
        self._noted(partial(self._mark, (owner.user, owner.project, owner.cluster, what, at.timestamp())))

    def _mark(self, row: tuple[str, str, str, str, float]) -> None:
        with self._db.change() as db:
            db.execute(
                "INSERT INTO reads VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (user, project, cluster, what) DO UPDATE SET at = excluded.at",
                row,
            )

    def last_read(self, owner: Owner, what: str) -> datetime | None:
        """When this caller last read `what`."""
        rows = self._db.rows(
            "SELECT at FROM reads WHERE user = ? AND project = ? AND cluster = ? AND what = ?",
            (owner.user, owner.project, owner.cluster, what),
        )
        return datetime.fromtimestamp(rows[0]["at"], UTC) if rows else None

    def add_result(self, owner: Owner, path: str, *, name: str, status: str, job_id: str | None, at: datetime) -> None:
        """Remember a saved result."""
        with self._db.change() as db:
            db.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (path, owner.user, owner.project, owner.cluster, name, status, job_id, at.timestamp()),
            )

    # --- decisions ---------------------------------------------------------------------------------------------

    def log_decision(self, *entries: Mapping[str, object]) -> None:
        """Append lines to the decision log; on disk before this returns."""
        self._noted(partial(self.log.add, *entries))

    def log_problem(self) -> str | None:
        """What was found changed in the decision log. A ledger that cannot be asked now fails no call that is done."""
        try:
            return self.log.problem()
        except StorageError as error:
            self.unwritten = error if self.reads else self.unwritten
            return None
