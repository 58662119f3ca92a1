"""Trials that end together: what settling and saving them asks of ledger, Slurm and git does not grow with them."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.unit.api.campaigns import FILE, CampaignScene, go_on

from slurm_agent_tools.api import campaign_ports, trial_results
from slurm_agent_tools.campaigns.steps import keeping
from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.models.result import GitState
from slurm_agent_tools.services import log_parts
from slurm_agent_tools.store.database import Database
from slurm_agent_tools.transport.local import LocalFiles

RATES = "[0.01, 0.1, 1.0]"
TOLD = "val_loss=0.5\n"


class Killed(BaseException):
    """The process is gone."""


async def ended(folder: Path, trials: int, output: str = TOLD) -> CampaignScene:
    """A campaign whose trials of one array, and the baseline's of a job of its own, have ended, and nobody looked."""
    rates = json.dumps([0.1, *(number / 1000 for number in range(1, trials))])
    text = FILE.replace(RATES, rates).replace("at_once: 4", "at_once: 500").replace("trials: 20", "trials: 500")
    scene = CampaignScene(folder, text.replace("  - {kind: smoke}\n", ""))
    scene.limits(max_concurrent_jobs=500)
    scene.slurm.on_start(lambda _: Ending(after=30, output=output))
    await go_on(scene)
    scene.slurm.clock.move(7200)
    return scene


def saved(scene: CampaignScene) -> Counter[str]:
    """How many results each job has, as files."""
    files = [json.loads(path.read_text()) for path in (scene.project / "results").glob("*.json")]
    return Counter(one["environment"]["slurm_job"]["job"]["job_id"] for one in files)


def noted(scene: CampaignScene) -> Counter[str]:
    """How many results each job has, as the ledger knows them."""
    with closing(sqlite3.connect(scene.context.store.path)) as db:
        return Counter(row[0] for row in db.execute("SELECT job_id FROM results"))


async def test_twice_the_trials_take_no_more_transactions_commands_or_looks_at_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    counted, change = Counter[str](), Database.change

    async def looked(_: str) -> GitState:
        counted["git"] += 1
        return GitState()

    def changed(database: Database) -> Any:
        counted["changes"] += not database._db.in_transaction
        return change(database)

    monkeypatch.setattr(trial_results, "git_state", looked)
    monkeypatch.setattr(campaign_ports, "git_state", looked)
    monkeypatch.setattr(Database, "change", changed)
    seen = []
    for trials in (20, 40):
        folder = tmp_path / str(trials)
        folder.mkdir()
        scene = await ended(folder, trials)
        counted.clear()
        asked = len(scene.slurm.asked)
        reply = await go_on(scene)
        assert (reply.status, saved(scene).total()) == ("finished", trials)
        assert saved(scene) == noted(scene)
        seen.append((counted["changes"], counted["git"], len(scene.slurm.asked) - asked))
    assert seen[0] == seen[1]
    assert seen[0][0] < 20


@pytest.mark.proves("campaign-survives-crash")
@pytest.mark.parametrize("at", [0, 1, 7, 11])
async def test_killed_between_results_that_are_saved_together_each_is_there_once_and_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
):
    monkeypatch.setattr(keeping, "_AT_ONCE", 5)
    scene, written, write = await ended(tmp_path, 12), Counter[str](), LocalFiles.write_new

    async def dies(files: LocalFiles, path: str, data: bytes, *, mode: int = 0o600) -> bool:
        done = await write(files, path, data, mode=mode)
        written["results"] += "/results/" in path
        if "/results/" in path and written["results"] == at + 1:
            raise Killed
        return done

    with monkeypatch.context() as here:
        here.setattr(LocalFiles, "write_new", dies)
        with pytest.raises(Killed):
            await go_on(scene)
    assert saved(scene).total() == at + 1
    reply = await go_on(scene)
    assert reply.status == "finished"
    assert set(saved(scene).values()) == {1}
    assert saved(scene).total() == 12
    assert noted(scene) == saved(scene)


async def test_what_one_result_cannot_hold_keeps_no_other_from_being_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    scene, figures = await ended(tmp_path, 6), campaign_ports.outcomes.figures

    def with_bad(end: Any) -> dict[str, object]:
        return figures(end) | ({"odd": float("nan")} if end.job_id.endswith("_3") else {})

    monkeypatch.setattr(campaign_ports.outcomes, "figures", with_bad)
    reply = await go_on(scene)
    assert reply.status == "finished"
    assert saved(scene).total() == 5
    assert noted(scene) == saved(scene)


@pytest.mark.parametrize("at_the_end", [True, False])
async def test_of_a_large_log_that_ends_with_the_metric_only_its_end_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, at_the_end: bool
):
    """Where the end does not tell it, the log is read as analyze_log reads it."""
    lines, read = ("y" * 99 + "\n") * (4 * log_parts.SMALL // 100), list[str]()
    scene = await ended(tmp_path, 2, f"{lines}{TOLD}" if at_the_end else f"{TOLD}{lines}")

    async def searched(source: log_parts.LogFileSource, **_: bool) -> log_parts.LogParts | None:
        read.append(source.path)
        return await log_parts.last(source, source.size)

    monkeypatch.setattr(log_parts, "read", searched)
    reply = await go_on(scene)
    assert "2 of 2 trials passed" in reply.summary
    assert bool(read) is not at_the_end


async def test_what_stands_under_the_name_of_a_result_and_is_none_keeps_no_trial_from_being_saved(tmp_path: Path):
    scene = await ended(tmp_path, 3)
    scene.write("results/2026-01-01_00-00-00_rates-r0-t2.json", "{}")
    assert (await go_on(scene)).status == "finished"
    assert len(noted(scene)) == 3
