"""A campaign over a Slurm in memory: its file, its ports, and trials as they are designed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.services.scenes import Scene

from slurm_agent_tools.api.campaign_ports import ServicePorts
from slurm_agent_tools.campaigns.batch import Batch, batches
from slurm_agent_tools.campaigns.design import next_trials
from slurm_agent_tools.campaigns.event_folding import fold
from slurm_agent_tools.campaigns.file_reader import read_campaign
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.models.campaign import RevisionBegun, Stamped, Trial
from slurm_agent_tools.models.campaign_answer import CampaignReply
from slurm_agent_tools.models.campaign_file import CampaignFile
from slurm_agent_tools.models.toolset_arguments import AdvanceCampaign
from slurm_agent_tools.services.context import Caller

FILE = """campaign: 1
objective: {metric: val_loss, direction: minimize}
stages:
  - name: training
    kind: cpu
    command: [python3, train.py]
    parameters:
      lr: {default: 0.1, argument: --lr}
      epochs: {default: 4, argument: --epochs, length: true}
    resources: {cpus: 1, memory: 1G, time_limit: 10min, partition: cpu}
    smoke: {change: {epochs: 1}, time_limit: 5min}
    metrics: {pattern: {val_loss: 'val_loss=([0-9.]+)'}}
rounds:
  - {kind: smoke}
  - kind: grid
    hypothesis: A larger rate learns faster.
    vary: {lr: [0.01, 0.1, 1.0]}
limits: {cpu_hours: 10, trials: 20, at_once: 4}
"""


class CampaignScene(Scene):
    """A project with one campaign of one stage."""

    def __init__(self, folder: Path, text: str = FILE, slurm: FakeSlurm | None = None) -> None:
        super().__init__(folder, slurm)
        self.change(text)
        self.write("train.py", "import sys\nprint('val_loss=0.5')\n")

    def change(self, text: str) -> None:
        """Another file."""
        self.text = text
        self.write("campaigns/rates.yaml", text)

    @property
    def file(self) -> CampaignFile:
        return read_campaign(self.text.encode(), "campaigns/rates.yaml")

    @property
    def ports(self) -> ServicePorts:
        return ServicePorts(self.context, Caller(), "rates", self.file)

    def trials(self, number: int) -> tuple[Trial, ...]:
        """The first wave of a round."""
        begun = RevisionBegun(1, "0" * 64, self.text, {"training": "0" * 64})
        return next_trials(self.file, "rates", number, fold([Stamped(1, self.context.clock.now(), begun)]))

    def batches(self, number: int) -> list[Batch]:
        return batches("rates", self.file, self.trials(number), 4)


async def go_on(scene: CampaignScene, seconds: float = 0, **ask: Any) -> CampaignReply:
    """One call of `advance_campaign`, which waits for at most so many seconds."""
    reply = await scene.box.call("advance_campaign", AdvanceCampaign(name="rates", timeout_seconds=seconds, **ask))
    assert isinstance(reply, CampaignReply)
    return reply


async def to_the_end(scene: CampaignScene, **ask: Any) -> CampaignReply:
    """Calls until nothing runs any more; `ask` goes with the first."""
    for _ in range(20):
        reply = await go_on(scene, 300, **ask)
        if reply.status not in {"running", "planned"}:
            return reply
        ask = {}
    raise AssertionError(reply.summary)
