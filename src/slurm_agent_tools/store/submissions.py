"""What the ledger remembers: frozen records, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Phase = Literal["intent", "unconfirmed", "held", "released", "refused", "lost", "cancelled"]

OPEN_PHASES: tuple[Phase, ...] = ("intent", "unconfirmed", "held")
"""Phases in which it is not settled whether a job will run."""

GIVEN_UP: tuple[Phase, ...] = ("refused", "lost")
"""Phases in which Slurm is taken to have no job, though one may turn up late."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The same caller: operating-system user, project folder and cluster."""

    user: str
    project: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission from its intent on. `token` is in the job's comment; JSON columns are text.

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
    request_json: str = "{}"
    reply_json: str | None = None
    outcome: str | None = None
    failed: bool | None = None
    analysed: datetime | None = None
    category: str | None = None
    files_json: str = "{}"  # project files that the script runs, path -> sha256, as they were checked
    drift_json: str | None = None  # what was last found to differ from what was allowed
    run_seconds: int | None = None  # known once it ended
    approval_id: str | None = None
    delivered: datetime | None = None  # when "submitted" was handed to the caller that asked
    partition: str | None = None  # where Slurm put it
    seen: str | None = None  # its state when it was last looked at
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    tasks: int | None = None  # parts that its usage rests on
    usage_json: str | None = None  # model.Usage, once it ended
    diagnosis_json: str | None = None  # what analyze_log found last, and of which part
    cancel_json: str | None = None  # what cancel_job ended last, and why


@dataclass(frozen=True, slots=True)
class Approval:
    """A question to a person about one exact plan, and what came of it. `plan` is the text that was shown."""

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
