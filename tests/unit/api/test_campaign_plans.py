"""A campaign whose file names a plan of plan_jobs: its trials are sent in that order, each as a job of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.api.campaigns import FILE, CampaignScene, go_on, to_the_end

from slurm_agent_tools.api import serialize
from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign import BatchIntended, RoundDesigned
from slurm_agent_tools.store.plan_files import PlanFiles

ONE_ROUND = FILE.replace("  - {kind: smoke}\n", "").replace("[0.01, 0.1, 1.0]", "[0.01, 0.1, 0.5, 1.0]")
HOURS = {"lr=0.01": 3, "training lr=1.0e-1": 2, "lr=1": 1}


@pytest.fixture
def scene(tmp_path: Path) -> CampaignScene:
    made = CampaignScene(tmp_path, ONE_ROUND.replace("at_once: 4", "at_once: 1"))
    made.slurm.on_start(lambda _: Ending(after=30, output="val_loss=0.5\n"))
    return made


async def plan(scene: CampaignScene, jobs: list[dict[str, Any]] | None = None) -> str:
    """Shortest first."""
    jobs = jobs or [{"name": name, "expected": f"{hours}h"} for name, hours in HOURS.items()]
    ask = {"jobs": jobs, "pool": {"cpus": 1}, "objective": "mean_completion", "seconds": 0}
    reply = await scene.box.call("plan_jobs", serialize.parse(serialize.BY_NAME["plan_jobs"], ask))
    return str(reply.uri)


def sent_rates(scene: CampaignScene) -> list[tuple[object, ...]]:
    """Of each job that was sent, in their order, the learning rates of its trials."""
    events = [one.event for one in scene.context.store.campaigns.events(scene.context.owner, "rates")]
    rates = {one.id: one.settings["lr"] for event in events if isinstance(event, RoundDesigned) for one in event.trials}
    return [tuple(rates[one] for one in event.trials) for event in events if isinstance(event, BatchIntended)]


async def test_trials_are_sent_in_the_order_of_the_plan_and_others_behind_them(scene: CampaignScene) -> None:
    scene.change(f"{scene.text}plan: {await plan(scene)}\n")
    reply = await to_the_end(scene)
    assert (reply.status, reply.counts.done) == ("finished", 4)
    assert sent_rates(scene) == [(1.0,), (0.1,), (0.01,), (0.5,)]


async def test_as_many_as_are_free_are_sent_at_once_in_that_order(scene: CampaignScene) -> None:
    scene.change(f"{scene.text.replace('at_once: 1', 'at_once: 2')}plan: {await plan(scene)}\n")
    assert len((await go_on(scene)).submitted) == 2
    assert sent_rates(scene) == [(1.0,), (0.1,)]


async def test_without_a_plan_the_baseline_goes_first_and_the_others_are_one_array(scene: CampaignScene) -> None:
    await to_the_end(scene)
    assert sent_rates(scene) == [(0.1,), (0.01, 0.5, 1.0)]


async def test_the_order_is_kept_when_the_plan_is_not_any_more(scene: CampaignScene) -> None:
    scene.change(f"{scene.text}plan: {await plan(scene)}\n")
    await go_on(scene)
    files = PlanFiles(scene.context.store.folder, scene.context.owner)
    for path in (scene.context.store.folder / "plans").iterdir():
        path.unlink()
    assert files.ids() == []
    scene.write("train.py", "print('val_loss=0.25')\n")  # the code changed: a further revision of the same plan
    assert (await to_the_end(scene)).status == "finished"
    assert sent_rates(scene)[:3] == [(1.0,), (1.0,), (0.1,)]


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([{"name": "rate=1", "expected": "1h"}, {"name": "large lr=1", "expected": "1h"}], "has 0 jobs that name"),
        (
            [{"name": "lr=1", "expected": "1h"}, {"name": "lr=0.1", "expected": "1h", "after": ["lr=1"]}],
            "has 'lr=0.1' wait for 'lr=1'",
        ),
    ],
)
async def test_a_plan_that_cannot_be_followed_is_refused_and_nothing_is_sent(
    scene: CampaignScene, jobs: list[dict[str, Any]], words: str
) -> None:
    uri = await plan(scene, jobs)
    scene.change(f"{scene.text}plan: {uri}\n")
    with pytest.raises(InputError, match=f"plan: '{uri}' {words}") as caught:
        await go_on(scene)
    assert caught.value.hint
    assert not scene.sent()


async def test_a_plan_that_is_not_there_is_refused_with_what_to_do(scene: CampaignScene) -> None:
    scene.change(f"{scene.text}plan: slurm://plans/0123456789ab\n")
    with pytest.raises(InputError, match="is none of the last plans") as caught:
        await go_on(scene)
    assert "Call plan_jobs again" in (caught.value.hint or "")
    assert not scene.sent()
