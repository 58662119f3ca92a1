"""What makes a trial another one, from the file to the jobs: how it is told its values, and how it is measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.api.campaigns import FILE, CampaignScene

from slurm_agent_tools.models.campaign_answer import CampaignReply
from slurm_agent_tools.models.toolset_arguments import AdvanceCampaign
from slurm_agent_tools.slurm.fake.endings import Ending


@pytest.fixture
def scene(tmp_path: Path) -> CampaignScene:
    made = CampaignScene(tmp_path)
    made.slurm.on_start(lambda _: Ending(after=30, output="train_loss=0.25\nval_loss=0.5\n"))
    return made


async def to_the_end(scene: CampaignScene, **ask: str) -> CampaignReply:
    for _ in range(30):
        call = AdvanceCampaign.model_validate({"name": "rates", "timeout_seconds": 300, **ask})
        reply = await scene.box.call("advance_campaign", call)
        assert isinstance(reply, CampaignReply)
        if reply.status not in {"running", "planned"}:
            return reply
        ask = {}
    raise AssertionError(reply.summary)


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
