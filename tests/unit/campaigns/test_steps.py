"""Steps of a campaign of which something does not work: what was done is told, the rest is left to a later pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.campaigns.small_cluster import STAGE, Cluster, Process, document, run

from slurm_agent_tools.campaigns import driver, event_record, file_reader
from slurm_agent_tools.campaigns.event_folding import fold
from slurm_agent_tools.campaigns.file_reader import read_campaign
from slurm_agent_tools.campaigns.outcomes import LOST_AFTER
from slurm_agent_tools.campaigns.ports import TrialLook
from slurm_agent_tools.errors import InputError, SlurmRefused, SlurmUncertain, SlurmUnreachable, StorageError
from slurm_agent_tools.models.campaign import TrialId

SMOKE = {"kind": "smoke"}
GRID = {"kind": "grid", "vary": {"lr": [0.01, 0.03, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7]}}
FILE = document(SMOKE, GRID)


def failing(monkeypatch: pytest.MonkeyPatch, port: str, error: Exception, times: int = 1) -> None:
    """The port fails so often, and works then."""
    left, works = [times], getattr(Process, port)

    async def once(self: Process, *args: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        return await works(self, *args)

    monkeypatch.setattr(Process, port, once)


async def grown(cluster: Cluster) -> Process:
    """Until an array of the second round is in the queue."""
    process = Process(cluster)
    while len(cluster.jobs) < 2:
        await process.advance(FILE)
        cluster.clock.at += timedelta(seconds=300)
    return process


@pytest.mark.proves("campaign-errors-are-answers")
@pytest.mark.parametrize(
    "error", [SlurmRefused("it goes on"), SlurmUncertain("no answer"), StorageError("the disk is full")]
)
async def test_what_could_not_be_cancelled_is_told_and_cancelled_by_the_next_pass(monkeypatch, error: Exception):
    cluster = Cluster()
    process = await grown(cluster)
    failing(monkeypatch, "cancel", error)
    stopped = await process.advance(FILE, stop="enough", by="alice")
    assert (stopped.state.status, stopped.undone, stopped.wait_seconds) == ("stopped", True, 60)
    assert any("could not be cancelled" in line and str(error) in line for line in stopped.happened)
    assert not any(task.cancelled for task in cluster.tasks)
    again = await process.advance(FILE)
    assert not again.undone
    assert any(task.cancelled for task in cluster.tasks)


@pytest.mark.proves("campaign-errors-are-answers")
async def test_a_job_that_the_guard_does_not_cancel_is_not_told_as_cancelled(monkeypatch):
    cluster = Cluster()
    process = await grown(cluster)

    async def kept(self: Process, sent: Any, reason: str) -> dict[TrialId, str]:
        return {one.trial.id: "another job has its number" for one in sent}

    monkeypatch.setattr(Process, "cancel", kept)
    stopped = await process.advance(FILE, stop="enough", by="alice")
    assert stopped.undone
    assert any("another job has its number" in line for line in stopped.happened)
    assert not any("were cancelled" in line for line in stopped.happened)


@pytest.mark.proves("campaign-errors-are-answers")
async def test_a_job_that_may_be_there_is_told_and_asked_for_again_after_a_stop(monkeypatch):
    cluster = Cluster(queue_seconds=10**6, lose=lambda _: "sent")
    process = Process(cluster)
    await process.advance(FILE)
    failing(monkeypatch, "find", SlurmUnreachable("the controller does not answer"))
    stopped = await process.advance(FILE, stop="enough", by="alice")
    assert (stopped.state.status, stopped.undone, stopped.wait_seconds) == ("stopped", True, 60)
    assert any("not known" in line and "does not answer" in line for line in stopped.happened)
    again = await process.advance(FILE)
    assert not again.undone
    assert [task.cancelled for task in cluster.tasks] == [True]


@pytest.mark.proves("campaign-errors-are-answers")
async def test_what_could_not_be_seen_after_a_stop_is_cancelled_by_the_next_pass(monkeypatch):
    cluster = Cluster(queue_seconds=10**6)
    process = Process(cluster)
    await process.advance(FILE)
    seen = Process._seen

    def unread(self: Process, trial: TrialId, task: Any) -> TrialLook:
        return TrialLook(trial, "unknown", why="the queue cannot be read")

    monkeypatch.setattr(Process, "_seen", unread)
    stopped = await process.advance(FILE, stop="enough", by="alice")
    assert (stopped.state.status, stopped.undone, stopped.wait_seconds) == ("stopped", True, 60)
    monkeypatch.setattr(Process, "_seen", seen)
    assert not (await process.advance(FILE)).undone
    assert [task.cancelled for task in cluster.tasks] == [True]


@pytest.mark.proves("campaign-errors-are-answers")
async def test_files_that_cannot_be_written_now_hold_the_trial_up_and_nothing_is_written_down(monkeypatch):
    cluster = Cluster()
    failing(monkeypatch, "write", StorageError("the disk is full"))
    held = await Process(cluster).advance(FILE)
    assert (held.undone, held.wait_seconds, held.submitted, held.state.batches) == (True, 60, (), {})
    assert held.state.trials[TrialId(0, 1)].phase == "planned"
    assert any("the disk is full" in line for line in held.happened)
    assert (await Process(cluster).advance(FILE)).submitted == ("100",)


@pytest.mark.proves("campaign-errors-are-answers")
async def test_files_that_may_not_be_written_are_a_question(monkeypatch):
    cluster = Cluster()
    failing(monkeypatch, "write", InputError("campaign", "x.sh", "is protected by the policy", hint="Ask a person."))
    asked = await Process(cluster).advance(FILE)
    assert asked.state.status == "needs_decision"
    assert asked.state.question is not None
    assert "is protected by the policy" in asked.state.question.text
    assert cluster.sends == 0


@pytest.mark.proves("campaign-errors-are-answers")
async def test_files_of_a_batch_that_is_sent_again_hold_it_up_as_well(monkeypatch):
    cluster = Cluster(lose=lambda number: "sent" if number == 1 else None)
    assert (await Process(cluster).advance(FILE)).state.phases["sending"]
    failing(monkeypatch, "write", StorageError("the disk is full"))
    assert (await Process(cluster).advance(FILE)).undone
    assert (await Process(cluster).advance(FILE)).submitted == ("100",)
    assert len(cluster.tasks) == 1


@pytest.mark.proves("campaign-errors-are-answers")
async def test_a_place_of_code_that_is_away_is_an_answer_that_says_when_to_call_again(monkeypatch):
    cluster = Cluster()
    failing(monkeypatch, "code_hash", SlurmUnreachable("the login node is away"))
    away = await Process(cluster).advance(FILE)
    assert (away.wait_seconds, away.undone, away.state.events) == (60, True, 0)
    assert any("the login node is away" in line for line in away.happened)
    assert (await Process(cluster).advance(FILE)).submitted == ("100",)


@pytest.mark.proves("campaign-errors-are-answers")
async def test_a_place_of_results_that_is_away_is_an_answer_and_the_result_is_saved_later(monkeypatch):
    cluster = Cluster()
    failing(monkeypatch, "save_results", SlurmUnreachable("the login node is away"))
    process = Process(cluster)
    await process.advance(FILE)
    cluster.clock.at += timedelta(hours=1)
    away = await process.advance(FILE)
    assert away.undone
    assert away.state.unsaved
    assert not (await process.advance(FILE)).state.unsaved


async def test_lines_of_a_script_that_change_while_its_job_waits_for_a_slot_leave_that_job_as_it_is(monkeypatch):
    """What a stage asks of Slurm is no part of what it runs, and so no new revision begins."""
    cluster = Cluster(full=True)
    own = {key: value for key, value in STAGE.items() if key != "command"} | {"script": "train.sh"}
    file = document(SMOKE, stages=[own])
    account = ["one"]

    async def texts(self: Process, paths: Sequence[str]) -> Mapping[str, str]:
        own = f"#!/bin/bash\n#SBATCH --account={account[0]}\n"
        return {path: own if path == "train.sh" else self.cluster.files[path] for path in paths}

    monkeypatch.setattr(Process, "texts", texts)
    assert (await Process(cluster).advance(file)).state.phases["sending"]
    before = dict(cluster.files)
    account[0] = "two"
    cluster.full = False
    assert (await Process(cluster).advance(file)).submitted == ("100",)
    assert {path: cluster.files[path] for path in before} == before


# --- ends that nobody tells -------------------------------------------------------------------------------------------


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Switches what is told of runs: all; nothing, by a silent accounting; that both answer and have no record."""
    now, seen = ["all"], Process._seen

    def looked(self: Process, *args: Any) -> Any:
        look = seen(self, *args)
        if now[0] == "all":
            return look
        return replace(look, phase="unknown", end=None, why=now[0], gone=True, unrecorded=now[0] == "no record")

    monkeypatch.setattr(Process, "_seen", looked)

    def switch(to: str) -> None:
        now[0] = to

    return switch


FIRST = TrialId(0, 1)


@pytest.mark.proves("campaign-lost-runs")
async def test_a_run_that_controller_and_accounting_answer_for_a_day_that_they_do_not_have_is_lost(told):
    cluster = Cluster()
    process = Process(cluster)
    asked = (await process.advance(FILE)).state.spent.cpu_hours
    told("no record")
    missed = await process.advance(FILE)
    assert list(missed.state.missed) == [FIRST]
    cluster.clock.at += LOST_AFTER - timedelta(minutes=1)
    assert (await process.advance(FILE)).state.trials[FIRST].phase == "sent"
    cluster.clock.at += timedelta(minutes=2)
    lost = await Process(cluster).advance(FILE)
    end = lost.state.trials[FIRST].end
    assert end is not None
    assert (end.passed, end.category, end.cpu_hours) == (False, "no-record", None)
    assert lost.state.spent.cpu_hours == asked
    assert not lost.state.missed
    assert len(cluster.tasks) == 1, "nothing of it is sent again"


@pytest.mark.proves("campaign-lost-runs")
@pytest.mark.parametrize("between", [[], ["no record"]])
async def test_a_silent_accounting_settles_nothing_however_long_and_a_person_is_asked(told, between: list[str]):
    cluster = Cluster()
    process = Process(cluster)
    await process.advance(FILE)
    for step in (*between, "silent"):
        told(step)
        assert (await process.advance(FILE)).state.question is None
    cluster.clock.at += 10 * LOST_AFTER
    asked = (await process.advance(FILE)).state
    assert (asked.trials[FIRST].phase, asked.status) == ("sent", "needs_decision")
    assert asked.question is not None
    assert (set(asked.question.choices), asked.question.trials) == ({"lost", "stop"}, (FIRST,))
    assert "100" in asked.question.text
    told("no record")  # it answers again just now: what it was not told of while it was away may come yet
    assert (await process.advance(FILE)).state.trials[FIRST].phase == "sent"
    cluster.clock.at += LOST_AFTER
    settled = (await process.advance(FILE)).state
    assert settled.trials[FIRST].failed
    assert settled.question is None or not settled.question.trials


@pytest.mark.proves("campaign-lost-runs")
async def test_what_a_person_says_is_over_is_settled_and_what_slurm_shows_again_meanwhile_is_not(told):
    cluster = Cluster(queue_seconds=10**6)
    process = Process(cluster)
    await process.advance(FILE)
    told("silent")
    await process.advance(FILE)
    cluster.clock.at += timedelta(hours=2)
    assert (await process.advance(FILE)).state.status == "needs_decision"
    told("all")
    shown = (await process.advance(FILE)).state
    assert (shown.status, shown.question, shown.trials[FIRST].phase) == ("running", None, "sent")
    told("silent")
    await process.advance(FILE)
    cluster.clock.at += timedelta(hours=2)
    assert (await process.advance(FILE)).state.status == "needs_decision"
    over = (await process.advance(FILE, decision="lost")).state
    end = over.trials[FIRST].end
    assert end is not None
    assert (end.category, "A person said" in (end.problem or "")) == ("no-record", True)
    assert len(cluster.tasks) == 1


@pytest.mark.proves("campaign-lost-runs")
async def test_a_run_that_is_told_again_is_not_lost_later(told):
    cluster = Cluster(queue_seconds=10**6)
    process = Process(cluster)
    await process.advance(FILE)
    told("no record")
    await process.advance(FILE)
    told("all")
    cluster.clock.at += timedelta(hours=20)
    assert not (await process.advance(FILE)).state.missed
    told("no record")
    cluster.clock.at += timedelta(hours=20)
    again = await process.advance(FILE)
    assert again.state.trials[FIRST].phase == "sent"
    assert again.state.missed[FIRST].unrecorded == cluster.clock.at


# --- as wide as there are slots ---------------------------------------------------------------------------------------


async def test_what_was_begun_while_few_slots_were_free_goes_on_as_wide_as_there_are_slots_later():
    cluster = Cluster(slots=3, others=2)
    process = await grown(cluster)
    narrow = [tasks for _, tasks in cluster.jobs.values()][1]
    assert len(narrow) <= 4
    cluster.others = 0
    done = await run(cluster, FILE)
    assert done.state.status == "finished"
    assert cluster.most_at_once() == 3
    assert process.cluster is cluster


# --- what hundreds of single jobs cost ---------------------------------------------------------------------------------


async def test_hundreds_of_jobs_by_themselves_are_sent_with_each_file_read_once_and_each_event_folded_a_few_times(
    monkeypatch,
):
    counted = {"parsed": 0, "folded": 0, "steps": 0}
    parse, steps = file_reader.parse_config, driver.next_steps

    def counting_parse(*args: Any) -> Any:
        counted["parsed"] += 1
        return parse(*args)

    def counting_fold(events: Any, before: Any = None) -> Any:
        listed = list(events)
        counted["folded"] += len(listed)
        return fold(listed, before)

    def counting_steps(*args: Any) -> Any:
        counted["steps"] += 1
        return steps(*args)

    monkeypatch.setattr(file_reader, "parse_config", counting_parse)
    monkeypatch.setattr(event_record, "fold", counting_fold)
    monkeypatch.setattr(driver, "next_steps", counting_steps)
    read_campaign.cache_clear()
    trials = [{"lr": round(0.0001 * number, 4), "memory": f"{number}M"} for number in range(1, 401)]
    limits = {"cpu_hours": 100000, "at_once": 40, "trials": 1100}
    file = document(SMOKE, {"kind": "list", "trials": trials}, limits=limits)
    cluster = Cluster()
    done = await run(cluster, file, least=3600)
    assert (done.state.status, len(cluster.jobs)) == ("finished", 402)
    assert counted["parsed"] == 1
    assert counted["folded"] <= 4 * len(cluster.log)
    assert counted["steps"] <= 2 * len(cluster.jobs)
    assert STAGE["name"] in done.state.code


async def test_a_ledger_that_is_another_by_now_is_read_from_its_beginning():
    cluster = Cluster()
    process = Process(cluster)
    await run(cluster, FILE)
    process.known = cluster.state
    cluster.log, cluster.jobs = [], {}
    cluster.clock.at += timedelta(hours=1)
    assert (await process.advance(FILE)).state.revision == 1
    assert cluster.state.status == "running"
