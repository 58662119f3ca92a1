"""A wait for several jobs, and how long the next one should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.scenes import HEAD, Scene

from slurm_agent_tools.errors import InputError, UnknownJob
from slurm_agent_tools.models.arguments import WaitForJob


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def begun(scene: Scene, *seconds: float | None, **ends: Any) -> list[str]:
    """One running job for each of these times; None goes on until its limit of ten minutes."""
    made = []
    for number, after in enumerate(seconds):
        scene.write(f"job{number}.sh", f"{HEAD.replace('x.out', f'{number}.out')}true\n")
        scene.slurm.next_job(after=after, **ends)
        reply = await scene.submit(f"job{number}.sh")
        assert reply.status == "submitted", reply.summary
        made.append(reply.job_id)
    return made


async def wait(scene: Scene, **ask: Any) -> Any:
    return await scene.box.call("wait_for_job", WaitForJob(**ask))


async def test_of_any_the_first_that_ends_answers_with_its_report(scene: Scene):
    ids = await begun(scene, 300, 60, 300)

    reply = await wait(scene, job_ids=ids, until="any", timeout_seconds=600)

    assert (reply.status, reply.job.job_id, reply.report.job_id) == ("finished", ids[1], ids[1])
    assert [(job.job_id, job.state) for job in reply.jobs] == [
        (ids[0], "RUNNING"), (ids[1], "COMPLETED"), (ids[2], "RUNNING"),
    ]  # fmt: skip
    assert reply.summary.startswith(f"1 of 3 jobs ended. Job {ids[1]} (job1.sh) is COMPLETED")
    assert reply.summary.endswith(f' The report is of job {ids[1]}. Go on with job_ids=["{ids[0]}", "{ids[2]}"].')
    assert reply.job.run_seconds < 100


async def test_of_all_the_last_that_ends_answers(scene: Scene):
    ids = await begun(scene, 120, 60)

    short = await wait(scene, job_ids=ids, until="all", timeout_seconds=80)
    assert (short.status, short.job.job_id) == ("running", ids[0])
    assert short.summary.startswith("1 of 2 jobs ended. ")
    assert (short.report, "The report" in short.summary) == (None, False)

    reply = await wait(scene, job_ids=ids, until="all", timeout_seconds=600)
    assert (reply.status, [job.state for job in reply.jobs]) == ("finished", ["COMPLETED", "COMPLETED"])
    assert "Go on with" not in reply.summary


async def test_of_all_that_ended_the_one_that_failed_is_told(scene: Scene):
    (good,) = await begun(scene, 20)
    scene.write("bad.sh", f"{HEAD.replace('x.out', 'bad.out')}exit 3\n")
    bad = (await scene.submit("bad.sh")).job_id
    reply = await wait(scene, job_ids=[good, bad], until="all", timeout_seconds=600)
    assert (reply.status, reply.job.job_id, reply.job.exit_code) == ("finished", bad, 3)


async def test_every_job_of_a_wait_was_looked_at_and_may_be_cancelled(scene: Scene):
    ids = await begun(scene, None, None)
    await wait(scene, job_ids=ids, timeout_seconds=0)
    for job_id in ids:
        assert (await scene.cancel(job_id)).status == "cancelled"


async def test_one_job_is_asked_for_in_one_way(scene: Scene):
    (job_id,) = await begun(scene, 60)
    alone = await wait(scene, job_ids=[job_id, job_id], timeout_seconds=0)
    assert (alone.job.job_id, alone.jobs) == (job_id, [])
    with pytest.raises(InputError, match="job_id is required"):
        await wait(scene)
    with pytest.raises(InputError, match="stands beside job_ids"):
        await wait(scene, job_id=job_id, job_ids=[job_id])
    with pytest.raises(InputError, match=r"job_ids: '1_\[1-3\]' is not a job id"):
        await wait(scene, job_ids=[job_id, "1_[1-3]"])
    with pytest.raises(UnknownJob):
        await wait(scene, job_ids=[job_id, "4711"], timeout_seconds=600)


async def test_something_grave_about_one_of_them_ends_the_wait_for_all(scene: Scene):
    ids = await begun(scene, None, None)

    reply = await wait(scene, job_ids=ids, until="all", timeout_seconds=3600)

    assert reply.status == "running"
    assert {(alert.code, alert.job_id) for alert in reply.alerts} >= {("time-left", ids[0])}


# --- how long the next wait should be ---------------------------------------------------------------------------------


async def test_a_job_of_which_nothing_is_known_may_take_its_whole_limit(scene: Scene):
    (job_id,) = await begun(scene, None)
    reply = await wait(scene, job_id=job_id, timeout_seconds=100)
    assert 490 <= reply.suggested_timeout_seconds <= 505


async def test_earlier_runs_of_the_script_say_how_long_it_takes(scene: Scene):
    (first,) = await begun(scene, 120)
    assert (await wait(scene, job_id=first, timeout_seconds=600)).status == "finished"
    (job_id,) = await begun(scene, None)
    reply = await wait(scene, job_id=job_id, timeout_seconds=20)
    assert 95 <= reply.suggested_timeout_seconds <= 105


async def test_its_own_progress_says_it_better(scene: Scene):
    (job_id,) = await begun(scene, 200, output=[(10.0 * n, f"step {n}/20\n") for n in range(1, 21)])
    reply = await wait(scene, job_id=job_id, timeout_seconds=100)
    assert reply.running.estimated_from == "progress"
    assert 80 <= reply.suggested_timeout_seconds <= 130


async def test_no_wait_is_suggested_below_the_default_or_above_half_an_hour(scene: Scene):
    scene.write("long.sh", f"{HEAD.replace('--time=10', '--time=20:00:00')}true\n")
    scene.slurm.next_job(after=None)
    long = (await scene.submit("long.sh")).job_id
    assert (await wait(scene, job_id=long, timeout_seconds=0)).suggested_timeout_seconds == 1800
    (job_id,) = await begun(scene, None)
    scene.slurm.clock.move(590)
    assert (await wait(scene, job_id=job_id, timeout_seconds=0)).suggested_timeout_seconds == 45


async def test_of_several_the_shortest_or_the_longest_wait_is_suggested(scene: Scene):
    scene.write("long.sh", f"{HEAD.replace('--time=10', '--time=20').replace('x.out', 'long.out')}true\n")
    scene.slurm.next_job(after=None)
    long = (await scene.submit("long.sh")).job_id
    ids = [long, *await begun(scene, None)]
    scene.slurm.clock.move(5)
    waits = [
        (await wait(scene, job_ids=ids, until=until, timeout_seconds=0)).suggested_timeout_seconds
        for until in ("any", "all")
    ]
    assert 590 <= waits[0] <= 600
    assert 1190 <= waits[1] <= 1200


async def test_nothing_is_suggested_where_nothing_goes_on(scene: Scene):
    (job_id,) = await begun(scene, 10)
    assert (await wait(scene, job_id=job_id, timeout_seconds=600)).suggested_timeout_seconds is None


async def test_very_many_jobs_are_looked_at_without_asking_for_each(scene: Scene):
    scene.limits(max_concurrent_jobs=40)
    ids = await begun(scene, *[60 + number for number in range(20)])
    scene.slurm.asked.clear()

    reply = await wait(scene, job_ids=ids, until="all", timeout_seconds=600)

    assert [job.state for job in reply.jobs] == ["COMPLETED"] * 20
    assert len([argv for argv in scene.slurm.asked if argv[0] == "squeue"]) < 20
