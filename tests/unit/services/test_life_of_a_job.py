"""What is told of a job from its start to its end, and after Slurm forgot it: wait, cancel, log, report, views."""

from __future__ import annotations

import pytest
from tests.unit.services.scenes import HEAD, Scene

from slurm_agent_tools.errors import InputError, SlurmRefused, UnknownJob
from slurm_agent_tools.models.arguments import CompareResults, GenerateScript, SaveResult
from slurm_agent_tools.services import completion_report, search_history
from slurm_agent_tools.services.search_history import HistoryQuestion
from slurm_agent_tools.slurm.fake.endings import StepEnding

ALL = HistoryQuestion()
MISSING = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n"


async def sent(scene: Scene, *, seconds: float = 5, **more) -> str:
    """A submitted job's id; `seconds` later."""
    reply = await scene.submit(**more)
    assert reply.status == "submitted", reply.summary
    scene.slurm.clock.move(seconds)
    return reply.job_id


async def failed(scene: Scene, **more) -> str:
    """A job that failed for a missing module."""
    scene.slurm.next_job(exit_code=1, after=10, output="loss: 0.5\n", errors=MISSING)
    return await sent(scene, seconds=60, **more)


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
    assert f'save_result with status="failed" and job_id="{number}"' in reply.summary
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
    assert reply.summary.startswith("logs/old.log: missing-module.")


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
    assert f"ran out of memory before (job {first} with 1G), and 2G was not enough either" in reply.summary
    assert "4G" in reply.diagnosis.suggestions[0]


# --- the report ---------------------------------------------------------------------------------------------------------


async def test_a_report_of_a_job_that_goes_on_says_when_there_will_be_one(scene: Scene):
    number = await sent(scene)
    reply = await completion_report.of_job(scene.context, number)
    assert (reply.status, reply.report) == ("running", None)
    assert reply.summary == f"Job {number} is RUNNING. There is a report once it is over."


async def test_a_report_shows_what_was_used_of_what_was_asked(scene: Scene):
    scene.slurm.next_job(after=100, memory=512 * 2**20, steps=(StepEnding(after=100, memory=256 * 2**20),))
    number = await sent(scene, seconds=200)

    reply = await completion_report.of_job(scene.context, number)

    assert (reply.status, reply.job.managed) == ("finished", True)
    assert reply.report.requested.time_limit_seconds == 600
    assert reply.report.efficiency.time == pytest.approx(100 / 600, abs=0.02)
    assert (reply.report.queue.depth, reply.report.queue.utilization) == (0, 0.0)
    assert reply.summary.startswith(f"Job {number} is COMPLETED. ")


async def test_a_report_of_a_job_from_elsewhere_rests_on_what_slurm_was_asked(scene: Scene):
    number = scene.slurm.submit("#!/bin/bash\nsleep 5\n", "--mem=2G", "--time=30", "--cpus-per-task=3")
    scene.slurm.clock.move(60)

    reply = await completion_report.of_job(scene.context, str(number))

    asked = reply.report.requested
    assert (asked.memory, asked.cpus, asked.nodes, asked.time_limit_seconds) == ("2G", 3, 1, 1800)
    assert reply.job.managed is False


async def test_a_silent_controller_leaves_the_queue_out_of_a_report(scene: Scene):
    number = await sent(scene, seconds=120)
    await scene.wait(number)
    scene.slurm.fail("sinfo", "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n")
    reply = await completion_report.of_job(scene.context, number)
    assert (reply.status, reply.report.queue.utilization) == ("finished", None)


# --- what clients read without a tool -----------------------------------------------------------------------------------


async def test_a_job_can_be_read_with_what_is_remembered_of_it(scene: Scene):
    number = await sent(scene, run_id="run-7", seconds=120)

    body = await scene.box.view("job", {"job_id": number})

    assert (body.job.state, body.job.managed, body.summary) == (
        "COMPLETED", True, f"Job {number} (train.sh) is COMPLETED.",
    )  # fmt: skip
    assert (body.remembered.run_id, body.remembered.state, body.remembered.script_path) == (
        "run-7", "COMPLETED", "train.sh",
    )  # fmt: skip
    assert body.remembered.memory.metadata["job_id"] in {number, int(number)}


async def test_a_job_that_slurm_forgot_is_read_from_the_ledger_and_no_other_one(scene: Scene):
    number = await sent(scene, seconds=120)
    await scene.wait(number)
    scene.slurm.forget(int(number))
    scene.slurm.controller.accounting.told.clear()
    scene.slurm.clock.move(30)

    body = await scene.box.view("job", {"job_id": number})

    assert (body.job, body.remembered.job_id) == (None, number)
    assert body.summary == f"Slurm has forgotten job {number}; it was last seen as COMPLETED."
    with pytest.raises(UnknownJob):
        await scene.box.view("job", {"job_id": "4711"})


async def test_an_array_is_read_with_its_tasks(scene: Scene):
    number = await sent(scene, array="1-3", seconds=120)
    body = await scene.box.view("job", {"job_id": number})
    assert body.tasks_by_state == {"COMPLETED": 3}
    assert {task.job_id for task in body.tasks} == {f"{number}_{task}" for task in (1, 2, 3)}
    assert body.summary.startswith(f"Job {number} (train.sh): ")


async def test_the_end_of_a_log_stands_between_marks_that_no_job_can_foresee(scene: Scene):
    lines = "".join(f"step {count}\n" for count in range(300))
    scene.slurm.next_job(after=5, output=lines)
    number = await sent(scene, seconds=60)

    text = await scene.box.view("log", {"job_id": number})
    other = await scene.box.view("log", {"job_id": number})

    mark = text.split("between the marks ")[1].split()[0]
    assert text.count(f"<<< {mark}") == text.count(f">>> {mark}") == 1
    assert mark not in other
    assert "its last 200 lines:" in text
    assert "step 299" in text
    assert "step 100\n" in text
    assert "step 99\n" not in text


async def test_a_log_without_a_file_says_so(scene: Scene):
    number = await sent(scene, seconds=120)
    (scene.project / "logs/x.out").unlink()
    assert "logs/x.out: does not exist" in await scene.box.view("log", {"job_id": number})


async def test_a_long_text_is_cut_at_its_beginning(scene: Scene):
    lines = [f"line {count} {'x ' * 150}\n" for count in range(200)]
    scene.slurm.next_job(after=5, output="".join(lines))
    number = await sent(scene, seconds=60)

    text = await scene.box.view("log", {"job_id": number})

    assert "[... cut ...]\n" in text
    assert "line 199 x" in text
    assert "line 10 x" not in text
    assert 32_000 < len(text) < 33_000


async def test_the_policy_is_read_with_its_rules(scene: Scene):
    body = await scene.box.view("policy", {})
    assert body["rules"].keys() >= {"memory-per-gpu", "duplicate", "status-first"}
    assert "sha256" in str(body)


async def test_the_history_is_searched_by_all_tags_or_by_any(scene: Scene):
    first = await sent(scene, seconds=120)
    second = await failed(scene, job_name="second", args=["2"])
    for number in (first, second):
        await scene.wait(number)
    known = {job.job_id: set(job.tags) for job in (await search_history.search_history(scene.context, ALL)).jobs}
    good, bad = min(known[first] - known[second]), min(known[second] - known[first])

    any_of = await scene.box.view("history", {"tag": f"{good}|{bad}"})
    all_of = await scene.box.view("history", {"tag": f"{good},{bad}"})
    named = await scene.box.view("history", {"query": "second"})

    assert [job.job_id for job in any_of.jobs] == [second, first]
    assert (all_of.jobs, all_of.summary.startswith("No job of the last ")) == ([], True)
    assert [job.job_id for job in named.jobs] == [second]
    with pytest.raises(InputError, match=r"mixes , and \|"):
        await scene.box.view("history", {"tag": "a,b|c"})


async def test_jobs_like_a_script_come_with_advice_from_its_runs(scene: Scene):
    for count in range(3):
        scene.slurm.next_job(after=60, memory=100 * 2**20)
        await scene.wait(await sent(scene, args=[str(count)], seconds=120))

    found = await search_history.search_history(scene.context, HistoryQuestion(like="train.sh", limit=2))

    assert len(found.jobs) == 2
    assert all(job.likeness == 1.0 for job in found.jobs)
    assert (found.advice.basis, found.advice.time.requested) == (3, 600)
    assert "3 jobs" in found.summary
    assert "2 shown" in found.summary


async def test_failure_modes_are_read_from_their_page_once_there_is_one(scene: Scene):
    assert "No failure was recorded yet" in await scene.box.view("failure-modes", {})
    number = await failed(scene)
    saved = await scene.box.call("save_result", SaveResult(name="run", status="failed", job_id=number))

    page = await scene.box.view("failure-modes", {})

    assert saved.failure_record.startswith("documents/issues/")
    assert "missing-module" in page
    scene.write("documents/failure-modes.md", "first line\n" + "a line of the page\n" * 4000 + "last line\n")
    long = await scene.box.view("failure-modes", {})
    assert long.startswith("[... cut ...]\na line")
    assert long.endswith("last line\n")


# --- results and scripts ------------------------------------------------------------------------------------------------


async def save(scene: Scene, name: str = "run", status: str = "success", **more):
    return await scene.box.call("save_result", SaveResult(name=name, status=status, **more))


async def test_a_result_is_saved_with_its_job_and_never_over_another(scene: Scene):
    number = await sent(scene, run_id="run-7", seconds=120)

    first = await save(scene, job_id=number, metrics={"loss": 0.5})
    second = await save(scene, job_id=number, metrics={"loss": 0.4})

    assert first.file_path == f"results/{scene.slurm.clock.now():%Y-%m-%d_%H-%M}" + first.file_path[24:]
    assert first.file_path != second.file_path
    assert (first.result.run_id, first.result.environment.slurm_job.job.job_id) == ("run-7", number)
    assert (scene.project / first.file_path).is_file()
    assert "But" not in first.summary


@pytest.mark.parametrize(("status", "doubted"), [("success", True), ("failed", False), ("cancelled", False)])
async def test_slurms_word_is_set_against_the_callers(scene: Scene, status: str, doubted: bool):
    number = await failed(scene)
    reply = await save(scene, status=status, job_id=number)
    assert (f"But Slurm says of job {number}" in reply.summary) is doubted


async def test_a_result_of_a_job_that_goes_on_says_so(scene: Scene):
    number = await sent(scene)
    assert f"But job {number} has not ended: Slurm says RUNNING." in (await save(scene, job_id=number)).summary


async def test_a_dry_run_of_a_result_writes_nothing(scene: Scene):
    reply = await save(scene, dry_run=True)
    assert (reply.status, reply.file_path) == ("dry_run", None)
    assert not (scene.project / "results").exists()


@pytest.mark.parametrize("dry", [True, False])
async def test_a_result_outside_the_folders_for_results_is_refused(scene: Scene, dry: bool):
    reply = await save(scene, output_dir="src", dry_run=dry)
    assert (reply.status, reply.blocker) == ("blocked", "policy")
    assert not (scene.project / "src").exists()


async def test_a_config_is_read_from_its_file_and_has_to_be_a_mapping(scene: Scene):
    scene.write("configs/a.yaml", "lr: 0.1\n")
    scene.write("configs/b.yaml", "- 1\n- 2\n")
    assert (await save(scene, config="configs/a.yaml")).result.config == {"lr": 0.1}
    with pytest.raises(InputError, match="does not hold a mapping"):
        await save(scene, config="configs/b.yaml")


async def test_results_are_compared_by_their_names(scene: Scene):
    await save(scene, "before", config={"lr": 0.1}, metrics={"loss": 0.5})
    await save(scene, "after", config={"lr": 0.2}, metrics={"loss": 0.25}, baseline="before")

    reply = await scene.box.call("compare_results", CompareResults(baseline="before", target="after"))

    assert (reply.metrics["loss"].change, reply.metrics["loss"].percent) == (-0.25, -50.0)
    assert reply.config_diff == {"lr": {"baseline": 0.1, "target": 0.2}}
    assert reply.summary == "1 metrics compared: after against before."
    with pytest.raises(InputError, match="no such result"):
        await scene.box.call("compare_results", CompareResults(baseline="before", target="nothing"))


async def test_a_status_names_the_newest_results_and_those_that_cannot_be_read(scene: Scene):
    await save(scene, "mine")
    scene.write("results/9999-broken.json", "{")

    reply = await scene.status(["results"])

    assert [(one.experiment_name, one.status) for one in reply.results] == [("", "unreadable"), ("mine", "success")]


async def test_a_script_is_written_once_it_is_allowed(scene: Scene):
    ask = GenerateScript(name="job", command="python train.py", gpus=0, memory="2G", time_limit="30")
    reply = await scene.box.call("generate_script", ask)

    assert reply.status == "written"
    assert (scene.project / reply.path).read_text() == reply.script
    assert (scene.project / reply.path).stat().st_mode & 0o777 == 0o700
    assert (await scene.submit(reply.path)).status == "submitted"


async def test_a_script_that_the_policy_refuses_is_not_written(scene: Scene):
    ask = GenerateScript(name="job", command="sbatch other.sh", gpus=0)
    reply = await scene.box.call("generate_script", ask)
    assert (reply.status, reply.path) == ("blocked", None)
    assert not list(scene.project.glob("scripts/slurm/generated/*"))


# --- the cluster --------------------------------------------------------------------------------------------------------


async def test_a_status_tells_of_every_section_that_was_asked_for(scene: Scene):
    await failed(scene)
    reply = await scene.status(["jobs", "gpu", "queue", "partitions", "nodes", "results", "errors", "disk", "policy"])

    assert (reply.status, reply.cluster.reachable) == ("ok", True)
    assert [job.state for job in reply.errors] == ["FAILED"]
    assert reply.disk.free_bytes == 62914560 * 1024
    assert reply.disk.total_bytes == 104857600 * 1024
    assert {node.name for node in reply.nodes} == {"cpu01", "cpu02", "gpu01", "gpu02", "spec01"}
    assert (reply.slurm.active_jobs, reply.slurm.slots_left) == (0, 4)


async def test_a_status_without_a_controller_is_partial_and_no_empty_queue(scene: Scene):
    scene.slurm.controller_down()
    reply = await scene.status()
    assert (reply.status, reply.cluster.reachable) == ("partial", False)
    assert reply.slurm.error.code == reply.alerts[0].code
    assert reply.alerts[0].severity == "critical"
    assert reply.summary.startswith("Slurm could not be read: ")


async def test_jobs_of_others_fill_the_cluster_and_not_ones_own_slots(scene: Scene):
    for _ in range(3):
        scene.slurm.submit(user="eve")
    scene.slurm.submit()
    scene.slurm.clock.move(5)
    reply = await scene.status()
    assert (reply.slurm.running_jobs, reply.slurm.slots_left) == (1, 3)
    assert [alert.code for alert in reply.alerts] == ["unmanaged-jobs"]


async def test_a_waiting_queue_tells_what_was_waited_lately(scene: Scene):
    for _ in range(12):
        scene.slurm.submit("#!/bin/bash\nsleep 30\n")
    scene.slurm.clock.move(600)
    scene.slurm.submit("#!/bin/bash\nsleep 30\n", "--begin=now+1hour")
    reply = await scene.status(["queue"])
    assert reply.queue.depth == 1
    assert "12 jobs" in str(reply.queue)


async def test_what_can_be_typed_is_completed_from_ledger_queue_and_cluster(scene: Scene):
    number = await sent(scene)
    other = str(scene.slurm.submit())
    scene.slurm.clock.move(15)
    scene.write("scripts/b.sbatch", "#!/bin/bash\n")

    assert await scene.box.complete("job_id", "") == ([other, number], 2)
    assert await scene.box.complete("partition", "c") == (["cpu"], 1)
    assert await scene.box.complete("script", "") == (["scripts/b.sbatch", "train.sh"], 2)
    assert (await scene.box.complete("tag", "no-such-tag"))[1] == 0
