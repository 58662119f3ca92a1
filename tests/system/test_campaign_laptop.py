"""A campaign from a laptop: its file lies there, its trials run on a cluster behind a real sshd."""

from __future__ import annotations

import json

import pytest
from tests.system.campaign_files import RATES, RATES_FILE, TRAIN
from tests.system.faces import Place, call
from tests.system.test_sync import repository, sync, written

from slurm_agent_tools.devcluster.login_node import LoginNode

SHORT = RATES_FILE.replace(str(list(RATES)), "[0.003, 0.03]")

QUICK = {
    f"SLURM_AGENT_CLUSTERS__LAB__SLURM__{name}": text for name, text in (("POLL_SCALE", "0.1"), ("CACHE_SECONDS", "1"))
}


@pytest.mark.proves("ssh-is-no-different", "campaign-finds-the-best")
async def test_a_campaign_goes_from_a_laptop_to_the_cluster_and_its_report_lies_on_the_laptop(
    fresh: Place, login: LoginNode
) -> None:
    mine = repository(fresh, login)
    mine.extra.update(QUICK)
    files = {"campaigns/rates.yaml": SHORT, "train.py": TRAIN}
    written(mine, {name: text.encode() for name, text in files.items()})
    early = mine.run(["slurm-agent-tools", "campaign", "run", "rates", "--json"])
    assert (early.returncode, "Push first" in json.loads(early.stdout)["summary"]) == (3, True), early.stderr
    assert sync(mine, "push")[1]["status"] == "done"
    async with mine.client() as client:
        reply = await call(client, "advance_campaign", name="rates", timeout_seconds=50)  # what was pushed is taken up
        while reply["status"] == "running":
            reply = await call(client, "advance_campaign", name="rates", timeout_seconds=50)
    assert reply["status"] == "finished", reply
    (best,) = reply["best"]
    assert (best["settings"]["lr"], best["settings"]["batch_size"]) == (0.03, 32)
    assert reply["counts"]["done"] == 1 + 5
    assert len(list((mine.there / "runs").glob("r1-t*.json"))) == 5
    assert not (mine.project / "runs").exists()
    assert "0.03" in (mine.project / reply["report_path"]).read_text()
    assert not (mine.there / reply["report_path"]).exists()
    for what in ("status", "report"):
        assert mine.run(["slurm-agent-tools", "campaign", what, "rates", "--json"]).returncode == 0
    listed = [json.loads(path.read_text()) for path in (mine.project / "results").glob("*.json")]
    assert len(listed) == reply["counts"]["done"]
