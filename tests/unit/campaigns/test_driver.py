"""One pass after the other over a cluster in memory."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from tests.unit.campaigns.small_cluster import (
    STAGE,
    Cluster,
    Process,
    badly,
    document,
    run,
    well,
)

from slurm_agent_tools.campaigns.batch import Batch
from slurm_agent_tools.campaigns.ports import BatchIsRefused
from slurm_agent_tools.errors import ConfigError, InputError, StorageError
from slurm_agent_tools.models.campaign import Noted, TrialId

SMOKE = {"kind": "smoke"}
GRID = {"kind": "grid", "vary": {"lr": [0.01, 0.03, 0.3]}}
FILE = document(SMOKE, GRID)


def sent(cluster: Cluster) -> Counter[str]:
    return Counter(str(task.trial.id) for task in cluster.tasks)


async def test_a_pass_does_all_that_can_be_done_now_and_says_when_to_call_again():
    cluster = Cluster()
    done = await Process(cluster).advance(FILE)
    assert done.submitted == ("100",)
    assert done.state.status == "running"
    assert 5 <= done.wait_seconds <= 60
    assert done.happened[:2] == ("Revision 1 of the file begins.", "Round 0 was designed: 1 trial.")
    again = await Process(cluster).advance(FILE)
    assert again.happened == again.submitted == ()
    assert again.looks[TrialId(0, 1)].phase == "pending"


async def test_it_comes_to_its_end_with_every_result_and_its_report():
    cluster = Cluster()
    done = await run(cluster, FILE)
    assert (done.state.status, done.state.reason) == ("finished", "all rounds are judged")
    assert sorted(cluster.results) == [one.trial.id for one in done.state.trials.values()]
    assert cluster.files["campaigns/lr.md"] == "finished after 2 rounds"
    assert cluster.most_at_once() <= 3
    before = len(cluster.log)
    assert (await Process(cluster).advance(FILE)).wait_seconds is None
    assert len(cluster.log) == before


@pytest.mark.proves("campaign-survives-crash")
async def test_a_lost_answer_is_asked_for_again_by_the_same_key_and_nothing_is_sent_twice():
    for lost in ("sent", "unsent"):
        cluster = Cluster(lose=lambda number, lost=lost: lost if number in {1, 3, 4} else None)
        first = await Process(cluster).advance(FILE)
        assert first.state.trials[TrialId(0, 1)].phase == "sending"
        assert "asked" in first.happened[-1]
        assert first.wait_seconds is not None
        done = await run(cluster, FILE)
        assert done.state.status == "finished"
        assert set(sent(cluster).values()) == {1}
        assert cluster.sends > len(cluster.jobs)


@pytest.mark.proves("campaign-survives-crash")
async def test_a_cluster_that_is_away_is_waited_for_and_nothing_is_lost():
    cluster = Cluster()
    cluster.away = True
    away = await Process(cluster).advance(FILE)
    assert away.wait_seconds == 60
    assert any("does not answer" in line for line in away.happened)
    assert away.state.trials[TrialId(0, 1)].phase == "planned"
    cluster.away = False
    await Process(cluster).advance(FILE)
    cluster.away = True
    cluster.clock.at += timedelta(hours=3)
    assert (await Process(cluster).advance(FILE)).state.in_phase("sent")
    stopped = await Process(cluster).advance(FILE, stop="enough", by="alice")
    assert stopped.state.status == "stopped"
    cluster.away = False
    done = await run(cluster, FILE)
    assert done.state.trials[TrialId(0, 1)].passed
    assert sent(cluster) == {"r0-t1": 1}


async def test_a_full_cap_is_a_wait_and_no_failure():
    cluster = Cluster(full=True)
    waits = await Process(cluster).advance(FILE)
    assert (waits.wait_seconds, waits.why) == (120, "four jobs are active")
    assert waits.state.question is None
    cluster.full = False
    done = await run(cluster, FILE)
    assert done.state.status == "finished"


async def test_an_array_is_as_wide_as_the_guard_lets_in_now_and_nothing_is_begun_while_it_lets_in_nothing():
    cluster = Cluster(slots=0)
    waits = await Process(cluster).advance(FILE)
    assert (waits.wait_seconds, cluster.sends, cluster.state.batches) == (30, 0, {})
    cluster.slots = 2
    done = await run(cluster, FILE)
    assert done.state.status == "finished"
    assert cluster.most_at_once() == 2


async def test_a_queue_that_waits_for_hours_is_asked_ever_more_rarely():
    cluster = Cluster(queue_seconds=8 * 3600)
    process, waits = Process(cluster), []
    while not cluster.state.in_phase("ended"):
        done = await process.advance(FILE)
        waits.append(done.wait_seconds)
        cluster.clock.at += timedelta(seconds=done.wait_seconds)
    assert len(waits) < 100
    assert waits[0] <= 15
    assert max(waits) == 1800


@pytest.mark.proves("campaign-asks-a-person")
async def test_a_refusal_that_a_person_can_lift_is_asked_about_and_tried_again_once_they_say_so():
    refused = [BatchIsRefused("a person has to approve it", person=True, rules=("gpu-hours",))]
    cluster = Cluster(refuse=lambda _: refused[0] if refused else None)
    asked = await Process(cluster).advance(FILE)
    assert asked.state.status == "needs_decision"
    assert list(asked.state.question.choices) == ["again", "leave_out", "stop"]
    assert asked.wait_seconds is None
    assert cluster.jobs == {}
    refused.clear()
    done = await Process(cluster).advance(FILE, decision="again", by="alice")
    assert done.state.status == "running"
    assert (await run(cluster, FILE)).state.status == "finished"
    assert set(sent(cluster).values()) == {1}


@pytest.mark.proves("campaign-asks-a-person")
async def test_what_the_policy_denies_is_asked_about_and_a_changed_file_goes_on_by_itself():
    cluster = Cluster(
        refuse=lambda batch: BatchIsRefused("too long", person=False) if "30:00" in batch.script_text else None
    )
    for _ in range(3):
        asked = await Process(cluster).advance(FILE)
        cluster.clock.at += timedelta(minutes=3)
    assert list(asked.state.question.choices) == ["leave_out", "stop"]
    shorter = {**STAGE, "resources": {**STAGE["resources"], "time_limit": "10min"}}
    done = await run(cluster, document(SMOKE, GRID, stages=[shorter]))
    assert done.state.status == "finished"
    assert {one.phase for one in done.state.trials.values()} == {"ended", "left_out"}
    assert sum(one.trial.purpose == "trial" and one.passed for one in done.state.trials.values()) == 3


@pytest.mark.proves("campaign-asks-a-person")
async def test_a_decision_has_to_be_one_of_the_choices_of_an_open_question():
    cluster = Cluster(lambda _: badly("SyntaxError"))
    await Process(cluster).advance(FILE)
    with pytest.raises(InputError, match="answers no question"):
        await Process(cluster).advance(FILE, decision="stop", by="alice")
    asked = await run(cluster, FILE)
    assert list(asked.state.question.choices) == ["leave_out", "stop"]
    with pytest.raises(InputError) as caught:
        await Process(cluster).advance(FILE, decision="spend more", by="alice")
    assert "leave_out, stop" in caught.value.hint
    done = await run(cluster, FILE)
    assert done.state.question is not None
    stopped = await Process(cluster).advance(FILE, decision="stop", by="alice")
    said = "q1 was answered with stop through advance_campaign by alice"
    assert (stopped.state.status, stopped.state.reason) == ("stopped", said)
    assert "q1 was answered through advance_campaign by alice: stop." in stopped.happened


async def test_a_stop_sends_nothing_more_and_the_ends_of_what_runs_are_still_recorded():
    cluster = Cluster()
    with pytest.raises(InputError, match="has not begun"):
        await Process(cluster).advance(FILE, stop="no", by="alice")
    await Process(cluster).advance(FILE)
    cluster.clock.at += timedelta(seconds=15)
    stopped = await Process(cluster).advance(FILE, stop="enough", by="alice")
    assert (stopped.state.status, stopped.state.reason) == ("stopped", "enough")
    assert stopped.wait_seconds is not None
    done = await run(cluster, FILE)
    assert done.state.trials[TrialId(0, 1)].passed
    assert len(cluster.jobs) == 1
    assert cluster.files["campaigns/lr.md"] == "stopped after 0 rounds"


@pytest.mark.proves("campaign-survives-crash")
async def test_stopped_while_an_answer_is_lost_it_finds_out_what_was_sent_and_sends_nothing():
    for lost, phase in (("sent", "ended"), ("unsent", "left_out")):
        cluster = Cluster(lose=lambda _, lost=lost: lost)
        await Process(cluster).advance(FILE)
        sends = cluster.sends
        await Process(cluster).advance(FILE, stop="enough", by="alice")
        done = await run(cluster, FILE)
        assert cluster.sends == sends
        assert done.state.trials[TrialId(0, 1)].phase == phase
        assert done.state.spent.trials == len(cluster.jobs)


@pytest.mark.proves("campaign-survives-crash")
async def test_what_is_no_job_is_refused_unless_it_was_sent_before(monkeypatch):
    real = Process.send

    async def odd(process, batch, stage):
        if sends_first:
            await real(process, batch, stage)
        raise InputError("idempotency_key", batch.key, "was used for another request")

    monkeypatch.setattr(Process, "send", odd)
    for sends_first in (False, True):
        cluster = Cluster()
        done = await Process(cluster).advance(FILE)
        assert done.state.trials[TrialId(0, 1)].phase == ("sent" if sends_first else "refused")
        assert done.submitted == (("100",) if sends_first else ())


async def test_a_second_process_is_told_that_another_is_at_it_and_what_is_known():
    cluster = Cluster()
    await Process(cluster).advance(FILE)
    before = len(cluster.log)
    with Process(cluster).lock() as mine:
        assert mine
        busy = await Process(cluster).advance(FILE)
        assert busy.busy
        assert busy.state.in_phase("sent")
        assert busy.wait_seconds is not None
        assert len(cluster.log) == before
        assert (await Process(cluster).advance(FILE, stop="enough", by="bob")).state.status == "stopped"


async def test_who_finds_that_somebody_else_wrote_meanwhile_decides_anew():
    cluster = Cluster()
    process = Process(cluster)
    write = process.append
    done: list[int] = []

    async def late(events, *, expected):
        if len(done) < 8:
            done.append(expected)
            await write([Noted("note", "another was here")], expected=len(cluster.log))
        return await write(events, expected=expected)

    process.append = late
    first = await process.advance(FILE)
    assert first.submitted == ("100",)
    assert [one.number for one in cluster.log] == list(range(1, len(cluster.log) + 1))
    assert (await run(cluster, FILE)).state.status == "finished"


async def test_a_file_that_cannot_be_read_sends_nothing_and_takes_no_run_away():
    cluster = Cluster()
    await Process(cluster).advance(FILE)
    before = len(cluster.log)
    with pytest.raises(ConfigError):
        await Process(cluster).advance(b'{"campaign": 1')
    assert len(cluster.log) == before
    assert len(cluster.jobs) == 1
    assert not cluster.locked
    assert (await run(cluster, FILE)).state.status == "finished"


async def test_what_was_about_to_be_sent_and_cannot_be_made_again_is_an_error_that_says_so(monkeypatch):
    cluster = Cluster(lose=lambda _: "unsent")
    await Process(cluster).advance(FILE)
    monkeypatch.setattr(Batch, "script_sha256", "another")
    with pytest.raises(StorageError, match="cannot be made again"):
        await Process(cluster).advance(FILE)


async def test_a_result_or_a_report_that_cannot_be_written_holds_nothing_up(monkeypatch):
    async def fails(*_: object) -> str:
        raise StorageError("the disk is full")

    cluster = Cluster()
    monkeypatch.setattr(Process, "save_results", fails)
    monkeypatch.setattr(Process, "write_report", fails)
    done = await run(cluster, FILE)
    assert done.state.status == "finished"
    assert {note.text for note in done.state.notes} == {"not saved: the disk is full"}
    assert any("report was not written" in line for line in done.happened)


@pytest.mark.proves("campaign-never-resends-unchanged")
async def test_what_has_not_begun_of_a_stage_that_stopped_is_cancelled():
    cluster = Cluster(lambda trial: well(trial) if trial.purpose == "smoke" else badly("CUDA error", seconds=60))
    grid = {"kind": "grid", "vary": {"lr": [0.01 * number for number in range(1, 21)]}}
    asked = await run(cluster, document(SMOKE, grid), least=1)
    ran = [task for task in cluster.tasks if not task.cancelled]
    assert len(ran) <= 8
    assert sum(task.cancelled for task in cluster.tasks) >= 12
    assert asked.state.status == "needs_decision"
    assert list(asked.state.stops) == ["training"]


@pytest.mark.parametrize("said", [{"stop": "the data were wrong"}, {"decision": "stop"}])
async def test_a_stop_cancels_at_once_what_waits_and_leaves_what_runs_to_its_end(said):
    """Tasks of an array wait behind its throttle: nobody looks again before they would start."""
    denied = BatchIsRefused("too long", person=False)
    cluster = Cluster(refuse=lambda batch: denied if "caching" in batch.script_text else None)
    grid = {"kind": "grid", "vary": {"lr": [0.01 * number for number in range(1, 9)]}}
    stages = [{**STAGE, "name": "caching"}, STAGE]
    file = document(grid, stages=stages, limits={"cpu_hours": 100, "at_once": 2})
    asked = await Process(cluster).advance(file)
    assert asked.state.question is not None
    cluster.clock.at += timedelta(seconds=15)
    running = sum(task.start <= cluster.clock.at for task in cluster.tasks)
    assert 0 < running < len(cluster.tasks)
    stopped = await Process(cluster).advance(file, by="alice", **said)
    assert sum(task.cancelled for task in cluster.tasks) == len(cluster.tasks) - running
    assert any("had not begun and were cancelled" in line for line in stopped.happened)
    done = await run(cluster, file)
    assert [one.passed for one in done.state.in_phase("ended")].count(True) == running
    assert done.state.status == "stopped"


async def test_sentences_show_no_text_of_others_as_it_came():
    cluster = Cluster(lambda _: badly("bad\x1b[31m\nthing " + "x" * 1000))
    told = []
    process = Process(cluster)
    for _ in range(4):
        told += (await process.advance(FILE)).happened
        cluster.clock.at += timedelta(minutes=3)
    assert any("failed" in line for line in told)
    assert all(line.isprintable() and len(line) < 500 for line in told)
