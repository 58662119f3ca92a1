import json
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.decision import Consent, Decision, PolicyUsed, RuleDecision
from slurm_agent_tools.models.job import GivenEstimate, Usage
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.request import Directive, Evidence, JobRequest, Pin
from slurm_agent_tools.models.submission_answer import Advised, ExpectedWait
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.ledger_location import submission_lock
from slurm_agent_tools.store.submissions import Comparison, Decided, Drifted, Owner, Submission

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ALICE = Owner("alice", "/home/alice/p", "default")
FOUND = Comparison("1a2b", begun=True, told=(Drifted("memory", "the memory is 33G, allowed was 32G", "medium"),))
OTHER_PROJECT = Owner("alice", "/home/alice/q", "default")


def submission(token: str = "t1", **changes: object) -> Submission:
    plain = Submission(
        token=token, idempotency_key=f"key-{token}", phase="intent", created=NOW, updated=NOW, script_path="a.sh",
        script_sha256="s", request_sha256="r", job_name="a", slots=1, decision_id="d",
    )  # fmt: skip
    return replace(plain, **changes)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path):
    opened = Store(tmp_path / "state")
    yield opened
    opened.close()


def test_a_submission_comes_back_as_it_was_written(store):
    numbers = Resources(partition="gpu", gpus=2, memory_bytes=2**40, array_concurrency=4)
    wanted = submission(
        run_id="run 7", analysed=NOW + timedelta(seconds=0.5), failed=True, job_id=9, requested=numbers,
        granted=replace(numbers, cpus=8), stdout="/p/out-%j.txt", estimated_start=NOW, released=NOW, drift=FOUND,
        files={"train.py": "0" * 64, "bytes-\udce9.sh": "1" * 64}, usage=Usage(elapsed_seconds=3, cpu_seconds=1.5),
    )  # fmt: skip
    store.add(ALICE, wanted)
    assert store.by_key(ALICE, "key-t1") == wanted
    assert store.by_job(ALICE, 9) == wanted


def test_an_update_is_seen_by_another_process(store):
    store.add(ALICE, submission())
    store.update(submission(), phase="held", job_id=12)
    other = Store(store.folder)
    found = other.by_job(ALICE, 12)
    other.close()
    assert found is not None
    assert found.phase == "held"


def test_records_belong_to_user_project_and_cluster(store):
    store.add(ALICE, submission(job_id=3))
    assert store.by_job(OTHER_PROJECT, 3) is None
    assert store.accepted(OTHER_PROJECT) == []
    assert store.managed_ids(OTHER_PROJECT) == {3}
    assert store.managed_ids(Owner("bob", "/home/alice/p", "default")) == frozenset()


def test_open_submissions_are_those_whose_fate_is_not_settled(store):
    for token, phase in [("a", "intent"), ("b", "unconfirmed"), ("c", "held"), ("d", "released"), ("e", "lost")]:
        store.add(ALICE, submission(token, phase=phase))
    assert [item.token for item in store.open_submissions(OTHER_PROJECT)] == ["a", "b", "c"]
    store.add(ALICE, submission("f", phase="refused"))
    assert [item.token for item in store.open_submissions(ALICE, lost_since=NOW)] == ["a", "b", "c", "e", "f"]


def test_a_read_is_remembered_with_its_time(store):
    assert store.last_read(ALICE, "status") is None
    store.mark_read(ALICE, "status", NOW)
    store.mark_read(ALICE, "status", NOW + timedelta(minutes=1))
    assert store.last_read(ALICE, "status") == NOW + timedelta(minutes=1)
    assert store.last_read(OTHER_PROJECT, "status") is None


def test_a_decision_is_one_line_of_json_and_later_ones_come_behind(store):
    store.log_decision({"verdict": "deny", "name": 'a\nb "c"'})
    store.log_decision({"verdict": "allow", "at": NOW})
    lines = store.decisions.read_text().splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["deny", "allow"]
    assert json.loads(lines[0])["name"] == 'a\nb "c"'


def test_everything_is_private_to_the_user(store):
    store.log_decision({})
    for path in (store.folder, store.path, store.decisions):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_what_was_decided_comes_back_with_its_submission_and_only_with_it(store):
    line = Directive("mem", "9G", "script", Evidence("bytes-\udce9.sh", 2, "#SBATCH --mem=9G"))
    judgement = RuleDecision("memory-per-gpu", "pass", "9G is allowed.", observed=9.5, evidence=(line.evidence,))
    decision = Decision(
        "d1", "allow", PolicyUsed("1", "ab", ("shipped", "site")), (judgement,), (Pin("--time=60", "none stated"),),
        Consent("a1", "terminal", "ada", NOW), JobRequest(directives=(line,), memory_per_node=9), Resources(nodes=1),
    )  # fmt: skip
    decided = Decided(decision, Advised(estimated_start=NOW, expected_wait=ExpectedWait(note="None.")))

    assert store.add(ALICE, submission("t1"), decided)
    assert store.add(ALICE, submission("t2"), Decided(decision))
    with pytest.raises(StorageError):  # the same token again
        store.add(ALICE, submission("t1"), Decided(decision))

    assert (store.decided("t1"), store.decided("t2"), store.decided("t3")) == (decided, Decided(decision), None)


def test_many_threads_write_without_losing_a_record(store):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.add(ALICE, submission(f"t{number}", job_id=number)), range(40)))
        list(pool.map(lambda number: store.log_decision({"n": number}), range(40)))
    assert len(store.accepted(ALICE)) == 40
    assert len(store.decisions.read_text().splitlines()) == 40


@pytest.mark.parametrize(("version", "told"), [(99, "newer version"), (1, "before the first release")])
def test_a_ledger_of_another_version_is_refused(store, version, told):
    with sqlite3.connect(store.path) as db:
        db.execute(f"PRAGMA user_version = {version}")
    db.close()
    with pytest.raises(StorageError, match=told):
        Store(store.folder)


def test_a_ledger_from_before_the_stages_is_brought_up_to_date_with_its_records(store):
    store.add(ALICE, submission("t1", job_id=7))
    with sqlite3.connect(store.path) as db:
        db.execute("DROP INDEX submissions_stage")
        db.execute("DROP TABLE campaign_events")
        db.execute("DROP TABLE estimates")
        for column in ("work", "stage", "configuration", "parts", "passed", "stage_note"):
            db.execute(f"ALTER TABLE submissions DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 2")
    db.close()

    now = Store(store.folder)
    now.add(ALICE, submission("t2", job_id=8, stage="smoke", configuration="c", parts={"a": "b"}, passed=False))

    assert [run.job_id for run in now.accepted(ALICE)] == [8, 7]
    (staged,) = now.staged(ALICE, configuration="c")
    assert (staged.token, staged.stage, staged.passed, staged.parts) == ("t2", "smoke", False, {"a": "b"})
    assert Store(store.folder).staged(ALICE, configuration="other") == []
    assert now.campaigns.listed(ALICE) == []


@pytest.mark.proves("estimates-are-compared")
def test_a_ledger_from_before_the_estimates_keeps_its_records_and_takes_them(store):
    store.add(ALICE, submission("t1", job_id=7))
    with sqlite3.connect(store.path) as db:
        db.execute("DROP TABLE estimates")
        db.execute("PRAGMA user_version = 4")
    db.close()

    now = Store(store.folder)
    now.add(ALICE, submission("t2", job_id=8, outcome="COMPLETED", run_seconds=90), foretold(RUN))

    assert [run.job_id for run in now.accepted(ALICE)] == [8, 7]
    assert [(one.job_id, one.happened) for one in now.ended_estimates(ALICE)] == [(8, 90)]


RUN = GivenEstimate("run", 100.0, 80.0, 120.0, 5, (90.0, 100.0, 110.0))
WAIT = replace(RUN, kind="wait", low=None, high=None)


def foretold(*said):
    return Decided(Decision("d", "allow", PolicyUsed("1", "0" * 64)), foretold=said)


@pytest.mark.proves("estimates-are-compared")
def test_estimates_are_compared_once_it_is_known_what_happened(store):
    released, started = NOW, NOW + timedelta(seconds=30)
    store.add(ALICE, submission("t1", job_id=1, released=released), foretold(RUN, WAIT))
    store.add(ALICE, submission("t2", job_id=2, released=released, started=started), foretold(RUN, WAIT))
    failed = {"outcome": "FAILED", "run_seconds": 3, "released": released, "started": started}
    store.add(ALICE, submission("t3", job_id=3, **failed), foretold(RUN, WAIT))
    store.add(ALICE, submission("t4", job_id=4, outcome="TIMEOUT", run_seconds=60, created=started), foretold(RUN))
    store.add(OTHER_PROJECT, submission("t5", job_id=5, outcome="COMPLETED", run_seconds=60), foretold(RUN))

    array = {"requested": Resources(array_tasks=8), "usage": Usage(elapsed_seconds=70), "run_seconds": 560}
    store.add(ALICE, submission("t6", job_id=6, outcome="COMPLETED", created=started, **array), foretold(RUN))

    found = [(one.job_id, one.said, one.happened) for one in store.ended_estimates(ALICE)]
    assert found == [(2, WAIT, 30), (3, WAIT, 30), (4, RUN, 60), (6, RUN, 70)]
    assert [one.job_id for one in store.ended_estimates(ALICE, 1)] == [6]


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError) as caught:
        Store(tmp_path / "file" / "state")
    assert "SLURM_AGENT_STATE_DIR" in caught.value.hint


def test_only_one_holds_the_submission_lock(tmp_path):
    with submission_lock(tmp_path) as first, submission_lock(tmp_path) as second:
        assert (first, second) == (True, False)
    with submission_lock(tmp_path) as again:
        assert again


def test_a_killed_process_leaves_no_lock(tmp_path):
    code = (
        "import os, pathlib, sys; from slurm_agent_tools.store.ledger_location import submission_lock\n"
        "with submission_lock(pathlib.Path(sys.argv[1])) as mine: assert mine; os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 9
    with submission_lock(tmp_path) as mine:
        assert mine


@pytest.mark.proves("killed-anywhere-loses-nothing")
def test_an_update_leaves_alone_what_another_process_wrote_meanwhile(store):
    store.add(ALICE, submission(job_id=4))
    mine = store.by_job(ALICE, 4)
    other = Store(store.folder)
    assert other.note_drift(mine, FOUND)
    assert not other.note_drift(mine, Comparison("later"))
    other.update(mine, analysed=NOW)
    other.close()
    store.update(mine, phase="released")
    now = store.by_job(ALICE, 4)
    assert (now.phase, now.drift, now.analysed) == ("released", FOUND, NOW)


def test_a_phase_is_only_settled_from_the_phase_that_was_seen(store):
    store.add(ALICE, submission())
    seen = store.by_key(ALICE, "key-t1")
    store.update(seen, phase="released", job_id=5)
    assert store.advance(seen, phase="held", job_id=5) is None
    assert store.by_key(ALICE, "key-t1").phase == "released"
    assert store.advance(replace(seen, phase="released"), phase="cancelled").phase == "cancelled"


@pytest.mark.parametrize(
    ("facts", "repeated"),
    [
        ({"phase": "released"}, True),
        ({"phase": "released", "delivered": NOW}, False),
        ({"phase": "released", "updated": NOW - timedelta(seconds=90)}, False),
        ({"phase": "released", "request_sha256": "another"}, False),
        ({"phase": "held", "delivered": NOW}, True),
        ({"phase": "intent", "updated": NOW - timedelta(seconds=90)}, True),
        ({"phase": "unconfirmed", "created": NOW - timedelta(minutes=11)}, False),
        ({"phase": "refused"}, False),
        ({"phase": "lost"}, False),
        ({"phase": "cancelled"}, False),
    ],
)
def test_a_request_without_a_key_repeats_one_whose_answer_was_never_delivered(store, facts, repeated):
    store.add(ALICE, submission(**facts))
    since, begun = NOW - timedelta(seconds=60), NOW - timedelta(minutes=10)
    assert (store.undelivered(ALICE, "r", since=since, begun=begun) is not None) is repeated
    assert store.undelivered(OTHER_PROJECT, "r", since=since, begun=begun) is None


def test_a_delivered_answer_is_no_longer_repeated(store):
    store.add(ALICE, submission(phase="released"))
    store.deliver("t1")
    found = store.undelivered(ALICE, "r", since=NOW - timedelta(days=1), begun=NOW - timedelta(days=1))
    assert found is None


@pytest.mark.proves("on-disk-before-the-answer")
def test_a_full_disk_is_said_and_the_ledger_goes_on_when_there_is_room_again(store):
    store.add(ALICE, submission("t0"))
    pages = store._db._db.execute("PRAGMA page_count").fetchone()[0]
    store._db._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError, match="the disk is full") as caught:
        store.add(ALICE, submission("t1", stdout="x" * 100_000))
    assert "Free disk space" in caught.value.hint
    store._db._db.execute("PRAGMA max_page_count = 100000")
    store.add(ALICE, submission("t2"))
    assert [item.token for item in store.open_submissions(ALICE)] == ["t0", "t2"]


def test_two_processes_may_open_a_new_ledger_at_the_same_moment(tmp_path):
    """SQLite lets the second one not wait by itself while the first one makes the file."""
    other = sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, other.rollback)
    timer.start()
    opened = Store(tmp_path)
    timer.join()
    other.close()
    opened.add(ALICE, submission())
    assert opened.by_key(ALICE, "key-t1") is not None
    opened.close()


@pytest.mark.proves("killed-anywhere-loses-nothing")
@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_a_ledger_that_was_taken_away_while_it_was_open_is_not_written_to(store, how):
    store.add(ALICE, submission("t0"))
    if how == "removed":
        shutil.rmtree(store.folder)
    else:
        store.folder.rename(store.folder.with_name("away"))
    other = None
    if how == "replaced":
        other = Store(store.folder)
        other.add(ALICE, submission("t2"))
    store.add(ALICE, submission("t1"))
    seen = other or Store(store.folder)
    known = {item.token for item in seen.open_submissions(ALICE)}
    seen.close()
    assert known == {item.token for item in store.open_submissions(ALICE)}
    assert known == ({"t1", "t2"} if how == "replaced" else {"t1"})


def test_a_ledger_that_cannot_be_opened_anew_is_an_error_and_the_old_one_counts_when_it_is_back(store):
    store.add(ALICE, submission("t0"))
    away = store.folder.with_name("away")
    store.folder.rename(away)
    store.folder.write_text("")
    with pytest.raises(StorageError):
        store.add(ALICE, submission("t1"))
    store.folder.unlink()
    away.rename(store.folder)
    store.add(ALICE, submission("t2"))
    assert [item.token for item in store.open_submissions(ALICE)] == ["t0", "t2"]


def test_a_ledger_that_was_cut_to_nothing_is_damaged_and_no_new_one(store):
    store.log_decision({"at": "now"})
    store.close()
    store.path.write_bytes(b"")
    with pytest.raises(StorageError, match="damaged") as caught:
        Store(store.folder)
    assert "Move the file away" in caught.value.hint
    assert store.path.read_bytes() == b""
    store.path.unlink()
    Store(store.folder).close()


@pytest.mark.parametrize("left", [1, 100, 4096, 4097, 8192])
def test_a_ledger_that_was_cut_short_is_damaged_and_stays_as_it_is(store, left):
    store.log_decision({"at": "now"})
    for number in range(50):
        store.add(ALICE, submission(f"t{number}", stdout="x" * 500))
    store.close()
    cut = store.path.read_bytes()[:left]
    store.path.write_bytes(cut)
    with pytest.raises(StorageError, match="damaged"):
        Store(store.folder)
    assert store.path.read_bytes() == cut


@pytest.mark.parametrize("spoiled", [b"key-t7", b"INTEGER NOT NULL"])
def test_a_ledger_with_other_bytes_in_it_is_damaged_and_the_message_shows_none_of_them(store, spoiled):
    for number in range(9):
        store.add(ALICE, submission(f"t{number}", job_id=number))
    store.close()
    data = store.path.read_bytes()
    assert spoiled in data
    store.path.write_bytes(data.replace(spoiled, b"\xff" * len(spoiled)))
    with pytest.raises(StorageError, match=r"it is damaged$"):
        Store(store.folder).accepted(ALICE)


@pytest.mark.proves("killed-anywhere-loses-nothing")
def test_a_new_ledger_may_be_opened_by_several_at_the_same_moment(tmp_path):

    def use(number: int) -> None:
        opened = Store(tmp_path)
        opened.add(ALICE, submission(f"t{number}", job_id=number + 10))
        opened.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(1, 5)))
    opened = Store(tmp_path)
    assert {run.token for run in opened.accepted(ALICE)} == {"t1", "t2", "t3", "t4"}
    opened.close()
