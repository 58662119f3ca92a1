"""The ledger's time is the clock's of whoever opened it: what expires, and when a record was changed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Approval, Owner, Submission

ALICE = Owner("alice", "/home/alice/p", "default")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    opened = Store(tmp_path / "state", clock=clock)
    yield opened
    opened.close()


def asked(now: datetime, **changes: datetime) -> Approval:
    return Approval(
        id="a1", plan_sha256="p", plan="x", job_name="train", created=now, updated=now,
        expires=now + timedelta(minutes=10), **changes,
    )  # fmt: skip


def sent(now: datetime, **changes: str) -> Submission:
    return Submission(
        token="t1", idempotency_key="k", phase="intent", created=now, updated=now, script_path="a.sh",
        script_sha256="s", request_sha256="r", job_name="a", slots=1, decision_id="d", **changes,
    )  # fmt: skip


@pytest.mark.parametrize(("minutes", "open_"), [(9, 1), (10, 0), (60, 0)])
def test_a_question_is_open_until_it_expires(store: Store, clock: FakeClock, minutes: int, open_: int):
    store.approvals.ask(ALICE, asked(clock.now()))
    clock.move(minutes * 60)
    assert len(store.approvals.open(ALICE, "p")) == open_


def test_an_approval_says_when_it_was_used_and_given_back(store: Store, clock: FakeClock):
    store.approvals.ask(ALICE, asked(clock.now(), granted=clock.now()))
    clock.move(60)
    used_at = clock.now()
    assert store.add(ALICE, sent(used_at, approval_id="a1"))
    used = store.approvals.find(ALICE, "a1")
    clock.move(60)
    store.approvals.give_back("a1")
    back = store.approvals.find(ALICE, "a1")
    assert used is not None
    assert back is not None
    assert (used.used, used.updated) == (used_at, used_at)
    assert (back.used, back.updated) == (None, clock.now())


def test_the_same_request_is_remembered_from_its_last_change(store: Store, clock: FakeClock):
    store.add(ALICE, sent(clock.now()))
    clock.move(100)
    run = store.update(sent(clock.now()), phase="released")
    assert run.updated == clock.now()
    grace = clock.now() - timedelta(seconds=60)
    assert store.undelivered(ALICE, "r", since=grace, begun=grace) == store.by_key(ALICE, "k")
    clock.move(61)
    grace = clock.now() - timedelta(seconds=60)
    assert store.undelivered(ALICE, "r", since=grace, begun=grace) is None


def test_a_settled_phase_and_a_delivery_are_written_at_the_clocks_time(store: Store, clock: FakeClock):
    run = sent(clock.now())
    store.add(ALICE, run)
    clock.move(5)
    held = store.advance(run, phase="held", job_id=7)
    clock.move(5)
    store.deliver("t1")
    found = store.by_job(ALICE, 7)
    assert held is not None
    assert found is not None
    assert found.updated - held.updated == timedelta(seconds=5)
    assert found.delivered == clock.now()
