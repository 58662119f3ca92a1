"""A campaign over a Slurm in memory and the services that serve every call, killed where it writes or sends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.effort import PART
from tests.unit.api.campaigns import CampaignScene

from slurm_agent_tools.api.campaign_ports import ServicePorts
from slurm_agent_tools.campaigns.event_folding import fold
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.models.toolset_arguments import AdvanceCampaign
from slurm_agent_tools.store.campaign_events import CampaignLedger


class Killed(BaseException):
    """The process is gone."""


class Death:
    """Kills right after the effect of one call to the outside: as good as right before the next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.at, self.calls = at, 0
        monkeypatch.setattr(CampaignLedger, "append", self._written(CampaignLedger.append))
        for name in ("write", "send", "look", "save_results", "write_report"):
            monkeypatch.setattr(ServicePorts, name, self._asked(getattr(ServicePorts, name)))

    def _dies(self) -> bool:
        self.calls += 1
        return self.calls - 1 == self.at

    def _written(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            done = real(*args, **more)
            if self._dies():
                raise Killed
            return done

        return call

    def _asked(self, real: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **more: Any) -> Any:
            done = await real(*args, **more)
            if self._dies():
                raise Killed
            return done

        return call


def state(scene: CampaignScene) -> CampaignState:
    return fold(scene.context.store.campaigns.events(scene.context.owner, "rates"))


async def to_the_end(scene: CampaignScene) -> CampaignState:
    """Call after call; after a kill the next is another process's."""
    for _ in range(60):
        try:
            reply = await scene.box.call("advance_campaign", AdvanceCampaign(name="rates", timeout_seconds=300))
        except Killed:
            continue
        if reply.status not in {"running", "planned"}:
            return state(scene)
    raise AssertionError(state(scene).status)


@pytest.mark.proves("campaign-survives-crash")
@pytest.mark.parametrize("first", range(4))
async def test_killed_where_it_writes_or_sends_it_ends_alike_and_each_job_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
):
    for at in range(first, 400, 4 * PART):
        with monkeypatch.context() as here:
            folder = tmp_path / str(at)
            folder.mkdir()
            scene = CampaignScene(folder)
            scene.slurm.on_start(lambda _: Ending(after=30, output="val_loss=0.5\n"))
            death = Death(here, at)
            ended = await to_the_end(scene)
        assert ended.status == "finished"
        assert [str(trial) for trial in ended.trials] == ["r0-t1", "r1-t1", "r1-t2", "r1-t3"]
        assert all(one.passed for one in ended.trials.values())
        assert set(Counter(one.job_id for one in ended.trials.values()).values()) == {1}
        assert len({one.job_id.partition("_")[0] for one in ended.trials.values()}) == len(scene.sent())
        if death.calls <= at:
            return
    raise AssertionError("there are more calls than were tried")
