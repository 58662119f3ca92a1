"""The facts that a decision rests on, counted to the last slot and hour; and how a job's standing is put in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.services.scenes import HEAD, Scene, sent

from slurm_agent_tools.diagnosis import job_parts
from slurm_agent_tools.models.job import Job, JobView, Step
from slurm_agent_tools.models.job_resources import Resources, reserved
from slurm_agent_tools.models.request import JobRequest, ScriptReading
from slurm_agent_tools.models.shapes import RunningShown
from slurm_agent_tools.services import submission_facts
from slurm_agent_tools.services.submission_facts import Snapshot
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.units import parse_array, parse_job_id

GIB = 2**30


def job(text: str, state: str = "RUNNING", **facts: object) -> Job:
    return Job(parse_job_id(text), "train", state, ("squeue",), **facts)  # type: ignore[arg-type]


def ledger(scene: Scene, number: int, *, ago: timedelta = timedelta(hours=1), **facts: object) -> Submission:
    at = scene.slurm.clock.now() - ago
    made = Submission(
        token=f"sat-{number:016x}", idempotency_key=f"k{number}", phase="released", created=at, updated=at,
        script_path="a.sh", script_sha256="s", request_sha256="r", job_name="train", slots=1, decision_id="d",
        job_id=number,
    )  # fmt: skip
    made = replace(made, **facts)  # type: ignore[arg-type]
    scene.context.store.add(scene.context.owner, made)
    return made


async def facts(scene: Scene, *active: Job, unsettled: tuple[Submission, ...] = (), **request: object):
    reading = ScriptReading("train.sh", "abc", "", JobRequest(**request))  # type: ignore[arg-type]
    return await submission_facts.live_facts(scene.context, Snapshot({}, active, unsettled), reading)


# --- slots --------------------------------------------------------------------------------------------------------


async def test_slots_are_those_of_active_jobs_of_lost_answers_and_of_this_one(scene: Scene):
    lost = replace(ledger(scene, 90), slots=2)
    known = await facts(scene, job("1"), job("2", "PENDING"), unsettled=(lost,))
    assert (known.active_jobs, known.slots_after, known.pending_after) == (4, 5, 4)
    alone = await facts(scene)
    assert (alone.active_jobs, alone.slots_after, alone.pending_after) == (0, 1, 1)


async def test_an_array_counts_by_its_tasks_at_once(scene: Scene):
    known = await facts(scene, job("1"), array=parse_array("0-9%3"))
    assert (known.active_jobs, known.slots_after, known.pending_after) == (1, 4, 3)


@pytest.mark.parametrize(
    ("dependency", "after", "takes_over"),
    [
        ("afterok:2:1", 2, "1"), ("afterok:3", 3, None), ("after:1", 3, None), (None, 3, None), ("afterany:1_*", 3, None),
        ("afterany:1_0", 3, None),
    ],
)  # fmt: skip
async def test_a_job_that_waits_for_an_end_takes_over_a_slot(scene: Scene, dependency, after, takes_over):
    known = await facts(scene, job("1"), job("2"), dependency=dependency)
    assert (known.active_jobs, known.slots_after, known.takes_over) == (2, after, takes_over)


async def test_a_job_that_is_waited_for_is_known_while_slurm_has_it_and_ended_once_it_is_over(scene: Scene):
    scene.slurm.next_job(after=None)
    going = int(await sent(scene))
    scene.slurm.next_job(exit_code=3, after=1)
    over = int(await sent(scene, seconds=30, args=["b"]))
    known = await facts(scene, dependency=f"afterok:{going}:{over}:999")
    assert known.known_jobs == {str(going), str(over)}
    assert known.ended_jobs == {str(over): "FAILED"}


async def test_a_task_that_is_waited_for_is_known_while_slurm_has_it(scene: Scene):
    scene.slurm.next_job(after=None)
    single = int(await sent(scene))
    array = scene.slurm.submit("#!/bin/bash\nsleep 600\n", "--array=0-7%2", "--mem=1M")
    scene.slurm.clock.move(5)
    words = f"afterok:{single}_*:{array}_*,afterany:{single}_0:{array}_0:{array}_7:{array}_8"
    known = await facts(scene, dependency=words)
    assert known.known_jobs == {str(single), str(array), f"{array}_*", f"{array}_0", f"{array}_7"}


@pytest.mark.parametrize("word", ["_*", "_0"])
async def test_a_job_behind_tasks_that_are_not_there_is_refused_and_counts_by_itself(scene: Scene, word: str):
    """Slurm lifts such a dependency at once: five ran of four."""
    for name in "abcd":
        scene.slurm.next_job(after=None)
        last = await sent(scene, args=[name])
    scene.write("next.sh", f"{HEAD}#SBATCH --dependency=afterany:{last}{word}\nsleep 60\n")
    reply = await scene.submit("next.sh")
    outcomes = {one.id: one for one in reply.decision.rules}
    assert reply.status == "blocked"
    assert outcomes["concurrent-jobs"].observed == 5
    assert f"Slurm knows no {last}{word}:" in outcomes["dependency"].message
    scene.write("next.sh", f"{HEAD}#SBATCH --dependency=afterany:{last}\nsleep 60\n")
    assert (await scene.submit("next.sh")).status == "submitted"


@pytest.mark.parametrize(("count", "most"), [(20, 2), (21, 0), (5000, 0)])
async def test_jobs_that_are_waited_for_are_asked_about_together_and_too_many_not_at_all(scene: Scene, count, most):
    """One after the other, some thousand kept the accounting busy for minutes."""
    scene.slurm.next_job(after=None)
    going = int(await sent(scene))
    before = scene.slurm.counts["sacct"]
    ids = [str(going), *map(str, range(900_000, 899_999 + count))]
    known = await facts(scene, dependency=f"afterany:{':'.join(ids)}")
    assert known.known_jobs == ({str(going)} if most else frozenset())
    assert scene.slurm.counts["sacct"] - before <= most


async def test_a_number_that_slurm_cannot_give_is_no_job_and_the_ledger_is_not_asked_for_it(scene: Scene):
    known = await facts(scene, dependency=f"afterany:{'9' * 30}")
    assert (known.known_jobs, known.ended_jobs) == (frozenset(), {})


# --- hours and submissions of a day ---------------------------------------------------------------------------------

ASKED = Resources(gpus=2, cpus=8, time_limit_seconds=7200)


@pytest.mark.parametrize(
    ("submission", "gpu", "cpu"),
    [
        ({"requested": ASKED}, 4.0, 16.0),
        ({"requested": ASKED, "run_seconds": 1800}, 1.0, 4.0),
        ({"requested": replace(ASKED, array_tasks=3)}, 12.0, 48.0),
        ({"requested": replace(ASKED, array_tasks=3), "run_seconds": 1800}, 12.0, 48.0),
        ({"requested": replace(ASKED, time_limit_seconds=-1)}, 2 * 876_000.0, 8 * 876_000.0),
        ({"requested": replace(ASKED, time_limit_seconds=-1), "run_seconds": 1800}, 1.0, 4.0),
        ({"requested": replace(ASKED, time_limit_seconds=None)}, 2 * 876_000.0, 8 * 876_000.0),
        ({"requested": replace(ASKED, gpus=None, cpus=None)}, 0.0, 0.0),
        ({"requested": replace(ASKED, time_limit_seconds=1000)}, 0.56, 2.22),
        ({"requested": ASKED, "ago": timedelta(hours=25)}, 0.0, 0.0),
    ],
)
async def test_hours_of_a_day_are_asked_for_by_what_goes_on_and_used_by_what_is_over(
    scene: Scene, submission, gpu, cpu
):
    ledger(scene, 7, **submission)
    known = await facts(scene)
    assert (known.gpu_hours_today, known.cpu_hours_today) == (gpu, cpu)
    assert known.submissions_today == (0 if "ago" in submission else 1)


async def test_what_is_known_of_a_moment_is_its_time_its_jobs_and_the_last_look(scene: Scene):
    await scene.status()
    looked = scene.slurm.clock.now()
    scene.slurm.clock.move(30)
    known = await facts(scene, job("1"))
    assert known.now == scene.slurm.clock.now()
    assert known.status_read is not None
    assert timedelta(seconds=29) <= known.now - known.status_read <= known.now - looked + timedelta(seconds=2)
    assert known.active == (job("1"),)


# --- earlier runs ---------------------------------------------------------------------------------------------------


async def test_an_earlier_run_is_told_as_the_ledger_has_it(scene: Scene):
    at = scene.slurm.clock.now()
    made = ledger(scene, 7, outcome="FAILED", failed=True, analysed=at, category="timeout", run_seconds=5)
    ledger(
        scene, 8, ago=timedelta(minutes=5), outcome="COMPLETED", failed=False, script_path="other.sh", script_sha256="t"
    )
    first, second = (await facts(scene, job("8"))).history
    assert (first.job_id, first.active, first.analysed, first.failed, first.category) == ("8", True, False, False, None)
    assert (second.job_id, second.active, second.analysed, second.failed) == ("7", False, True, True)
    assert (second.outcome, second.category, second.submitted) == ("FAILED", "timeout", made.created)
    assert (second.script_path, second.script_sha256, second.job_name, second.request_sha256) == (
        "a.sh",
        "s",
        "train",
        "r",
    )


async def test_a_submission_keeps_its_slots_until_the_queue_shows_its_job(scene: Scene):
    open_ = [ledger(scene, number, phase="unconfirmed", job_id=None) for number in (1, 2)]
    held = ledger(scene, 3, phase="held")
    mine = [job("9", comment=open_[0].token), job("3"), job("4")]
    assert await scene.context.unsettled(mine) == (open_[1],)
    assert {one.token for one in await scene.context.unsettled([])} == {one.token for one in (*open_, held)}
    claims = reserved([3, 1])
    assert [(claim.width, claim.base < 0, claim.after) for claim in claims] == [
        (3, True, frozenset()),
        (1, True, frozenset()),
    ]
    assert len({claim.base for claim in claims}) == 2


# --- words ----------------------------------------------------------------------------------------------------------

USED = RunningShown(
    job_id="5",
    parts=1,
    elapsed_seconds=None,
    time_left_seconds=None,
    estimated_end=None,
    estimated_from=None,
    memory="3G",
    memory_limit="4G",
    memory_bytes=3 * GIB,
    memory_limit_bytes=4 * GIB,
    memory_share=0.75,
)


@pytest.mark.parametrize(
    ("record", "running", "words"),
    [
        (job("5", "PENDING"), None, "PENDING"),
        (job("5", "PENDING", reason="Priority"), None, "PENDING (Priority)"),
        (job("5", elapsed_seconds=60), None, "RUNNING for 60 s"),
        (job("5"), None, "RUNNING"),
        (job("5", "CONFIGURING", elapsed_seconds=60), None, "CONFIGURING for 60 s"),
        (job("5", "SUSPENDED", elapsed_seconds=60), None, "SUSPENDED after running 60 s"),
        (job("5", "COMPLETING", elapsed_seconds=60), None, "COMPLETING after running 60 s"),
        (job("5", elapsed_seconds=60), USED, "RUNNING for 60 s, memory 3G of 4G (75 %)"),
        (job("5"), USED.model_copy(update={"time_left_seconds": 0}), "RUNNING, memory 3G of 4G (75 %), 0 s left"),
        (job("5"), USED.model_copy(update={"memory_share": 0.76}), "RUNNING, memory 3G of 4G (76 %)"),
        (
            job("5"),
            USED.model_copy(update={"memory_share": 0.77}),
            "RUNNING, memory 3G of 4G (77 % of that of one node)",
        ),
        (job("5"), USED.model_copy(update={"memory_limit_bytes": None}), "RUNNING, memory at 75 %"),
        (job("5"), USED.model_copy(update={"memory_bytes": None}), "RUNNING, memory at 75 %"),
        (job("5"), USED.model_copy(update={"memory_share": None, "time_left_seconds": 90}), "RUNNING, 90 s left"),
    ],
)
def test_how_a_job_stands_in_a_few_words(record, running, words):
    told = job_parts.describe(record, running)
    assert told == words
    assert job_parts.standing(JobView(record), running) == f" is {words}"


def test_how_many_parts_stand_where_is_counted():
    parts = (job("5_1", "COMPLETED"), job("5_2"), job("5_3", "PENDING"))
    assert job_parts.standing(JobView(job("5"), parts)).startswith(": ")
    assert "RUNNING" in job_parts.standing(JobView(job("5"), parts))


def test_who_cancelled_a_job_is_left_to_the_sentence_of_its_cause():
    ended = job("5", "CANCELLED", cancelled_by="1001", exit_code=0)
    assert "1001" not in job_parts.describe(ended)


@pytest.mark.parametrize(
    ("state", "failed", "words"),
    [("COMPLETED", False, "is COMPLETED"), ("TIMEOUT", True, "ended in TIMEOUT: it reached its time limit."), ("CANCELLED", False, "ended in CANCELLED: it was cancelled")],
)  # fmt: skip
async def test_an_end_is_told_once_with_its_cause_and_of_a_failure_the_next_step(scene: Scene, state, failed, words):
    scene.slurm.next_job(after=None if state != "COMPLETED" else 5)
    number = await sent(scene)
    if state == "CANCELLED":
        scene.slurm.command("scancel", number, admin=True)
    scene.slurm.clock.move(1300)
    summary = (await scene.wait(number)).summary
    assert words in summary
    assert summary.endswith(f'analyze_log with job_id="{number}" says why.') == failed
    assert summary.count("time limit") <= 1


def test_a_step_is_no_part_of_a_jobs_standing():
    assert job_parts.describe(job("5", steps=(Step("0", "a", "FAILED"),))) == "RUNNING"
