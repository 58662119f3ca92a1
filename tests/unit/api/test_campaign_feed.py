"""campaign run --all over a Slurm in memory, with a clock that is moved: shares, slots and what is told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.effort import PART
from tests.unit.services.scenes import Scene

from slurm_agent_tools.api.campaign_feed import CampaignFeed
from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.models.campaign_answer import FeedReply
from slurm_agent_tools.services.context import Caller

FILE = """campaign: 1
{share}
objective: {{metric: val_loss, direction: minimize}}
stages:
  - name: training
    kind: gpu
    command: [python3, train.py]
    parameters:
      lr: {{default: 0.1, argument: --lr}}
    resources: {{cpus: 1, memory: 1G, gpus: 1, time_limit: 30min}}
    metrics: {{pattern: {{val_loss: 'val_loss=([0-9.]+)'}}}}
rounds:
  - kind: list
    hypothesis: One of them learns faster.
    trials: [{trials}]
limits: {{gpu_hours: 400, cpu_hours: 400, trials: 400, at_once: 4}}
"""


def text(share: float | None = None, runs: int = 60, **words: str) -> str:
    trials = ", ".join(f"{{lr: {0.001 * number:.4f}}}" for number in range(1, runs + 1))
    made = FILE.format(share="" if share is None else f"share: {share}", trials=trials)
    for before, after in words.items():
        made = made.replace(before, after)
    return made


class Feeding(Scene):
    """A project with campaigns, and what runs and waits at each moment."""

    def __init__(self, folder: Path, minutes: float = 12, **campaigns: str) -> None:
        super().__init__(folder)
        self.write("train.py", "print('val_loss=0.5')\n")
        for name, document in campaigns.items():
            self.write(f"campaigns/{name}.yaml", document)
        self.slurm.on_start(lambda _: Ending(after=minutes * 60, output="val_loss=0.5\n"))
        self.feed = CampaignFeed(self.context, Caller())

    def active(self) -> int:
        return sum(job.state in {"PENDING", "RUNNING"} for job in self.slurm.controller.jobs.values())

    async def tick(self) -> FeedReply:
        reply = await self.feed.tick()
        self.slurm.clock.move(self.feed.pause)
        return reply


def by_name(reply: FeedReply) -> dict[str, Any]:
    return {one.name: one for one in reply.campaigns}


async def test_three_campaigns_of_60_30_and_10_percent_over_hours(tmp_path: Path):
    hours = max(2, 4 // PART)
    scene = Feeding(tmp_path, 20, large=text(0.6), middle=text(0.3), small=text(0.1))
    begun, full = scene.context.clock.now(), 0
    sent: Counter[str] = Counter()
    while (scene.context.clock.now() - begun).total_seconds() < hours * 3600:
        reply = await scene.feed.tick()
        assert scene.active() <= 4
        waiting = sum(one.ready for one in reply.campaigns)
        assert scene.active() == 4 or not waiting, reply.summary  # after a tick no slot is free beside work
        full += scene.active() == 4
        sent.update(scene.slurm.job(int(job)).request.name.split("-")[0] for job in reply.submitted)
        assert scene.feed.pause <= 60
        scene.slurm.clock.move(scene.feed.pause)
    told = by_name(reply)
    assert {name: told[name].share for name in told} == {"large": 0.6, "middle": 0.3, "small": 0.1}
    for name, share in (("large", 0.6), ("middle", 0.3), ("small", 0.1)):
        assert abs(told[name].part - share) <= 0.05, reply
    assert full > 25 * hours
    assert reply.ticks_with_room == 0
    assert abs(sent["large"] / sent.total() - 0.6) <= 0.05


async def test_a_campaign_that_ends_leaves_its_part_to_the_others_and_all_end(tmp_path: Path):
    scene = Feeding(tmp_path, few=text(0.5, runs=2), more=text(runs=6))
    for _ in range(200):
        reply = await scene.tick()
        if reply.status != "running":
            break
    assert reply.status == "finished", reply
    assert {one.status for one in reply.campaigns} == {"finished"}
    assert scene.active() == 0
    assert "Nothing can be sent" not in reply.summary


async def test_a_job_of_no_campaign_takes_a_slot_and_is_told(tmp_path: Path):
    scene = Feeding(tmp_path, large=text())
    for number in range(3):
        scene.write(f"train{number}.sh", (scene.project / "train.sh").read_text() + f"echo {number}\n")
        await scene.submit(f"train{number}.sh")
    first = await scene.tick()
    assert (len(first.submitted), scene.active()) == (1, 4)
    second = await scene.feed.tick()
    assert second.submitted == []
    assert "all 4 slots that the policy lets you have are taken, 3 by jobs of no campaign" in second.summary
    assert by_name(second)["large"].why is not None


async def test_a_file_that_cannot_be_read_and_one_that_asks_hold_up_no_other(tmp_path: Path):
    scene = Feeding(
        tmp_path, broken="campaign: 1\n", good=text(runs=3), wide=text(runs=2, **{"memory: 1G": "memory: 900G"})
    )
    for _ in range(200):
        reply = await scene.tick()
        if reply.status != "running":
            break
    told = by_name(reply)
    assert reply.status == "needs_decision", reply
    assert (told["broken"].status, told["good"].status) == ("unreadable", "finished")
    assert told["wide"].status == "needs_decision"
    assert "a person has to decide" in (told["wide"].why or "")
    assert "broken, wide" in reply.summary


async def test_a_file_that_no_reader_can_open_holds_up_no_other(tmp_path: Path):
    scene = Feeding(tmp_path, good=text(runs=3))
    (scene.project / "campaigns" / "loop.yaml").symlink_to("loop.yaml")
    told = by_name(await scene.tick())
    assert told["loop"].status == "unreadable"
    assert told["good"].active > 0
    assert "loop.yaml" in (told["loop"].why or "")


async def test_a_cluster_that_is_away_gets_nothing_and_is_asked_again_later(tmp_path: Path):
    scene = Feeding(tmp_path, large=text())
    scene.slurm.controller_down()
    reply = await scene.feed.tick()
    assert (reply.submitted, reply.free_slots, reply.status) == ([], None, "running")
    assert scene.feed.pause == 60
    assert "cannot be read" in reply.summary or "does not answer" in (by_name(reply)["large"].why or "")
    scene.slurm.controller_down(False)
    scene.slurm.clock.move(scene.feed.pause)
    assert len((await scene.tick()).submitted) == 4


async def test_runs_go_to_gpus_and_to_the_larger_ones_only_where_they_need_them(
    tmp_path: Path,
):
    wide = text(runs=2, **{"gpus: 1,": "gpus: 1, gpu_memory: 60G,"})
    plain = text(runs=2, **{"kind: gpu": "kind: cpu", "gpus: 1, ": ""})
    scene = Feeding(tmp_path, gpus=text(runs=2), large=wide, plain=plain)
    await scene.tick()
    await scene.tick()
    where = {job.request.name.split("-")[0]: job.partition for job in scene.slurm.controller.jobs.values()}
    assert where == {"gpus": "gpu", "large": "special", "plain": "cpu"}


async def test_whoever_leaves_sends_no_more_and_the_next_call_goes_on(tmp_path: Path):
    scene = Feeding(tmp_path, large=text(runs=4))
    scene.feed.leaving = True
    assert (await scene.feed.tick()).submitted == []
    again = CampaignFeed(scene.context, Caller())
    assert len((await again.tick()).submitted) == 4
    assert (await CampaignFeed(scene.context, Caller()).tick()).submitted == []
    assert scene.active() == 4
