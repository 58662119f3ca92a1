"""What a ledger's open entries become by what Slurm shows; nothing is given up while Slurm does not tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.services.contexts import NothingReachesSlurm, toolbox

from slurm_agent_tools.errors import SlurmRefused, SlurmUnreachable
from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.services import jobs, recovery
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.units import JobId


@dataclass
class Told:
    """Slurm as these tests want it: a queue, an accounting or None for a silent one, and what was cancelled.

    `numbered`: jobs that the accounting shows by their number only, as it does of those that were never eligible.
    """

    queued: Sequence[Job] = ()
    accounted: Sequence[Job] | None = ()
    numbered: Sequence[Job] = ()
    cancelled: list[int] = field(default_factory=list)

    def mine(self, queue: Sequence[Job]) -> tuple[Job, ...]:
        return tuple(job for job in queue if job.user == "alice")

    async def queue(self, *, max_age: float | None = None) -> tuple[Job, ...]:
        return tuple(self.queued)

    async def recent_all(self, since: datetime) -> tuple[Job, ...]:
        if self.accounted is None:
            raise SlurmUnreachable("Slurm does not answer")
        return tuple(self.accounted)

    async def jobs(self, ids: Sequence[JobId]) -> dict[JobId, JobView]:
        return {job_id: JobView(row) for row in self.numbered for job_id in ids if row.job_id == job_id}

    async def cancel(self, job_id: JobId) -> None:
        self.cancelled.append(job_id.base)
        self.queued = [withdrawn(row) for row in self.queued]

    async def glance(self, job_id: JobId, *, max_age: float) -> JobView | None:
        return next((JobView(row, ()) for row in self.queued if row.active), None)


def job(number: int = 7, state: str = "PENDING", reason: str | None = "JobHeldUser", **facts: object) -> Job:
    stated: dict[str, object] = {"comment": "sat-1", "user": "alice"}
    return Job(JobId(number), "train", state, ("squeue",), reason=reason, **{**stated, **facts})  # type: ignore[arg-type]


def withdrawn(row: Job) -> Job:
    """As squeue shows a held job that was cancelled: it started when it was cancelled, for 0 seconds, nowhere."""
    now = datetime.now(UTC)
    return replace(row, state="CANCELLED", started=now, ended=now, elapsed_seconds=0, nodes=None)


def task(number: int, state: str, **facts: object) -> Job:
    return replace(job(state=state, reason=None, **facts), job_id=JobId(7, task=number))


def entry(context: ClusterContext, phase: str, minutes: float = 2, **facts: object) -> Submission:
    at = datetime.now(UTC) - timedelta(minutes=minutes)
    made = Submission(
        token="sat-1", idempotency_key="k", phase=phase, created=at, updated=at, script_path="a.sh",  # type: ignore[arg-type]
        script_sha256="s", request_sha256="r", job_name="train", slots=1, decision_id="d",
    )  # fmt: skip
    made = replace(made, **facts)  # type: ignore[arg-type]
    context.store.add(context.owner, made)
    return made


@pytest.fixture
def context(tmp_path: Path):
    tools = toolbox(tmp_path, NothingReachesSlurm())
    yield tools.context
    tools.context.store.close()


def asking(context: ClusterContext, told: Told) -> ClusterContext:
    return replace(context, slurm=told)  # type: ignore[arg-type]


def phase(context: ClusterContext) -> tuple[str, int | None]:
    found = context.store.by_key(context.owner, "k")
    assert found is not None
    return found.phase, found.job_id


CASES = [
    ("intent", 2, Told([job()]), ("held", 7)),
    ("unconfirmed", 2, Told([job(state="RUNNING", reason=None)]), ("released", 7)),
    ("held", 2, Told([job(state="CANCELLED", reason=None)]), ("cancelled", 7)),
    (
        "held",
        2,
        Told([job(state="CANCELLED", reason=None, started=datetime(2026, 11, 21, tzinfo=UTC))]),
        ("released", 7),
    ),
    ("held", 2, Told([withdrawn(job())]), ("cancelled", 7)),
    ("held", 2, Told(numbered=[job(state="CANCELLED", elapsed_seconds=0)]), ("cancelled", 7)),
    ("held", 2, Told(numbered=[job(state="CANCELLED", user="eve")]), ("held", 7)),
    ("held", 2, Told(numbered=[job(state="UNKNOWN")]), ("held", 7)),
    ("held", 2, Told([withdrawn(task(1, "PENDING")), task(2, "RUNNING", nodes="a1")]), ("released", 7)),
    ("held", 2, Told([withdrawn(task(1, "PENDING"))], [task(0, "COMPLETED", nodes="a1")]), ("released", 7)),
    ("held", 2, Told([withdrawn(task(1, "PENDING"))], None), ("held", 7)),
    ("held", 2, Told([withdrawn(task(1, "PENDING"))]), ("cancelled", 7)),
    ("held", 2, Told([job(comment="sat-2", state="COMPLETED", reason=None)]), ("held", 7)),
    ("held", 2, Told([job(comment="changed by hand", state="RUNNING", reason=None)]), ("released", 7)),
    ("intent", 2, Told(accounted=[job(state="COMPLETED", reason=None)]), ("released", 7)),
    ("held", 2, Told(accounted=[job(state="COMPLETED", reason=None, comment=None)]), ("released", 7)),
    ("intent", 2, Told([job(user="eve")]), ("intent", None)),
    ("intent", 2, Told([job(comment="another", number=9)]), ("intent", None)),
    ("intent", 2, Told(), ("intent", None)),
    ("intent", 11, Told(), ("lost", None)),
    ("intent", 11, Told(accounted=None), ("intent", None)),
    ("held", 11, Told(), ("released", 7)),
]


@pytest.mark.proves("killed-anywhere-loses-nothing")
@pytest.mark.parametrize(("before", "minutes", "told", "after"), CASES)
async def test_a_broken_off_submission_becomes_what_slurm_shows(context, before, minutes, told, after):
    entry(context, before, minutes, job_id=7 if before == "held" else None)
    await recovery.complete(asking(context, told), told.queued)
    assert phase(context) == after
    assert told.cancelled == []


@pytest.mark.proves("killed-anywhere-loses-nothing")
@pytest.mark.parametrize(("before", "number"), [("intent", None), ("held", 7)])
async def test_an_old_submission_that_goes_on_just_now_is_not_settled_by_an_older_queue(context, before, number):
    entry(context, before, 11, job_id=number, updated=datetime.now(UTC) - timedelta(seconds=5))
    await recovery.complete(asking(context, Told()), [])
    assert phase(context) == (before, number)


@pytest.mark.parametrize("written", ["{} cost=7", "cost=7; {}:run-1", "lab/{}"])
async def test_a_comment_to_which_a_site_added_something_still_names_its_submission(context, written):
    token = "sat-0123456789abcdef"
    entry(context, "intent", 2, token=token)
    told = Told([job(comment=written.format("sat-ffffffffffffffff"), number=8), job(comment=written.format(token))])
    await recovery.complete(asking(context, told), told.queued)
    assert phase(context) == ("held", 7)


async def test_what_was_given_up_is_settled_by_the_queue_alone_and_no_silence_keeps_it_open(context):
    entry(context, "lost", 2)
    await recovery.settle(asking(context, Told([withdrawn(task(1, "PENDING"))], None)))
    assert phase(context) == ("cancelled", 7)


async def test_settling_cancels_an_old_held_job_and_looks_whether_it_is_so(context):
    entry(context, "held", 11, job_id=7)
    told = Told([job()])
    await recovery.settle(asking(context, told))
    assert (told.cancelled, phase(context)) == ([7], ("cancelled", 7))


@pytest.mark.parametrize(("facts", "minutes"), [({"idempotency_key": "k"}, 11), ({}, 9)])
async def test_settling_leaves_the_job_of_the_call_itself_and_a_young_one(context, facts, minutes):
    entry(context, "held", minutes, job_id=7)
    told = Told([job()])
    await recovery.settle(asking(context, told), keep=facts.get("idempotency_key"))
    assert (told.cancelled, phase(context)) == ([], ("held", 7))


@pytest.mark.parametrize("before", ["lost", "refused"])
async def test_a_request_that_was_given_up_and_turns_up_late_is_cancelled(context, before):
    entry(context, before, 5)
    told = Told([job()])
    await recovery.settle(asking(context, told))
    assert (told.cancelled, phase(context)) == ([7], ("cancelled", 7))


async def test_a_silent_accounting_stops_no_other_submission(context):
    entry(context, "intent", 11)
    await recovery.settle(asking(context, Told(accounted=None)))
    assert phase(context) == ("intent", None)


async def test_a_job_that_was_looked_at_completes_its_record(context):
    entry(context, "intent", 0.1)
    await recovery.notice(asking(context, Told()), [job()])
    assert phase(context) == ("held", 7)


async def test_only_a_submission_that_surely_broke_off_is_told(context):
    entry(context, "held", 0.1, job_id=7)
    assert await recovery.complete(asking(context, Told()), [job()]) == []
    context.store.update(entry(context, "held", 2, job_id=8, token="sat-2"), phase="cancelled")
    told = await recovery.complete(asking(replace(context, clock=Later()), Told()), [job()])
    assert [(item.severity, item.code) for item in told] == [("high", "submission-broke-off")]


class Later:
    """A clock that is a minute ahead."""

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(minutes=1)

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


@dataclass
class Deaf(Told):
    """Its scancel ends with 0 and does nothing, as Slurm's does for a job that it does not know."""

    async def cancel(self, job_id: JobId) -> None:
        pass


class Quick(Later):
    """No pause takes any time."""

    async def sleep(self, seconds: float) -> None:
        pass


async def test_an_scancel_that_ends_with_0_is_no_success_until_the_job_is_gone(context):
    entry(context, "held", 11, job_id=7)
    deaf = replace(asking(context, Deaf([job()])), clock=Quick())
    with pytest.raises(SlurmRefused, match="still PENDING"):
        await jobs.cancel(deaf, JobId(7))
    await recovery.settle(deaf)
    assert phase(context) == ("held", 7), "it is tried again with the next submission"
