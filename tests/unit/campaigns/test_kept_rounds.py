"""A file whose rounds, stages or limits change after rounds were judged: what stays, and what is gone through again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.campaigns.small_cluster import STAGE, Cluster, Process, document, run

SMOKE: dict[str, Any] = {"kind": "smoke"}
GRID: dict[str, Any] = {"kind": "grid", "vary": {"lr": [0.01, 0.03, 0.3]}}
BATCHES: dict[str, Any] = {"kind": "grid", "vary": {"batch": [32, 128]}}

pytestmark = pytest.mark.proves("campaign-revisions")


def purposes(cluster: Cluster, after: int = 0) -> list[str]:
    """What was sent, from the task of this number on."""
    return [f"{task.trial.id.round} {task.trial.purpose}" for task in cluster.tasks[after:]]


async def test_trials_left_out_for_a_limit_run_once_the_limit_is_raised():
    cluster = Cluster()
    small = await run(cluster, document(SMOKE, GRID, limits={"cpu_hours": 1.5, "at_once": 1}))
    left = [one for one in small.state.trials.values() if one.phase == "left_out"]
    assert (small.state.status, small.state.reason) == ("finished", "budget")
    assert left
    done = await run(cluster, document(SMOKE, GRID, limits={"cpu_hours": 100, "at_once": 1}))
    assert (done.state.status, done.state.reason) == ("finished", "all rounds are judged")
    assert {task.trial.settings["lr"] for task in cluster.tasks} == {0.1, 0.01, 0.03, 0.3}
    assert sum(one.runs for one in done.state.judged[1].verdicts) == 4
    identities = [task.trial.identity for task in cluster.tasks]
    assert len(identities) == len(set(identities))


async def test_a_campaign_with_fewer_rounds_than_were_judged_ends_and_runs_nothing_again():
    cluster = Cluster()
    await run(cluster, document(SMOKE, GRID, BATCHES))
    ran = len(cluster.tasks)
    for rounds in ((GRID, BATCHES), (GRID,), (SMOKE,)):
        done = await run(cluster, document(*rounds, stop={"plateau": {"rounds": 2, "gain_below": 0.01}}))
        assert done.state.status == "finished"
        assert sorted(done.state.judged) == list(range(len(rounds)))
        assert len(cluster.tasks) == ran


async def test_a_smoke_round_put_first_runs_before_anything_else():
    cluster = Cluster()
    await run(cluster, document(GRID))
    ran = len(cluster.tasks)
    changed = await Process(cluster).advance(document(SMOKE, BATCHES))
    assert "Revision 2 of the file begins; rounds from 0 on are gone through again" in changed.happened[0]
    assert purposes(cluster, ran) == ["0 smoke"]
    done = await run(cluster, document(SMOKE, BATCHES))
    assert done.state.status == "finished"
    assert purposes(cluster, ran) == ["0 smoke", "1 trial", "1 trial"]


async def test_a_stage_of_another_name_gets_its_smoke_run_first():
    cluster = Cluster()
    await run(cluster, document(SMOKE, GRID))
    ran = len(cluster.tasks)
    renamed = document(SMOKE, GRID, BATCHES, stages=[{**STAGE, "name": "learning"}])
    await Process(cluster).advance(renamed)
    assert purposes(cluster, ran) == ["0 smoke"]
    assert (await run(cluster, renamed)).state.status == "finished"


async def test_a_round_that_is_said_in_other_words_stays_judged_and_one_that_is_wider_is_judged_again():
    cluster = Cluster()
    before = await run(cluster, document(SMOKE, GRID, BATCHES))
    ran = len(cluster.tasks)
    said = await run(cluster, document(SMOKE, {**GRID, "hypothesis": "lower is better"}, BATCHES))
    assert (said.state.revision, said.state.judged) == (2, before.state.judged)
    wider = {**GRID, "vary": {"lr": [0.01, 0.03, 0.3, 0.05]}}
    done = await run(cluster, document(SMOKE, wider, BATCHES))
    assert (done.state.status, done.state.reason) == ("finished", "all rounds are judged")
    assert purposes(cluster, ran) == ["1 trial"]
    assert len(done.state.judged[1].verdicts) == 1 + len(before.state.judged[1].verdicts)


async def test_a_parameter_that_is_added_reopens_nothing_and_one_that_is_told_otherwise_does():
    cluster = Cluster()
    before = await run(cluster, document(SMOKE, GRID))
    more = {**STAGE["parameters"], "decay": {"default": 0.0, "argument": "--decay"}}
    added = await run(cluster, document(SMOKE, GRID, stages=[{**STAGE, "parameters": more}]))
    assert (added.state.revision, added.state.judged) == (2, before.state.judged)
    more["lr"] = {"default": 0.1, "argument": "--learning-rate"}
    changed = await Process(cluster).advance(document(SMOKE, GRID, stages=[{**STAGE, "parameters": more}]))
    assert not changed.state.judged
