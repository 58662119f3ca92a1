"""What a plan says a campaign comes to at most, and that none comes to more."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from tests.unit.api.campaigns import FILE, CampaignScene, go_on, to_the_end

from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.models.campaign_answer import CampaignReply
from slurm_agent_tools.models.toolset_arguments import GetCampaign

SEVERAL = FILE.replace(
    "limits:",
    "  - {kind: scale_up, hypothesis: They stay the best., best: 2, repeats: 3, change: {epochs: 8}}\nlimits:",
).replace("    command: [python3, train.py]", '    command: [python3, train.py, --seed, "{repeat}"]')

CHOSEN = """  - {kind: halving, hypothesis: One is better., length: epochs, from: 1, to: 4, keep_one_of: 2, trials: 4,
     vary: {lr: {low: 0.2, high: 1.0}}}
  - {kind: search, hypothesis: One is better still., trials: 6, vary: {lr: {low: 0.2, high: 1.0}}}
limits:"""


@pytest.fixture
def scene(tmp_path: Path) -> CampaignScene:
    made = CampaignScene(tmp_path)
    made.slurm.on_start(lambda _: Ending(after=30, output="val_loss=0.5\n"))
    return made


async def plan(scene: CampaignScene) -> CampaignReply:
    reply = await scene.box.call("get_campaign", GetCampaign(name="rates", view="plan"))
    assert isinstance(reply, CampaignReply)
    return reply


def figures(reply: CampaignReply) -> tuple[int, float]:
    """Trials and CPU hours of the table's rows."""
    rows = (reply.table or [])[1:]
    return sum(int(str(row[2])) for row in rows), sum(float(str(row[4])) for row in rows)


async def test_the_example_of_learning_rates_says_all_that_it_comes_to(scene: CampaignScene) -> None:
    here = resources.files("slurm_agent_tools") / "assets/campaigns"
    scene.change((here / "learning-rate.yaml").read_text())
    scene.write("campaigns/programs/train.py", (here / "programs/train.py").read_text())
    reply = await plan(scene)
    said = "at most 32 trials (19 known now), at most 0.00 GPU hours and 5.25 CPU hours where none has to be mended"
    assert f"{said}. The guard allows" in reply.summary
    assert figures(reply)[0] == 32
    assert (reply.table or [])[-1] == [2, "at most, as it comes out", 13, 0.0, 2.17, None, None, None]


@pytest.mark.parametrize(
    ("text", "more"),
    [(SEVERAL, 2 * 3 + 5), (FILE.replace("limits:", CHOSEN), 4 + 2 + 1 + 1 + 6 + 1)],
)
async def test_as_many_trials_as_a_plan_says_are_run_at_most(scene: CampaignScene, text: str, more: int) -> None:
    scene.change(text.replace("trials: 20", "trials: 60"))
    trials, hours = figures(await plan(scene))
    done = await to_the_end(scene)
    assert done.status == "finished"
    assert trials == 1 + 3 + more
    assert 1 + 3 < done.counts.done <= trials
    assert hours == pytest.approx((5 + 10 * (3 + more)) / 60, abs=0.03)


@pytest.mark.parametrize("text", [SEVERAL, FILE.replace("limits:", CHOSEN)])
async def test_what_was_sent_and_what_is_planned_are_never_more_than_was_said(scene: CampaignScene, text: str) -> None:
    scene.change(text.replace("trials: 20", "trials: 60"))
    whole, sums = figures(await plan(scene))[0], []
    while (reply := await go_on(scene, 20)).status == "running":
        sums.append(sum(reply.counts.model_dump().values()) + figures(await plan(scene))[0])
    assert max(sums) == whole
    assert figures(await plan(scene))[0] == 0


async def test_the_limits_of_the_file_end_what_a_plan_says(scene: CampaignScene) -> None:
    scene.change(SEVERAL.replace("cpu_hours: 10, trials: 20", "cpu_hours: 1.5, trials: 12"))
    summary = (await plan(scene)).summary
    assert "at most 12 trials (7 known now), at most 0.00 GPU hours and 1.50 CPU hours" in summary
    assert "which is what the file's limits leave" in summary


async def test_all_that_is_known_is_said_without_more(scene: CampaignScene) -> None:
    assert ": 4 trials, at most 0.00 GPU hours and 0.58 CPU hours. The guard" in (await plan(scene)).summary
