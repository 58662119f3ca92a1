"""What partitions rest on is asked once an hour, and never used beside other partitions, too old, foreign or broken."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.accepting import CONFIG, Accepting

from slurm_agent_tools.devcluster.fake.fake_clock import START, FakeClock
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.answer_cache import BACKDROP_AGE, KeptBackdrop
from slurm_agent_tools.slurm.client import SlurmClient

ASKED = ["scontrol show partition", "scontrol show nodes", "scontrol show config"]
KEPT = ASKED[:1]


class Cluster(Accepting):
    """With a partition that a test can change, and a default of memory."""

    more = b""

    def _scontrol(self, argv: list[str], *rest: Any) -> Any:
        told = super()._scontrol(argv, *rest)
        if argv[1:3] == ["show", "config"]:
            return CONFIG + b"DefMemPerCPU            = 100\n"
        return told.replace(b" TotalCPUs=8", b" TotalCPUs=8" + self.more)


class Asking:
    """One client after another over the same file."""

    def __init__(self, path: Path) -> None:
        self.path, self.slurm, self.clock = path, Cluster(), FakeClock()
        self.client = self.opened()

    def opened(self) -> SlurmClient:
        return SlurmClient(self.slurm, self.clock, SlurmSettings(), user="alice", backdrop=KeptBackdrop(self.path))

    async def ask(self, *, fresh: bool = False, process: str = "another") -> list[str]:
        """What it costs to know the partitions, with what their nodes have."""
        self.slurm.asked.clear()
        self.clock.move(0.001)
        if process == "another":
            self.client = self.opened()
        (part,) = (await self.client.partitions(fresh=fresh, max_age=0)).values()
        assert (part.cpus_per_node, part.memory_per_node, part.def_mem_per_cpu) == (8, 16000 * 2**20, 100 * 2**20)
        return self.slurm.commands


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path / "partitions.json")


@pytest.mark.parametrize("process", ["the same", "another"])
async def test_it_is_asked_once_an_hour(asking: Asking, process: str):
    assert await asking.ask(process=process) == ASKED
    asking.clock.move(BACKDROP_AGE - 1)
    assert await asking.ask(process=process) == KEPT
    asking.clock.move(2)
    assert "scontrol show nodes" in await asking.ask(process=process)


@pytest.mark.parametrize("process", ["the same", "another"])
async def test_it_does_not_hold_beside_other_partitions(asking: Asking, process: str):
    await asking.ask(process=process)
    asking.clock.move(60)
    asking.slurm.more = b" Nodes=cpu[01-02]"
    assert "scontrol show nodes" in await asking.ask(process=process)


async def test_a_state_that_changed_leaves_it(asking: Asking):
    await asking.ask()
    asking.slurm.more = b" State=DOWN"
    assert await asking.ask() == KEPT


async def test_who_asks_anew_gets_it_anew(asking: Asking):
    await asking.ask()
    assert await asking.ask(fresh=True) == ASKED


async def test_a_clock_that_went_back_leaves_nothing(asking: Asking):
    await asking.ask()
    asking.clock = FakeClock(START - timedelta(seconds=5))
    assert await asking.ask() == ASKED


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2}, {"equipment": {}}, {"equipment": {"cpu": {}}}, {"equipment": 7}, {"config": None}, {"at": "soon"},
        {"equipment": {"cpu": dict.fromkeys(("gpus_per_node", "cpus_per_node", "memory_per_node", "memory_per_node_max",
            "gpus_per_node_min", "threads_per_core", "total_gpus"), -1)}},
        None, [], "{",
    ],
)  # fmt: skip
async def test_a_file_that_is_broken_is_not_there(asking: Asking, change: Any):
    await asking.ask()
    kept = json.loads(asking.path.read_text())
    asking.path.write_text(change if isinstance(change, str) else json.dumps(change and {**kept, **change}))
    assert await asking.ask() == ASKED


async def test_a_link_in_its_place_is_not_followed(asking: Asking, tmp_path: Path):
    await asking.ask()
    asking.path.rename(tmp_path / "elsewhere.json")
    asking.path.symlink_to(tmp_path / "elsewhere.json")
    assert await asking.ask() == ASKED


async def test_it_lies_there_for_its_owner_alone_and_leaves_no_draft(asking: Asking, tmp_path: Path):
    await asking.ask()
    await asking.ask(fresh=True)
    assert os.listdir(tmp_path) == ["partitions.json"]  # noqa: PTH208 - a test may look at its folder
    assert asking.path.stat().st_mode & 0o777 == 0o600


async def test_a_folder_that_cannot_be_written_costs_two_commands(tmp_path: Path):
    asking = Asking(tmp_path / "missing" / "partitions.json")
    assert await asking.ask() == ASKED
    assert await asking.ask() == ASKED
    assert await asking.ask(process="the same") == KEPT
