"""What follows from what happened: failures, fixes, questions, changed files, limits."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.campaigns.small_cluster import STAGE, Cluster, Process, badly, document, run, well

from slurm_agent_tools.campaigns.file_reader import read_campaign
from slurm_agent_tools.campaigns.next_step import next_steps
from slurm_agent_tools.campaigns.rules.trial_failures import fix_hash
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.models.campaign import Trial, TrialEnd, TrialId

SMOKE: dict[str, Any] = {"kind": "smoke"}
GRID: dict[str, Any] = {"kind": "grid", "vary": {"lr": [0.01, 0.03, 0.3]}}
BATCHES: dict[str, Any] = {"kind": "grid", "vary": {"batch": [32, 128]}}
MEMORY = "host-out-of-memory"
HALF: dict[str, Any] = {"failure": MEMORY, "multiply": {"batch": 0.5}}


def stage(name: str, **changes: Any) -> dict[str, Any]:
    return {**STAGE, "name": name, **changes}


def shown(state: CampaignState) -> list[str]:
    """Each trial: its id, batch, and how it ended."""
    return [
        f"{one.trial.id} {one.trial.settings['batch']} {'passed' if one.passed else one.phase if one.end is None else 'failed'}"
        for one in state.trials.values()
    ]


async def test_the_same_file_state_and_time_give_the_same_steps_and_nothing_is_changed_by_asking():
    cluster = Cluster()
    file = read_campaign(document(SMOKE, GRID), "lr.json")
    process = Process(cluster)
    for _ in range(8):
        await process.advance(document(SMOKE, GRID))
        state, now = cluster.state, cluster.clock.now()
        assert next_steps(file, "lr", state, now) == next_steps(file, "lr", cluster.state, now)
        cluster.clock.at += timedelta(minutes=5)


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_a_smoke_run_that_fails_stops_its_stage_at_once_and_the_others_go_on():
    file = document(SMOKE, GRID, stages=[stage("caching"), stage("training")])
    cluster = Cluster(lambda trial: badly("no data") if trial.stage == "caching" else well(trial))
    asked = await run(cluster, file)
    assert asked.state.status == "needs_decision"
    assert asked.state.stopped_stages == {"caching"}
    assert "caching" in asked.state.question.text
    await Process(cluster).advance(file, decision="leave_out", by="alice")
    done = await run(cluster, file)
    assert done.state.status == "finished"
    by_stage = [one.trial.stage for one in done.state.trials.values()]
    assert (by_stage.count("caching"), by_stage.count("training")) == (1, 5)


@pytest.mark.proves("campaign-never-resends-unchanged")
async def test_after_the_same_failure_twice_nothing_more_of_the_stage_is_sent():
    singles = {"kind": "list", "trials": [{"lr": 0.01 * one, "memory": f"{one}G"} for one in range(1, 9)]}
    cluster = Cluster(lambda trial: well(trial) if trial.purpose in {"smoke", "baseline"} else badly("CUDA error"))
    asked = await run(cluster, document(SMOKE, singles, limits={"cpu_hours": 100, "at_once": 1}))
    failed = [one for one in asked.state.trials.values() if one.failed]
    assert len(failed) == 2
    assert asked.state.question.about == "traceback: CUDA error"
    assert "2 runs failed alike" in asked.state.question.text
    assert [one.why for one in asked.state.in_phase("left_out")] == ["2 runs failed alike: CUDA error"] * 6


async def test_failures_of_different_causes_do_not_add_up():
    cluster = Cluster(lambda trial: well(trial) if trial.purpose == "smoke" else badly(f"cause {trial.settings['lr']}"))
    done = await run(cluster, document(SMOKE, GRID))
    assert done.state.status == "finished"
    assert sum(one.failed for one in done.state.trials.values()) == 4


async def test_a_fix_of_the_file_mends_a_failure_once_and_the_lesson_is_written():
    cluster = Cluster(lambda trial: badly("Killed", MEMORY) if trial.settings["batch"] == 128 else well(trial))
    fix = {**HALF, "multiply": {"batch": 0.75}}
    done = await run(cluster, document(SMOKE, BATCHES, fixes=[fix]))
    assert done.state.status == "finished"
    assert shown(done.state)[-2:] == ["r1-t3 128 failed", "r1-t4 96 passed"]
    mended = done.state.trials[TrialId(1, 4)].trial
    assert (mended.purpose, mended.replaces, mended.mended) == ("fix", TrialId(1, 3), "batch 128 -> 96")
    assert cluster.lessons == {f"{MEMORY}: batch 128 -> 96"}


async def test_a_fix_that_comes_to_what_has_passed_already_takes_its_end():
    cluster = Cluster(lambda trial: badly("Killed", MEMORY) if trial.settings["batch"] == 128 else well(trial))
    done = await run(cluster, document(SMOKE, {"kind": "grid", "vary": {"batch": [32, 64, 128]}}, fixes=[HALF]))
    mended = done.state.trials[TrialId(1, 4)]
    assert mended.passed
    assert done.state.trials[mended.trial.reuses].trial.settings["batch"] == 64
    assert len(cluster.tasks) == 4
    assert cluster.lessons


@pytest.mark.proves("campaign-never-resends-unchanged")
async def test_a_smoke_run_that_fails_alike_after_its_fix_asks_a_person():
    cluster = Cluster(lambda _: badly("Killed", MEMORY))
    asked = await run(cluster, document(SMOKE, GRID, fixes=[HALF]))
    assert shown(asked.state) == ["r0-t1 64 failed", "r0-t2 32 failed"]
    assert asked.state.status == "needs_decision"
    assert list(asked.state.question.choices) == ["leave_out", "stop"]


async def test_memory_is_raised_to_what_the_diagnosis_proposes_and_no_further_than_the_fix_allows():
    for proposed, asked in ((6, 6), (20, 8), (4, None), (None, None)):

        def outcome(trial: Trial, proposed: int | None = proposed) -> TrialEnd:
            if trial.request.memory_bytes > 4 * 2**30:
                return well(trial)
            return badly("Killed", MEMORY, proposed_memory_bytes=None if proposed is None else proposed * 2**30)

        cluster = Cluster(outcome)
        done = await run(cluster, document(SMOKE, GRID, fixes=[{"failure": MEMORY, "memory": "8G", "at_most": 5}]))
        sizes = {one.trial.request.memory_bytes // 2**30 for one in done.state.trials.values() if one.passed}
        assert sizes == ({asked} if asked else set())
        assert (done.state.status == "needs_decision") == (asked is None)


async def test_a_larger_time_limit_runs_the_same_again_with_more_time():
    def outcome(trial: Trial) -> TrialEnd:
        return well(trial) if trial.request.time_limit_seconds > 200 else badly("time", "time-limit", 120)

    done = await run(Cluster(outcome), document(SMOKE, fixes=[{"failure": "time-limit", "time_limit": "5min"}]))
    first, second = done.state.trials.values()
    assert first.trial.identity == second.trial.identity
    assert (second.trial.request.time_limit_seconds, second.trial.mended) == (300, "time limit 00:02:00 -> 00:05:00")
    assert second.passed


async def test_a_fix_may_multiply_a_value_or_state_another():
    for fix, told in (
        ({"multiply": {"batch": 1.5}}, "batch 64 -> 96"),
        ({"change": {"batch": 8}}, "batch 64 -> 8"),
        ({"multiply": {"lr": 0.5}}, "lr 0.1 -> 0.05"),
    ):
        file = document(SMOKE, fixes=[{"failure": MEMORY, **fix}])
        done = await run(
            Cluster(lambda trial: badly("Killed", MEMORY) if trial.purpose == "smoke" else well(trial)), file
        )
        assert done.state.trials[TrialId(0, 2)].trial.mended == told


@pytest.mark.proves("campaign-never-resends-unchanged")
async def test_a_fix_that_changes_nothing_is_none():
    fixes = [
        {"failure": MEMORY, "memory": "16G"}, {"failure": MEMORY, "change": {"batch": 64}},
        {"failure": MEMORY, "time_limit": "1min"}, {"failure": MEMORY, "multiply": {"batch": 0.001}},
    ]  # fmt: skip
    for fix in fixes:
        asked = await run(Cluster(lambda _: badly("Killed", MEMORY)), document(SMOKE, GRID, fixes=[fix]))
        assert shown(asked.state) == ["r0-t1 64 failed"]


@pytest.mark.parametrize("factor", [1e30, 1e308])
async def test_a_fix_whose_value_no_program_is_handed_is_none(factor: float):
    fix = {"failure": MEMORY, "multiply": {"batch": factor}}
    asked = await run(Cluster(lambda _: badly("Killed", MEMORY)), document(SMOKE, GRID, fixes=[fix]))
    assert (asked.state.status, shown(asked.state)) == ("needs_decision", ["r0-t1 64 failed"])


async def test_a_fix_counts_along_the_runs_that_mend_each_other_and_each_repeat_gets_the_same():
    grid = {"kind": "list", "trials": [{"batch": 256}], "repeats": 2}
    fixes = [{**HALF, "at_most": 2}]
    cluster = Cluster(lambda trial: badly("Killed", MEMORY) if trial.settings["batch"] > 100 else well(trial))
    done = await run(cluster, document(SMOKE, grid, fixes=fixes))
    assert done.state.status == "finished"
    mends = [one.trial for one in done.state.trials.values() if one.trial.purpose == "fix"]
    assert sorted((trial.repeat, trial.settings["batch"]) for trial in mends) == [(1, 64), (1, 128), (2, 64), (2, 128)]
    fix = read_campaign(document(SMOKE, grid, fixes=fixes), "lr.json").fixes[0]
    assert {trial.fix for trial in mends} == {fix_hash(fix)}


# --- a changed file ----------------------------------------------------------------------------------------------------


@pytest.mark.proves("campaign-revisions")
async def test_a_file_that_changes_in_the_middle_keeps_what_was_run_and_sends_the_rest_as_it_is_now():
    slow = {"cpu_hours": 100, "at_once": 1}
    grid = {"kind": "list", "trials": [{"lr": 0.01 * one, "memory": f"{one}G"} for one in range(1, 5)]}
    cluster = Cluster()
    while len(cluster.state.in_phase("ended")) < 3:
        done = await Process(cluster).advance(document(SMOKE, grid, limits=slow))
        cluster.clock.at += timedelta(seconds=done.wait_seconds)
    other = {"kind": "list", "trials": [*grid["trials"][:2], {"lr": 0.5}]}
    done = await run(cluster, document(SMOKE, other, limits=slow))
    assert (done.state.status, done.state.revision) == ("finished", 2)
    kept = [one for one in done.state.trials.values() if one.phase == "ended"]
    assert max(one.trial.settings["lr"] for one in kept if one.trial.purpose == "trial") == 0.5
    assert {one.revision for one in kept} == {1, 2}
    left = [one for one in done.state.trials.values() if one.phase == "left_out"]
    assert left
    assert all("revision 2" in one.why for one in left)
    identities = [task.trial.identity for task in cluster.tasks]
    assert len(identities) == len(set(identities))


@pytest.mark.proves("campaign-revisions")
async def test_a_stage_that_the_file_has_no_more_is_still_looked_at_as_it_was():
    cluster = Cluster()
    both = document(SMOKE, GRID, stages=[stage("caching"), stage("training")])
    await Process(cluster).advance(both)
    done = await run(cluster, document(SMOKE, GRID))
    assert done.state.status == "finished"
    assert [one.passed for one in done.state.of_round(0)] == [True, True]


@pytest.mark.proves("campaign-revisions")
async def test_a_line_of_code_voids_what_has_run_and_a_line_of_white_space_in_the_file_nothing():
    cluster = Cluster()
    await run(cluster, document(SMOKE, GRID))
    ran = len(cluster.tasks)
    done = await run(cluster, document(SMOKE, GRID) + b"\n")
    assert (done.state.status, done.state.revision, len(cluster.tasks)) == ("finished", 2, ran)
    more = document(SMOKE, GRID, {"kind": "grid", "vary": {"lr": [0.01, 0.04]}})
    done = await run(cluster, more)
    assert done.state.status == "finished"
    assert len(cluster.tasks) == ran + 1
    assert sum(one.trial.reuses is not None for one in done.state.trials.values()) == 1


@pytest.mark.proves("campaign-asks-a-person", "campaign-revisions")
async def test_once_the_code_was_changed_a_stopped_stage_may_go_on_and_only_then():
    cluster = Cluster(lambda _: badly("SyntaxError"))
    file = document(SMOKE, GRID)
    asked = await run(cluster, file)
    assert "go_on" not in asked.state.question.choices
    touched = await run(cluster, file + b"\n")
    assert touched.state.revision == 2
    assert "go_on" not in touched.state.question.choices
    cluster.code["training"] = 1
    cluster.outcome = well
    offered = await run(cluster, file + b"\n")
    assert list(offered.state.question.choices) == ["go_on", "leave_out", "stop"]
    await Process(cluster).advance(file + b"\n", decision="go_on", by="alice")
    done = await run(cluster, file + b"\n")
    assert done.state.status == "finished"
    assert [one.passed for one in done.state.of_round(0)] == [False, True]
    identities = [one.trial.identity for one in done.state.of_round(0)]
    assert identities[0] != identities[1]


@pytest.mark.proves("campaign-asks-a-person")
async def test_a_changed_stage_in_the_file_offers_to_go_on_as_well():
    cluster = Cluster(lambda trial: well(trial) if trial.request.cpus == 4 else badly("Killed", MEMORY))
    await run(cluster, document(SMOKE, GRID))
    larger = document(SMOKE, GRID, stages=[stage("training", resources={**STAGE["resources"], "cpus": 4})])
    offered = await run(cluster, larger)
    assert "go_on" in offered.state.question.choices
    await Process(cluster).advance(larger, decision="go_on", by="alice")
    assert (await run(cluster, larger)).state.status == "finished"


@pytest.mark.proves("campaign-revisions")
async def test_a_file_that_changed_while_an_answer_was_lost_waits_until_it_is_known_what_was_sent():
    cluster = Cluster(lose=lambda number: "unsent" if number == 1 else None)
    await Process(cluster).advance(document(SMOKE, GRID))
    cluster.away = True
    waits = await Process(cluster).advance(document(SMOKE, BATCHES))
    assert (waits.state.revision, waits.wait_seconds) == (1, 60)
    cluster.away = False
    done = await run(cluster, document(SMOKE, BATCHES))
    assert (done.state.status, done.state.revision) == ("finished", 2)
    assert done.state.trials[TrialId(0, 1)].phase == "left_out"
    assert done.state.spent.trials == len(cluster.tasks)


# --- the end -----------------------------------------------------------------------------------------------------------


async def test_a_target_that_is_reached_ends_it_before_the_rounds_are_over():
    file = json.loads(document(SMOKE, GRID, BATCHES))
    file["objective"]["target"] = 0.2
    done = await run(Cluster(), json.dumps(file).encode())
    assert done.state.status == "finished"
    assert 2 not in done.state.rounds
    assert "target" in done.state.reason


async def test_where_every_stage_was_left_out_nothing_is_left_to_do():
    cluster = Cluster(lambda _: badly("SyntaxError"))
    await run(cluster, document(SMOKE, GRID))
    await Process(cluster).advance(document(SMOKE, GRID), decision="leave_out", by="alice")
    done = await run(cluster, document(SMOKE, GRID))
    assert (done.state.status, done.state.reason) == ("finished", "every stage was stopped")


@pytest.mark.proves("campaign-budget")
@pytest.mark.parametrize("at_once", [1, 2, 4])
@pytest.mark.parametrize("vary", [{"lr": [0.01, 0.03, 0.3, 0.5]}, {"cpus": [1, 3, 4, 5]}])
async def test_where_a_limit_cuts_a_round_short_each_configuration_has_as_many_runs_as_can_be(at_once: int, vary: Any):
    """Also where each is a job of its own, and few may run together: the baseline's further runs are left out first."""
    file = document(
        {"kind": "grid", "vary": vary, "repeats": 4}, limits={"cpu_hours": 100, "at_once": at_once, "trials": 16}
    )
    cluster = Cluster()
    done = await run(cluster, file)
    runs = Counter(json.dumps(dict(task.trial.settings)) for task in cluster.tasks)
    assert sum(runs.values()) == 16
    assert len(runs) == 5
    assert max(runs.values()) - min(runs.values()) <= 1, runs
    assert done.state.reason is not None
