"""What a look at a job asks, compares and leaves out: alerts, estimates, progress, logs, nodes, earlier runs."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.services.clusters import NOW, Cluster, submitted
from tests.unit.services.scenes import HEAD, MISSING, Scene, failed, sent
from tests.unit.slurm.clocks import queued

from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.models.arguments import AnalyzeLog, GetStatus
from slurm_agent_tools.models.job import Job, JobRecord, JobView, PastWait, PastWaits, Usage
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.result import SaveResult
from slurm_agent_tools.services import log_analysis, running_job
from slurm_agent_tools.units import parse_job_id

MIB, GIB = 2**20, 2**30


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


# --- a running job --------------------------------------------------------------------------------------------------


def ran(cluster: Cluster, number: int, seconds: int, *, sha: str = "s", name: str = "train") -> None:
    """An earlier run of the ledger that took so long."""
    context = cluster.box.context
    begun = at(NOW - 100_000 + number)
    run = replace(
        submitted(begun, outcome="COMPLETED", failed=False, run_seconds=seconds, started=begun),
        token=f"t{number}", idempotency_key=f"k{number}", job_id=number, script_sha256=sha, job_name=name,
        ended=begun + timedelta(seconds=seconds), usage=Usage(elapsed_seconds=seconds), seen="COMPLETED",
    )  # fmt: skip
    context.store.add(context.owner, run)


@pytest.mark.parametrize(
    ("same", "named", "slow"),
    [
        ([100] * 3, [], True),
        ([100] * 2, [], False),
        ([100] * 2, [100] * 3, True),
        ([5000] * 3, [100] * 3, False),
        ([100] * 3, [5000] * 3, True),
        ([], [100] * 3, True),
    ],
)
async def test_a_job_is_compared_with_runs_of_its_script_else_of_its_name(tmp_path: Path, same, named, slow):
    cluster = Cluster(tmp_path)
    context = cluster.box.context
    context.store.add(context.owner, submitted(at(cluster.begun)))
    for number, seconds in enumerate(same):
        ran(cluster, 100 + number, seconds, name="elsewise")
    for number, seconds in enumerate(named):
        ran(cluster, 200 + number, seconds, sha="other")
    assert ("slow-run" in {alert.code for alert in (await cluster.wait()).alerts}) == slow


async def test_what_sstat_refuses_is_told_with_its_words(tmp_path: Path):
    cluster = Cluster(tmp_path)
    cluster.answers["sstat"] = b"!"
    reply = await cluster.wait()
    assert reply.running is not None
    assert "Unable to contact slurm controller" in (reply.running.note or "")


async def test_partitions_that_were_read_within_a_minute_are_not_asked_for_again(tmp_path: Path):
    cluster = Cluster(tmp_path)
    await cluster.wait()
    await cluster.wait()
    assert cluster.asked.count("scontrol show partition") == 1


async def test_progress_that_tells_what_is_left_is_a_share_of_the_time(tmp_path: Path):
    cluster = Cluster(tmp_path)
    cluster.write("epoch 3 done, ETA: 0:05:00\n")
    context = cluster.box.context
    job = Job(
        parse_job_id("5"), "train", "RUNNING", ("squeue",), started=at(NOW - 600), stdout=cluster.log, stderr=cluster.log
    )  # fmt: skip
    assert await running_job.share(context, job, at(NOW)) == pytest.approx(600 / 900)
    assert await running_job.share(context, replace(job, started=at(NOW - 1)), at(NOW)) == pytest.approx(1 / 301)
    assert await running_job.share(context, replace(job, started=at(NOW)), at(NOW)) is None
    assert await running_job.share(context, replace(job, stdout=None, stderr=None), at(NOW)) is None


async def test_of_a_large_log_both_ends_are_looked_at_for_progress(tmp_path: Path):
    cluster = Cluster(tmp_path)
    cluster.write(("x" * 79 + "\n") * 10_000 + "".join(f"step {number}/100 loss 0.1\n" for number in range(41)))
    now = (await cluster.wait()).running
    assert now is not None
    assert (now.progress, now.estimated_from) == (0.4, "progress")


async def test_of_several_parts_at_once_nobody_asks_how_far_they_came(tmp_path: Path):
    cluster = Cluster(tmp_path)
    row = {"submitted": cluster.begun, "start": cluster.begun, "limit": "1:00:00", "elapsed": "10:00"}
    cluster.answers["squeue"] = b"".join(queued(f"5_{n}", raw=8 + n, again=8 + n, **row) for n in range(2))
    cluster.write("".join(f"step {number}/100 loss 0.1\n" for number in range(41)))
    now = (await cluster.wait()).running
    assert now is not None
    assert now.progress is None


# --- a waiting job --------------------------------------------------------------------------------------------------


def lately(*seconds: int) -> PastWaits:
    asked = Resources(partition="cpu", nodes=1, cpus=2, gpus=0, memory_bytes=4 * MIB, time_limit_seconds=86_400)
    return PastWaits(tuple(PastWait(number, "cpu", one, asked) for number, one in enumerate(seconds)), 24)


@pytest.mark.parametrize(
    ("waits", "age", "told"),
    [([10] * 10, 900, True), ([10] * 10, 31, True), ([10] * 10, 30, False), ([], 900, False), ([500] * 10, 900, False)],
)
async def test_without_an_estimate_of_slurms_a_wait_is_compared_with_those_of_jobs_like_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[int], age: int, told: bool
):
    cluster = Cluster(
        tmp_path, state="PENDING", reason="Resources", start="N/A", elapsed="0:00", nodes="", submitted=NOW - age, limit="1-00:00:00"
    )  # fmt: skip
    cluster.begun = NOW - age

    async def past(**_: object) -> PastWaits:
        asked.append(1)
        return lately(*waits)

    asked: list[int] = []
    monkeypatch.setattr(cluster.box.context.slurm, "past", past)
    reply = await cluster.wait()
    found = [alert.message for alert in reply.alerts if alert.code == "long-wait"]
    assert (len(found) == 1) == told, reply.alerts
    assert bool(asked) == (age > 30)
    assert not told or "the median of 10 jobs like it here lately" in found[0]


async def test_an_accounting_that_tells_nothing_leaves_a_wait_without_an_estimate(tmp_path: Path, monkeypatch):
    cluster = Cluster(tmp_path, state="PENDING", reason="Priority", start="N/A", elapsed="0:00", nodes="")

    async def past(**_: object) -> None:
        return None

    monkeypatch.setattr(cluster.box.context.slurm, "past", past)
    assert "long-wait" not in {alert.code for alert in (await cluster.wait()).alerts}


async def test_a_start_that_was_expected_before_the_submission_was_no_wait_at_all(tmp_path: Path):
    cluster = Cluster(tmp_path, state="PENDING", reason="Resources", start="N/A", elapsed="0:00", nodes="")
    context = cluster.box.context
    begun = at(cluster.begun)
    context.store.add(context.owner, submitted(begun, estimated_start=begun - timedelta(seconds=50)))
    reply = await cluster.wait()
    (alert,) = [one for one in reply.alerts if one.code == "long-wait"]
    assert "expected were 0 s (by Slurm at its submission)" in alert.message


# --- get_status -----------------------------------------------------------------------------------------------------


async def test_a_status_looks_at_what_waits_and_leaves_out_what_was_read_after_its_end(tmp_path: Path):
    cluster = Cluster(tmp_path)
    context = cluster.box.context
    context.store.add(context.owner, submitted(at(cluster.begun)))
    row = {"submitted": cluster.begun, "start": cluster.begun}
    rows = queued("5_1", "FAILED", raw=8, again=8, end=NOW - 50, **row) + queued("5_2", raw=9, again=9, **row)
    cluster.answers["squeue"] = rows

    async def told() -> list[tuple[str, str | None]]:
        reply = await cluster.box.call("get_status", GetStatus(sections=["jobs"], refresh=True))
        return [(alert.code, alert.job_id) for alert in reply.alerts if alert.code == "job-failed"]

    assert await told() == [("job-failed", "5")]
    context.store.mark_read(context.owner, "job:5", at(NOW - 51))
    assert await told() == [("job-failed", "5")]
    context.store.mark_read(context.owner, "job:5", at(NOW - 50))
    assert await told() == []


# --- what failed before ---------------------------------------------------------------------------------------------


def record(number: int, size: int | None, **facts: object) -> JobRecord:
    stated: dict[str, object] = {"state": "OUT_OF_MEMORY", "category": None} | facts
    return JobRecord(
        job_id=str(number), cluster="c", project="/p", user="u", name="n", script_path="a.sh", script_sha256="s",
        requested=Resources(memory_bytes=size), submitted=at(NOW), **stated,  # type: ignore[arg-type]
    )  # fmt: skip


JOB = Job(parse_job_id("9"), "n", "OUT_OF_MEMORY", ("sacct",), resources=Resources(memory_bytes=8 * GIB))


def test_only_other_runs_with_less_memory_that_ran_out_of_it_are_told():
    records = [
        record(9, GIB), record(8, 8 * GIB), record(7, None), record(6, 4 * GIB, state="FAILED"),
        record(5, 4 * GIB, state="FAILED", category="host-out-of-memory"),
    ]  # fmt: skip
    told = log_analysis.ran_out_before(records, JOB)
    assert told is not None
    assert "(job 5 with 4G)" in told
    assert "twice as much, 16G" in told
    assert log_analysis.ran_out_before(records[:4], JOB) is None
    assert log_analysis.ran_out_before(records, replace(JOB, resources=Resources())) is None


def test_of_many_earlier_runs_the_newest_three_are_told_oldest_first():
    told = log_analysis.ran_out_before([record(number, GIB) for number in (8, 7, 6, 5)], JOB)
    assert "(job 6 with 1G, job 7 with 1G, job 8 with 1G)" in (told or "")


async def test_another_kind_of_failure_is_not_told_of_earlier_memory(scene: Scene):
    number = await failed(scene)
    found = (await scene.analyse(job_id=number)).diagnosis
    assert "ran out of memory before" not in " ".join(found.suggestions)


# --- analysing ------------------------------------------------------------------------------------------------------


async def test_a_failed_job_may_be_kept_and_one_that_goes_on_or_ended_well_may_not(scene: Scene):
    number = await failed(scene)
    reply = await scene.analyse(job_id=number)
    keep = f'Keep this as a failure record: save_result with status="failed" and job_id="{number}".'
    assert (reply.diagnosis.suggestions[-1], "Keep this" in reply.summary) == (keep, False)
    assert reply.summary.startswith(f"Job {number} (FAILED): ")
    scene.slurm.next_job(after=10, output="done\n")
    well = await sent(scene, seconds=60, script="train.sh", args=["other"], justification="the module was installed")
    well_done = (await scene.analyse(job_id=well)).diagnosis
    assert not [text for text in (well_done.suggestions if well_done else ()) if "Keep this" in text]


@pytest.mark.parametrize(
    ("mode", "shows"),
    [("auto", (True, True, True, False)), ("error", (True, False, False, False)), ("metrics", (False, False, True, False)), ("full", (True, True, True, True))],
)  # fmt: skip
async def test_a_mode_shows_errors_warnings_figures_and_text(scene: Scene, mode: str, shows: tuple[bool, ...]):
    text = "loss: 0.5\nWARNING: old driver\nERROR: no space left\n" * 30
    scene.write("out.log", text)
    reply = await scene.analyse(path="out.log", mode=mode)
    assert (bool(reply.errors), bool(reply.warnings), bool(reply.metrics), reply.content is not None) == shows
    assert (len(reply.errors), len(reply.warnings)) <= (20, 20)


async def test_the_metrics_of_an_array_are_those_of_all_tasks_by_their_numbers(scene: Scene):
    scene.write("array.sh", HEAD.replace("x.out", "%a.out") + "sleep 60\n")
    told = {1: "loss: 0.1\n", 2: "loss: 0.2\n", 3: MISSING}
    scene.slurm.next_job(tasks={n: Ending(after=5, exit_code=int(n == 3), output=text) for n, text in told.items()})
    number = await sent(scene, script="array.sh", array="1-3", seconds=60)

    reply = await scene.analyse(job_id=number, mode="metrics")

    assert reply.metrics == {"task_1.loss": 0.1, "task_2.loss": 0.2}
    assert reply.summary.startswith(f"Job {number} (FAILED): missing-module")
    assert reply.summary.endswith(" The metrics are of 2 of its 3 tasks.")
    assert "The metrics are" not in (await scene.analyse(job_id=f"{number}_1", mode="metrics")).summary


async def test_the_parts_that_failed_are_read_the_first_that_ended_first(scene: Scene):
    project = Path(scene.context.project)
    parts = []
    for number, (state, ended) in enumerate(
        [("COMPLETED", 1), ("FAILED", 9), ("TIMEOUT", 3), ("RUNNING", None), ("FAILED", None)]
    ):
        path = project / f"p{number}.out"
        path.write_text(f"part {number}\n")
        parts.append(
            Job(parse_job_id(f"5_{number}"), "n", state, ("sacct",), ended=None if ended is None else at(ended), stdout=str(path), stderr=str(path))
        )  # fmt: skip
    whole = replace(parts[3], job_id=parse_job_id("5"), stdout=None, stderr=None)
    logs = await log_analysis.read_logs(scene.context, JobView(whole, tuple(parts)))
    assert [log.file.path for log in logs] == ["p2.out", "p1.out", "p4.out"]
    running = await log_analysis.read_logs(scene.context, JobView(parts[3]))
    assert [log.file.path for log in running] == ["p3.out"]


async def test_a_file_that_cannot_be_read_is_no_log_and_says_where_to_look(scene: Scene):
    number = await failed(scene)
    (scene.project / "logs/x.out").unlink()
    reply = await scene.analyse(job_id=number)
    assert reply.status == "no_log"
    assert "Name one with path if it is elsewhere." in reply.summary
    assert reply.content is None


async def test_the_newest_failures_are_told_with_their_file_and_how_many_there_are(scene: Scene):
    first = await failed(scene)
    await scene.analyse(job_id=first)
    second = await failed(scene, args=["other"], justification="the module was installed")
    one = await scene.box.call("analyze_log", AnalyzeLog(recent_errors=1))
    two = await scene.box.call("analyze_log", AnalyzeLog(recent_errors=5))
    assert [found.job_id for found in one.recent] == [second]
    assert [found.job_id for found in two.recent] == [second, first]
    assert one.summary == "2 jobs failed in the last 7 days; the newest is shown."
    assert two.summary == "2 jobs failed in the last 7 days."
    assert (two.recent[0].path, two.recent[0].category, two.recent[0].state) == (
        "logs/x.out",
        "missing-module",
        "FAILED",
    )


async def test_a_log_alone_that_shows_no_failure_is_told_as_a_hint(scene: Scene):
    scene.write("quiet.log", "reading input\nresults written\n")
    reply = await scene.analyse(path="quiet.log")
    assert reply.summary == "quiet.log: nothing in the log shows a failure (confidence 0.3)."
    scene.write("loud.log", "reading input\nERROR: the mesh is bad\n")
    assert (await scene.analyse(path="loud.log")).diagnosis.category == "unknown"


async def test_a_job_that_ended_well_failed_in_nothing(scene: Scene):
    scene.slurm.next_job(after=10, output="done\n")
    number = await sent(scene, seconds=60)
    assert (await scene.analyse(job_id=number)).summary == f"Job {number} (COMPLETED): nothing failed."
    broken = await failed(scene, args=["other"])
    summary = (await scene.analyse(job_id=broken)).summary
    assert re.fullmatch(
        rf"Job {broken} \(FAILED\): missing-module: \".+torch'\" \(confidence 0\.\d\d\), see logs/x\.out line \d+\.",
        summary,
    )


CRASHED = """Traceback (most recent call last):
  File "/home/alice/project/bad.py", line 7, in <module>
    size = options["batch_size"]
KeyError: 'batch_size'
"""


async def test_a_traceback_behind_an_exit_code_0_is_told_in_the_first_line(scene: Scene):
    scene.slurm.next_job(after=10, output="done\n", errors=CRASHED)
    number = await sent(scene, seconds=60)

    reply = await scene.analyse(job_id=number)
    saved = await scene.box.call("save_result", SaveResult(name="run", status="success", job_id=number))

    assert reply.diagnosis.category == "none"
    assert reply.summary == (
        f"Job {number} (COMPLETED): Slurm says that it completed, but its log shows \"KeyError: 'batch_size'\" near its"
        " end. The program may have failed although the script ended with 0."
    )
    assert "But its log shows \"KeyError: 'batch_size'\" near its end" in saved.summary


async def test_errors_that_a_completed_job_went_on_behind_are_told_beside_what_slurm_knows(scene: Scene):
    scene.slurm.next_job(after=10, output=f"{CRASHED}done\n")
    number = await sent(scene, seconds=60)

    reply = await scene.analyse(job_id=number)
    saved = await scene.box.call("save_result", SaveResult(name="run", status="success", job_id=number))

    told = "nothing failed as far as Slurm knows, but its log holds lines that tell of errors."
    assert reply.summary == f"Job {number} (COMPLETED): {told}"
    assert "near its end" not in saved.summary


async def test_of_many_parts_that_failed_the_first_eight_are_read(scene: Scene):
    parts = []
    for number in range(10):
        scene.write(f"p{number}.out", "x\n")
        path = str(scene.project / f"p{number}.out")
        parts.append(
            Job(parse_job_id(f"5_{number}"), "n", "FAILED", ("sacct",), ended=at(number), stdout=path, stderr=path)
        )
    whole = replace(parts[0], job_id=parse_job_id("5"), ended=at(99), stdout=None, stderr=None)
    logs = await log_analysis.read_logs(scene.context, JobView(whole, tuple(parts)))
    assert [log.file.path for log in logs] == [f"p{number}.out" for number in range(8)]
