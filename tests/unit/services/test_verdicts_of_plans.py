"""What a plan says of its calls is what submit_job says of them by what was tried before."""

import pytest
from tests.unit.services.ladders import laboratory, over
from tests.unit.services.scenes import Scene

from slurm_agent_tools.api import serialize

PLAN = serialize.BY_NAME["plan_jobs"]
WHOLE = "python train.py --config configs/a.yaml --steps $STEPS\n"


@pytest.fixture
def scene(tmp_path):
    made = laboratory(Scene(tmp_path))
    yield made
    made.context.store.close()


async def step(scene, **more):
    job = {"name": "train", "script": "train.sh", "expected": "1h", **more}
    ask = serialize.parse(PLAN, {"jobs": [job], "pool": {"cpus": 16}, "seconds": 0})
    reply = await scene.box.call("plan_jobs", ask)
    return reply.submissions[0], reply.assumptions


@pytest.mark.proves("smoke-comes-first")
async def test_a_large_job_that_was_never_tried_needs_its_smoke_run_first_as_submit_job_says(scene):
    shown, _ = await step(scene)
    said = await scene.submit()
    (told,) = [rule for rule in said.decision.rules if rule.id == "smoke-first"]
    assert (shown.verdict, shown.because) == (told.outcome, ["smoke-first"])


@pytest.mark.proves("smoke-comes-first")
async def test_behind_a_smoke_run_that_passed_it_is_allowed_and_behind_one_that_failed_denied(scene):
    scene.slurm.next_job(after=60)
    job = await scene.submit(stage="smoke", time_limit="00:20:00")
    assert job.status == "submitted", job.summary
    shown, _ = await step(scene)
    assert (shown.verdict, shown.because) == ("deny", ["smoke-first"])
    await over(scene, job.job_id)
    shown, _ = await step(scene)
    assert (shown.verdict, shown.because) == ("allow", None)
    scene.slurm.next_job(after=60, exit_code=3)
    again = await scene.submit(stage="smoke", time_limit="00:20:00", justification="to see that it fails")
    assert again.status == "submitted", again.summary
    await over(scene, again.job_id)
    shown, _ = await step(scene)
    assert shown.verdict == "deny"
    assert "smoke-first" in shown.because


async def test_the_hours_of_all_tasks_of_an_array_count(scene):
    text = (scene.project / "train.sh").read_text()
    scene.write("train.sh", text.replace("12:00:00", "02:00:00"))
    one, _ = await step(scene)
    many, _ = await step(scene, count=8)
    assert (one.verdict, one.because, many.because) == ("allow", None, ["smoke-first"])


async def test_a_script_that_failed_and_was_not_looked_at_is_denied(scene):
    scene.write("small.sh", (scene.project / "train.sh").read_text().replace("12:00:00", "00:30:00"))
    scene.slurm.next_job(after=60, exit_code=3)
    job = await scene.submit("small.sh")
    assert job.status == "submitted", job.summary
    await over(scene, job.job_id)
    shown, _ = await step(scene, script="small.sh")
    assert (shown.verdict, shown.because) == ("deny", ["auto-retry"])


async def test_where_slurm_is_away_it_is_said_that_nothing_is_known_of_earlier_runs(scene):
    for command in ("squeue", "scontrol", "sacct"):
        scene.slurm.lose_connection(command)
    shown, assumed = await step(scene)
    assert shown.verdict == "allow"
    assert any("What was tried of the scripts before is not known" in text for text in assumed)
