"""What makes a trial another one, from the file to the jobs: how it is told its values, and how it is measured."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from tests.unit.api.campaigns import FILE, CampaignScene, to_the_end

from slurm_agent_tools.devcluster.fake.endings import Ending


@pytest.fixture
def scene(tmp_path: Path) -> CampaignScene:
    made = CampaignScene(tmp_path)
    made.slurm.on_start(lambda _: Ending(after=30, output="train_loss=0.25\nval_loss=0.5\n"))
    return made


@pytest.mark.proves("campaign-revisions")
async def test_a_metric_that_was_read_from_the_wrong_line_is_measured_again(scene: CampaignScene):
    scene.change(FILE.replace("'val_loss=", "'train_loss="))
    assert (await to_the_end(scene)).best[0].value == 0.25
    sent = len(scene.sent())
    scene.change(FILE)
    reply = await to_the_end(scene)
    assert (reply.status, reply.best[0].value) == ("finished", 0.5)
    assert len(scene.sent()) == 2 * sent


@pytest.mark.proves("campaign-revisions")
async def test_runs_that_were_told_another_option_are_run_again(scene: CampaignScene):
    scene.change(FILE.replace("argument: --lr", "argument: --weight-decay"))
    assert (await to_the_end(scene)).status == "finished"
    sent = len(scene.sent())
    scene.change(FILE)
    assert (await to_the_end(scene)).status == "finished"
    assert len(scene.sent()) == 2 * sent


CHECKPOINT = FILE.replace("command: [python3, train.py]", "command: [python3, train.py, --init, model.pt]")


@pytest.mark.proves("campaign-asks-a-person")
async def test_runs_that_change_what_they_run_are_not_repeated_until_a_limit_is_spent(scene: CampaignScene):
    written = itertools.count(1)

    def writes(_: object) -> Ending:
        scene.write("model.pt", f"{next(written)}\n")
        return Ending(after=30, output="val_loss=0.5\n")

    scene.change(CHECKPOINT)
    scene.write("model.pt", "0\n")
    scene.slurm.on_start(writes)
    reply = await to_the_end(scene)
    assert reply.status == "needs_decision"
    assert reply.question is not None
    assert "stage training was stopped: r0-t1, r0-t2 ran the same and passed" in reply.question.text
    assert list(reply.question.choices) == ["go_on", "leave_out", "stop"]
    assert len(scene.sent()) == 2
    asked = await to_the_end(scene, decision="go_on")
    assert (asked.status, len(scene.sent())) == ("needs_decision", 3)
    assert (await to_the_end(scene, decision="leave_out")).status == "finished"
    assert len(scene.sent()) == 3


@pytest.mark.proves("campaign-asks-a-person")
async def test_once_a_file_is_not_changed_any_more_the_campaign_goes_on(scene: CampaignScene):
    scene.change(CHECKPOINT)
    scene.write("model.pt", "0\n")
    written = itertools.count(1)

    def writes(_: object) -> Ending:
        number = next(written)
        if number <= 2:
            scene.write("model.pt", f"{number}\n")
        return Ending(after=30, output="val_loss=0.5\n")

    scene.slurm.on_start(writes)
    assert (await to_the_end(scene)).status == "needs_decision"
    assert (await to_the_end(scene, decision="go_on")).status == "finished"


async def test_a_folder_that_is_read_is_told_without_compiled_code_and_with_links_to_itself(scene: CampaignScene):
    stage = scene.file.stages[0].model_copy(update={"reads": ("src",)})
    scene.write("src/model.py", "x = 1\n")
    (scene.project / "src/latest").symlink_to(".")
    before = await scene.ports.code_hash(stage)
    scene.write("src/__pycache__/model.cpython-312.pyc", "compiled")
    scene.write("src/model.pyc", "compiled")
    assert await scene.ports.code_hash(stage) == before
    scene.write("src/parts/layer.py", "y = 1\n")
    told = {before, await scene.ports.code_hash(stage)}
    (scene.project / "src/latest").unlink()
    (scene.project / "src/latest").symlink_to("parts")
    told.add(await scene.ports.code_hash(stage))
    assert len(told) == 3
