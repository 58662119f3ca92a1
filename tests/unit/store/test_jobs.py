"""The ledger's submissions as records of jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from slurm_agent_tools.models.job import JobRecord, Usage
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner, Submission

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ADA = Owner("ada", "/home/ada/p", "lab")
USED = Usage(elapsed_seconds=50, cpu_seconds=1.5, memory_peak_bytes=2**30, gpu_utilization=None)


def submission(number: int = 1, **changes: object) -> Submission:
    plain = Submission(
        token=f"sat-{number}", idempotency_key=f"k{number}", phase="released", created=NOW + timedelta(minutes=number),
        updated=NOW, script_path="train.sh", script_sha256="s", request_sha256="r", job_name="train", slots=1,
        decision_id="d", job_id=number, requested=Resources(cpus=4, memory_bytes=8),
    )  # fmt: skip
    return replace(plain, **changes)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path):
    opened = Store(tmp_path / "state")
    yield opened
    opened.close()


@pytest.mark.proves("jobs-are-remembered")
def test_a_job_is_remembered_with_its_request_its_end_its_use_and_its_result(store):
    ends = {"started": NOW + timedelta(minutes=3), "ended": NOW + timedelta(minutes=4)}
    store.add(ADA, submission(7, run_id="sweep-7"))
    store.update(
        submission(7), outcome="FAILED", category="missing-module", exit_code=1, partition="gpu", tasks=3,
        usage=USED, **ends,
    )  # fmt: skip
    store.add_result(ADA, "results/a.json", name="a", status="failed", job_id="7_2", at=NOW)
    (found,) = store.history(ADA)
    assert found == JobRecord(
        job_id="7", cluster="lab", project="/home/ada/p", user="ada", name="train", script_path="train.sh",
        script_sha256="s", requested=Resources(cpus=4, memory_bytes=8), submitted=NOW + timedelta(minutes=7),
        state="FAILED", partition="gpu", run_id="sweep-7", exit_code=1, category="missing-module", usage=USED,
        result_path="results/a.json", tasks=3, **ends,
    )  # fmt: skip


@pytest.mark.parametrize(("changes", "state"), [
    ({}, "UNKNOWN"),
    ({"seen": "RUNNING"}, "RUNNING"),
    ({"seen": "RUNNING", "outcome": "TIMEOUT"}, "TIMEOUT"),
    ({"phase": "cancelled"}, "CANCELLED"),
])  # fmt: skip
def test_the_state_is_the_end_or_what_was_last_seen(store, changes, state):
    store.add(ADA, submission(**changes))
    assert [one.state for one in store.history(ADA)] == [state]


def test_a_state_that_stands_for_the_category_is_none(store):
    store.add(ADA, submission(outcome="FAILED", category="FAILED"))
    assert [one.category for one in store.history(ADA)] == [None]


@pytest.mark.parametrize(("asked", "found"), [
    ({}, ["4", "3", "2", "1"]),
    ({"name": "train"}, ["4", "2", "1"]),
    ({"script_sha256": "other"}, ["4"]),
    ({"script_path": "eval.sh"}, ["3"]),
    ({"run_id": "r"}, ["2"]),
    ({"name": "train", "run_id": "r"}, ["2"]),
    ({"name": "eval", "run_id": "r"}, []),
    ({"name": "x' OR 1=1 --"}, []),
    ({"since": NOW + timedelta(minutes=3)}, ["4", "3"]),
    ({"limit": 2}, ["4", "3"]),
])  # fmt: skip
def test_records_are_chosen_by_all_that_is_stated_newest_first(store, asked, found):
    store.add(ADA, submission(1))
    store.add(ADA, submission(2, run_id="r"))
    store.add(ADA, submission(3, job_name="eval", script_path="eval.sh"))
    store.add(ADA, submission(4, script_sha256="other"))
    store.add(ADA, submission(5, job_id=None, phase="refused"))
    store.add(Owner("ada", "/home/ada/q", "lab"), submission(6))
    store.add(Owner("ada", "/home/ada/p", "far"), submission(8))
    assert [one.job_id for one in store.history(ADA, **asked)] == found


@pytest.mark.parametrize("job_id", ["71", "1", "70_7", None])
def test_a_result_of_another_job_is_not_taken_for_its_own(store, job_id):
    store.add(ADA, submission(7))
    store.add_result(ADA, "results/a.json", name="a", status="success", job_id=job_id, at=NOW)
    assert [one.result_path for one in store.history(ADA)] == [None]


def test_two_projects_may_save_a_result_under_the_same_name(store):
    other = Owner("ada", "/home/ada/q", "lab")
    for number, owner in enumerate((ADA, other)):
        store.add(owner, submission(number))
        store.add_result(owner, "results/a.json", name="a", status="success", job_id=str(number), at=NOW)
    assert [store.history(owner)[0].result_path for owner in (ADA, other)] == ["results/a.json"] * 2


def test_jobs_without_an_end_are_asked_for_until_slurm_has_forgotten_them(store):
    store.add(ADA, submission(1))
    store.add(ADA, submission(2, outcome="COMPLETED"))
    store.add(ADA, submission(3, phase="held"))
    store.add(ADA, submission(4, seen="UNKNOWN"))
    store.add(ADA, submission(5, seen="RUNNING"))
    store.add(ADA, submission(6, updated=NOW + timedelta(seconds=9)))
    assert [run.job_id for run in store.unended(ADA, before=NOW + timedelta(seconds=1))] == [5, 1]


@pytest.mark.parametrize(("changes", "counts"), [
    ({"phase": "released"}, True), ({"phase": "held"}, True), ({"phase": "intent"}, True),
    ({"phase": "unconfirmed"}, True), ({"phase": "refused"}, False), ({"phase": "lost"}, False),
    ({"phase": "cancelled"}, False), ({"stage": None}, False),
])  # fmt: skip
def test_a_stage_counts_as_tried_where_slurm_has_or_may_have_its_job(store, changes, counts):
    """One that was dropped before it ran shows nothing, and stands in the way of no other."""
    store.add(ADA, replace(submission(stage="smoke", configuration="c"), **changes))
    assert len(store.staged(ADA, configuration="c")) == counts
    assert len(store.staged(ADA)) == counts


def test_stages_are_found_by_their_configuration_or_their_script_newest_first_and_for_their_owner_alone(store):
    for number, kept in enumerate([("c", "train.sh"), ("d", "train.sh"), ("c", "other.sh"), ("e", "more.sh")], start=1):
        store.add(ADA, submission(number, stage="smoke", configuration=kept[0], script_path=kept[1]))
    store.add(replace(ADA, user="bob"), submission(9, stage="smoke", configuration="c"))

    def found(**named: object) -> list[int | None]:
        return [run.job_id for run in store.staged(ADA, **named)]

    assert found() == [4, 3, 2, 1]
    assert found(configuration="c") == [3, 1]
    assert found(script_path="train.sh") == [2, 1]
    assert found(configuration="c", script_path="train.sh") == [3, 2, 1]
    assert found(configuration="c", limit=1) == [3]


def test_jobs_are_read_together_each_by_its_number_the_newest_where_two_have_it(store):
    for number in range(1, 1202):
        store.add(ADA, submission(number))
    store.add(ADA, replace(submission(5000), job_id=7))
    store.add(replace(ADA, user="bob"), submission(6000))
    found = store.by_jobs(ADA, {*range(1, 1202), 6000, 9999})
    assert sorted(found) == list(range(1, 1202))
    assert (found[7].token, found[8].token) == ("sat-5000", "sat-8")
    assert store.by_jobs(ADA, ()) == {}


def test_of_writes_that_belong_together_all_are_there_or_none(store):
    def breaks() -> None:
        raise KeyError("in between")

    first, second = submission(1), submission(2)
    store.add(ADA, first)
    store.add(ADA, second)
    with pytest.raises(KeyError):
        store.together([partial(store.update, first, seen="RUNNING"), breaks])
    assert store.by_job(ADA, 1).seen is None
    store.together([partial(store.update, one, seen="RUNNING") for one in (first, second)])
    assert [store.by_job(ADA, number).seen for number in (1, 2)] == ["RUNNING", "RUNNING"]
