"""What is found of trials that ended: metrics where the file says they are, and what a stage runs as one hash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.api.campaigns import FILE, CampaignScene

from slurm_agent_tools.campaigns.ports import BatchIsSent, SentTrial, TrialLook
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign_file import MetricSource, MustHold, Parameter

PATTERN = "metrics: {pattern: {val_loss: 'val_loss=([0-9.]+)'}}"


@pytest.fixture
def scene(tmp_path: Path) -> CampaignScene:
    return CampaignScene(tmp_path)


async def smoke(scene: CampaignScene) -> SentTrial:
    (batch,) = scene.batches(0)
    await scene.ports.write(batch)
    outcome = await scene.ports.send(batch, scene.file.stages[0])
    assert isinstance(outcome, BatchIsSent)
    return SentTrial(scene.trials(0)[0], str(outcome.job_id))


async def seen(scene: CampaignScene, trial: SentTrial) -> TrialLook:
    scene.slurm.clock.move(900)
    (look,) = await scene.ports.look([trial])
    return look


@pytest.mark.parametrize(
    ("name", "text"), [("r0-t1.json", '{"val_loss": 0.25}'), ("r0-t1.csv", "epoch,val_loss\n1,0.5\n2,0.25\n")]
)
async def test_metrics_come_from_the_file_of_the_trial(scene: CampaignScene, name: str, text: str):
    scene.change(FILE.replace(PATTERN, f"metrics: {{file: 'runs/{{trial}}{Path(name).suffix}'}}"))
    scene.slurm.next_job(after=30)
    scene.write(f"runs/{name}", text)
    look = await seen(scene, await smoke(scene))
    assert look.end is not None
    assert (look.end.passed, look.end.metrics["val_loss"]) == (True, 0.25)


async def test_without_a_source_the_metrics_are_those_that_analyze_log_finds(scene: CampaignScene):
    scene.change(FILE.replace(f"    {PATTERN}\n", ""))
    scene.slurm.next_job(after=30, output="epoch 1/1 val_loss: 0.75\n")
    look = await seen(scene, await smoke(scene))
    assert look.end is not None
    assert look.end.metrics["val_loss"] == 0.75


async def test_a_file_that_is_not_there_is_told(scene: CampaignScene):
    scene.change(FILE.replace(PATTERN, f"{PATTERN}\n    passes: {{files: ['models/{{trial}}.bin']}}"))
    scene.slurm.next_job(after=30, output="val_loss=0.5\n")
    trial = await smoke(scene)
    look = await seen(scene, trial)
    assert look.end is not None
    assert (look.end.passed, look.end.category) == (False, "output-missing")
    scene.write("models/r0-t1.bin", "weights")
    (again,) = await scene.ports.look([trial])
    assert again.end is not None
    assert again.end.passed


async def test_a_file_behind_a_link_out_of_the_project_fails_that_run_alone(scene: CampaignScene, tmp_path: Path):
    scene.change(FILE.replace(PATTERN, f"{PATTERN}\n    passes: {{files: ['models/{{trial}}.bin']}}"))
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch/r0-t1.bin").write_text("weights")
    (scene.project / "models").symlink_to(tmp_path / "scratch")
    scene.slurm.next_job(after=30, output="val_loss=0.5\n")
    look = await seen(scene, await smoke(scene))
    assert look.end is not None
    assert (look.end.passed, look.end.category) == (False, "output-missing")
    assert "leaves the project folder" in (look.end.problem or "")


async def test_files_that_an_earlier_run_left_are_not_taken_as_this_runs(scene: CampaignScene):
    told = "metrics: {file: 'runs/{trial}.json'}\n    passes: {files: ['models/{trial}.bin', models]}"
    scene.change(FILE.replace(PATTERN, told))
    scene.slurm.next_job(after=30)
    left = [scene.project / "runs/r0-t1.json", scene.project / "models/r0-t1.bin"]
    scene.write("runs/r0-t1.json", '{"val_loss": 0.25}')
    scene.write("models/r0-t1.bin", "weights")
    began = scene.slurm.clock.now().timestamp()
    for path in (*left, scene.project / "models"):
        os.utime(path, (began - 3600, began - 3600))
    trial = await smoke(scene)
    look = await seen(scene, trial)
    assert look.end is not None
    assert (look.end.category, look.end.metrics) == ("metric-missing", {})
    assert "was there before the run began" in (look.end.problem or "")
    os.utime(left[0], (began - 30, began - 30))  # as a clock that is a little behind writes it
    (missing,) = await scene.ports.look([trial])
    assert missing.end is not None
    assert (missing.end.category, missing.end.metrics) == ("output-missing", {"val_loss": 0.25})
    os.utime(left[1], (began + 20, began + 20))
    (written,) = await scene.ports.look([trial])
    assert written.end is not None
    assert written.end.passed


async def test_metrics_that_cannot_be_read_are_told_with_the_reason(scene: CampaignScene):
    scene.change(FILE.replace(PATTERN, "metrics: {file: 'runs/{trial}.json'}"))
    scene.slurm.next_job(after=30)
    look = await seen(scene, await smoke(scene))
    assert look.end is not None
    assert (look.end.category, "does not exist" in (look.end.problem or "")) == ("metric-missing", True)


async def test_tasks_that_wait_are_pending_while_others_run(scene: CampaignScene):
    scene.slurm.next_job(after=600)
    (baseline, array) = scene.batches(1)
    trials = {trial.id: trial for trial in scene.trials(1)}
    await scene.ports.write(array)
    outcome = await scene.ports.send(array, scene.file.stages[0])
    assert isinstance(outcome, BatchIsSent)
    scene.slurm.clock.move(20)
    sent = [
        SentTrial(trials[trial], f"{outcome.job_id}_{task}")
        for trial, task in zip(array.trials, array.task_ids or (), strict=True)
    ]
    assert {look.phase for look in await scene.ports.look(sent)} <= {"running", "pending"}
    assert len(baseline.trials) == 1


async def test_a_stage_is_its_script_without_what_it_asks_for_its_settings_and_its_folders(scene: CampaignScene):
    scene.write("run.sh", "#!/bin/bash\n#SBATCH --mem=1G\npython3 train.py\n")
    scene.write("base.yaml", "lr: 1\n")
    scene.write("data/a.csv", "1\n")
    stage = scene.file.stages[0].model_copy(
        update={"script": "run.sh", "command": None, "config_file": "base.yaml", "reads": ("data",)}
    )
    told = [await scene.ports.code_hash(stage)]
    scene.write("run.sh", "#!/bin/bash\n#SBATCH --mem=2G\npython3 train.py\n")
    assert await scene.ports.code_hash(stage) == told[0]
    for path, text in (
        ("run.sh", "#!/bin/bash\npython3 train.py --fast\n"),
        ("base.yaml", "lr: 2\n"),
        ("data/b.csv", ""),
    ):
        scene.write(path, text)
        told.append(await scene.ports.code_hash(stage))
    changes: tuple[dict[str, object], ...] = (
        {"setup": ("module load python",)},
        {"parameters": {**stage.parameters, "lr": Parameter(default=0.1, argument="--weight-decay")}},
        {"metrics": MetricSource(pattern={"val_loss": "loss=([0-9.]+)"})},
        {"passes": MustHold(at_least={"speed": 1.0})},
    )
    told += [await scene.ports.code_hash(stage.model_copy(update=change)) for change in changes]
    assert len(set(told)) == 8
    for wrong in ({"script": "gone.sh"}, {"script": "data"}, {"reads": ("../secret",)}):
        with pytest.raises(InputError):
            await scene.ports.code_hash(stage.model_copy(update=wrong))
