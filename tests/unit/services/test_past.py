"""The end of a job becomes part of its record, whoever sees it; the accounting adds what the guard did not submit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from tests.unit.services.contexts import NothingReachesSlurm, toolbox

from slurm_agent_tools.api.search_history import HistoryQuestion, search_history
from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.insights.accounting_history import accounting_history, is_answered
from slurm_agent_tools.models.job import Job, JobView, Step
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.services import jobs
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import JobViews
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.units import JobId

NOW = datetime.now(UTC)
MIB = 2**20


@dataclass
class Told:
    """A Slurm that knows these jobs; `calls` counts the questions."""

    known: Sequence[Job] = ()
    silent: bool = False
    slow: bool = False
    calls: Counter[str] = field(default_factory=Counter)

    async def jobs(self, ids: Sequence[JobId], *, patient: bool = True) -> JobViews:
        self.calls["jobs"] += 1
        if self.slow:
            await anyio.sleep_forever()
        if self.silent:
            raise SlurmUnreachable("Slurm does not answer")
        found = JobViews()
        found.update({one: JobView(job) for one in ids for job in self.known if job.job_id == one})
        return found

    async def ran(self, since: datetime, name: str | None = None) -> tuple[Job, ...]:
        self.calls["ran"] += 1
        if self.slow:
            await anyio.sleep_forever()
        if self.silent:
            raise SlurmUnreachable("The accounting does not answer")
        return tuple(job for job in self.known if name in {None, job.name})


@pytest.fixture
def context(tmp_path: Path):
    tools = toolbox(tmp_path, NothingReachesSlurm())
    yield tools.context
    tools.context.store.close()


def asking(context: ClusterContext, told: Told) -> ClusterContext:
    return replace(context, slurm=told)  # type: ignore[arg-type]


def ended(context: ClusterContext, number: int = 7, state: str = "COMPLETED", **facts: object) -> Job:
    stated: dict[str, object] = {
        "partition": "gpu", "submitted": NOW - timedelta(hours=1), "started": NOW - timedelta(minutes=50),
        "ended": NOW - timedelta(minutes=40), "elapsed_seconds": 600, "exit_code": 0, "work_dir": context.project,
        "resources": Resources(cpus=2, memory_bytes=500 * MIB, time_limit_seconds=3600),
        "steps": (Step("batch", "batch", "COMPLETED", max_rss_bytes=100 * MIB, elapsed_seconds=600, cpu_seconds=60.0),),
    } | facts  # fmt: skip
    stated.setdefault("job_id", JobId(number))
    return Job(name="train", state=state, sources=("sacct",), **stated)  # type: ignore[arg-type]


def sent(context: ClusterContext, number: int = 7, **facts: object) -> Submission:
    made = Submission(
        token=f"sat-{number}", idempotency_key=f"k{number}", phase="released", created=NOW - timedelta(hours=1),
        updated=NOW - timedelta(hours=1), script_path="a.sh", script_sha256="s", request_sha256="r", job_name="train",
        slots=1, decision_id="d", job_id=number, requested=Resources(cpus=2),
    )  # fmt: skip
    made = replace(made, **facts)  # type: ignore[arg-type]
    context.store.add(context.owner, made)
    return made


@pytest.mark.proves("jobs-are-remembered")
async def test_a_job_whose_end_was_read_is_remembered_with_its_use_without_slurm(context):
    sent(context)
    await jobs.remember(context, JobView(ended(context)))
    (found,) = context.store.history(context.owner)
    assert (found.state, found.partition, found.exit_code, found.tasks) == ("COMPLETED", "gpu", 0, 1)
    assert found.ended == NOW - timedelta(minutes=40)
    assert found.usage is not None
    assert (found.usage.elapsed_seconds, found.usage.cpu_seconds) == (600, 60)
    assert (found.usage.memory_peak_bytes, found.usage.memory_allocated_bytes) == (100 * MIB, 500 * MIB)


async def test_a_later_look_without_steps_does_not_take_the_use_away(context):
    sent(context)
    await jobs.remember(context, JobView(ended(context)))
    await jobs.remember(context, JobView(ended(context, steps=(), ended=None)))
    (found,) = context.store.history(context.owner)
    assert found.usage is not None
    assert (found.usage.memory_peak_bytes, found.ended) == (100 * MIB, NOW - timedelta(minutes=40))


async def test_a_later_look_at_the_accounting_alone_does_not_cut_the_exit_code(context):
    sent(context)
    for code, short in ((200, False), (72, True)):
        await jobs.remember(context, JobView(ended(context, state="FAILED", exit_code=code, short_code=short)))
    assert [one.exit_code for one in context.store.history(context.owner)] == [200]


async def test_an_active_job_is_remembered_as_it_was_seen(context):
    sent(context)
    await jobs.remember(context, JobView(ended(context, state="RUNNING", ended=None, steps=())))
    (found,) = context.store.history(context.owner)
    assert (found.state, found.partition, found.ended, found.usage) == ("RUNNING", "gpu", None, None)


async def test_an_array_is_remembered_with_its_tasks(context):
    sent(context)
    tasks = tuple(ended(context, job_id=JobId(7, task=number)) for number in range(3))
    await jobs.remember(context, JobView(ended(context, steps=()), tasks))
    (found,) = context.store.history(context.owner)
    assert found.tasks == 3
    assert found.usage is not None
    assert (found.usage.cpu_seconds, found.usage.elapsed_seconds) == (180, 600)


class TestJobsThatEndedUnseen:
    async def test_one_question_completes_them_all(self, context):
        for number in (7, 8, 9):
            sent(context, number)
        told = Told([ended(context, 7), ended(context, 8, "FAILED", exit_code=1), ended(context, 9)])
        await jobs.settle_ended(asking(context, told), {9}, NOW)
        assert told.calls == {"jobs": 1}
        assert [one.state for one in context.store.history(context.owner)] == ["UNKNOWN", "FAILED", "COMPLETED"]

    async def test_nothing_is_asked_where_none_ended_or_one_was_released_just_now(self, context):
        sent(context, 7)
        sent(context, 8, updated=NOW - timedelta(seconds=2))
        sent(context, 9, outcome="COMPLETED")
        told = Told()
        await jobs.settle_ended(asking(context, told), {7}, NOW)
        assert told.calls == {}

    async def test_one_behind_many_newer_jobs_that_go_on_is_not_passed_over(self, context):
        sent(context, 7, created=NOW - timedelta(hours=2))
        for number in range(100, 160):
            sent(context, number)
        told = Told([ended(context, 7)])
        await jobs.settle_ended(asking(context, told), range(100, 160), NOW)
        assert [one.state for one in context.store.history(context.owner)][-1] == "COMPLETED"

    async def test_one_that_slurm_has_forgotten_is_asked_for_once(self, context):
        sent(context)
        told = Told()
        for _ in range(3):
            await jobs.settle_ended(asking(context, told), (), NOW + timedelta(minutes=1))
        assert told.calls == {"jobs": 1}

    @pytest.mark.parametrize("facts", [{"silent": True}, {"slow": True}])
    async def test_a_silent_or_slow_slurm_is_for_the_next_time(self, context, facts):
        hasty = context.settings.model_copy(update={"slurm": SlurmSettings(read_timeout=0.05)})
        context = replace(context, settings=hasty)
        sent(context)
        for told in (Told(**facts), Told([ended(context)])):
            await jobs.settle_ended(asking(context, told), (), NOW)
        assert [one.state for one in context.store.history(context.owner)] == ["COMPLETED"]


class TestThePast:
    async def test_the_accounting_adds_the_jobs_of_this_project_and_ends_that_were_not_seen(self, context):
        sent(context, 7)
        told = Told([
            ended(context, 7, "FAILED", exit_code=2),
            ended(context, 8, work_dir=f"{context.project}/below"),
            ended(context, 9, work_dir=f"{context.project}-of-another"),
            ended(context, 10, work_dir=None),
            ended(context, 11, "RUNNING"),
        ])  # fmt: skip
        found = await accounting_history(asking(context, told))
        assert found.silent is None
        states = {one.job_id: (one.state, one.managed, one.script_path) for one in found.records}
        assert states == {"7": ("FAILED", True, "a.sh"), "8": ("COMPLETED", False, "")}

    async def test_a_name_or_a_script_is_asked_for_by_name(self, context):
        sent(context, 7)
        sent(context, 8, job_name="eval", script_path="b.sh")
        told = Told([ended(context, 12), replace(ended(context, 13), name="eval")])
        by_name = await accounting_history(asking(context, told), name="train")
        by_script = await accounting_history(asking(context, told), script_path="b.sh")
        either = await accounting_history(asking(context, told), name="train", script_path="b.sh")
        assert {one.job_id for one in by_name.records} == {"7", "12"}
        assert {one.job_id for one in by_script.records} == {"8", "13"}
        assert {one.job_id for one in either.records} == {"7", "8", "12"}
        assert told.calls == {"ran": 3}

    async def test_a_silent_accounting_leaves_the_guards_own_jobs_and_says_so(self, context):
        sent(context)
        found = await accounting_history(asking(context, Told(silent=True)))
        assert [one.job_id for one in found.records] == ["7"]
        assert "The accounting does not answer" in (found.silent or "")

    async def test_an_array_is_one_record_and_a_kill_for_memory_is_named(self, context):
        task = ended(context, job_id=JobId(9, task=0))
        killed = Step("batch", "batch", "OUT_OF_MEMORY", exit_code=0, signal=125, max_rss_bytes=500 * MIB)
        told = Told([task, replace(task, job_id=JobId(9, task=1), state="FAILED", steps=(killed,))])
        (found,) = (await accounting_history(asking(context, told))).records
        assert (found.job_id, found.tasks, found.category) == ("9", 2, "host-out-of-memory")

    async def test_the_run_id_is_in_the_comment_of_a_job_that_came_through_the_guard(self, context):
        told = Told([ended(context, 8, comment="sat-1:sweep-7"), ended(context, 9, comment="mine: two words")])
        assert [one.run_id for one in (await accounting_history(asking(context, told))).records] == [None, "sweep-7"]


async def test_what_is_recalled_is_counted_and_shown_up_to_the_limit(context):
    for number in (7, 8, 9):
        sent(context, number, run_id=f"r{number}")
    told = Told([ended(context, number) for number in (7, 8, 9)])
    reply = await search_history(asking(context, told), HistoryQuestion(tags=["completed"], limit=2))
    assert reply.summary == "3 jobs of the last 30 days, 2 shown."
    assert [one.job_id for one in reply.jobs] == ["9", "8"]
    assert reply.jobs[0].tags == ["slurm", "job", "9", "gpu", "completed", "r9"]
    none = await search_history(asking(context, told), HistoryQuestion(tags=["r7", "r8"]))
    assert (none.summary, none.jobs, none.data_only) == ("No job of the last 30 days fits.", [], [])
    either = await search_history(asking(context, told), HistoryQuestion(tags=["r7", "r8"], match_all=False))
    assert [one.job_id for one in either.jobs] == ["8", "7"]


@pytest.mark.parametrize(("told", "found"), [({}, ["8"]), ({"silent": True}, []), ({"slow": True}, [])])
async def test_the_advice_before_submitting_waits_for_the_accounting_a_moment_only(context, monkeypatch, told, found):
    monkeypatch.setattr("slurm_agent_tools.insights.accounting_history._PATIENCE", 0.05)
    slurm = asking(context, Told([ended(context, 8), replace(ended(context, 9), name="eval")], **told))
    assert [one.job_id for one in await is_answered(slurm, "train")] == found
