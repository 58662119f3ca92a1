"""What get_status counts, shows and leaves out; what submit_job says on each way that ends before a job is sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.services.scenes import HEAD, NEEDS_A_PERSON, Scene, failed, sent
from tests.unit.services.test_broken_submissions import Killed, kill_at

from slurm_agent_tools.errors import InputError, SlurmRefused
from slurm_agent_tools.insights import queue_history
from slurm_agent_tools.services import completion_report, dispatch, failures, jobs
from slurm_agent_tools.slurm.commands import sbatch
from slurm_agent_tools.units import JobId

SILENT = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"


def waiting(scene: Scene, number: int) -> list[int]:
    """Jobs of this user that do not come through the guard and do not start."""
    return [scene.slurm.submit("#!/bin/bash\nsleep 30\n", "--begin=now+1day") for _ in range(number)]


# --- jobs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("others", "shown", "hidden"), [(8, 8, 0), (9, 8, 1)])
async def test_of_many_jobs_all_are_counted_and_the_newest_shown(scene: Scene, others: int, shown: int, hidden: int):
    numbers = waiting(scene, others)
    section = (await scene.status(refresh=True)).slurm
    assert (section.pending_jobs, section.running_jobs, section.active_jobs) == (others, 0, others)
    assert (len(section.jobs), section.not_shown, section.slots_left) == (shown, hidden, 0)
    assert {job.job_id for job in section.jobs} == {str(number) for number in numbers[-shown:]}
    assert not any(job.managed for job in section.jobs)


async def test_the_guards_own_jobs_are_shown_before_newer_ones(scene: Scene):
    number = await sent(scene)
    waiting(scene, 10)
    section = (await scene.status(refresh=True)).slurm
    assert (section.jobs[0].job_id, section.jobs[0].managed, section.running_jobs) == (number, True, 1)
    assert (len(section.jobs), section.not_shown, section.slots_left) == (8, 3, 0)


@pytest.mark.parametrize(("number", "left"), [(1, 3), (4, 0), (5, 0)])
async def test_slots_that_are_left_are_never_fewer_than_none(scene: Scene, number: int, left: int):
    waiting(scene, number)
    reply = await scene.status(refresh=True)
    assert (reply.slurm.slots_left, reply.slurm.max_concurrent) == (left, 4)
    jobs = "1 pending job" if number == 1 else f"{number} pending jobs"
    assert reply.summary == f"0 running and {jobs}; {left} of 4 slots left."


@pytest.mark.parametrize("others", [0, 1])
async def test_an_estimate_of_minutes_is_told_beside_a_queue_in_which_nobody_waits(
    scene: Scene, monkeypatch, others: int
):
    real = dispatch.trial

    async def later(*asked: Any) -> sbatch.TestOnly:
        return replace(await real(*asked), start=scene.slurm.clock.now() + timedelta(seconds=299))

    monkeypatch.setattr(dispatch, "trial", later)
    over = waiting(scene, 1)[0]
    scene.slurm.command("scancel", str(over), admin=True)  # what is over may be shown for a while
    waiting(scene, others)
    summary = (await scene.submit()).summary
    assert ("start is 00:04:59 from now; no other job waits." in summary) == (others == 0), summary
    assert ("Slurm expects it to start in 00:04:59." in summary) == (others == 1), summary


async def test_a_job_that_waits_for_another_takes_over_its_slot(scene: Scene):
    first, other = waiting(scene, 2)
    scene.slurm.submit("#!/bin/bash\nsleep 30\n", f"--dependency=afterany:{first}")
    section = (await scene.status(refresh=True)).slurm
    assert (section.pending_jobs, section.active_jobs, section.slots_left) == (3, 2, 2)
    assert other


@pytest.mark.parametrize(("number", "more"), [(10, False), (11, True)])
async def test_jobs_that_did_not_come_through_the_guard_are_named_up_to_ten(scene: Scene, number: int, more: bool):
    numbers = waiting(scene, number)
    (alert,) = [one for one in (await scene.status(refresh=True)).alerts if one.code == "unmanaged-jobs"]
    listed = ", ".join(map(str, numbers[:10])) + (", ..." if more else "")
    assert alert.message.endswith(f"count for the limit of 4 jobs: {listed}.")
    assert alert.severity == "medium"


async def test_a_job_that_ended_lately_is_shown_with_the_code_that_the_ledger_knows(scene: Scene):
    number = await failed(scene)
    await scene.wait(number)
    (ended,) = (await scene.status(refresh=True)).slurm.finished_recently
    assert (ended.job_id, ended.state, ended.exit_code, ended.managed) == (number, "FAILED", 1, True)
    assert "exit code 1" in (ended.cause or "")


# --- other sections -------------------------------------------------------------------------------------------------


async def test_an_answer_tells_how_old_what_it_shows_is_and_what_it_cost(scene: Scene):
    plain = await scene.status(["jobs", "nodes", "policy"])
    assert set(plain.age_seconds) == {"jobs", "nodes"}
    assert plain.slurm_calls is None
    detailed = await scene.status(["jobs"], detailed=True)
    assert set(detailed.age_seconds) == {"jobs", "nodes"}
    assert detailed.slurm_calls["squeue"] >= 1
    assert (detailed.cluster.reachable, detailed.cluster.name is not None) == (True, True)
    assert detailed.cluster.known_as == scene.context.cluster != detailed.cluster.name


async def test_a_section_that_cannot_be_read_is_named_and_stands_with_its_error(scene: Scene):
    scene.slurm.fail("scontrol show nodes", SILENT)
    reply = await scene.status(["jobs", "nodes"], refresh=True)
    assert (reply.status, reply.nodes.error.code) == ("partial", "cluster_unreachable")
    assert reply.summary.endswith(" Not readable: nodes.")
    fine = await scene.status(["jobs", "policy"], refresh=True)
    assert (fine.status, fine.policy.sha256) == ("ok", scene.context.policy.sha256)
    assert str(fine.policy.limits["max_concurrent_jobs"]) == "4"


async def test_submissions_that_are_switched_off_are_told(scene: Scene):
    scene.policy(submissions="off")
    assert "Submissions are switched off in the policy." in (await scene.status()).summary


async def test_a_look_that_failed_is_no_look(scene: Scene):
    scene.slurm.fail("squeue", SILENT)
    await scene.status(refresh=True)
    assert scene.context.store.last_read(scene.context.owner, "status") is None
    await scene.status(refresh=True)
    assert scene.context.store.last_read(scene.context.owner, "status") is not None


async def test_an_accounting_that_fails_leaves_a_note_in_place_of_waits(scene: Scene):
    scene.slurm.fail("sacct", "sacct: error: Connection refused\n")
    told = await queue_history.recent_waits(scene.context)
    assert (told.waits, "could not be asked" in (told.note or "")) == ((), True)
    asked = await queue_history.recent_waits(scene.context, ask=False, otherwise="a dry run asks it")
    assert asked.note == "the accounting was not asked: a dry run asks it"
    paused = await queue_history.recent_waits(scene.context)
    assert paused.note == "the accounting was not asked: Slurm is slow, or it gave no answer a moment ago"


async def test_waits_of_the_past_are_asked_again_where_they_are_asked_for_by_name(scene: Scene):
    await scene.status(["queue"])
    asked = scene.slurm.counts["sacct"]
    idle = await scene.status(refresh=True)
    assert (asked > 0, scene.slurm.counts["sacct"], idle.queue.waits is not None) == (True, asked, True)
    await scene.status(["queue"], refresh=True)
    assert scene.slurm.counts["sacct"] > asked


# --- submissions that are not sent ----------------------------------------------------------------------------------


async def test_a_key_of_another_request_is_an_error_of_its_field(scene: Scene):
    await scene.submit(idempotency_key="k")
    with pytest.raises(InputError) as caught:
        await scene.submit(idempotency_key="k", args=["other"])
    assert (caught.value.field, caught.value.value) == ("idempotency_key", "k")
    assert "new key" in (caught.value.hint or "")
    assert len(scene.sent()) == 1


async def test_the_same_key_gives_the_same_answer_and_sends_nothing(scene: Scene):
    first = await scene.submit(idempotency_key="k")
    scene.slurm.clock.move(5)
    again = await scene.submit(idempotency_key="k")
    assert again.model_copy(update={"alerts": first.alerts, "summary": first.summary}) == first
    assert len(scene.sent()) == 1


async def test_without_a_key_the_same_request_is_the_same_while_its_answer_was_not_given(scene: Scene):
    first = await scene.submit()
    again = await scene.submit(justification="measures the noise")
    assert (first.status, again.status) == ("submitted", "submitted")
    assert first.job_id != again.job_id


@pytest.mark.parametrize(
    ("text", "status", "blocker"),
    [(f"{HEAD}sleep 1\n", "dry_run", None), (f"{HEAD}sbatch x.sh\n", "blocked", "policy"), (NEEDS_A_PERSON, "blocked", "approval")],
)  # fmt: skip
async def test_a_dry_run_says_what_would_be_and_leaves_nothing(
    scene: Scene, text: str, status: str, blocker: str | None
):
    scene.write("train.sh", text)
    reply = await scene.submit(dry_run=True)
    assert (reply.status, reply.blocker, reply.human_action_required or False) == (status, blocker, False)
    assert (reply.artifacts or [], scene.sent(), scene.numbers()) == ([], [], [])
    assert status != "dry_run" or reply.summary.startswith("train.sh would be submitted; nothing was.")


async def test_a_dry_run_without_slurm_says_so_and_judges_all_the_same(scene: Scene):
    await scene.status()
    scene.slurm.controller_down(True)
    reply = await scene.submit(dry_run=True, look=False)
    assert (reply.status, reply.blocker, reply.human_action_required) == ("blocked", "cluster_unreachable", False)
    assert reply.decision is not None
    assert not reply.artifacts


async def test_what_the_policy_refuses_is_refused_without_slurm_too(scene: Scene):
    await scene.status()
    scene.slurm.controller_down(True)
    scene.write("bad.sh", f"{HEAD}sbatch x.sh\n")
    refused = await scene.submit("bad.sh", look=False)
    assert (refused.status, refused.blocker, refused.artifacts or []) == ("blocked", "policy", [])
    left = await scene.submit(look=False)
    assert (left.blocker, len(left.artifacts), left.human_action_required) == ("cluster_unreachable", 1, True)
    assert "Nothing was sent." in left.reason
    assert left.manual_commands[0].startswith("sbatch ")
    assert left.manual_commands[-1] == "squeue --me"


# --- the report -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("age", "known"), [(59.0, True), (60.6, False)])
async def test_a_report_tells_how_busy_the_nodes_are_by_an_answer_of_the_last_minute(
    scene: Scene, age: float, known: bool
):
    number = await sent(scene, seconds=120)
    view = await scene.context.slurm.job(JobId(int(number)), fresh=True)
    run = scene.context.store.by_job(scene.context.owner, int(number))
    await scene.status(["nodes"], refresh=True)
    passed = scene.context.slurm.ages["nodes"]
    scene.slurm.clock.move(age - passed)
    before = scene.context.slurm.calls["scontrol show nodes"]
    report = await completion_report.report(scene.context, view, run)
    assert (report.queue.utilization is not None) == known
    asked = await completion_report.report(scene.context, view, run, ask=True)
    assert asked.queue.utilization is not None
    assert scene.context.slurm.calls["scontrol show nodes"] == before + 1


async def test_a_report_shows_what_was_asked_for_and_not_what_slurm_tells_now(scene: Scene):
    number = await sent(scene, seconds=120)
    run = scene.context.store.by_job(scene.context.owner, int(number))
    scene.context.store.update(run, requested=replace(run.requested, time_limit_seconds=1234, cpus=77))
    asked = (await completion_report.of_job(scene.context, number)).report.requested
    assert (asked.time_limit_seconds, asked.cpus) == (1234, 77)


@pytest.mark.parametrize(("expected", "seconds"), [(90, 90), (-5, 0), (None, None)])
async def test_a_report_tells_the_wait_that_slurm_expected_at_the_submission(scene: Scene, expected, seconds):
    number = await sent(scene, seconds=120)
    run = scene.context.store.by_job(scene.context.owner, int(number))
    start = None if expected is None else run.created + timedelta(seconds=expected)
    scene.context.store.update(run, estimated_start=start)
    report = (await completion_report.of_job(scene.context, number)).report
    assert report.queue.estimated_wait_seconds == seconds


# --- small numbers --------------------------------------------------------------------------------------------------


async def test_a_cancelled_job_is_looked_at_for_ten_seconds(scene: Scene):
    scene.slurm.next_job(after=None)
    number = await sent(scene)
    scene.slurm.fail("scancel", "", code=0)
    before, began = scene.slurm.counts["squeue"], scene.slurm.clock.now()
    with pytest.raises(SlurmRefused, match="still RUNNING"):
        await jobs.cancel(scene.context, JobId(int(number)))
    assert scene.slurm.counts["squeue"] - before == 20
    assert (scene.slurm.clock.now() - began).total_seconds() >= 10


async def test_a_file_that_is_there_is_only_added_to_where_that_is_said(scene: Scene):
    scene.write("results/a.json", "{}")
    plan, decision = await failures.judged(scene.context, "results/a.json", 10)
    assert (plan.path_exists, plan.adds, decision.verdict) == (True, False, "deny")
    plan, decision = await failures.judged(scene.context, "results/a.json", 10, adds=True)
    assert (plan.adds, plan.size, decision.verdict) == (True, 10, "allow")


async def test_a_job_left_held_is_told_with_the_time_at_which_it_is_cancelled(scene: Scene):
    kill_at(scene, "scontrol release")
    with pytest.raises(Killed):
        await scene.submit(idempotency_key="k")
    created = scene.context.store.by_key(scene.context.owner, "k").created
    scene.slurm.clock.move(60)
    (alert,) = [one for one in (await scene.status(refresh=True)).alerts if one.code == "submission-broke-off"]
    assert f"after {created + timedelta(minutes=10):%H:%M:%S} UTC cancels it" in alert.message
