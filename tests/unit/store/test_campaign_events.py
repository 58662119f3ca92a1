import math
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.campaign import (
    ArmVerdict,
    BatchIntended,
    BatchRefused,
    BatchSent,
    CampaignFinished,
    CampaignStopped,
    Noted,
    PersonDecided,
    QuestionAsked,
    RevisionBegun,
    RoundDesigned,
    RoundJudged,
    StageStopped,
    Trial,
    TrialEnd,
    TrialEnded,
    TrialId,
    TrialRequest,
    TrialsLeftOut,
)
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ALICE = Owner("alice", "/home/alice/p", "default")
OTHERS = (
    Owner("bob", "/home/alice/p", "default"), Owner("alice", "/home/alice/q", "default"),
    Owner("alice", "/home/alice/p", "lab"),
)  # fmt: skip

REQUEST = TrialRequest(cpus=2, memory_bytes=2**31, gpus=1, nodes=None, time_limit_seconds=600, partition="gpu")
SETTINGS = {"lr": 0.1, "epochs": 1, "amp": True, "optimizer": "adam", "decay": 1.0}
TRIALS = (
    Trial(TrialId(1, 1), "training", "trial", "a" * 12, "b" * 16, SETTINGS, REQUEST),
    Trial(
        TrialId(1, 2), "training", "fix", "a" * 12, "b" * 16, SETTINGS, REQUEST,
        repeat=2, replaces=TrialId(1, 1), mended="memory 2G -> 4G", reuses=TrialId(0, 1), fix="c" * 12,
    ),
)  # fmt: skip
END = TrialEnd(
    "7_2", "FAILED", passed=False, problem="exit code 1", exit_code=1, queue_seconds=1.5, run_seconds=20.0, restarts=0,
    started=NOW, ended=NOW, cpu_hours=0.25, gpu_hours=0.0, cost=0.5, currency="EUR", memory_peak_bytes=2**33,
    memory_allocated_bytes=2**34, cpu_used=0.5, gpu_used=None, metrics={"loss": 0.5, "steps": 3}, category="oom",
    cause="oom: line", explanation="it \udce9", proposed_memory_bytes=2**35,
)  # fmt: skip
ALL = (
    RevisionBegun(1, "0" * 64, "campaign: 1\n", {"training": "f" * 64}),
    RoundDesigned(1, 1, "smaller is better", TRIALS),
    BatchIntended("n/r1/t1-t2", (TrialId(1, 1), TrialId(1, 2)), "a.sh", "1" * 64, (1, 2), 4),
    BatchSent("n/r1/t1-t2", 7),
    BatchRefused("n/r1/t1-t2", "no", person=True, rules=("x",), artifacts=("a.sh",), manual_commands=("sbatch a.sh",)),
    TrialEnded(TrialId(1, 2), END),
    TrialsLeftOut((TrialId(1, 1),), "the budget"),
    StageStopped("training", "oom: line", "failed twice alike"),
    RoundJudged(1, (ArmVerdict("training", "a" * 12, "stop", "worse", 3, 0.5, 0.25, -0.5, -0.75, None),), {}, "no"),
    QuestionAsked("q1", "what now?", {"stop": "end it"}, "oom: line"),
    PersonDecided("q1", "stop", "alice"),
    CampaignStopped("by a person", "alice"),
    CampaignFinished("done"),
    Noted("result", "results/a.json", TrialId(1, 1)),
)


@pytest.fixture
def store(tmp_path: Path):
    opened = Store(tmp_path / "state")
    yield opened
    opened.close()


@pytest.mark.proves("campaign-survives-crash")
def test_events_of_every_kind_come_back_as_they_were_written_with_their_numbers(store):
    stamped = store.campaigns.append(ALICE, "lr", ALL, expected=0)
    assert [one.number for one in stamped] == list(range(1, len(ALL) + 1))
    found = Store(store.folder).campaigns.events(ALICE, "lr")
    assert tuple(found) == stamped
    assert tuple(one.event for one in found) == ALL
    settings = found[1].event.trials[0].settings
    assert {name: type(value) for name, value in settings.items()} == {
        name: type(value) for name, value in SETTINGS.items()
    }
    assert store.campaigns.events(ALICE, "lr", after=12) == list(stamped[12:])


def test_numbers_that_are_not_finite_come_back_too(store):
    end = TrialEnd("7", "COMPLETED", passed=False, metrics={"loss": math.inf, "grad": math.nan})
    store.campaigns.append(ALICE, "lr", [TrialEnded(TrialId(0, 1), end)], expected=0)
    (found,) = store.campaigns.events(ALICE, "lr")
    assert found.event.end.metrics["loss"] == math.inf
    assert math.isnan(found.event.end.metrics["grad"])


def test_events_belong_to_one_caller_and_one_campaign(store):
    store.campaigns.append(ALICE, "lr", ALL[:2], expected=0)
    store.campaigns.append(ALICE, "chunks", ALL[:1], expected=0)
    for other in OTHERS:
        assert store.campaigns.events(other, "lr") == []
        assert store.campaigns.listed(other) == []
    listed = store.campaigns.listed(ALICE)
    assert [(one.name, one.events) for one in listed] == [("chunks", 1), ("lr", 2)]
    assert all(one.begun == one.updated for one in listed)


@pytest.mark.proves("campaign-survives-crash")
def test_who_read_before_somebody_else_wrote_adds_nothing(store):
    other = Store(store.folder)
    assert store.campaigns.append(ALICE, "lr", ALL[:2], expected=0)
    assert other.campaigns.append(ALICE, "lr", ALL[:3], expected=0) is None
    assert other.campaigns.append(ALICE, "lr", ALL[2:3], expected=3) is None
    assert len(store.campaigns.events(ALICE, "lr")) == 2
    assert other.campaigns.append(ALICE, "lr", ALL[2:3], expected=2)


@pytest.mark.proves("campaign-survives-crash")
def test_of_many_at_once_each_place_in_the_order_is_taken_by_one(store):
    opened = [Store(store.folder) for _ in range(4)]

    def add(number: int) -> bool:
        return opened[number % 4].campaigns.append(ALICE, "lr", ALL[:1], expected=number // 8) is not None

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(add, range(32)))
    assert sum(done) == len(store.campaigns.events(ALICE, "lr")) >= 1
    for one in opened:
        one.close()


def test_a_row_that_went_missing_or_that_nobody_can_read_is_an_error(store):
    store.campaigns.append(ALICE, "lr", ALL[:3], expected=0)
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE campaign_events SET kind = 'Unheard' WHERE number = 3")
    with pytest.raises(StorageError, match="event 3 of the campaign lr cannot be read"):
        store.campaigns.events(ALICE, "lr")
    with db:
        db.execute("DELETE FROM campaign_events WHERE number = 2")
        db.execute("UPDATE campaign_events SET kind = 'BatchIntended' WHERE number = 3")
    db.close()
    with pytest.raises(StorageError, match="have a gap"):
        store.campaigns.events(ALICE, "lr")


def test_a_ledger_from_before_campaigns_is_brought_up_to_date(store):
    with sqlite3.connect(store.path) as db:
        db.execute("DROP TABLE campaign_events")
        db.execute("DROP TABLE estimates")
        db.execute("PRAGMA user_version = 3")
    db.close()
    now = Store(store.folder)
    assert now.campaigns.append(ALICE, "lr", ALL[:1], expected=0)
    assert [one.name for one in Store(store.folder).campaigns.listed(ALICE)] == ["lr"]


@pytest.mark.proves("campaign-survives-crash")
def test_one_process_at_a_time_advances_a_campaign_and_others_are_not_held_up(store):
    other = Store(store.folder)
    with store.campaigns.lock(ALICE, "lr") as first, other.campaigns.lock(ALICE, "lr") as second:
        assert (first, second) == (True, False)
        with other.campaigns.lock(ALICE, "chunks") as another, other.campaigns.lock(OTHERS[0], "lr") as of_bob:
            assert another
            assert of_bob
    with other.campaigns.lock(ALICE, "lr") as again:
        assert again


_KILLED = """
import os, signal, sys
from pathlib import Path
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner
with Store(Path(sys.argv[1])).campaigns.lock(Owner("alice", "/home/alice/p", "default"), "lr") as held:
    assert held
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.proves("campaign-survives-crash")
def test_a_killed_process_leaves_no_lock_of_its_campaign(store):
    assert subprocess.run([sys.executable, "-c", _KILLED, str(store.folder)], check=False).returncode == -9
    with store.campaigns.lock(ALICE, "lr") as held:
        assert held
