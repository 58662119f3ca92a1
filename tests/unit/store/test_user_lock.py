"""One place per user: another state folder is no way around the lock, a failure or a used approval."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from slurm_agent_tools.api.context_registry import open_store
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.decision import Decision, PolicyUsed
from slurm_agent_tools.models.job import GivenEstimate
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.ledger_location import anchor, register, submission_lock
from slurm_agent_tools.store.submissions import Approval, Decided, Owner, Submission

OWNER = Owner("ada", "/home/ada/project", "lab")
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def submission(token: str = "sat-1", **facts: object) -> Submission:
    stated: dict[str, object] = {
        "idempotency_key": token, "phase": "released", "created": NOW, "updated": NOW, "script_path": "train.sh",
        "script_sha256": "0" * 64, "request_sha256": "1" * 64, "job_name": "train", "slots": 1, "decision_id": "d",
        "job_id": 7, "outcome": "FAILED", "failed": True,
    }  # fmt: skip
    return Submission(token=token, **{**stated, **facts})  # type: ignore[arg-type]


def approval(name: str = "a1", **facts: object) -> Approval:
    stated: dict[str, object] = {
        "plan_sha256": "2" * 64, "plan": "text", "job_name": "train", "created": NOW, "updated": NOW,
        "expires": datetime.now(UTC) + timedelta(hours=1),
    }  # fmt: skip
    return Approval(id=name, **{**stated, **facts})  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path


def opened(home: Path, name: str) -> Store:
    return open_store(Settings(project_root=home, state_dir=home / name))


@pytest.mark.proves("only-the-base-loosens")
def test_a_ledger_in_another_folder_knows_the_failures_and_the_used_approvals_of_the_first(home: Path):
    first = opened(home, "one")
    first.approvals.ask(OWNER, approval())
    assert first.add(OWNER, submission(approval_id="a1"))
    second = opened(home, "two")
    assert [run.failed for run in second.accepted(OWNER)] == [True]
    assert not second.add(OWNER, submission("sat-2", approval_id="a1"))
    assert second.approvals.open(OWNER) == []


def test_the_newer_of_two_records_counts_and_news_are_taken_over_again(home: Path):
    first, second = opened(home, "one"), opened(home, "two")
    first.add(OWNER, submission())
    first.adopt()
    assert second.accepted(OWNER) == []
    second = opened(home, "two")
    (known,) = second.accepted(OWNER)
    second.update(known, analysed=NOW)
    first = opened(home, "one")
    assert [run.analysed for run in first.accepted(OWNER)] == [NOW]
    first.add(OWNER, submission("sat-2"))
    second.adopt()
    assert len(second.accepted(OWNER)) == 2
    assert second.accepted(OWNER)[0].failed is True


@pytest.mark.proves("estimates-are-compared")
def test_what_was_foretold_is_taken_over_with_the_submission_once(home: Path):
    first = opened(home, "one")
    job = submission(job_id=7, outcome="COMPLETED", run_seconds=90)
    said = GivenEstimate("run", 100.0, 80.0, 120.0, 5, (90.0, 100.0, 110.0))
    first.add(OWNER, job, Decided(Decision("d", "allow", PolicyUsed("1", "0" * 64)), foretold=(said,)))
    second = opened(home, "two")
    second.adopt()
    assert [(one.job_id, one.said, one.happened) for one in second.ended_estimates(OWNER)] == [(7, said, 90)]


def test_a_folder_that_is_gone_is_forgotten_and_one_that_cannot_be_read_is_an_error(home: Path):
    opened(home, "one").close()
    place = anchor(home / "two")
    assert register(place, home / "two") == (home / "one",)
    (home / "one/ledger.sqlite3").write_bytes(b"this is no database at all, and long enough to be seen as none")
    with pytest.raises(StorageError):
        opened(home, "two")
    (home / "one/ledger.sqlite3").unlink()
    assert register(place, home / "two") == ()


def test_the_lock_lies_in_one_place_whatever_the_state_folder(home: Path):
    first, second = opened(home, "one"), opened(home, "two")
    assert first.place == second.place == home / "home/.local/state/slurm-agent-tools"
    with submission_lock(first.place) as mine, submission_lock(second.place) as other:
        assert (mine, other) == (True, False)


def test_two_homes_with_one_ledger_do_not_submit_at_once(home: Path, monkeypatch: pytest.MonkeyPatch):
    first = opened(home, "one")
    (home / "other").mkdir()
    monkeypatch.setenv("HOME", str(home / "other"))
    second = opened(home, "one")
    assert first.place != second.place
    with submission_lock(first.place, first.folder) as mine, submission_lock(second.place, second.folder) as other:
        assert (mine, other) == (True, False)
    with submission_lock(second.place, second.folder) as other:
        assert other


def test_the_lock_is_there_again_after_its_folder_was_removed(home: Path):
    store = opened(home, "one")
    shutil.rmtree(store.place)
    with submission_lock(store.place, store.folder) as mine, submission_lock(store.place, store.folder) as other:
        assert (mine, other) == (True, False)


def test_a_lock_that_is_no_database_is_a_clear_error(tmp_path: Path):
    (tmp_path / "submit-lock.sqlite3").write_bytes(b"this is no database at all, and long enough to be seen as none")
    with pytest.raises(StorageError, match="cannot lock") as caught, submission_lock(tmp_path):
        pass
    assert "Remove" in caught.value.hint


def test_a_user_without_a_home_keeps_all_in_the_state_folder(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(home / "nowhere"))
    assert opened(home, "one").place == home / "one"


def test_of_two_submissions_with_one_approval_one_is_written_down(home: Path):
    store = opened(home, "one")
    store.approvals.ask(OWNER, approval())
    others = [submission(f"sat-{number}", approval_id="a1") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(lambda one: store.add(OWNER, one), others))
    assert sorted(written) == [False] * 7 + [True]
    assert [run.token for run in store.accepted(OWNER)] == [f"sat-{written.index(True)}"]


def test_an_approval_is_used_with_the_intent_or_not_at_all(home: Path):
    store = opened(home, "one")
    store.approvals.ask(OWNER, approval())
    store.add(OWNER, submission("sat-1"))
    with pytest.raises(StorageError):  # the same token again
        store.add(OWNER, submission("sat-1", approval_id="a1"))
    assert [item.id for item in store.approvals.open(OWNER)] == ["a1"]
    assert not store.add(OWNER, submission("sat-2", approval_id="unknown"))


def test_only_a_yes_that_is_kept_can_be_given_back(home: Path):
    store = opened(home, "one")
    for name, facts in (("a1", {"granted": NOW, "channel": "terminal"}), ("a2", {})):
        store.approvals.ask(OWNER, approval(name, **facts))
        assert store.add(OWNER, submission(f"sat-{name}", approval_id=name))
        store.approvals.give_back(name)
    assert [item.id for item in store.approvals.open(OWNER)] == ["a1"]
    assert not store.add(OWNER, submission("sat-2", approval_id="a2"))


def test_an_approval_is_open_until_it_is_used_declined_or_too_old(home: Path):
    store = opened(home, "one")
    for name, facts in (("a1", {}), ("a2", {"declined": NOW}), ("a3", {"used": NOW}), ("a4", {"expires": NOW})):
        store.approvals.ask(OWNER, approval(name, **facts))
    assert [item.id for item in store.approvals.open(OWNER)] == ["a1"]
    assert [item.id for item in store.approvals.open(OWNER, "2" * 64)] == ["a1"]
    assert store.approvals.open(OWNER, "3" * 64) == []
    assert store.approvals.open(Owner("ada", "/home/ada/other", "lab")) == []
    assert store.approvals.find(Owner("eve", "/home/ada/project", "lab"), "a1") is None
    assert store.approvals.declined(OWNER, "2" * 64, NOW - timedelta(hours=1))
    assert not store.approvals.declined(OWNER, "2" * 64, NOW + timedelta(hours=1))
