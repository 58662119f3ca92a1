"""What is told of a job from its start to its end, and after Slurm forgot it: wait, cancel, log, report, views."""

from __future__ import annotations

import pytest
from tests.unit.services.scenes import HEAD, MISSING, Scene, failed, sent

from slurm_agent_tools.errors import InputError, SlurmRefused, UnknownJob

# --- waiting ------------------------------------------------------------------------------------------------------------


async def test_a_wait_sees_the_job_to_its_end_with_progress_and_a_report(scene: Scene):
    number = await sent(scene, idempotency_key="k")
    told = []

    async def progress(done: float, total: float | None, message: str) -> None:
        told.append((done, total, message))

    reply = await scene.wait(number, 600, progress)

    assert (reply.status, reply.job.state, reply.next_poll_seconds) == ("finished", "COMPLETED", None)
    assert (reply.job.managed, reply.job.exit_code) == (True, 0)
    assert 55 <= reply.job.run_seconds <= 65
    assert (reply.report.requested.memory, reply.report.retry) == ("1G", False)
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    assert {total for _, total, _ in told} == {600}
    assert f"job {number} is RUNNING" in told[0][2]


async def test_a_wait_that_is_too_short_says_how_the_job_stands_and_when_to_ask_again(scene: Scene):
    number = await sent(scene)

    reply = await scene.wait(number)

    assert (reply.status, reply.report) == ("running", None)
    assert reply.next_poll_seconds > 0
    assert "Call wait_for_job again" in reply.summary


async def test_an_end_is_kept_in_the_ledger_when_it_is_seen(scene: Scene):
    number = await failed(scene, idempotency_key="k")
    await scene.wait(number)
    run = scene.context.store.by_key(scene.context.owner, "k")
    assert (run.outcome, run.failed, run.exit_code, run.partition) == ("FAILED", True, 1, "cpu")
    assert run.analysed is None


async def test_a_failure_points_to_its_log_until_it_was_analysed(scene: Scene):
    number = await failed(scene)
    advice = f'analyze_log with job_id="{number}" says why.'

    assert advice in (await scene.wait(number)).summary
    await scene.analyse(job_id=number)
    assert advice not in (await scene.wait(number)).summary


async def test_a_long_wait_ends_early_when_something_grave_is_new_and_may_be_made_again(scene: Scene):
    scene.slurm.next_job(after=None)
    number = await sent(scene)

    reply = await scene.wait(number, 3600)

    ran = scene.slurm.clock.seconds - reply.job.started.timestamp()
    assert (reply.status, 480 <= ran < 600) == ("running", True), "of ten minutes less than two are left"
    assert [(alert.severity, alert.code) for alert in reply.alerts] == [("high", "time-left")]
    graver = await scene.wait(number, 3600)
    assert [(alert.severity, alert.code) for alert in graver.alerts] == [("critical", "time-left")]
    assert (await scene.wait(number, 3600)).job.state == "TIMEOUT"


def changed(scene: Scene, number: str) -> None:
    """Somebody gives a job more time than the policy allows."""
    answer = scene.slurm.command("scontrol", "update", f"jobid={number}", "timelimit=5-00:00:00", admin=True)
    assert answer.code == 0, answer.err


async def test_a_job_that_nobody_knows_is_an_error_of_its_field(scene: Scene):
    with pytest.raises(UnknownJob):
        await scene.wait(4711)
    with pytest.raises(InputError, match="is not a job id"):
        await scene.wait("1_[1-3]")


async def test_an_array_is_counted_by_its_tasks(scene: Scene):
    scene.write("train.sh", HEAD.replace("x.out", "%A_%a.out") + "[ $SLURM_ARRAY_TASK_ID != 2 ] || exit 3\nsleep 5\n")
    number = await sent(scene, array="1-3", seconds=60)

    reply = await scene.wait(number)

    assert (reply.status, reply.tasks_by_state) == ("finished", {"COMPLETED": 2, "FAILED": 1})
    assert [(task.job_id, task.state, task.exit_code) for task in reply.tasks if task.state != "COMPLETED"] == [
        (f"{number}_2", "FAILED", 3)
    ]
    assert (len(reply.tasks), reply.tasks_not_shown) == (3, 0)


# --- drift --------------------------------------------------------------------------------------------------------------


async def test_a_job_that_is_changed_after_its_check_is_told_by_every_tool_and_logged_once(scene: Scene):
    scene.slurm.next_job(after=None)
    number = await sent(scene)
    changed(scene, number)

    waited = await scene.wait(number)
    status = await scene.status(refresh=True)
    submitted = await scene.submit(job_name="other", args=["x"])

    for reply in (waited, status, submitted):
        (alert,) = [one for one in reply.alerts if one.code == "drift"]
        assert (alert.severity, alert.job_id) == ("high", number)
        assert "the time limit is 5-00:00:00, allowed was 00:10:00" in alert.message
    (line,) = scene.lines("drift")
    assert (line["job_id"], line["tool"]) == (int(number), "wait_for_job")


# --- cancelling ---------------------------------------------------------------------------------------------------------


async def test_a_link_of_a_chain_is_not_cancelled_where_what_follows_it_would_run_beside_the_others(scene: Scene):
    scene.limits(max_concurrent_jobs=2)
    scene.slurm.submit()
    running = await sent(scene)
    link = await sent(scene, args=["2"], dependency=f"afterany:{running}")
    last = await sent(scene, args=["3"], dependency=f"afterany:{link}")
    await scene.wait(link)
    await scene.wait(last)
    refused = await scene.cancel(link)
    assert (refused.status, refused.blocker) == ("blocked", "policy")
    assert f"Job {last} waits for its end and would then count by itself: 3 concurrent jobs" in refused.reason
    assert f"Cancel job {last} before it." in refused.summary
    assert [(await scene.cancel(one)).status for one in (last, link)] == ["cancelled", "cancelled"]


async def test_a_job_is_cancelled_with_its_reason_once_it_was_looked_at(scene: Scene):
    number = await sent(scene)

    unseen = await scene.cancel(number)
    assert (unseen.status, unseen.blocker, unseen.human_action_required) == ("blocked", "policy", False)
    assert scene.stands(number)[0] == "RUNNING"

    await scene.wait(number)
    reply = await scene.cancel(number, "the loss diverged")
    assert (reply.status, reply.job.managed) == ("cancelled", True)
    assert scene.stands(number)[0] == "CANCELLED"
    assert [line["reason"] for line in scene.lines("decided") if line["tool"] == "cancel_job"] == [
        "not needed", "the loss diverged",
    ]  # fmt: skip
    assert len(scene.lines("cancelled")) == 1

    scene.slurm.clock.move(30)
    assert "with cancel_job: the loss diverged" in (await scene.wait(number)).summary


async def test_a_job_that_is_over_is_left_alone(scene: Scene):
    number = await sent(scene, seconds=120)
    reply = await scene.cancel(number)
    assert (reply.status, reply.job.state) == ("already_finished", "COMPLETED")
    assert scene.slurm.counts["scancel"] == 0


async def test_a_job_that_did_not_come_through_the_guard_is_for_a_person(scene: Scene):
    number = scene.slurm.submit()

    reply = await scene.cancel(number)

    assert (reply.status, reply.blocker, reply.human_action_required) == ("blocked", "approval", True)
    assert reply.manual_commands == [f"scancel {number}"]
    assert reply.decision.verdict == "approve"
    assert scene.slurm.counts["scancel"] == 0


async def test_a_look_before_the_submission_does_not_count(scene: Scene):
    scene.context.store.mark_read(scene.context.owner, "job:2", scene.slurm.clock.now())
    scene.slurm.clock.move(1)
    number = await sent(scene)
    assert number == "2"
    assert (await scene.cancel(number)).status == "blocked"


async def test_an_scancel_that_changes_nothing_is_no_success(scene: Scene):
    number = await sent(scene)
    await scene.wait(number)

    scene.slurm.fail("scancel", "", code=0)
    with pytest.raises(SlurmRefused, match="still RUNNING"):
        await scene.cancel(number)
    assert scene.lines("cancelled") == []


# --- logs ---------------------------------------------------------------------------------------------------------------


async def test_a_failed_job_is_diagnosed_from_its_own_log(scene: Scene):
    number = await failed(scene, idempotency_key="k")

    reply = await scene.analyse(job_id=number)

    assert (reply.status, reply.diagnosis.category, reply.diagnosis.retry) == ("ok", "missing-module", False)
    assert [file.path for file in reply.files] == ["logs/x.out"]
    assert any("No module named 'torch'" in line.text for line in reply.diagnosis.evidence)
    assert f'save_result with status="failed" and job_id="{number}"' in reply.diagnosis.suggestions[-1]
    told = "missing-module: \"ModuleNotFoundError: No module named 'torch'\" (confidence 0.80), see logs/x.out line 3."
    assert reply.summary == f"Job {number} (FAILED): {told}"
    assert not any(reply.summary in text for text in (reply.diagnosis.explanation, *reply.diagnosis.suggestions))
    run = scene.context.store.by_key(scene.context.owner, "k")
    assert (run.category, run.analysed.date()) == ("missing-module", scene.slurm.clock.now().date())


@pytest.mark.parametrize(
    ("mode", "errors", "metrics", "content"),
    [
        ("auto", True, True, False),
        ("error", True, False, False),
        ("metrics", False, True, False),
        ("full", True, True, True),
    ],
)
async def test_a_mode_shows_what_it_is_named_for(scene: Scene, mode: str, errors: bool, metrics: bool, content: bool):
    number = await failed(scene)
    reply = await scene.analyse(job_id=number, mode=mode)
    assert (bool(reply.errors), bool(reply.metrics), reply.content is not None) == (errors, metrics, content)


async def test_a_file_of_the_project_is_analysed_by_its_path(scene: Scene):
    scene.write("logs/old.log", MISSING)
    reply = await scene.analyse(path="logs/old.log")
    assert (reply.diagnosis.category, reply.job) == ("missing-module", None)
    told = "missing-module: \"ModuleNotFoundError: No module named 'torch'\" (confidence 0.70)"
    assert reply.summary == f"logs/old.log: {told}, see logs/old.log line 2."


async def test_exactly_one_thing_is_analysed(scene: Scene):
    for ask in ({}, {"job_id": "1", "path": "x"}):
        with pytest.raises(InputError, match="exactly one of them is needed"):
            await scene.analyse(**ask)


async def test_the_newest_failures_are_listed_newest_first(scene: Scene):
    own = HEAD.replace("x.out", "%j.out")
    scene.write("train.sh", f"{own}sleep 60\n")
    first = await failed(scene)
    scene.write("second.sh", f"{own}sleep 1\n")
    second = await failed(scene, script="second.sh")
    scene.write("well.sh", f"{own}sleep 2\n")
    await sent(scene, seconds=90, script="well.sh")

    both = await scene.analyse(recent_errors=5)
    one = await scene.analyse(recent_errors=1)

    assert [found.job_id for found in both.recent] == [second, first]
    assert [found.category for found in both.recent] == ["missing-module"] * 2
    assert both.summary == "2 jobs failed in the last 7 days."
    assert [found.job_id for found in one.recent] == [second]
    assert one.summary == "2 jobs failed in the last 7 days; the newest is shown."


async def test_where_nothing_failed_that_is_said(scene: Scene):
    assert (await scene.analyse(recent_errors=3)).summary == "No job failed in the last 7 days."


async def test_a_log_that_is_gone_is_no_log(scene: Scene):
    number = await failed(scene)
    (scene.project / "logs/x.out").unlink()
    reply = await scene.analyse(job_id=number)
    assert reply.status == "no_log"
    assert "No output file could be read" in reply.summary
    assert "does not exist" in reply.files[0].note


async def test_a_script_that_ran_out_of_memory_before_is_told_to_ask_for_twice_as_much(scene: Scene):
    scene.slurm.next_job(fate="out_of_memory", after=5)
    first = await sent(scene, seconds=60)
    await scene.analyse(job_id=first)
    scene.write("train.sh", HEAD.replace("1G", "2G") + "sleep 60\n")
    scene.slurm.next_job(fate="out_of_memory", after=5)
    second = await sent(scene, seconds=60)

    reply = await scene.analyse(job_id=second)

    assert reply.diagnosis.category == "host-out-of-memory"
    assert (
        f"ran out of memory before (job {first} with 1G), and 2G was not enough either"
        in (reply.diagnosis.suggestions[0])
    )
    assert "4G" in reply.diagnosis.suggestions[0]
