"""What of the ledger's rows stays in the memory of a process: little, whoever writes how long a text."""

from __future__ import annotations

import gc
import tracemalloc
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.store.test_ledger import ALICE, NOW, submission

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.store import submissions
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Approval

MIB = 2**20


@pytest.fixture
def store(tmp_path: Path):
    opened = Store(tmp_path / "state", clock=FakeClock())
    yield opened
    opened.close()


def question(number: int, plan: str) -> Approval:
    return Approval(f"q{number}", "p", plan, "train", NOW, NOW, NOW + timedelta(days=9999))


def test_questions_that_were_read_leave_no_memory_behind(store: Store):
    """Each state of each question stayed, with its text, until the service was killed."""
    for number in range(40):
        store.approvals.ask(ALICE, question(number, f"{number}{'x' * MIB}"))
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(40):
            found = store.approvals.find(ALICE, f"q{number}")
            assert found is not None
            changed = store.approvals.update(found, declined=NOW)
            assert store.approvals.find(ALICE, f"q{number}") == changed
        del found, changed
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 4 * MIB
    finally:
        tracemalloc.stop()


def test_a_submission_that_did_not_change_is_read_once_and_one_that_did_anew(store: Store):
    store.add(ALICE, submission(job_id=7, files={f"{number}.py": "0" * 64 for number in range(100)}))
    first = store.by_job(ALICE, 7)
    assert first is not None
    assert store.by_job(ALICE, 7) is first
    store.update(first, phase="released")
    changed = store.by_job(ALICE, 7)
    assert changed is not None
    assert changed.phase == "released"


def test_the_rows_of_a_thousand_submissions_are_kept_and_long_ones_are_read_anew(store: Store):
    for number in range(1000):
        store.add(ALICE, submission(f"t{number}", job_id=number + 1, files={"train.py": "0" * 64}))
    first = store.accepted(ALICE, limit=1000)
    assert all(one is again for one, again in zip(first, store.accepted(ALICE, limit=1000), strict=True))
    long = submission("long", job_id=5000, stdout="x" * submissions._KEPT_BYTES)
    store.add(ALICE, long)
    found = store.by_job(ALICE, 5000)
    assert found == long
    assert store.by_job(ALICE, 5000) is not found


def test_what_all_kept_rows_may_take_is_little():
    assert submissions._read_once.cache_info().maxsize == submissions._KEPT_ROWS
    assert submissions._KEPT_ROWS * submissions._KEPT_BYTES <= 32 * MIB
