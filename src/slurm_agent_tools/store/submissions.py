"""What the ledger remembers: frozen records, no I/O."""

from __future__ import annotations

import json
import sqlite3
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import TypeAdapter

from slurm_agent_tools.models.arguments import Stage
from slurm_agent_tools.models.job import EndedEstimate, GivenEstimate, JobRecord, Usage
from slurm_agent_tools.models.job_resources import DriftKind, Resources
from slurm_agent_tools.store.database import Database

if TYPE_CHECKING:
    from slurm_agent_tools.models.decision import Decision
    from slurm_agent_tools.models.submission_answer import Advised

Phase = Literal["intent", "unconfirmed", "held", "released", "refused", "lost", "cancelled"]

OPEN_PHASES: tuple[Phase, ...] = ("intent", "unconfirmed", "held")
"""Phases in which it is not settled whether a job will run."""

GIVEN_UP: tuple[Phase, ...] = ("refused", "lost")
"""Phases in which Slurm is taken to have no job, though one may turn up late."""

LATE = timedelta(hours=1)
"""For this long a request that was given up is still looked for: should it turn up, it is held, and cancelled."""

EXPIRY = timedelta(minutes=10)
"""A job left held by a crash is cancelled after this long when nobody went on with it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The same caller: operating-system user, project folder and cluster."""

    user: str
    project: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Drifted:
    """One difference from what was allowed, and how grave it is."""

    kind: DriftKind
    what: str
    severity: Literal["high", "medium"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The last comparison of a job: the queue's rows at that time, whether all of it had begun, what differed."""

    row: str
    begun: bool = False
    told: tuple[Drifted, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundCause:
    """Why a job, or a part of one, ended as it did, as analyze_log found it; without its evidence."""

    job_id: str
    category: str
    confidence: float
    escalation: Literal["critical", "high", "medium", "none"]
    explanation: str
    suggestions: tuple[str, ...] = ()
    proposed_change: str | None = None


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission from its intent on, as facts. `token` is in the job's comment.

    intent: written before sbatch; unconfirmed: sbatch's answer was lost; held: Slurm has it, not released;
    released: Slurm may run it; refused: Slurm said no; lost: Slurm never had it; cancelled: before it ran.
    """

    token: str
    idempotency_key: str
    phase: Phase
    created: datetime
    updated: datetime
    script_path: str
    script_sha256: str
    request_sha256: str
    job_name: str
    slots: int
    decision_id: str
    run_id: str | None = None
    job_id: int | None = None
    requested: Resources = Resources()  # what was allowed, in numbers
    granted: Resources | None = None  # what Slurm made of it before it was released
    stdout: str | None = None
    stderr: str | None = None
    estimated_start: datetime | None = None  # when Slurm expected it to start, at the submission
    released: datetime | None = None
    outcome: str | None = None
    failed: bool | None = None
    analysed: datetime | None = None
    category: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)  # what the script runs, path -> sha256, as it was checked
    drift: Comparison | None = None
    run_seconds: int | None = None  # known once it ended
    approval_id: str | None = None
    delivered: datetime | None = None  # when "submitted" was handed to the caller that asked
    partition: str | None = None  # where Slurm put it
    seen: str | None = None  # its state when it was last looked at
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    codes: Mapping[str, int] | None = None  # exit codes that the controller told in full, by the id of the part
    tasks: int | None = None  # parts that its usage rests on
    usage: Usage | None = None  # once it ended
    diagnosis: FoundCause | None = None  # what analyze_log found last
    cancellation: Mapping[str, str] | None = None  # what cancel_job ended, by its id, and why
    work: str | None = None  # hash of the script's bytes and its arguments
    stage: Stage | None = None  # of a configuration that is tried before it is run at length
    configuration: str | None = None  # hash of `parts`
    parts: Mapping[str, str] | None = None  # what the configuration is made of, as it was checked
    passed: bool | None = None  # of a stage, by Slurm's record of its end; None: not known
    stage_note: str | None = None  # why it did not pass


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided on a submission, and what was known of its wait, its size and its time then."""

    decision: Decision
    advised: Advised | None = None
    foretold: tuple[GivenEstimate, ...] = ()


@dataclass(frozen=True, slots=True)
class Approval:
    """A question to a person about one exact plan, and what came of it.

    `plan` is the text that was shown, `request` the arguments of submit_job as JSON.
    """

    id: str
    plan_sha256: str
    plan: str
    job_name: str
    created: datetime
    updated: datetime
    expires: datetime
    channel: str | None = None
    granted: datetime | None = None
    granted_by: str | None = None
    signature: str | None = None
    used: datetime | None = None
    declined: datetime | None = None
    request: str | None = None

    def closed(self, now: datetime) -> str | None:
        """Why nobody can answer it any more; None of an open one."""
        if self.used is not None or self.declined is not None:
            return "was declined" if self.used is None else "was used"
        return "has expired" if self.expires <= now else None


def use(db: sqlite3.Connection, approval_id: str, at: datetime) -> bool:
    """Mark it used; False where it was used or declined before. Of two at once, one gets it."""
    now = at.timestamp()
    done = db.execute(
        "UPDATE approvals SET used = ?, updated = ? WHERE id = ? AND used IS NULL AND declined IS NULL",
        (now, now, approval_id),
    )
    return done.rowcount == 1


# --- What was decided on a submission, and what was foretold of it ----------------------------------------------------


def decided(db: Database, token: str) -> Decided | None:
    """What was decided, as a repeated call is answered with it; without what was foretold."""
    from slurm_agent_tools.models.decision import Decision  # noqa: PLC0415 - most commands start without
    from slurm_agent_tools.models.submission_answer import Advised  # noqa: PLC0415 - as above

    rows = db.rows("SELECT decision, advised FROM decided WHERE token = ?", (token,))
    if not rows:
        return None
    decision, advised = rows[0]
    return Decided(from_text(Decision, decision), None if advised is None else from_text(Advised, advised))


# A job that failed or was cancelled says nothing of what it would have run; what it waited it did wait. What is told
# of an array is how long one of its tasks runs: `run_seconds` lie between its first start and its last end.
_HAPPENED = """
    CASE WHEN e.kind = 'wait' THEN max(s.started - s.released, 0)
    WHEN s.outcome NOT IN ('COMPLETED', 'TIMEOUT') THEN NULL
    WHEN coalesce(json_extract(s.requested, '$.array_tasks'), 1) = 1 THEN s.run_seconds
    ELSE json_extract(s.usage, '$.elapsed_seconds') END
"""


def of_jobs(db: Database, owner: Owner, ids: Collection[int]) -> dict[int, Submission]:
    """The submissions of a caller that became these jobs, by the job's number; of two the newest."""
    known, asked = dict[int, Submission](), sorted(ids)
    for at in range(0, len(asked), _AT_ONCE):
        part = asked[at : at + _AT_ONCE]
        marks = ", ".join("?" for _ in part)
        rows = db.rows(
            "SELECT * FROM submissions WHERE user = ? AND project = ? AND cluster = ?"  # noqa: S608 - marks only
            f" AND job_id IN ({marks}) ORDER BY created",
            (owner.user, owner.project, owner.cluster, *part),
        )
        known |= {row["job_id"]: from_row(Submission, row) for row in rows}
    return known


_AT_ONCE = 500  # values of one question: older versions of SQLite take no more than 999


def released(db: Database, owner: Owner, ids: Collection[int]) -> list[tuple[str, Submission]]:
    """The submissions of a user on a cluster that became these jobs, each with its project."""
    marks = ", ".join("?" for _ in ids)
    rows = db.rows(
        "SELECT * FROM submissions WHERE user = ? AND cluster = ? AND phase = 'released'"  # noqa: S608 - marks only
        f" AND job_id IN ({marks}) ORDER BY created",
        (owner.user, owner.cluster, *ids),
    )
    return [(row["project"], from_row(Submission, row)) for row in rows]


def unsettled(db: Database, owner: Owner, lost_since: datetime | None) -> list[Submission]:
    """Those of a user on a cluster that are not settled, and those that were given up since then; oldest first."""
    marks, given_up = ", ".join("?" for _ in OPEN_PHASES), ", ".join("?" for _ in GIVEN_UP)
    since = lost_since.timestamp() if lost_since is not None else float("inf")
    rows = db.rows(
        f"SELECT * FROM submissions WHERE user = ? AND cluster = ? AND (phase IN ({marks})"  # noqa: S608 - marks only
        f" OR (phase IN ({given_up}) AND updated >= ?)) ORDER BY created",
        (owner.user, owner.cluster, *OPEN_PHASES, *GIVEN_UP, since),
    )
    return [from_row(Submission, row) for row in rows]


def ended_estimates(db: Database, owner: Owner, limit: int) -> list[EndedEstimate]:
    """The last estimates of this caller's jobs of which it is known what happened, the newest last."""
    rows = db.rows(
        f"SELECT s.job_id, e.said, {_HAPPENED} AS happened FROM submissions AS s"  # noqa: S608 - a constant
        " JOIN estimates AS e ON e.token = s.token"
        " WHERE s.user = ? AND s.project = ? AND s.cluster = ? AND s.job_id IS NOT NULL AND happened IS NOT NULL"
        " ORDER BY s.created DESC, s.job_id DESC LIMIT ?",
        (owner.user, owner.project, owner.cluster, limit),
    )
    return [EndedEstimate(row["job_id"], from_text(GivenEstimate, row["said"]), row["happened"]) for row in rows[::-1]]


# --- Submissions as records of jobs: what was asked, and how it ended once that was seen ------------------------------

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
        job_id=str(row["job_id"]), cluster=row["cluster"], project=row["project"], user=row["user"],
        name=row["job_name"], script_path=row["script_path"], script_sha256=row["script_sha256"],
        requested=from_text(Resources, row["requested"]), submitted=datetime.fromtimestamp(row["created"], UTC),
        state=_state(row), partition=row["partition"], run_id=row["run_id"],
        started=_time(row["started"]), ended=_time(row["ended"]), exit_code=row["exit_code"], signal=row["signal"],
        category=None if row["category"] == row["outcome"] else row["category"],  # not diagnosed, or nothing to tell
        usage=None if usage is None else from_text(Usage, usage), result_path=row["result_path"],
        tasks=row["tasks"] or 1,
    )  # fmt: skip


def _state(row: sqlite3.Row) -> str:
    """Its end, else what was last seen of it; one that was cancelled before it was released has no other end."""
    never_ran = "CANCELLED" if row["phase"] == "cancelled" else None
    return str(row["outcome"] or never_ran or row["seen"] or "UNKNOWN")


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


# --- Records as one column of the ledger ------------------------------------------------------------------------------

_Record = TypeVar("_Record")

_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def to_text(record: Any) -> str:
    """A record as JSON, letters beyond ASCII escaped: a path may hold bytes that no encoding has."""
    values = dict(record) if isinstance(record, Mapping) else _adapter(type(record)).dump_python(record, mode="json")
    return json.dumps(values, sort_keys=True)


def from_text(kind: type[_Record], text: str) -> _Record:
    """The record of such a text."""
    return _adapter(kind).validate_python(json.loads(text))  # type: ignore[no-any-return]


# --- Records as rows of the ledger ------------------------------------------------------------------------------------


def to_row(record: Any, only: Collection[str] | None = None) -> dict[str, object]:
    """A column for each field, or for those in `only`."""
    row: dict[str, object] = {}
    for name in (item.name for item in fields(record) if only is None or item.name in only):
        value = getattr(record, name)
        if isinstance(value, datetime):
            value = value.timestamp()
        elif is_dataclass(value) or isinstance(value, Mapping):
            value = to_text(value)
        row[name] = value
    return row


_KEPT_ROWS, _KEPT_BYTES = 2048, 2**14
"""Rows that are kept, and bytes of the longest: a process serves many users, and who writes long texts is no reason."""


def from_row(kind: type[_Record], row: sqlite3.Row) -> _Record:
    """The record of a row; other columns are left out. Rows that say the same are read once, but for long ones."""
    values = tuple(row)
    kept = kind is not Approval and sum(map(sys.getsizeof, values)) <= _KEPT_BYTES
    record: _Record = (_read_once if kept else _read)(kind, tuple(row.keys()), values)  # type: ignore[arg-type]  # every class is hashable
    return record


def _read(kind: type[_Record], names: tuple[str, ...], values: tuple[Any, ...]) -> _Record:
    row, told = dict(zip(names, values, strict=True)), dict[str, Any]()
    for name, read in _readers(kind):  # type: ignore[arg-type]
        value = row[name]
        told[name] = value if read is None or value is None else read(value)
    return kind(**told)


_read_once = lru_cache(maxsize=_KEPT_ROWS)(_read)


@cache
def _readers(kind: type) -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
    """Each field with what makes its value of a column's; None where that is the value."""
    hints = typing.get_type_hints(kind)
    return tuple((item.name, _reader(hints[item.name])) for item in fields(kind))


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if datetime in kinds:
        return lambda seconds: datetime.fromtimestamp(seconds, UTC)
    if bool in kinds:
        return bool
    record = next((one for one in kinds if is_dataclass(one) or typing.get_origin(one) is Mapping), None)
    return None if record is None else partial(from_text, record)
