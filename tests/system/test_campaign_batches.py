"""The jobs of a campaign on a real Slurm: through submit_job, one by one and as an array, each task with its values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.system.faces import Place, call

from slurm_agent_tools.campaigns.batch import Batch, batches
from slurm_agent_tools.campaigns.file_reader import read_campaign
from slurm_agent_tools.campaigns.trial_metrics import metrics_of, passed
from slurm_agent_tools.cli.commands.init_command import asset
from slurm_agent_tools.models.campaign import Setting, Trial, TrialId, TrialPurpose, TrialRequest

FILE = read_campaign(asset("campaigns/learning-rate.yaml").encode(), "campaigns/learning-rate.yaml")

# 96 CPU hours at the longest, which a smoke run has to come before.
REQUEST = TrialRequest(cpus=4, memory_bytes=256 * 2**20, gpus=0, nodes=None, time_limit_seconds=600)


def trial(at: int, number: int, purpose: TrialPurpose, **settings: Setting) -> Trial:
    return Trial(TrialId(at, number), "training", purpose, "arm", f"identity-{at}-{number}", settings, REQUEST)


def written(place: Place, trials: Sequence[Trial]) -> Batch:
    (batch,) = batches("learning-rate", FILE, trials, 2)
    for path, text in {batch.script_path: batch.script_text, **batch.files}.items():
        (place.project / path).parent.mkdir(parents=True, exist_ok=True)
        (place.project / path).write_text(text)
    place.own()
    return batch


async def sent(client: Any, batch: Batch, **more: Any) -> dict[str, Any]:
    await call(client, "get_status")
    return dict(await call(client, "submit_job", **batch.arguments, **more))


async def ended(client: Any, reply: dict[str, Any]) -> None:
    assert reply["status"] == "submitted", reply
    for _ in range(4):
        if (await call(client, "wait_for_job", job_id=reply["job_id"], timeout_seconds=60))["status"] == "finished":
            return
    raise AssertionError(reply)


def metrics(place: Place, one: Trial) -> dict[str, float]:
    text = (place.project / f"runs/learning-rate/{one.id}.json").read_text()
    found = metrics_of(FILE.stages[0], text, "json")
    assert passed(FILE.stages[0], False, found, FILE.stages[0].passes.files, objective="val_loss") is None
    return found


@pytest.mark.proves("campaign-values-are-words")
async def test_a_smoke_run_opens_the_same_at_full_length_and_an_array_tells_its_tasks_apart(fresh: Place):
    program = fresh.project / "campaigns/programs/train.py"
    program.parent.mkdir(parents=True)
    program.write_text(asset("campaigns/programs/train.py"))
    smoke = trial(0, 1, "smoke", lr=0.1, batch_size=16, epochs=1)
    large = replace(
        trial(1, 1, "baseline", lr=0.1, batch_size=16, epochs=5), request=replace(REQUEST, time_limit_seconds=86400)
    )
    async with fresh.client() as client:
        long = written(fresh, [large])
        refused = await sent(client, long, dry_run=True)
        assert "smoke-first" in json.dumps(refused), refused
        one = written(fresh, [smoke])
        await ended(client, await sent(client, one, stage="smoke"))
        assert metrics(fresh, smoke)["val_loss"] > 0
        open_now = await sent(client, long, dry_run=True)
        assert open_now["decision"]["verdict"] == "allow", open_now

        some = [trial(1, number, "trial", lr=rate, batch_size=32, epochs=1) for number, rate in ((2, 0.001), (5, 0.3))]
        array = written(fresh, some)
        reply = await sent(client, array)
        await ended(client, reply)
        assert metrics(fresh, some[0])["val_loss"] != metrics(fresh, some[1])["val_loss"]
        again = await sent(client, array)
        assert again["job_id"] == reply["job_id"]
