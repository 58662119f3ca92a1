"""What is said of ends, and of jobs that are not ours: the tools over a fake Slurm, in one process and in the next."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.scenes import HEAD, Scene, sent

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import AccountingUnreachable, UnknownJob


@pytest.fixture
def scene(tmp_path: Path):
    made = Scene(tmp_path)
    yield made
    made.context.store.close()


def anew(scene: Scene, folder: Path) -> Scene:
    """The same ledger and cluster as another process has them."""
    scene.context.store.close()
    return Scene(folder, scene.slurm)


# --- a task is no array --------------------------------------------------------------------------------------------


async def test_a_good_task_that_was_analysed_does_not_make_its_failed_array_good(scene: Scene):
    scene.write("tasks.sh", f"{HEAD}[ $SLURM_ARRAY_TASK_ID != 2 ] || exit 3\n")
    number = await sent(scene, script="tasks.sh", array="1-3", seconds=60)
    assert (await scene.wait(number)).job.state == "FAILED"
    await scene.analyse(job_id=f"{number}_1")
    refused = await scene.submit("tasks.sh", array="1-3")
    assert (refused.status, [rule.id for rule in refused.decision.rules if rule.outcome == "deny"]) == (
        "blocked", ["auto-retry"],
    )  # fmt: skip
    assert "was not analysed" in refused.summary


async def test_a_failed_task_that_was_analysed_counts_and_the_script_still_needs_a_reason(scene: Scene):
    scene.write("tasks.sh", f"{HEAD}[ $SLURM_ARRAY_TASK_ID != 2 ] || exit 3\n")
    number = await sent(scene, script="tasks.sh", array="1-3", seconds=60)
    await scene.wait(number)
    await scene.analyse(job_id=f"{number}_2")
    run = scene.context.store.by_job(scene.context.owner, int(number))
    assert (run.outcome, run.failed, run.exit_code, run.analysed is not None) == ("FAILED", True, 3, True)
    refused = await scene.submit("tasks.sh", array="1-3")
    assert "justification" in refused.summary


async def test_tasks_that_were_cancelled_while_they_waited_are_counted(scene: Scene):
    scene.write("tasks.sh", f"{HEAD}sleep 20\n[ $SLURM_ARRAY_TASK_ID != 1 ] || exit 3\n")
    number = await sent(scene, script="tasks.sh", array="1-20%3", seconds=10)
    scene.slurm.command("scancel", f"{number}_[4-20]")
    scene.slurm.clock.move(60)
    reply = await scene.wait(number)
    assert reply.tasks_by_state == {"FAILED": 1, "COMPLETED": 2, "CANCELLED": 17}
    assert "1 of 20 tasks FAILED" in reply.summary
    scene.slurm.clock.move(30)
    assert (await scene.wait(f"{number}_2")).job.state == "COMPLETED"
    assert (await scene.wait(f"{number}_9")).job.state == "CANCELLED"


async def test_tasks_that_were_cancelled_one_by_one_leave_no_record_and_are_told_by_the_request(scene: Scene):
    scene.write("tasks.sh", f"{HEAD}sleep 20\n")
    number = await sent(scene, script="tasks.sh", array="1-6%2", seconds=10)
    for task in (3, 4):
        scene.slurm.command("scancel", f"{number}_{task}")
    scene.slurm.clock.move(90)
    assert (await scene.wait(number)).summary.endswith(
        "2 of its 6 tasks left no record in Slurm: they were cancelled while they waited."
    )


async def test_the_output_of_an_array_is_named_by_its_pattern_and_that_of_a_task_by_its_number(scene: Scene):
    body = "[ $SLURM_ARRAY_TASK_ID != 2 ] || exit 3\n"
    scene.write("tasks.sh", HEAD.replace("x.out", "%A-%a.out") + body)
    await scene.status()
    sent_off = await scene.submit("tasks.sh", array="1-3")
    number = sent_off.job_id

    assert sent_off.log_paths.stdout.endswith(f"/logs/{number}-%a.out")
    assert [file.path for file in (await scene.analyse(job_id=number)).files] == [f"logs/{number}-%a.out"]
    scene.slurm.clock.move(60)
    assert [file.path for file in (await scene.analyse(job_id=number)).files] == [f"logs/{number}-2.out"]
    scene.slurm.forget(int(number))
    assert [file.path for file in (await scene.analyse(job_id=number)).files] == [f"logs/{number}-2.out"]


async def test_of_an_array_that_goes_on_the_log_of_a_task_that_runs_is_read(scene: Scene):
    scene.write("tasks.sh", HEAD.replace("x.out", "%a.out") + "echo here\nsleep 300\n")
    number = await sent(scene, script="tasks.sh", array="1-6%1", seconds=400)

    assert [file.path for file in (await scene.analyse(job_id=number)).files] == ["logs/2.out"]


async def test_a_job_that_is_no_array_has_the_number_in_its_path_that_slurm_writes_there(scene: Scene):
    scene.write("one.sh", HEAD.replace("x.out", "%a.out") + "exit 3\n")
    reply = await scene.submit("one.sh")

    assert reply.log_paths.stdout.endswith("/logs/4294967294.out")


# --- exit codes ------------------------------------------------------------------------------------------------------


async def test_lists_of_failures_of_a_new_process_tell_the_code_that_the_ledger_has(scene: Scene, tmp_path: Path):
    scene.write("fails.sh", f"{HEAD}exit 255\n")
    number = await sent(scene, script="fails.sh", seconds=30)
    await scene.wait(number)
    scene.slurm.forget(int(number))
    later = anew(scene, tmp_path)
    (shown,) = (await later.status(["errors"])).errors
    (failure,) = (await later.analyse(recent_errors=5)).recent
    assert (shown.exit_code, shown.cause) == (255, "Its script ended with exit code 255.")
    assert "127" not in failure.explanation


@pytest.mark.parametrize("code", [255, 254])
async def test_a_new_process_tells_the_exit_code_that_the_ledger_has(scene: Scene, tmp_path: Path, code: int):
    scene.write("fails.sh", f"{HEAD}exit {code}\n")
    number = await sent(scene, script="fails.sh", seconds=30)
    await scene.wait(number)
    scene.slurm.forget(int(number))
    later = anew(scene, tmp_path)
    reply = await later.wait(number)
    assert (reply.job.exit_code, reply.job.sources) == (code, ["sacct"])
    assert (await later.analyse(job_id=number)).diagnosis.category == "unknown"


async def test_a_new_process_tells_the_exit_codes_of_tasks_that_the_ledger_has(scene: Scene, tmp_path: Path):
    scene.write("tasks.sh", f"{HEAD}[ $SLURM_ARRAY_TASK_ID != 2 ] || exit 254\n")
    number = await sent(scene, script="tasks.sh", array="1-3", seconds=60)
    await scene.wait(number)
    scene.slurm.forget(int(number))
    reply = await anew(scene, tmp_path).wait(number)
    assert {task.job_id: task.exit_code for task in reply.tasks}[f"{number}_2"] == 254
    assert reply.job.exit_code == 254


async def test_a_code_that_may_have_been_cut_names_no_missing_command(scene: Scene):
    scene.write("fails.sh", f"{HEAD}exit 255\n")
    number = await sent(scene, script="fails.sh", seconds=30)
    scene.slurm.forget(int(number))
    found = (await scene.analyse(job_id=number)).diagnosis
    assert found.category == "unknown"
    assert "127 (or 255" in found.explanation


# --- who cancelled it, and when it began ------------------------------------------------------------------------------


async def test_the_first_reason_of_a_cancellation_stays(scene: Scene):
    number = await sent(scene, array="1-2")
    await scene.wait(number)
    await scene.cancel(f"{number}_1", "wrong learning rate")
    await scene.cancel(f"{number}_1", "again")
    await scene.cancel(f"{number}_2", "wrong data")
    run = scene.context.store.by_job(scene.context.owner, int(number))
    assert run.cancellation == {f"{number}_1": "wrong learning rate", f"{number}_2": "wrong data"}


async def test_the_first_reason_stays_where_a_job_that_is_still_ending_is_cancelled_again(scene: Scene):
    number = await sent(scene)
    await scene.wait(number)
    await scene.cancel(number, "wrong learning rate")
    scene.slurm.job(int(number)).state = "COMPLETING"  # its processes are being cleaned up
    scene.slurm.clock.move(15)
    assert (await scene.cancel(number, "again")).status == "cancelled"
    run = scene.context.store.by_job(scene.context.owner, int(number))
    assert run.cancellation == {number: "wrong learning rate"}


@pytest.mark.parametrize("away", [False, True])
async def test_a_task_that_leaves_no_record_is_told_as_cancelled(scene: Scene, away: bool):
    scene.write("tasks.sh", f"{HEAD}sleep 20\n")
    number = await sent(scene, script="tasks.sh", array="1-6%2", seconds=10)
    await scene.wait(number)
    scene.slurm.accounting_down(away)
    reply = await scene.cancel(f"{number}_5", "not needed")
    assert (reply.status, reply.job.state, reply.job.job_id) == ("cancelled", "CANCELLED", f"{number}_5")
    assert (reply.job.started, reply.job.reason) == (None, None)
    assert scene.logged()[-1] == "cancelled"


async def test_a_job_that_was_cancelled_while_it_waited_never_started(scene: Scene):
    number = scene.slurm.submit("#!/bin/bash\nsleep 60\n", "--hold")
    scene.slurm.command("scancel", str(number))
    reply = await scene.wait(number)
    assert (reply.job.state, reply.job.started, reply.job.run_seconds) == ("CANCELLED", None, 0)
    shown = (await scene.status()).slurm.finished_recently
    assert [one.started for one in shown if one.job_id == str(number)] == [None]


async def test_a_job_in_a_special_exit_is_held_and_does_not_run(scene: Scene):
    number = await sent(scene)
    job = scene.slurm.job(int(number))
    job.state, job.reason = "SPECIAL_EXIT", "job requeued in held state"
    scene.slurm.clock.move(15)
    own = (await scene.status()).slurm
    assert (own.running_jobs, own.pending_jobs) == (0, 1)
    reply = await scene.wait(number)
    assert reply.status == "pending"
    assert f"scontrol release {number}" in reply.summary


# --- a lying sbatch ---------------------------------------------------------------------------------------------------


def lie(scene: Scene, number: int) -> None:
    """The next sbatch does its work and names another job."""
    scene.slurm.fail("sbatch --parsable --hold", "", code=0, stdout=f"{number}\n", carried_out=True)


async def test_a_job_that_sbatch_names_by_mistake_is_left_alone_and_ours_goes_on(scene: Scene):
    other = scene.slurm.submit("#!/bin/bash\nsleep 600\n", "--hold", "--job-name=thesis")
    lie(scene, other)
    reply = await scene.submit()
    assert reply.status == "submitted"
    assert scene.slurm.job(int(reply.job_id)).request.name == "train.sh"
    assert scene.stands(other) == ("PENDING", "JobHeldUser")


async def test_where_only_another_job_is_there_it_is_left_alone_and_the_answer_is_unconfirmed(scene: Scene):
    other = scene.slurm.submit("#!/bin/bash\nsleep 600\n", "--hold", "--job-name=train.sh")
    scene.slurm.fail("sbatch --parsable --hold", "", code=0, stdout=f"{other}\n")
    reply = await scene.submit()
    assert (reply.status, reply.job_id) == ("unconfirmed", None)
    assert f"job {other}" in reply.reason
    scene.slurm.clock.move(700)
    await scene.submit(idempotency_key="another")
    assert scene.stands(other) == ("PENDING", "JobHeldUser")
    assert scene.context.store.by_job(scene.context.owner, other) is None


async def test_a_job_with_the_number_of_ours_and_another_token_is_cancelled_by_a_person_only(scene: Scene):
    number = await sent(scene)
    await scene.wait(number)
    scene.slurm.command("scontrol", "update", f"jobid={number}", "comment=sat-0123456789abcdef")
    reply = await scene.cancel(number)
    assert (reply.status, reply.blocker, reply.manual_commands) == ("blocked", "approval", [f"scancel {number}"])
    assert scene.stands(number)[0] == "RUNNING"


# --- without accounting -----------------------------------------------------------------------------------------------


async def test_without_accounting_a_failed_job_can_be_analysed_and_its_script_be_sent_again(tmp_path: Path):
    scene = Scene(tmp_path, FakeSlurm(accounting=False))
    scene.write("fails.sh", f"{HEAD}echo Traceback >&2\nexit 3\n")
    number = await sent(scene, script="fails.sh", seconds=30)
    await scene.wait(number)
    scene.slurm.forget(int(number))
    later = anew(scene, tmp_path)
    found = await later.analyse(job_id=number)
    assert (found.status, found.job.state, found.job.exit_code, found.job.sources) == ("ok", "FAILED", 3, ["ledger"])
    again = await later.submit("fails.sh", justification="the data set was mended")
    assert again.status == "submitted", again.summary
    later.context.store.close()


async def test_with_slurmdbd_away_only_a_job_of_somebody_else_is_not_known(scene: Scene):
    other = scene.slurm.submit("#!/bin/bash\nexit 1\n")
    scene.slurm.clock.move(10)
    scene.slurm.forget(other)
    scene.slurm.accounting_down()
    with pytest.raises(AccountingUnreachable, match="slurmdbd"):
        await scene.wait(other)
    scene.slurm.accounting_down(False)
    scene.slurm.clock.move(5)
    with pytest.raises(UnknownJob):
        await scene.wait(4711)


async def test_an_accounting_that_lets_commands_wait_is_not_waited_for_again(scene: Scene):
    numbers = [await sent(scene, job_name=name, justification="two runs") for name in ("one", "two")]
    scene.slurm.clock.move(90)
    scene.slurm.hang("sacct", None)
    begun = scene.slurm.clock.seconds
    for number in numbers:
        reply = await scene.wait(number)
        assert (reply.status, reply.job.state) == ("finished", "COMPLETED")
        assert [alert.code for alert in reply.alerts] == ["accounting-missing"]
    limit = scene.context.settings.slurm.read_timeout
    assert scene.slurm.clock.seconds - begun < 0.75 * limit


async def test_only_after_half_a_minute_an_accounting_that_let_a_command_wait_is_asked_again(scene: Scene):
    numbers = [await sent(scene, job_name=name, justification="three runs") for name in ("one", "two", "three")]
    scene.slurm.clock.move(90)
    scene.slurm.hang("sacct", None)
    spent = []
    for number, later in zip(numbers, (0, 12, 31), strict=True):
        scene.slurm.clock.move(later)
        begun = scene.slurm.clock.seconds
        await scene.wait(number)
        spent.append(scene.slurm.clock.seconds - begun)
    half = scene.context.settings.slurm.read_timeout / 2
    assert [round(seconds / half) for seconds in spent] == [1, 0, 1]


# --- the ledger -------------------------------------------------------------------------------------------------------


async def test_a_state_folder_that_is_deleted_under_a_running_server_is_told_and_survived(scene: Scene, tmp_path: Path):
    number = await sent(scene)
    shutil.rmtree(tmp_path / "state")
    told = await scene.status()
    assert told.slurm.running_jobs == 1
    assert "ledger-lost" in {alert.code for alert in told.alerts}
    assert (await scene.wait(number)).status == "running"
    assert (await scene.submit(job_name="next", justification="a new ledger")).status == "submitted"


class Full:
    """A ledger whose disk is full: nothing can be written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, scene: Scene) -> None:
        database = scene.context.store._db
        monkeypatch.setattr(database, "change", self.refuse)

    def refuse(self) -> Any:
        from slurm_agent_tools.errors import StorageError  # noqa: PLC0415

        raise StorageError("cannot use the ledger: the disk is full", hint="Free disk space, then call again.")


async def test_a_full_disk_of_the_ledger_is_told_by_what_only_reads_and_stops_a_submission(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    number = await sent(scene)
    Full(monkeypatch, scene)
    for reply in (await scene.status(), await scene.wait(number), await scene.analyse(job_id=number)):
        assert "ledger-not-written" in {alert.code for alert in reply.alerts}, reply
    assert reply.status in {"no_log", "ok"}
    before = len(scene.sent())
    with pytest.raises(Exception, match="disk is full"):
        await scene.submit(look=False, job_name="next")
    assert len(scene.sent()) == before
