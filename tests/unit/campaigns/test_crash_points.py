"""A campaign whose process is killed at every call outward, before and after its effect, and goes on."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest
from tests.effort import PART, tries
from tests.unit.campaigns.small_cluster import Cluster, Kill, badly, document, outline, run, well

from slurm_agent_tools.models.campaign import Trial, TrialEnd

ROUNDS: tuple[dict[str, Any], ...] = (
    {"kind": "smoke"},
    {"kind": "grid", "vary": {"lr": [0.01, 0.03, 0.3], "batch": [64, 128]}},
    {
        "kind": "halving", "vary": {"lr": {"low": 0.001, "high": 1.0, "log": True}}, "trials": 4, "keep_one_of": 2,
        "length": "epochs", "from": 3, "to": 6,
    },
)  # fmt: skip


FIXES = [{"failure": "host-out-of-memory", "multiply": {"batch": 0.75}, "memory": "8G", "at_most": 1}]

FILE = document(*ROUNDS, fixes=FIXES, limits={"cpu_hours": 100, "at_once": 3, "trials": 40})


def outcome(trial: Trial) -> TrialEnd:
    """A batch of 128 needs too much memory where lr is 0.3, and nothing helps where it is 0.01."""
    if trial.settings["batch"] == 128 and trial.settings["lr"] == 0.3:
        return badly("Killed", "host-out-of-memory", proposed_memory_bytes=6 * 2**30)
    if trial.settings["batch"] == 128 and trial.settings["lr"] == 0.01:
        return badly("ValueError: shapes", "traceback")
    return well(trial)


def checked(cluster: Cluster) -> None:
    """No trial is lost or run twice, nothing is asked for beyond the limits, and numbers are without gaps."""
    ran = Counter(task.trial.id for task in cluster.tasks)
    assert set(ran.values()) == {1}
    for one in cluster.state.trials.values():
        assert one.phase in {"ended", "left_out"}
        assert (one.trial.id in ran) == (one.phase == "ended" and one.trial.reuses is None)
    assert cluster.most_at_once() <= 3
    assert cluster.most_asked <= 100
    assert cluster.results.keys() == ran.keys()
    for number, trials in cluster.state.rounds.items():
        assert [trial.number for trial in trials] == list(range(1, len(trials) + 1)), number


def whole() -> tuple[Cluster, int]:
    """The campaign without a crash, and how many calls outward it makes."""
    cluster, kill = Cluster(outcome), Kill()
    asyncio.run(run(cluster, FILE, kill=kill))
    return cluster, kill.calls


@pytest.mark.proves("campaign-survives-crash")
def test_the_campaign_without_a_crash_has_all_that_the_crashes_are_to_leave_as_it_is():
    cluster, calls = whole()
    checked(cluster)
    assert cluster.state.status == "finished"
    purposes = Counter(one.trial.purpose for one in cluster.state.trials.values())
    assert purposes["smoke"] == 1
    assert purposes["fix"] == 1
    assert sum(one.failed for one in cluster.state.trials.values()) == 2
    assert cluster.lessons
    assert calls > 60


@pytest.mark.proves("campaign-survives-crash")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_call_it_ends_with_the_same_trials_as_without(after):
    reference, calls = whole()
    for at in range(0, calls, PART):
        cluster = Cluster(outcome)
        kill = Kill(at, after=after)
        asyncio.run(run(cluster, FILE, kill=kill))
        assert kill.calls > at
        checked(cluster)
        assert outline(cluster.state) == outline(reference.state), at
        assert cluster.state.reason == reference.state.reason
        assert cluster.state.spent.trials == reference.state.spent.trials
        assert cluster.files["campaigns/lr.md"] == reference.files["campaigns/lr.md"]


@pytest.mark.proves("campaign-survives-crash")
def test_killed_again_and_again_it_goes_on_all_the_same():
    reference, _ = whole()
    chance = random.Random(7)  # noqa: S311 - the same every time
    for _ in range(tries(10)):
        cluster = Cluster(outcome)
        for _ in range(12):
            try:
                asyncio.run(
                    run(cluster, FILE, kill=Kill(chance.randrange(1, 9), after=chance.random() < 0.5), passes=2)
                )
            except AssertionError:
                continue
        asyncio.run(run(cluster, FILE))
        checked(cluster)
        assert outline(cluster.state) == outline(reference.state)
