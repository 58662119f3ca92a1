"""What became of the jobs of a plan: of every kind which copies have ended, run or wait by now, and which failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from slurm_agent_tools.models.job import ACTIVE_STATES, Job, JobRecord
from slurm_agent_tools.planning.planned_job import PlannedJob
from slurm_agent_tools.planning.slices import SliceCut, cuts
from slurm_agent_tools.units import indices

_MINUTE = 60

_NEVER = "DependencyNeverSatisfied"
"""Slurm's reason for a job that waits for the success of one that failed: it is in the queue until it is cancelled."""


@dataclass(frozen=True, slots=True)
class SentSlice:
    """A slice that runs or waits in the queue. `elapsed`: seconds that it has run for; None while it waits."""

    cut: SliceCut
    job_id: str
    elapsed: float | None = None


@dataclass(frozen=True, slots=True)
class SliceProgress:
    """How far a job is that runs in slices: `done` of `of` have ended, `active` run or wait; `over`: none follows."""

    done: int = 0
    active: tuple[SentSlice, ...] = ()
    over: bool = False
    of: int = 0


@dataclass(frozen=True, slots=True)
class JobProgress:
    """What became of one kind since its plan was made, copy by copy; of an array each is a task by its own number.

    `running`: seconds that each has run for. `unseen`: ended, and nothing tells how. `failed`: none of them was sent
    again since; `mended` of these have another script now. `took`: seconds that those took that have ended, where it is
    known. `job_ids`: of those that run or wait. `stuck`: of those that wait for what can no longer come; they count as
    failed. `failed_ids`: of those that failed.
    """

    done: frozenset[int] = frozenset()
    running: Mapping[int, float] = field(default_factory=dict)
    waiting: frozenset[int] = frozenset()
    unseen: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    mended: frozenset[int] = frozenset()
    took: float | None = None
    job_ids: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()
    failed_ids: tuple[str, ...] = ()
    slices: SliceProgress | None = None

    @property
    def sent(self) -> frozenset[int]:
        """Copies that need no submission any more."""
        return self.done | self.running.keys() | self.waiting | self.unseen

    def to_person(self, job: PlannedJob) -> tuple[int, ...]:
        """Tasks of its array that failed and whose script is as it was: nothing sends them again by itself."""
        return tuple(sorted(self.failed - self.mended)) if job.array else ()


def submissions_of(scripts: Mapping[str, str | None], records: Iterable[JobRecord]) -> dict[str, list[JobRecord]]:
    """The submissions of each kind, the oldest first. `scripts`: name -> its script.

    A job belongs to the kind that it has the name or the run id of, else to the only one of its script.
    """
    by_script: dict[str | None, list[str]] = {}
    for name, script in scripts.items():
        by_script.setdefault(script, []).append(name)
    found: dict[str, list[JobRecord]] = {}
    for record in sorted(records, key=lambda one: (one.submitted, len(one.job_id), one.job_id)):
        alone = by_script.get(record.script_path, ()) if record.script_path else ()
        named = [one for one in (record.name, record.run_id, *alone[: len(alone) == 1]) if one in scripts]
        if named and named[0] is not None:
            found.setdefault(named[0], []).append(record)
    return found


def job_progress(
    jobs: Sequence[PlannedJob],
    sent: Mapping[str, Sequence[JobRecord]],
    rows: Mapping[str, Sequence[Job]],
    now: datetime,
    texts: Mapping[str, str],
) -> dict[str, JobProgress]:
    """How far every kind is of which something was submitted.

    `sent`: see submissions_of. `rows`: id of a submission -> what Slurm tells of its parts now. `texts`: name -> hash
    of its script as it is.
    """
    found: dict[str, JobProgress] = {}
    for job in jobs:
        records = sent.get(job.name, ())
        cut = cuts(job) if job.restart is not None and not job.array else ()
        if records and len(cut) > 1 and _is_of(records[0], cut[0]):
            found[job.name] = _sliced(cut, records, rows, now)
        elif records:
            state = JobProgress()
            for record in records:
                mended = texts.get(job.name, record.script_sha256) != record.script_sha256 != ""
                state = _with(state, job, record, _parts(job, state, record, rows.get(record.job_id, ())), now, mended)
            found[job.name] = replace(state, failed=state.failed - state.sent, mended=state.mended - state.sent)
    return found


def _parts(job: PlannedJob, before: JobProgress, record: JobRecord, rows: Sequence[Job]) -> dict[int, Job | None]:
    """The copies that one submission sent, each with what Slurm tells of it."""
    known = job.tasks
    told: dict[int, Job] = {}
    for row in rows:
        if row.job_id.task is not None:
            told[row.job_id.task] = row
        elif row.job_id.tasks is not None:
            told |= dict.fromkeys(indices(row.job_id.tasks.partition("%")[0]), row)
    if record.requested.array is not None:
        numbers: Iterable[int] = indices(record.requested.array.partition("%")[0].strip("[]"))
    elif told:
        numbers = told
    elif (record.requested.array_tasks or 1) > 1:  # noted before the ledger kept which
        numbers = known[: record.requested.array_tasks]
    else:
        free = [one for one in known if one not in before.sent and one not in before.failed]
        again = [one for one in known if one in before.failed]
        numbers = [*again, *free][:1]
    whole = rows[0] if len(rows) == 1 and not told else None
    return {number: told.get(number, whole) for number in numbers if number in set(known)}


def _with(
    before: JobProgress,
    job: PlannedJob,
    record: JobRecord,
    parts: Mapping[int, Job | None],
    now: datetime,
    mended: bool,
) -> JobProgress:
    """One submission more. `mended`: its script was changed since."""
    states = {number: _state(record, row, any(parts.values())) for number, row in parts.items()}
    running = {number: _elapsed(row, now) for number, row in parts.items() if row and states[number] == "running"}
    failed = {number for number, state in states.items() if state in {"failed", "stuck"}}
    took = record.usage.elapsed_seconds if record.usage is not None and record.tasks == 1 else None
    took = took if states and set(states.values()) == {"done"} and not job.array else None

    def those(state: str) -> set[int]:
        return {number for number, one in states.items() if one == state}

    return replace(
        before,
        done=before.done | those("done"),
        running={**before.running, **running},
        waiting=before.waiting | those("waiting"),
        unseen=before.unseen | those("unseen"),
        failed=before.failed | failed,
        mended=(before.mended | failed) if mended else before.mended - failed,
        took=took if took is not None else before.took,
        job_ids=(*before.job_ids, record.job_id) if running or those("waiting") else before.job_ids,
        stuck=(*before.stuck, record.job_id) if those("stuck") else before.stuck,
        failed_ids=(*before.failed_ids, record.job_id) if those("failed") else before.failed_ids,
    )


def _state(record: JobRecord, row: Job | None, others: bool) -> str:
    """How one copy is. `others`: Slurm tells of other parts of its submission."""
    if row is None:
        if record.state in ACTIVE_STATES or record.state == "UNKNOWN":  # its end is not known yet
            return "unseen" if others else "waiting"
        return "done" if record.state == "COMPLETED" else "failed"
    if row.active and row.state == "PENDING" and row.reason == _NEVER:
        return "stuck"
    if row.active and row.started is not None and row.state != "PENDING":
        return "running"
    if row.active or row.state == "UNKNOWN":
        return "waiting"
    return "done" if row.state == "COMPLETED" else "failed"


def _elapsed(row: Job, now: datetime) -> float:
    return max(0.0, (now - row.started).total_seconds()) if row.started else 0.0


# --- slices of a job that checkpoints ---------------------------------------------------------------------------------


def _is_of(record: JobRecord, cut: SliceCut) -> bool:
    """Whether a submission has the time limit of a slice; Slurm counts minutes."""
    limit = record.requested.time_limit_seconds
    return limit is not None and cut.limit is not None and abs(limit - cut.limit) < _MINUTE


def _sliced(
    cut: Sequence[SliceCut], records: Sequence[JobRecord], rows: Mapping[str, Sequence[Job]], now: datetime
) -> JobProgress:
    """How far a job is whose submissions are slices of it: each is the next one, whatever has its own limit the last.

    A slice that was stopped at its time limit has ended as it should. Slices that were cancelled behind one that ended
    well were not needed any more.
    """
    done, active, over = 0, list[SentSlice](), False
    stuck: list[str] = []
    failed: list[str] = []
    for record in records:
        slice_cut = _next_cut(cut, done + len(active), record)
        row = next(iter(rows.get(record.job_id, ())), None)
        ended = record.state if row is None or row.active else row.state
        state = _state(record, row, others=False)
        if state == "stuck":
            stuck.append(record.job_id)
        elif state in {"running", "waiting"}:
            active.append(
                SentSlice(
                    slice_cut, record.job_id, _elapsed(row, now) if row is not None and state == "running" else None
                )
            )
        elif state == "done" or (ended == "TIMEOUT" and slice_cut.limit is not None):
            done, over = done + 1, over or slice_cut.limit is None
        elif ended == "CANCELLED" and done:
            over = True
        else:
            failed.append(record.job_id)
    over = over and not active
    return JobProgress(
        done=frozenset({0}) if over else frozenset(),
        failed=frozenset({0}) if (stuck or failed) and not (over or active) else frozenset(),
        job_ids=tuple(one.job_id for one in active),
        stuck=tuple(stuck),
        failed_ids=tuple(failed),
        slices=SliceProgress(done, tuple(active), over, len(cut)),
    )


def _next_cut(cut: Sequence[SliceCut], before: int, record: JobRecord) -> SliceCut:
    """The slice that a submission behind so many others is: what has not its time limit does all that is left."""
    if before < len(cut) and (before == len(cut) - 1 or _is_of(record, cut[before])):
        return cut[before]
    left = sum(one.takes for one in cut[before:])
    return SliceCut(before + 1, left, max(left, 1.0) + cut[-1].seconds - cut[-1].takes, None)
