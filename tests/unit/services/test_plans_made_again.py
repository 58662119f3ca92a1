"""A plan that is made again while its jobs run: what is left, what holds its GPUs, and what changed."""

import json
import re

import pytest
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.api import serialize
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition
from slurm_agent_tools.store import plan_files

SCRIPT = (
    "#!/bin/bash\n#SBATCH --job-name={name}\n#SBATCH --gres=gpu:{gpus}\n#SBATCH --mem=1G\n#SBATCH --time=02:00:00\n"
    "sleep {seconds}\n"
)
JOBS = {"a": (2, 1000), "b": (2, 2000), "c": (4, 1000), "d": (1, 3000)}


def toolbox(folder):
    nodes = [FakeNode("g0", cpus=16, gpus=4, memory=64_000, gpu_type="a100")]
    slurm = FakeSlurm(nodes=nodes, partitions=[FakePartition("gpu", nodes=("g0",), default=True)])
    return fake_toolbox(folder, slurm), slurm


@pytest.fixture
def box(tmp_path):
    made, slurm = toolbox(tmp_path)
    for name, (gpus, seconds) in JOBS.items():
        (tmp_path / "project" / f"{name}.sh").write_text(SCRIPT.format(name=name, gpus=gpus, seconds=seconds))
    made.clock = slurm.clock
    return made


async def asked(box, tool, **arguments):
    return await box.call(tool, serialize.parse(serialize.BY_NAME[tool], arguments))


async def plan(box, expected="1000s", **more):
    jobs = [{"name": name, "script": f"{name}.sh", "expected": expected} for name in JOBS]
    jobs[2]["after"] = ["a"]
    return await asked(box, "plan_jobs", jobs=jobs, pool={"gpus": 4}, seconds=0, **more)


async def followed(box, reply, most=9):
    """Submit the first calls of a plan."""
    await asked(box, "get_status")
    ids = {}
    for step in reply.submissions[:most]:
        dependency = step.dependency and re.sub(r"<(\w+)>", lambda found: ids[found[1]], step.dependency)
        words = {"dependency": dependency} if dependency else {}
        answer = await asked(box, "submit_job", script=step.script, **words)
        assert answer.status == "submitted", answer
        ids[step.job] = answer.job_id
    return ids


async def rows(box, reply):
    return json.loads(await box.view("plan", {"plan_id": reply.uri.rpartition("/")[2]}))


@pytest.mark.proves("plans-are-made-again")
async def test_what_has_ended_is_left_out_and_what_runs_holds_its_gpus_for_what_is_left(box):
    first = await plan(box)
    assert first.changes == []
    ids = await followed(box, first, most=2)
    await box.clock.advance(1500)
    again = await plan(box)
    (ended, running) = sorted(ids, key=lambda name: JOBS[name][1])
    told = {row["name"]: row for row in (await rows(box, again))["jobs"]}
    assert set(told) == set(JOBS) - {ended}
    assert told[running]["start"] == 0
    assert told[running]["job_id"] == ids[running]
    assert running not in {step.job for step in again.submissions}
    assert {step.job for step in again.submissions} == set(JOBS) - set(ids)
    assert "1 ended, 1 run" in again.changes[0]
    assert "later than planned before" in again.changes[-1]


@pytest.mark.proves("plans-are-made-again")
async def test_jobs_in_the_queue_are_named_by_their_ids_and_not_submitted_again(box):
    first = await plan(box)
    ids = await followed(box, first, most=3)
    again = await plan(box)
    assert {step.job for step in again.submissions} == set(JOBS) - set(ids)
    assert all(step.dependency is None or re.fullmatch(r"[\w:,]*", step.dependency) for step in again.submissions)
    assert "wait in the queue" in again.changes[0]
    assert again.changes[-1] == "All will have ended as planned before."


@pytest.mark.proves("plans-are-made-again")
async def test_a_job_that_took_longer_is_named_and_one_that_failed_is_planned_again(box, tmp_path):
    first = await plan(box, expected="500s")
    path = tmp_path / "project" / "b.sh"
    path.write_text(path.read_text().replace("sleep 2000", "exit 3"))
    await followed(box, first)
    await box.clock.advance(1200)
    again = await plan(box, expected="500s")
    assert "1 failed and are planned again" in again.changes[0]
    assert "a 00:16:40 instead of 00:08:20" in again.changes[1]
    assert "b" in {row["name"] for row in (await rows(box, again))["jobs"]}


@pytest.mark.proves("plans-are-made-again")
async def test_what_waits_for_the_success_of_one_that_failed_is_planned_again_and_is_to_be_cancelled(box, tmp_path):
    path = tmp_path / "project" / "a.sh"
    path.write_text(path.read_text().replace("sleep 1000", "exit 3"))
    ids = await followed(box, await plan(box))
    await box.clock.advance(1200)
    again = await plan(box)
    calls = {step.job: step.dependency or "" for step in again.submissions}
    assert {"a", "c"} <= set(calls)
    assert "<a>" in calls["c"]
    assert any(f"Cancel {ids['c']}: " in text for text in again.changes)


@pytest.mark.proves("plans-are-made-again")
async def test_once_all_have_ended_the_same_jobs_are_new_work(box):
    await followed(box, await plan(box))
    await box.clock.advance(50_000)
    again = await plan(box)
    assert again.changes == []
    assert len((await rows(box, again))["jobs"]) == len(JOBS)


@pytest.mark.proves("plans-are-made-again")
async def test_a_plan_outlives_its_process_and_only_the_last_are_kept(box, tmp_path):
    reply = await plan(box)
    later, _ = toolbox(tmp_path)
    assert (await rows(later, reply)) == (await rows(box, reply))
    assert (await later.view("plan-gantt", {"plan_id": reply.uri.rpartition("/")[2]})).startswith("<svg ")
    for number in range(plan_files.MOST + 3):
        await asked(box, "plan_jobs", jobs=[{"name": f"other{number}", "expected": "1h"}], pool={"gpus": 4}, seconds=0)
    assert len(list((tmp_path / "state" / "plans").glob("*.json"))) == plan_files.MOST


async def test_a_task_of_an_array_that_runs_is_a_job_of_its_own(box, tmp_path):
    (tmp_path / "project" / "sweep.sh").write_text(
        SCRIPT.format(name="sweep", gpus=1, seconds=1000).replace("02:00", "00:30")
    )
    jobs = [{"name": "sweep", "count": 8, "script": "sweep.sh", "expected": "1000s"}]
    first = await asked(box, "plan_jobs", jobs=jobs, pool={"gpus": 4}, seconds=0)
    (step,) = first.submissions
    await asked(box, "get_status")
    reply = await asked(box, "submit_job", script=step.script, array=step.array)
    assert reply.status == "submitted", reply.summary
    await box.clock.advance(1300)
    again = await asked(box, "plan_jobs", jobs=jobs, pool={"gpus": 4}, seconds=0)
    assert "4 ended, 4 run" in again.changes[0]
    assert again.submissions == []
    assert {row["job_id"] for row in (await rows(box, again))["jobs"]} == {reply.job_id}


@pytest.mark.proves("slices-are-offered")
async def test_slices_are_offered_of_what_is_left_and_not_submitted(box):
    jobs = [{"name": name, "script": f"{name}.sh", "expected": "7h", "restart": "1min"} for name in "ad"]
    first = await asked(box, "plan_jobs", jobs=jobs, pool={"gpus": 4}, seconds=0)
    await followed(box, first, most=1)
    again = await asked(box, "plan_jobs", jobs=jobs, pool={"gpus": 4}, seconds=0)
    await box.clock.advance(4000)
    later = await asked(box, "plan_jobs", jobs=jobs, pool={"gpus": 4}, seconds=0)
    assert first.slices.calls == 7
    assert again.slices is None
    assert later.slices.calls < first.slices.calls


async def test_a_plan_that_is_gone_when_it_is_looked_at_stops_nothing(box, tmp_path):
    await plan(box)
    (kept,) = (tmp_path / "state" / "plans").glob("*.json")
    kept.with_name(f"{kept.name.partition('-')[0]}-0.json").symlink_to(tmp_path / "gone")
    again = await plan(box)
    assert not any("missing" in text for text in again.assumptions)
