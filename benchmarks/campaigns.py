"""What a campaign of 1,000 trials costs: planned, designed, folded from its events and judged, in its own process."""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio
from benchmarks.table import Row
from benchmarks.timing import ROOT, environment, python
from tests.unit.api.campaigns import FILE, CampaignScene, go_on
from tests.unit.campaigns.simulated import Simulation, campaign, passes

from slurm_agent_tools.campaigns.rules.judge import judge_round
from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.devcluster.fake.hardware import FakeNode
from slurm_agent_tools.models.campaign import BatchIntended, BatchSent, TrialEnded
from slurm_agent_tools.models.campaign_answer import CampaignReply
from slurm_agent_tools.models.toolset_arguments import GetCampaign
from slurm_agent_tools.transport.base import Completed

MOST_SECONDS = 2.0
MOST_MEGABYTES = 150.0
MOST_OF_JSON = 5.0
WIDE = {"rate": [step / 1000 for step in range(1, 101)], "batch": [2**power for power in range(10)]}
ASKING = {"cpus": list(range(1, 11)), "memory": [f"{size}M" for size in range(1001, 1101)]}
REPEATED = {"rate": [step / 100 for step in range(1, 51)], "batch": [16, 32]}


def rows() -> list[Row]:
    """Seconds beside those of writing the trials as JSON and reading them again, and megabytes of the process."""
    found = []
    for what, words in (("1,000 configurations", "wide"), ("100 configurations, 10 runs each", "repeated")):
        told = _told(words)
        reference = "the same trials to JSON and back"
        found += [
            Row(f"campaign, {what}: designed", told["designed"], "s", reference, told["json"], MOST_OF_JSON),
            Row(f"campaign, {what}: planned, a job each", told["planned"], "s", limit=MOST_SECONDS),
            Row(f"campaign, {what}: designed", told["designed"], "s", limit=MOST_SECONDS),
            Row(f"campaign, {what}: folded and judged", told["settled"], "s", limit=MOST_SECONDS),
            Row(f"campaign, {what}: memory of the process", told["megabytes"], "MB", limit=MOST_MEGABYTES),
        ]
    saved = _told("saved")
    return [
        *found,
        Row("campaign, array of 1,000 that ended: settled and saved", saved["saved"], "s", limit=MOST_SECONDS),
        Row("the same: memory of the process", saved["megabytes"], "MB", limit=MOST_MEGABYTES),
    ]


def _told(words: str) -> dict[str, float]:
    """What a process of its own measured."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(Path(folder), PYTHONPATH=str(ROOT))
        argv = python("-m", "benchmarks.campaigns", words)
        done = subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def measured(words: str) -> dict[str, float]:
    """Processor seconds of each part, and the most memory that this process had."""
    if words == "saved":
        used = anyio.run(saved)
        return {"saved": used, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000}
    vary, repeats = (WIDE, 1) if words == "wide" else (REPEATED, 10)
    rule = {"kind": "grid", "vary": vary, "repeats": repeats}
    simulation = Simulation(campaign(rule, limits={"cpu_hours": 1000, "trials": 1000}))
    began = time.process_time()
    trials = simulation.design(0)
    designed = time.process_time()
    json.loads(json.dumps([asdict(trial) for trial in trials]))
    written = time.process_time()
    ids = tuple(trial.id for trial in trials)
    values = itertools.cycle((1.0, 1.1, 0.9, 1.2, 0.95, 1.05, 1.15))
    simulation.happen(
        BatchIntended("key", ids, "x.sh", "0" * 64, tuple(range(len(ids)))),
        BatchSent("key", 1),
        *(TrialEnded(trial.id, passes(loss=next(values))) for trial in trials),
    )
    simulation.happen(judge_round(simulation.file, 0, simulation.state))
    settled = time.process_time()
    return {
        "planned": anyio.run(planned),
        "designed": designed - began,
        "json": written - designed,
        "settled": settled - written,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
    }


async def planned() -> float:
    """Processor seconds of a plan of 1,000 jobs that all ask otherwise, with those of the programs that it starts."""
    with tempfile.TemporaryDirectory() as folder:
        vary = f"vary: {json.dumps(ASKING)}"
        scene = CampaignScene(Path(folder), FILE.replace("vary: {lr: [0.01, 0.1, 1.0]}", vary).replace("20,", "2000,"))
        began = _used()
        reply = await scene.box.call("get_campaign", GetCampaign(name="rates", view="plan"))
        used = _used() - began
    trials = [row[2] for row in reply.table or []][1:] if isinstance(reply, CampaignReply) else []
    if trials != [1, 1000]:
        raise RuntimeError(f"not 1,000 trials and a smoke run: {reply.summary}")
    return used


async def saved(trials: int = 1000) -> float:
    """Processor seconds of the pass that finds the tasks of one array ended: looked at, saved, judged and reported.

    Those of the Slurm in memory, which stands for another machine's, are not counted.
    """
    rates = json.dumps([0.1, *(number / 1000 for number in range(1001, 1000 + trials))])
    text = FILE.replace("[0.01, 0.1, 1.0]", rates).replace("  - {kind: smoke}\n", "").replace("10min", "3min")
    text = text.replace("5min", "2min").replace("trials: 20, at_once: 4", "trials: 2000, at_once: 2000")
    text = text.replace("partition: cpu", "partition: main").replace("cpu_hours: 10", "cpu_hours: 1000")
    with tempfile.TemporaryDirectory() as folder:
        slurm = SlurmApart(nodes=[FakeNode(f"n{number}", cpus=128, memory=2_000_000) for number in range(20)])
        slurm.on_start(lambda _: Ending(after=30, output="epoch 1\nval_loss=0.5\n"))
        scene = CampaignScene(Path(folder), text, slurm)
        scene.limits(max_concurrent_jobs=2000)
        await go_on(scene)
        slurm.clock.move(7200)
        began = _used() - slurm.spent
        reply = await go_on(scene)
        used = _used() - slurm.spent - began
        files = len(list((scene.project / "results").glob("*.json")))
    if (reply.status, files) != ("finished", trials):
        raise RuntimeError(f"not {trials} results, but {files}: {reply.summary}")
    return used


class SlurmApart(FakeSlurm):
    """`spent`: processor seconds of its own answers."""

    spent = 0.0

    async def run(self, argv: Sequence[str], **more: Any) -> Completed:
        """One answer, with its time told apart."""
        began = _used()
        try:
            return await super().run(argv, **more)
        finally:
            self.spent += _used() - began


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measured(sys.argv[1])))
