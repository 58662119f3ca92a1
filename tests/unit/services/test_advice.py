"""What is known before a submission, from an accounting that answers, is away, or hangs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from tests.unit.services.contexts import NothingReachesSlurm, toolbox
from tests.watchdog import SECONDS

from slurm_agent_tools.errors import InputError, SlurmUnreachable, UnknownJob
from slurm_agent_tools.insights import queue_history
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.job import Job, JobRecord, JobView, PastWait, PastWaits, Usage
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.request import JobRequest, Pin, ScriptReading
from slurm_agent_tools.models.shapes import WaitMeasured
from slurm_agent_tools.models.submission_answer import Advised, ExpectedWait
from slurm_agent_tools.services import submission_facts, submission_request
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.services.submission_request import SubmissionRequest, open_request
from slurm_agent_tools.slurm.client import awaited_jobs
from slurm_agent_tools.slurm.commands import sbatch
from slurm_agent_tools.units import JobId

GIB = 2**30
ASKED = Resources(partition="cpu", nodes=1, cpus=4, gpus=0, memory_bytes=8 * GIB, time_limit_seconds=7200)
SCRIPT = "#!/bin/bash\n#SBATCH --partition=cpu\ntrue\n"


class Told:
    """A Slurm that is only asked what is past."""

    def __init__(self, answer: PastWaits | SlurmUnreachable | None = None, *, hangs: bool = False) -> None:
        self.answer, self.hangs = answer, hangs

    async def past(self, *, ask: bool = True, fresh: bool = False) -> PastWaits | None:
        if self.hangs:
            await anyio.sleep_forever()
        if isinstance(self.answer, SlurmUnreachable):
            raise self.answer
        return self.answer

    async def ran(self, since: datetime, name: str | None = None) -> tuple[Job, ...]:
        return ()


@pytest.fixture
def context(tmp_path: Path) -> ClusterContext:
    return toolbox(tmp_path, NothingReachesSlurm()).context


def case(**ask: object) -> SubmissionRequest:
    reading = ScriptReading("train.sh", "abc", SCRIPT, JobRequest())
    return SubmissionRequest(
        SubmitJob(script="train.sh", **ask), Caller(), reading, b"", (), "key", key_given=False,  # type: ignore[arg-type]
        resources=ASKED,
    )  # fmt: skip


def runs(number: int, *, memory: int = GIB, seconds: int = 600, **facts: object) -> list[JobRecord]:
    usage = Usage(
        elapsed_seconds=seconds, memory_peak_bytes=memory, cpu_seconds=float(seconds),
        cpu_allocated_seconds=4.0 * seconds,
    )  # fmt: skip
    plain = {
        "cluster": "test", "project": "/p", "user": "alice", "name": "train.sh", "script_path": "train.sh",
        "script_sha256": "abc", "requested": ASKED, "submitted": datetime(2026, 1, 1, tzinfo=UTC), "state": "COMPLETED",
        "usage": usage,
    }  # fmt: skip
    return [JobRecord(job_id=str(job), **plain | facts) for job in range(1, number + 1)]


def with_runs(monkeypatch: pytest.MonkeyPatch, records: Sequence[JobRecord]) -> None:
    async def told(*_: object, **__: object) -> list[JobRecord]:
        return list(records)

    monkeypatch.setattr(submission_facts, "records", told)


def slurm(context: ClusterContext, told: Told) -> None:
    object.__setattr__(context, "slurm", told)


def past(*seconds: int) -> PastWaits:
    return PastWaits(tuple(PastWait(job, "cpu", wait, ASKED) for job, wait in enumerate(seconds)), 24)


EMPTY = submission_facts.Snapshot({}, (), ())


async def advised(context: ClusterContext, given: SubmissionRequest, start: float | None = None) -> Advised:
    moment = None if start is None else context.clock.now() + timedelta(seconds=start)
    found = (
        await submission_facts.with_advice(
            context, given, sbatch.TestOnly(accepted=True, message="", start=moment), EMPTY
        )
    ).advised
    assert found is not None
    return found


async def test_slurms_estimate_stands_beside_what_was_measured(context: ClusterContext):
    slurm(context, Told(past(10, 20, 30, 40, 100)))

    found = await advised(context, case(), 90)

    wait = found.expected_wait
    assert wait is not None
    assert wait.from_slurm_seconds in {89, 90}
    assert wait.from_history_seconds is not None
    assert wait.from_history_seconds.model_dump() == {"median": 30, "p95": 100, "jobs": 5}
    assert (wait.jobs, found.budget, found.sizing) == (5, None, None)
    assert wait.note == "5 jobs of about this size ran on this partition in the last 24 hours."


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            Told(past(10, 20)),
            "No estimate from earlier jobs: 2 jobs of about this size ran on this partition in the last 24 hours, 5 are",
        ),
        (Told(SlurmUnreachable("slurmdbd is away")), "The accounting could not be asked: slurmdbd is away."),
        (Told(None), "The accounting was not asked: Slurm is slow, or it gave no answer"),
        (Told(PastWaits(note="this cluster keeps no accounting")), "This cluster keeps no accounting."),
    ],
)
async def test_what_was_not_measured_is_none_and_says_why(context: ClusterContext, told: Told, words: str):
    slurm(context, told)

    wait = (await advised(context, case())).expected_wait

    assert wait is not None
    assert wait.from_slurm_seconds is wait.from_history_seconds is None
    assert (wait.note or "").startswith(words)


async def test_an_accounting_that_hangs_keeps_nobody(context: ClusterContext, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(queue_history, "_PATIENCE", 0.05)
    slurm(context, Told(hangs=True))

    with anyio.fail_after(SECONDS):
        wait = (await advised(context, case())).expected_wait

    assert wait is not None
    assert (wait.note or "").startswith("The accounting did not answer within")


@pytest.mark.parametrize(
    ("budget", "records", "fits", "words"),
    [
        ("3600s", runs(6), True, "run up to 00:10:00 (95 % of its 6 runs"),
        ("10m", runs(6), False, "It may miss the time budget of 00:10:00: wait 00:05:00"),
        ("3:00:00", [], True, "run up to 02:00:00 (its time limit; too few earlier runs to know better)"),
        ("60", [], False, "It may miss the time budget of 01:00:00"),
    ],
)
async def test_a_budget_is_compared_with_the_wait_and_the_run(
    context: ClusterContext,
    monkeypatch: pytest.MonkeyPatch,
    budget: str,
    records: list[JobRecord],
    fits: bool,
    words: str,
):
    with_runs(monkeypatch, records)
    slurm(context, Told(past(1, 2, 3, 4, 300)))

    found = (await advised(context, case(time_budget=budget), 30)).budget

    assert found is not None
    assert (found.fits, found.wait_seconds) == (fits, 300)
    assert words in found.why


async def test_without_any_word_of_the_wait_a_budget_is_not_known(context: ClusterContext):
    slurm(context, Told(None))

    found = (await advised(context, case(time_budget="1-00:00:00"))).budget

    assert found is not None
    assert (found.fits, found.wait_seconds, found.run_seconds) == (None, None, 7200)


async def test_an_over_request_is_a_warning_with_figures(context: ClusterContext, monkeypatch: pytest.MonkeyPatch):
    with_runs(monkeypatch, runs(12))
    slurm(context, Told(None))

    found = (await advised(context, case())).sizing

    assert found is not None
    assert (found.runs, found.memory.requested, found.memory.used) == (12, 8 * GIB, GIB)
    assert found.memory.over_request_percent == 700
    assert found.time.over_request_percent == 1100
    assert found.cpus.recommended == 1
    assert found.recommended is not None
    assert GIB < (found.recommended.memory_bytes or 0) < 2 * GIB
    assert {warning.split(":")[0] for warning in found.warnings} == {"memory", "time limit", "CPUs"}


async def test_runs_are_found_by_name_and_by_script(context: ClusterContext, monkeypatch: pytest.MonkeyPatch):
    asked: list[dict[str, object]] = []

    def history(_: object, **stated: object) -> list[JobRecord]:
        asked.append(stated)
        return runs(2) if "name" in stated else runs(3)

    monkeypatch.setattr(context.store, "history", history)
    slurm(context, Told())

    found = await submission_facts.records(context, "train.sh", "abc")

    assert sorted(record.job_id for record in found) == ["1", "2", "3"]
    assert [set(stated) - {"limit"} for stated in asked] == [{"name"}, {"script_sha256"}]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run_id", "a b"), ("run_id", ""), ("run_id", "x" * 101), ("time_budget", "soon"), ("time_budget", "0s"),
        ("time_budget", "UNLIMITED"), ("time_budget", "-5s"), ("time_budget", "²s"), ("priority", "high"),
    ],
)  # fmt: skip
async def test_bad_input_names_its_field_before_anything_is_asked(
    context: ClusterContext, tmp_path: Path, field: str, value: str
):
    (tmp_path / "project/train.sh").write_text(SCRIPT)

    with pytest.raises(InputError) as caught:
        await open_request(context, SubmitJob(script="train.sh", **{field: value}), Caller())  # type: ignore[arg-type]

    assert caught.value.message.startswith(f"{field}: ")


@pytest.mark.parametrize("change", [lambda ask: ask | {"priority": "low"}, lambda ask: ask | {"priority": "normal"}])
async def test_another_priority_is_another_request(
    context: ClusterContext, tmp_path: Path, change: Callable[[dict[str, str]], dict[str, str]]
):
    (tmp_path / "project/train.sh").write_text(SCRIPT)
    plain = {"script": "train.sh"}
    first, second = [
        (await open_request(context, SubmitJob(**ask), Caller())).request_sha256 for ask in (plain, change(plain))
    ]

    assert (first == second) is (change(plain)["priority"] == "normal")


async def test_a_summary_says_what_a_person_should_hear(context: ClusterContext, monkeypatch: pytest.MonkeyPatch):
    with_runs(monkeypatch, runs(12))
    slurm(context, Told(None))

    tight = (
        await submission_facts.with_advice(
            context, case(time_budget="60s"), sbatch.TestOnly(accepted=True, message="", start=None), EMPTY
        )
    ).advised
    plain = Advised()

    assert tight is not None
    assert tight.summary.startswith(" It may miss the time budget of 00:01:00: wait not known")
    assert tight.summary.endswith(
        " Sizing: memory: 8G is 8.0 times the most that was ever used, 1G. 2 more in `sizing`."
    )
    assert plain.summary == ""


@pytest.mark.parametrize(("status", "told"), [("dry_run", True), ("blocked", False), ("unconfirmed", False)])
async def test_behind_what_went_wrong_nobody_is_told_how_large_the_request_is(
    context: ClusterContext, monkeypatch: pytest.MonkeyPatch, status: str, told: bool
):
    with_runs(monkeypatch, runs(12))
    slurm(context, Told(None))
    request = replace(case(), advised=await advised(context, case()))

    answer = submission_request.reply(context, request, status, "So it stands.")

    assert (" Sizing: " in answer.summary) is told
    assert answer.summary.startswith("So it stands.")
    assert answer.sizing is not None


async def test_what_the_guard_filled_in_is_not_held_against_the_request(
    context: ClusterContext, monkeypatch: pytest.MonkeyPatch
):
    with_runs(monkeypatch, runs(12))
    slurm(context, Told(None))
    pins = (Pin("--mem=8G", "no memory stated"), Pin("--time=02:00:00", "no time limit stated"))

    found = (await advised(context, replace(case(), pinned=pins))).sizing

    assert found is not None
    assert [warning.split(":")[0] for warning in found.warnings] == ["CPUs"]


class Queued(Told):
    """One other job, 132, in a state."""

    def __init__(self, state: str, *, started: bool = True) -> None:
        super().__init__(None)
        begun = datetime(2026, 1, 1, tzinfo=UTC) if started else None
        self.view = JobView(Job(JobId(132), "first", state, ("squeue",), started=begun))

    async def job(self, job_id: JobId) -> JobView:
        if job_id.base != 132:
            raise UnknownJob("job_id", str(job_id), "Slurm knows no such job")
        return self.view


@pytest.mark.parametrize(
    ("dependency", "state", "words"),
    [
        ("afterok:132", "RUNNING", "It starts after job 132 ends well."),
        ("afterany:132", "PENDING", "It starts after job 132 ends."),
        ("after:132", "RUNNING", None),
        ("after:132", "PENDING", "It starts after job 132 has begun."),
        ("afterok:132:133", "RUNNING", "It starts once its dependency afterok:132:133 holds."),
        ("singleton", "COMPLETED", "It starts once its dependency singleton holds."),
        ("afterok:132", "COMPLETED", None),
        ("afterok:133", "RUNNING", None),
        (None, "RUNNING", None),
    ],
)
async def test_a_job_that_waits_for_another_one_starts_at_no_known_time(
    context: ClusterContext, dependency: str | None, state: str, words: str | None
):
    slurm(context, Queued(state, started=state != "PENDING"))
    asked = replace(case(time_budget="1-00:00:00"), effective=JobRequest(dependency=dependency))

    found = await advised(context, asked, 0)

    assert found.awaits == words
    assert (found.estimated_start is None) is (words is not None)
    assert found.budget is not None
    assert found.budget.fits is (True if words is None else None)
    assert words is None or f"wait not known (i{words[1:-1]})" in found.budget.why
    assert found.expected_wait is not None
    assert (found.expected_wait.from_slurm_seconds is None) is (words is not None)


async def test_a_job_that_nobody_can_be_asked_about_is_waited_for(context: ClusterContext):
    other = Queued("RUNNING")
    slurm(context, other)
    assert await awaited_jobs(context.slurm, "afterok:132") is not None

    async def away(_: JobId) -> JobView:
        raise SlurmUnreachable("the controller is away")

    object.__setattr__(other, "job", away)
    assert await awaited_jobs(context.slurm, "afterok:132") is not None


def test_when_it_starts_is_a_sentence_where_slurm_tells():
    assert submission_facts.starts(ExpectedWait(from_slurm_seconds=2)) == " Slurm expects it to start at once."
    assert submission_facts.starts(ExpectedWait(from_slurm_seconds=600)) == " Slurm expects it to start in 00:10:00."
    assert submission_facts.starts(ExpectedWait()) == submission_facts.starts(None) == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (2, " Slurm expects it to start at once."),
        (299, " Slurm's estimate of its start is 00:04:59 from now; no other job waits."),
    ],
)
def test_where_no_other_job_waits_an_estimate_of_minutes_is_told_as_no_more_than_that(seconds, words):
    assert submission_facts.starts(ExpectedWait(from_slurm_seconds=seconds), alone=True) == words


def test_a_request_is_told_in_a_few_words():
    assert Resources(partition="cpu", nodes=1, cpus=1, memory_bytes=200 * 2**20, time_limit_seconds=300).in_words == (
        " to cpu: 1 CPU, 200M, 00:05:00"
    )
    assert Resources(nodes=2, gpus=4, cpus=8, array_tasks=10).in_words == ": 10 array tasks, 2 nodes, 4 GPUs, 8 CPUs"


def test_an_estimate_far_beyond_what_jobs_waited_is_told_as_the_most_that_it_can_be():
    lately = WaitMeasured(median=1, p95=4, jobs=30)
    told = submission_facts.starts(ExpectedWait(from_slurm_seconds=52 * 86400, from_history_seconds=lately, jobs=30))
    assert told == (
        " Jobs like it waited 00:00:01 here lately, 95 % of them at most 00:00:04; by the time limits of the jobs that run"
        " now it starts within 52-00:00:00."
    )
    near = submission_facts.starts(ExpectedWait(from_slurm_seconds=600, from_history_seconds=lately, jobs=30))
    assert near == " Slurm expects it to start in 00:10:00."
