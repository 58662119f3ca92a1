"""Trials that Slurm does not show: none is taken as over by a silence, however the accounting came to be silent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.api.campaigns import CampaignScene, go_on

from slurm_agent_tools.campaigns.outcomes import ASKED_AFTER, LOST_AFTER
from slurm_agent_tools.campaigns.ports import SentTrial, TrialLook
from slurm_agent_tools.models.campaign_answer import CampaignReply

DISABLED = "Slurm accounting storage is disabled\n"


@pytest.fixture
def scene(tmp_path: Path) -> CampaignScene:
    return CampaignScene(tmp_path)


async def begun(scene: CampaignScene, ends_after: float | None = 30) -> int:
    """The smoke run is sent; the number of its job."""
    scene.slurm.next_job(after=ends_after, output="val_loss=0.5\n")
    reply = await go_on(scene)
    (number,) = map(int, reply.submitted)
    return number


async def after(scene: CampaignScene, wait: timedelta) -> CampaignReply:
    scene.slurm.clock.move(wait.total_seconds())
    return await go_on(scene)


def switched_off(scene: CampaignScene, number: int) -> None:
    scene.slurm.forget(number)
    scene.slurm.fail("sacct", DISABLED)


def away(scene: CampaignScene, number: int) -> None:
    scene.slurm.forget(number)
    scene.slurm.accounting_down()


@pytest.mark.proves("campaign-lost-runs")
@pytest.mark.parametrize("silence", [away, switched_off])
async def test_no_silence_settles_a_run_and_after_an_hour_a_person_is_asked(
    scene: CampaignScene, silence: Callable[[CampaignScene, int], None]
):
    number = await begun(scene)
    silence(scene, number)
    sent = scene.slurm.counts["sbatch"]
    first = await after(scene, timedelta(minutes=10))
    assert (first.status, first.question) == ("running", None)
    asked = await after(scene, ASKED_AFTER)
    assert asked.status == "needs_decision"
    assert asked.question is not None
    assert str(number) in asked.question.text
    for _ in range(3):
        later = await after(scene, 2 * LOST_AFTER)
        assert (later.counts.failed, later.status) == (0, "needs_decision")
    settled = await go_on(scene, decision="lost")
    assert settled.counts.failed == 1
    assert scene.slurm.counts["sbatch"] == sent, "nothing of it is sent again"


@pytest.mark.proves("campaign-lost-runs")
async def test_an_accounting_that_answers_and_does_not_know_a_job_settles_it_only_after_a_day(scene: CampaignScene):
    scene.slurm.accounting_delay(10**9)
    number = await begun(scene)
    scene.slurm.clock.move(300)
    scene.slurm.forget(number)
    for wait in (timedelta(minutes=10), timedelta(hours=12)):
        assert (await after(scene, wait)).counts.failed == 0
    assert (await after(scene, LOST_AFTER)).counts.failed == 1


@pytest.mark.proves("campaign-lost-runs")
async def test_an_accounting_that_was_only_late_tells_how_the_run_ended(scene: CampaignScene):
    scene.slurm.accounting_delay(22 * 3600)
    number = await begun(scene)
    scene.slurm.clock.move(300)
    scene.slurm.forget(number)
    assert (await after(scene, timedelta(minutes=10))).counts.done == 0
    assert (await after(scene, timedelta(hours=20))).status == "needs_decision"
    told = await after(scene, timedelta(hours=2))
    assert (told.counts.done, told.counts.failed, told.question) == (1, 0, None)


@pytest.mark.proves("campaign-lost-runs")
async def test_a_run_that_the_accounting_calls_active_and_the_controller_does_not_show_is_never_lost(
    scene: CampaignScene,
):
    number = await begun(scene, ends_after=None)
    scene.slurm.clock.move(60)
    scene.slurm.accounting_delay(10**9)
    scene.slurm.forget(number)
    for wait in (timedelta(minutes=1), *[2 * LOST_AFTER] * 3):
        reply = await after(scene, wait)
        assert reply.counts.failed == 0
    assert reply.status == "needs_decision"


async def test_a_job_that_the_ledger_does_not_know_is_perhaps_of_another_cluster(scene: CampaignScene):
    (look,) = await scene.ports.look([SentTrial(scene.trials(0)[0], "4711")])
    assert (look.phase, look.gone, look.unrecorded) == ("unknown", True, False)
    assert "ledger" in (look.why or "")


async def test_how_a_run_ended_is_taken_from_the_ledger_where_slurm_has_forgotten_it(scene: CampaignScene):
    number = await begun(scene)
    scene.slurm.fail("sacct", DISABLED)
    scene.slurm.clock.move(60)
    await scene.wait(number)
    scene.slurm.forget(number)
    (look,) = await scene.ports.look([SentTrial(scene.trials(0)[0], str(number))])
    assert isinstance(look, TrialLook)
    assert look.end is not None
    assert (look.end.state, look.end.passed) == ("COMPLETED", True)
