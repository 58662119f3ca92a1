"""What the accounting adds to the ledger, record by record; what drifts, how grave it is, and on which day."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.services import test_drift, test_past
from tests.unit.services.test_drift import record
from tests.unit.services.test_past import asking, ended, sent
from tests.unit.slurm.answers import done
from tests.unit.slurm.clocks import START, queued

from slurm_agent_tools.errors import SlurmUnreachable, StorageError
from slurm_agent_tools.insights.accounting_history import accounting_history, from_accounting, is_answered
from slurm_agent_tools.models.job import Job, JobRecord, Step
from slurm_agent_tools.policy.document import Exemption
from slurm_agent_tools.scripts.reader import MAX_FILE
from slurm_agent_tools.services.log_files import read as read_log
from slurm_agent_tools.transport.base import Stat
from slurm_agent_tools.transport.local import LocalFiles
from slurm_agent_tools.units import JobId

GIB = 2**30
NOW = test_past.NOW
context = test_past.context
scene = test_drift.scene
waiting = test_drift.waiting


@dataclass
class Told(test_past.Told):
    """Also notes since when it was asked."""

    since: list[datetime] = field(default_factory=list)

    async def ran(self, since: datetime, name: str | None = None) -> tuple[Job, ...]:
        self.since.append(since)
        return await super().ran(since, name)


# --- the accounting -------------------------------------------------------------------------------------------------


async def test_a_job_that_only_the_accounting_knows_is_a_whole_record(context):
    job = ended(
        context, 8, "FAILED", exit_code=2, signal=9, comment="sat-0123456789abcdef:r9",
        resources=test_past.Resources(cpus=2, memory_bytes=GIB), ended=NOW - timedelta(minutes=3),
    )  # fmt: skip
    (found,) = await from_accounting(asking(context, Told([job])), NOW - timedelta(days=1))
    owner = context.owner
    assert replace(found, usage=None) == JobRecord(
        job_id="8", cluster=owner.cluster, project=owner.project, user=owner.user, name="train", script_path="",
        script_sha256="", requested=job.resources, submitted=job.submitted, state="FAILED", partition="gpu",
        run_id="r9", started=job.started, ended=job.ended, exit_code=2, signal=9, category=None, usage=None, tasks=1,
        managed=False,
    )  # fmt: skip
    assert found.usage is not None


@pytest.mark.parametrize(
    ("facts", "submitted"),
    [({}, NOW - timedelta(hours=1)), ({"submitted": None}, NOW - timedelta(minutes=50)), ({"submitted": None, "started": None}, None)],
)  # fmt: skip
async def test_a_job_without_the_time_of_its_submission_counts_from_its_start_or_not_at_all(context, facts, submitted):
    found = await from_accounting(asking(context, Told([ended(context, 8, **facts)])), NOW)
    assert [one.submitted for one in found] == ([] if submitted is None else [submitted])


async def test_a_run_id_is_that_of_a_comment_of_ours_and_memory_is_told_of_any_part(context):
    step = Step("0", "a", "OUT_OF_MEMORY")
    told = Told([ended(context, 8, comment="mine:r9"), ended(context, 9, "FAILED", steps=(step,))])
    found = {one.job_id: one for one in await from_accounting(asking(context, told), NOW)}
    assert (found["8"].run_id, found["8"].category) == (None, None)
    assert found["9"].category == "host-out-of-memory"


async def test_tasks_of_an_array_are_one_record(context):
    parts = [ended(context, job_id=JobId(8, task=number), work_dir=context.project) for number in range(3)]
    (found,) = await from_accounting(asking(context, Told(parts)), NOW)
    assert (found.job_id, found.tasks) == ("8", 3)


@pytest.mark.parametrize("days", [30, 3])
async def test_the_accounting_is_asked_for_the_days_that_are_wanted(context, days):
    told = Told()
    await (
        accounting_history(asking(context, told)) if days == 30 else accounting_history(asking(context, told), days=3)
    )
    ago = context.clock.now() - told.since[0]
    assert timedelta(0) <= ago - timedelta(days=days) < timedelta(minutes=1)


async def test_a_name_is_asked_for_thirty_days_and_an_error_is_nothing(context):
    told = Told([ended(context, 8), replace(ended(context, 9), name="other")])
    assert [one.job_id for one in await is_answered(asking(context, told), "train")] == ["8"]
    ago = context.clock.now() - told.since[0]
    assert timedelta(0) <= ago - timedelta(days=30) < timedelta(minutes=1)
    assert await is_answered(asking(context, Told(silent=True)), "train") == []


@pytest.mark.parametrize("wanted", [{}, {"name": "train"}, {"script_path": "a.sh"}])
async def test_no_more_records_come_than_are_wanted_and_the_newest_first(context, wanted):
    for number in (7, 8, 9):
        sent(context, number, created=NOW - timedelta(hours=20 - number), outcome="COMPLETED", failed=False)
    found = await accounting_history(asking(context, Told()), limit=2, **wanted)
    assert [one.job_id for one in found.records] == ["9", "8"]


async def test_an_accounting_that_is_silent_is_told_with_its_words(context):
    sent(context, 7, outcome="COMPLETED")
    found = await accounting_history(asking(context, Told(silent=True)))
    assert [one.job_id for one in found.records] == ["7"]
    assert found.silent is not None
    assert found.silent.endswith("The accounting does not answer")


# --- drift ----------------------------------------------------------------------------------------------------------


async def test_another_partition_is_grave_for_it_was_never_judged(scene):
    scene.shown = done(record().replace(b"Partition=cpu", b"Partition=special"))
    (alert,) = await scene.look()
    assert alert.startswith("high drift ")
    assert "the partition is special, allowed was cpu" in alert


@pytest.mark.parametrize(("until", "severity"), [(START + 86_400, "medium"), (START - 86_400, "high")])
async def test_a_number_that_is_excepted_today_is_no_grave_drift(scene, until: int, severity: str):
    day = datetime.now(UTC).date() + (timedelta(days=2) if until > START else timedelta(days=-2))
    item = Exemption(rule="time-limit", reason="agreed with the group", until=day)
    loaded = scene.context.policy
    scene.context = replace(
        scene.context, policy=replace(loaded, policy=loaded.policy.model_copy(update={"exceptions": (item,)}))
    )
    scene.change(limit="7-00:00:00")
    (alert,) = await scene.look()
    assert alert.startswith(f"{severity} drift ")


@pytest.mark.parametrize(("more", "told"), [(0, 0), (1, 1)])
async def test_a_file_that_a_script_runs_is_compared_up_to_the_size_that_is_read(waiting, more: int, told: int):
    text = "#" * (MAX_FILE + more)
    run = waiting.context.store.by_job(waiting.context.owner, 5)
    waiting.context.store.update(run, files={"helper.sh": hashlib.sha256(text.encode()).hexdigest()})
    waiting.file(text, START - 100)
    assert len(await waiting.look()) == told


async def test_slurms_silence_is_told_with_its_words_and_the_job(scene):
    scene.shown = test_drift.SILENT
    (alert,) = await scene.look(fresh=True)
    assert alert.startswith("medium drift-not-checked Whether job 5 is still what was allowed could not be looked at: ")
    assert "Unable to contact slurm controller" in alert


async def test_a_row_that_changed_is_compared_again_and_one_that_did_not_is_not(scene):
    await scene.look()
    asked = scene.context.slurm.calls["scontrol show job"]
    await scene.look()
    assert scene.context.slurm.calls["scontrol show job"] == asked
    scene.rows = done(queued("5", nodes="cpu02"))
    await scene.look()
    assert scene.context.slurm.calls["scontrol show job"] == asked + 1


# --- logs that change -----------------------------------------------------------------------------------------------


class Changing(LocalFiles):
    """Another size at every look."""

    def __init__(self, sizes: Sequence[int | None]) -> None:
        self.sizes = list(sizes)

    async def stat(self, path: str) -> Stat | None:
        seen = await super().stat(path)
        if not path.endswith("a.out") or seen is None:
            return seen
        size = self.sizes.pop(0) if len(self.sizes) > 1 else self.sizes[0]
        return None if size is None else replace(seen, size=size)


@pytest.mark.parametrize(
    ("sizes", "note"),
    [
        ([5, 5], None),
        ([5, None], "it was deleted while it was read"),
        ([5, 15], "it is still being written: 10B came while it was read, so look again later"),
        ([5, 4], "it was cut off while it was read, so look again"),
    ],
)
async def test_what_became_of_a_log_while_it_was_read_is_told(context, tmp_path, sizes, note):
    (tmp_path / "project" / "a.out").write_text("done\n")
    context.transport.files = Changing(sizes)
    log = await read_log(context, f"{context.project}/a.out", "stdout")
    assert (log.file.note, log.file.read_bytes, log.file.size_bytes, log.file.path) == (note, 5, 5, "a.out")


async def test_a_log_that_cannot_be_read_says_why_and_what_to_do(context):
    class Broken(LocalFiles):
        async def stat(self, path: str) -> Stat | None:
            raise StorageError("the disk is away", hint="Look at it.")

    context.transport.files = Broken()
    log = await read_log(context, f"{context.project}/a.out", "stdout")
    assert (log.text, log.file.note, log.file.size_bytes, log.file.read_bytes) == (
        None,
        "the disk is away. Look at it.",
        None,
        0,
    )


async def test_an_unreachable_accounting_is_no_answer_about_names(context):
    with pytest.raises(SlurmUnreachable):
        await from_accounting(asking(context, Told(silent=True)), NOW)
