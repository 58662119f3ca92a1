"""The ports of a campaign: trials are sent through the guard, looked at together, and saved as ordinary results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.api.campaigns import FILE, CampaignScene

from slurm_agent_tools.campaigns.ports import (
    BatchHasToWait,
    BatchIsRefused,
    BatchIsSent,
    BatchWasNeverSent,
    SentTrial,
    TrialLook,
)
from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.errors import InputError, SlurmUnreachable, StorageError
from slurm_agent_tools.models.campaign import TrialEnd, TrialId

OUT_OF_MEMORY = (
    "slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch. Some of the step tasks have been OOM Killed.\n"
)


@pytest.fixture
def scene(tmp_path: Path) -> CampaignScene:
    return CampaignScene(tmp_path)


async def sent(scene: CampaignScene, number: int = 1) -> list[SentTrial]:
    """All trials of a round, as Slurm has them."""
    stage, found = scene.file.stages[0], list[SentTrial]()
    trials = {trial.id: trial for trial in scene.trials(number)}
    for batch in scene.batches(number):
        await scene.ports.write(batch)
        outcome = await scene.ports.send(batch, stage)
        assert isinstance(outcome, BatchIsSent), outcome
        for place, trial in enumerate(batch.trials):
            task = "" if batch.task_ids is None else f"_{batch.task_ids[place]}"
            found.append(SentTrial(trials[trial], f"{outcome.job_id}{task}"))
        scene.slurm.clock.move(30)
    return found


async def ends(scene: CampaignScene, listed: list[SentTrial]) -> dict[TrialId, TrialEnd]:
    scene.slurm.clock.move(900)
    return {look.trial: look.end for look in await scene.ports.look(listed) if look.end is not None}


async def test_what_is_written_is_sent_once_whoever_asks_how_often(scene: CampaignScene):
    (smoke,) = scene.batches(0)
    assert await scene.ports.find(smoke.key) == BatchWasNeverSent()
    await scene.ports.write(smoke)
    await scene.ports.write(smoke)
    first = await scene.ports.send(smoke, scene.file.stages[0])
    assert isinstance(first, BatchIsSent)
    assert await scene.ports.send(smoke, scene.file.stages[0]) == first
    assert await scene.ports.find(smoke.key) == first
    assert len(scene.sent()) == 1
    assert (scene.project / smoke.script_path).read_text() == smoke.script_text


async def test_a_script_that_somebody_changed_is_written_as_it_was_decided_on(scene: CampaignScene):
    (smoke,) = scene.batches(0)
    await scene.ports.write(smoke)
    (scene.project / smoke.script_path).write_text("#!/bin/bash\nrm -r data\n")
    await scene.ports.write(smoke)
    assert (scene.project / smoke.script_path).read_text() == smoke.script_text


async def test_nothing_is_written_beside_the_folders_of_the_policy(scene: CampaignScene):
    (smoke,) = scene.batches(0)
    with pytest.raises(InputError, match="is in none of"):
        await scene.ports.write(replace(smoke, script_path="train.sh"))
    (scene.project / "scripts/slurm").mkdir(parents=True)
    (scene.project / "scripts/slurm/generated").symlink_to("/tmp")
    with pytest.raises(InputError, match="leaves the project"):
        await scene.ports.write(smoke)


async def test_above_the_cap_a_batch_waits_and_is_not_refused(scene: CampaignScene):
    scene.limits(max_concurrent_jobs=1)
    scene.slurm.submit()
    (smoke,) = scene.batches(0)
    await scene.ports.write(smoke)
    outcome = await scene.ports.send(smoke, scene.file.stages[0])
    assert isinstance(outcome, BatchHasToWait)
    assert not scene.sent()


async def test_what_the_policy_refuses_is_told_with_its_rules(scene: CampaignScene):
    scene.change(FILE.replace("memory: 1G", "memory: 100G"))
    (smoke,) = scene.batches(0)
    await scene.ports.write(smoke)
    outcome = await scene.ports.send(smoke, scene.file.stages[0])
    assert isinstance(outcome, BatchIsRefused)
    assert (outcome.person, outcome.rules) == (True, ("memory-per-gpu",))


async def test_a_controller_that_is_away_leaves_nothing_behind(scene: CampaignScene):
    (smoke,) = scene.batches(0)
    await scene.ports.write(smoke)
    before = sorted(path.name for path in (scene.project / "scripts/slurm/generated").iterdir())
    scene.slurm.controller_down()
    with pytest.raises(SlurmUnreachable):
        await scene.ports.send(smoke, scene.file.stages[0])
    assert sorted(path.name for path in (scene.project / "scripts/slurm/generated").iterdir()) == before


async def test_trials_of_an_array_are_told_apart_in_metrics_and_in_what_they_took(scene: CampaignScene):
    scene.slurm.next_job(after=60, output="val_loss=0.9\n")
    scene.slurm.next_job(tasks={}, after=60, output="val_loss=0.5\nval_loss=0.4\n")
    listed = await sent(scene)
    found = await ends(scene, listed)
    assert [end.metrics for end in found.values()] == [{"val_loss": 0.9}, {"val_loss": 0.4}, {"val_loss": 0.4}]
    assert {end.passed for end in found.values()} == {True}
    assert [end.job_id for end in found.values()] == [one.job_id for one in listed]
    assert [end.run_seconds for end in found.values()] == [60, 60, 60]
    assert found[TrialId(1, 1)].cpu_hours == pytest.approx(60 / 3600)


async def test_waiting_and_running_trials_are_told_apart(scene: CampaignScene):
    scene.slurm.next_job(after=600)
    (smoke,) = await sent(scene, 0)
    assert [look.phase for look in await scene.ports.look([smoke])] == ["running"]


async def test_a_run_without_its_metric_did_not_pass_and_alike_ones_have_one_cause(scene: CampaignScene):
    scene.slurm.next_job(after=60, output="epoch 1\n")
    scene.slurm.next_job(after=60, output="epoch 3\n")
    found = await ends(scene, await sent(scene))
    assert {(end.state, end.passed, end.category) for end in found.values()} == {("COMPLETED", False, "metric-missing")}
    assert len({end.cause for end in found.values()}) == 1


async def test_a_failure_is_diagnosed_and_its_cause_is_the_line_that_tells(scene: CampaignScene):
    missing = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n"
    scene.slurm.next_job(exit_code=1, after=10, errors=missing)
    scene.slurm.next_job(exit_code=1, after=10, errors=missing)
    found = await ends(scene, await sent(scene))
    assert {(end.category, end.exit_code) for end in found.values()} == {("missing-module", 1)}
    (cause,) = {end.cause for end in found.values()}
    assert "No module named 'torch'" in (cause or "")
    again = await scene.ports.look([])
    assert again == []


async def test_results_of_trials_that_were_looked_at_are_saved_without_another_question(scene: CampaignScene):
    listed = await sent(scene, 1)
    ports = scene.ports
    scene.slurm.clock.move(900)
    ended = {look.trial: look.end for look in await ports.look(listed) if look.end is not None}
    asked = len(scene.slurm.asked)
    paths = await ports.save_results([(one.trial, ended[one.trial.id]) for one in listed])
    for one in listed:
        saved = json.loads((scene.project / paths[one.trial.id]).read_text())
        assert saved["environment"]["slurm_job"]["job"]["job_id"] == one.job_id
    assert len(scene.slurm.asked) == asked
    assert len(listed) > 1


async def test_a_trial_is_saved_once_as_a_result_with_its_settings_and_what_it_took(scene: CampaignScene):
    scene.slurm.next_job(after=60, output="val_loss=0.9\n")
    (smoke,) = await sent(scene, 0)
    end = (await ends(scene, [smoke]))[smoke.trial.id]
    paths = await scene.ports.save_results([(smoke.trial, end)])
    assert paths == await scene.ports.save_results([(smoke.trial, end)])
    record = json.loads((scene.project / paths[smoke.trial.id]).read_text())
    assert (record["experiment_name"], record["status"]) == ("rates-r0-t1", "success")
    assert record["config"] == {"stage": "training", "lr": 0.1, "epochs": 1}
    assert record["metrics"]["val_loss"] == 0.9
    assert record["metrics"]["run_seconds"] == 60


async def test_a_lesson_is_written_once(scene: CampaignScene):
    failed = TrialEnd("7", "OUT_OF_MEMORY", passed=False, category="host-out-of-memory", explanation="It ran out.")
    (trial, *_) = scene.trials(1)
    mended = replace(trial, mended="lr 0.1 -> 0.05")
    line = await scene.ports.write_lesson(failed, mended, replace(failed, job_id="8", passed=True))
    assert line is not None
    assert await scene.ports.write_lesson(failed, mended, replace(failed, job_id="8", passed=True)) is None
    assert "lr 0.1 -> 0.05" in (scene.project / "documents/lessons.md").read_text()


@pytest.mark.parametrize(
    ("before", "written"), [(b"# Gelernt\n\nGr\xfc\xdfe\n", True), (b"- a line\n" * 150_000, False)]
)
async def test_a_lesson_leaves_what_stood_there_as_it_was(scene: CampaignScene, before: bytes, written: bool):
    """Also where it is no UTF-8; and nothing is cut off where there is more than is read."""
    place = scene.project / "documents/lessons.md"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(before)
    failed = TrialEnd("7", "OUT_OF_MEMORY", passed=False, category="host-out-of-memory", explanation="It ran out.")
    (trial, *_) = scene.trials(1)
    mended = replace(trial, mended="lr 0.1 -> 0.05")
    passed = replace(failed, job_id="8", passed=True)
    if written:
        assert await scene.ports.write_lesson(failed, mended, passed) is not None
        assert await scene.ports.write_lesson(failed, mended, passed) is None
    else:
        with pytest.raises(StorageError, match="is larger than"):
            await scene.ports.write_lesson(failed, mended, passed)
    assert place.read_bytes().startswith(before)


async def test_what_a_stage_runs_is_its_code_and_not_what_its_runs_write(scene: CampaignScene):
    stage = scene.file.stages[0]
    before = await scene.ports.code_hash(stage)
    scene.write("runs/r1-t1.json", "{}")
    scene.write("notes.md", "nothing")
    assert await scene.ports.code_hash(stage) == before
    scene.write("train.py", "import sys\nprint('val_loss=0.6')\n")
    changed = await scene.ports.code_hash(stage)
    assert changed != before
    more = stage.model_copy(update={"resources": stage.resources.model_copy(update={"memory": 2**31})})
    assert await scene.ports.code_hash(more) == changed
    scene.write("data.csv", "1,2\n")
    data = stage.model_copy(update={"reads": ("data.csv",)})
    assert await scene.ports.code_hash(data) != changed
    with pytest.raises(InputError, match="does not exist"):
        await scene.ports.code_hash(stage.model_copy(update={"reads": ("gone.csv",)}))


async def test_a_cancelled_trial_was_asked_for_by_the_campaign(scene: CampaignScene):
    for node in ("cpu01", "cpu02"):
        scene.slurm.fail_node(node)
    (smoke,) = await sent(scene, 0)
    await scene.ports.look([smoke])
    await scene.ports.cancel([smoke], "the campaign was stopped")
    scene.slurm.clock.move(60)
    (look,) = await scene.ports.look([smoke])
    assert isinstance(look, TrialLook)
    assert look.end is not None
    assert (look.end.state, look.end.passed, look.end.category) == ("CANCELLED", False, "cancelled")


def cancels(scene: CampaignScene) -> list[tuple[str, ...]]:
    return [argv for argv in scene.slurm.asked if argv[0] == "scancel"]


async def test_tasks_that_wait_are_cancelled_by_one_command_and_what_runs_goes_on(scene: CampaignScene):
    scene.change(FILE.replace("[0.01, 0.1, 1.0]", "[0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09]"))
    scene.limits(max_concurrent_jobs=8)
    scene.slurm.on_start(lambda _: Ending(after=6000))
    trials = await sent(scene)
    scene.slurm.clock.move(20)
    phases = {look.trial: look.phase for look in await scene.ports.look(trials)}
    waiting = [one for one in trials if phases[one.trial.id] == "pending"]
    assert len(waiting) > 2
    assert await scene.ports.cancel(waiting, "the campaign was stopped") == {}
    assert len(cancels(scene)) == 1
    scene.slurm.clock.move(60)
    looks = {look.trial: look for look in await scene.ports.look(trials)}
    for one in waiting:
        end = looks[one.trial.id].end
        assert end is not None
        assert (end.state, end.category) in {("CANCELLED", "cancelled"), ("CANCELLED", "no-record")}
    running = [one for one in trials if one not in waiting]
    assert running
    assert {looks[one.trial.id].phase for one in running} == {"running"}


async def test_what_began_since_it_was_looked_at_goes_on_and_is_not_told_as_cancelled(scene: CampaignScene):
    """Between a look and its cancelling lie the logs of all that ended: tasks that waited may run by then."""
    scene.change(FILE.replace("[0.01, 0.1, 1.0]", "[0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.11]"))
    scene.limits(max_concurrent_jobs=8)
    scene.slurm.on_start(lambda _: Ending(after=300))
    trials = await sent(scene)
    phases = {look.trial: look.phase for look in await scene.ports.look(trials)}
    waiting = [one for one in trials if phases[one.trial.id] == "pending"]
    scene.slurm.clock.move(300)
    kept = await scene.ports.cancel(waiting, "the campaign was stopped")
    assert set(kept.values()) == {None}
    assert 0 < len(kept) < len(waiting)
    scene.slurm.clock.move(10)
    looks = {look.trial: look for look in await scene.ports.look(waiting)}
    assert {looks[trial].phase for trial in kept} == {"running"}
    ends = [look.end for trial, look in looks.items() if trial not in kept]
    assert {None if end is None else end.state for end in ends} == {"CANCELLED"}


async def test_a_single_job_that_began_or_is_over_is_left_as_it_is(scene: CampaignScene):
    scene.slurm.next_job(after=600)
    (smoke,) = await sent(scene, 0)
    await scene.ports.look([smoke])
    assert await scene.ports.cancel([smoke], "the campaign was stopped") == {smoke.trial.id: None}
    scene.slurm.clock.move(900)
    assert await scene.ports.cancel([smoke], "the campaign was stopped") == {smoke.trial.id: None}
    assert not cancels(scene)


async def test_a_job_that_another_has_the_number_of_is_not_cancelled_and_the_reason_is_told(scene: CampaignScene):
    (smoke,) = await sent(scene, 0)
    scene.slurm.next_job(after=6000)
    other = scene.slurm.submit("#!/bin/bash\n#SBATCH --partition=cpu --mem=1G --time=60\nsleep 60\n")
    kept = await scene.ports.cancel([replace(smoke, job_id=str(other))], "the campaign was stopped")
    assert list(kept) == [smoke.trial.id]
    assert "was not submitted by submit_job" in kept[smoke.trial.id]
    assert not cancels(scene)
