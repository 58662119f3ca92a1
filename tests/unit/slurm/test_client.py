from datetime import timedelta

import anyio
import pytest
from tests.unit.services.clusters import ABOUT
from tests.unit.slurm.answers import Prepared, done
from tests.unit.slurm.clocks import START, accounted, queued
from tests.unit.slurm.told import DISABLED, NO_DATABASE, NOTHING, SILENT, Told

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.errors import SlurmGarbled, SlurmRefused, SlurmUncertain, SlurmUnreachable, UnknownJob
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.units import parse_job_id

# --- sharing -----------------------------------------------------------------------------------------------------


async def test_simultaneous_questions_cost_one_command():
    told = Told(squeue=done(queued("5")))
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(told.slurm.queue)
    assert told.slurm.calls["squeue"] == 1


async def test_simultaneous_fresh_questions_cost_one_command():
    told = Told(squeue=done(queued("5")))
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(lambda: told.slurm.queue(max_age=0))
    assert told.slurm.calls["squeue"] == 1


@pytest.mark.parametrize(
    ("passed", "more", "calls"),
    [
        (10, {}, 1),
        (10.1, {}, 2),
        (3, {"max_age": 2}, 2),
        (2, {"max_age": 2}, 1),
        (30, {"max_age": 60}, 1),
        (0.1, {"max_age": 0}, 2),
    ],
)
async def test_an_answer_is_used_until_its_age(passed, more, calls):
    told = Told(squeue=done(queued("5")))
    await told.slurm.queue()
    told.clock.move(passed)
    await told.slurm.queue(**more)
    assert told.slurm.calls["squeue"] == calls


async def test_an_error_lasts_no_longer_than_an_answer():
    told = Told(squeue=SILENT)
    for _ in range(2):
        with pytest.raises(SlurmUnreachable):
            await told.slurm.queue()
    assert told.slurm.calls["squeue"] == 1
    told.answers["squeue"] = done(queued("5"))
    told.clock.move(11)
    assert [job.state for job in await told.slurm.queue()] == ["RUNNING"]


async def test_an_error_is_not_hidden_by_an_older_answer():
    told = Told(squeue=done(queued("5")))
    await told.slurm.queue()
    told.answers["squeue"] = SILENT
    told.clock.move(11)
    for _ in range(2):
        with pytest.raises(SlurmUnreachable):
            await told.slurm.queue()


async def test_a_cancelled_question_leaves_the_next_one_free():
    told = Told(squeue=done(queued("5")))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await told.slurm.queue()
    assert len(await told.slurm.queue()) == 1


async def test_commands_are_counted_by_name():
    told = Told(squeue=done(queued("5")), sacct=done(accounted("6")))
    await told.job("5")
    await told.job("6", fresh=True)
    assert told.slurm.calls == {"squeue": 1, "scontrol show job": 2, "sacct": 1, "sacct --helpformat": 1}
    assert sum(told.slurm.calls.values()) == len(told.runner.asked)


# --- one job -----------------------------------------------------------------------------------------------------


async def test_a_running_job_costs_no_question_to_the_accounting():
    told = Told(squeue=done(queued("5")), sacct=NO_DATABASE)
    assert (await told.job()).state == "RUNNING"
    assert told.slurm.calls["sacct"] == 0


async def test_a_job_that_left_the_queue_is_told_by_the_accounting():
    told = Told(sacct=done(accounted("5", "FAILED", "7:0") + accounted("5.batch", "FAILED", "7:0")))
    job = await told.job()
    assert (job.state, job.exit_code, job.sources, [step.step_id for step in job.steps]) == (
        "FAILED", 7, ("sacct",), ["batch"],
    )  # fmt: skip


@pytest.mark.proves("unknown-is-said-by-slurm")
@pytest.mark.parametrize("sacct", [NOTHING, DISABLED])
async def test_a_job_is_unknown_when_queue_and_accounting_say_so(sacct):
    with pytest.raises(UnknownJob, match="no such job") as caught:
        await Told(sacct=sacct).job()
    assert (caught.value.field, caught.value.value) == ("job_id", "5")
    assert "See get_status" in (caught.value.hint or "")


async def test_a_task_that_the_accounting_shows_as_a_job_for_a_moment_is_none():
    about = ABOUT.replace("JobId=5 ", "JobId=5 ArrayJobId=4 ArrayTaskId=1 ").format(START, "/x").encode()
    row = accounted("5", "RUNNING", JobName="allocation", End="Unknown")
    told = Told(squeue=done(queued("4_1", raw="5", again="5")), sacct=done(row), scontrol=done(about))
    with pytest.raises(UnknownJob) as caught:
        await told.job("5")
    assert (caught.value.hint or "").startswith("5 is Slurm's own number of 4_1, a part of job 4.")


@pytest.mark.parametrize("squeue", [NOTHING, done(queued("4_1", raw="5", again="5"))])
async def test_the_own_number_of_a_task_is_told_with_the_name_that_it_has(squeue):
    told = Told(squeue=squeue, sacct=done(accounted("4_1", JobIDRaw="5") + accounted("4_1.batch", JobIDRaw="5.batch")))
    with pytest.raises(UnknownJob) as caught:
        await told.job("5")
    assert (caught.value.hint or "").startswith("5 is Slurm's own number of 4_1, a part of job 4.")
    with pytest.raises(UnknownJob) as other:
        await told.job("5_1")
    assert "See get_status" in (other.value.hint or "")


@pytest.mark.proves("unknown-is-said-by-slurm")
@pytest.mark.parametrize(
    "answers",
    [
        {"squeue": SILENT},
        {"sacct": NO_DATABASE},
        {"squeue": SILENT, "sacct": NO_DATABASE},
        {"squeue": SILENT, "sacct": DISABLED},
        {"squeue": done(code=None)},
    ],
)
async def test_a_silent_slurm_makes_no_job_unknown(answers):
    with pytest.raises(SlurmUnreachable):
        await Told(**answers).job()


@pytest.mark.proves("garbage-is-an-error")
@pytest.mark.parametrize("answers", [{"squeue": done(b"lorem\n")}, {"sacct": done(b"lorem\n")}])
async def test_an_answer_that_cannot_be_read_makes_no_job_unknown(answers):
    with pytest.raises(SlurmGarbled):
        await Told(**answers).job()


async def test_the_accounting_tells_of_a_job_that_is_over_while_the_controller_is_silent():
    told = Told(squeue=SILENT, sacct=done(accounted("5", "TIMEOUT", "0:0")))
    assert (await told.job()).state == "TIMEOUT"


@pytest.mark.parametrize("state", ["RUNNING", "PENDING"])
async def test_the_accounting_alone_never_calls_a_job_active(state):
    told = Told(sacct=done(accounted("5", state, End="Unknown")))
    assert (await told.job()).state == "UNKNOWN"


@pytest.mark.proves("reading-tools-answer-in-time")
@pytest.mark.parametrize("state", ["RUNNING", "PENDING"])
async def test_a_job_that_may_go_on_is_an_error_while_the_controller_is_silent(state):
    told = Told(squeue=SILENT, sacct=done(accounted("5", state, End="Unknown")))
    with pytest.raises(SlurmUnreachable):
        await told.job()


@pytest.mark.proves("unknown-is-said-by-slurm")
async def test_an_old_look_at_the_queue_never_makes_a_new_job_unknown():
    told = Told(sacct=done(accounted("5", "RUNNING", End="Unknown")))
    await told.slurm.queue()
    told.clock.move(1)
    told.answers["squeue"] = done(queued("5"))
    assert (await told.job()).state == "RUNNING"


@pytest.mark.proves("unknown-is-said-by-slurm")
async def test_a_controller_that_fell_silent_after_an_old_look_makes_no_job_unknown():
    told = Told(sacct=done(accounted("5", "RUNNING", End="Unknown")))
    await told.slurm.queue()
    told.clock.move(1)
    told.answers["squeue"] = SILENT
    with pytest.raises(SlurmUnreachable):
        await told.job()


@pytest.mark.proves("reading-tools-answer-in-time")
async def test_all_questions_about_a_job_together_have_a_time_limit():
    class Stuck(Prepared):
        async def run(self, argv, **more):
            await anyio.sleep_forever()

    slurm = SlurmClient(Stuck({}), FakeClock(), SlurmSettings(read_timeout=0.05), user="alice")
    with pytest.raises(SlurmUnreachable, match="did not answer") as caught:
        await slurm.job(parse_job_id("5"))
    assert caught.value.hint


async def test_an_array_that_goes_on_shows_the_tasks_that_the_controller_has_forgotten():
    rows = accounted("9_0", "FAILED", "3:0") + accounted("9_1", "RUNNING") + accounted("9_[2-5]", "PENDING")
    told = Told(squeue=done(queued("9_1") + queued("9_[2-5]", "PENDING")), sacct=done(rows))
    view = await told.slurm.job(parse_job_id("9"))
    assert [(str(task.job_id), task.state) for task in view.tasks] == [
        ("9_[2-5]", "PENDING"), ("9_0", "FAILED"), ("9_1", "RUNNING"),
    ]  # fmt: skip
    assert (view.job.state, view.over, told.slurm.calls["sacct"]) == ("RUNNING", False, 1)


async def test_an_array_that_goes_on_is_told_without_the_accounting():
    told = Told(squeue=done(queued("9_1")), sacct=NO_DATABASE)
    assert (await told.job("9")).state == "RUNNING"


async def test_several_jobs_cost_one_question_to_the_accounting_and_the_unknown_ones_are_left_out():
    told = Told(squeue=done(queued("5")), sacct=done(accounted("6") + accounted("7", "FAILED", "1:0")))
    views = await told.slurm.jobs([parse_job_id(text) for text in ("5", "6", "7", "8")])
    assert {str(job_id): view.job.state for job_id, view in views.items()} == {
        "5": "RUNNING", "6": "COMPLETED", "7": "FAILED",
    }  # fmt: skip
    assert told.slurm.calls["sacct"] == 1


async def test_a_task_that_ended_is_told_beside_those_that_run():
    told = Told(squeue=done(queued("9_1")), sacct=done(accounted("9_0", "FAILED", "3:0") + accounted("9_1", "RUNNING")))
    job = await told.job("9_0")
    assert (job.state, job.exit_code) == ("FAILED", 3)


async def test_a_glance_shows_only_what_goes_on():
    told = Told(squeue=done(queued("5") + queued("6", "COMPLETED")))
    seen = await told.slurm.glance(parse_job_id("5"), max_age=2)
    assert seen is not None
    assert seen.job.state == "RUNNING"
    assert await told.slurm.glance(parse_job_id("6"), max_age=2) is None
    assert await told.slurm.glance(parse_job_id("7"), max_age=2) is None
    assert told.slurm.calls == {"squeue": 1}


# --- my jobs -----------------------------------------------------------------------------------------------------


async def test_mine_are_this_users_jobs():
    told = Told(squeue=done(queued("5") + queued("6", user="bob")))
    assert [str(job.job_id) for job in told.slurm.mine(await told.slurm.queue())] == ["5"]


@pytest.mark.parametrize(
    ("queue", "accounts", "found"),
    [
        (queued("5", comment="sat-1"), b"", "5"),
        (b"", accounted("6", Comment="sat-1"), "6"),
        (b"", accounted("6", "RUNNING", Comment="sat-1"), "6"),
        (queued("5", comment="sat-1") + queued("7"), accounted("6", Comment="sat-1"), "5"),
        (queued("5", comment="sat-1", user="bob"), b"", None),
        (queued("5", comment="sat-11"), accounted("6", Comment="sat-12"), None),
        (b"", b"", None),
    ],
)
async def test_a_job_is_found_by_its_token(queue, accounts, found):
    told = Told(squeue=done(queue), sacct=done(accounts))
    job = await told.slurm.find_token("sat-1")
    assert (str(job.job_id) if job else None) == found


async def test_a_token_is_looked_for_in_a_fresh_queue():
    told = Told()
    await told.slurm.queue()
    told.clock.move(1)
    told.answers["squeue"] = done(queued("5", comment="sat-1"))
    assert await told.slurm.find_token("sat-1") is not None


@pytest.mark.parametrize("answers", [{"squeue": SILENT}, {"sacct": NO_DATABASE}])
async def test_a_silent_slurm_never_says_that_no_job_has_the_token(answers):
    with pytest.raises(SlurmUnreachable):
        await Told(**answers).slurm.find_token("sat-1")


async def test_recent_jobs_are_those_that_are_over():
    told = Told(sacct=done(accounted("5") + accounted("6", "RUNNING")))
    recent = await told.slurm.accounting.recent(told.clock.now() - timedelta(hours=2))
    assert [str(job.job_id) for job in recent] == ["5"]
    [asked] = told.runner.asked
    assert {"--starttime=now-120minutes", "--user=alice"} <= set(asked)
    assert "--duplicates" not in asked, "of a requeued job the last run alone"


@pytest.mark.parametrize(("name", "option"), [("train", ["--name=train"]), ("a,b", []), (None, [])])
async def test_jobs_of_one_name_are_asked_for_by_it_unless_a_comma_would_make_two_of_it(name, option):
    told = Told(sacct=done(accounted("5") + accounted("6", "RUNNING")))
    known = {job.name for job in await told.slurm.ran(told.clock.now() - timedelta(hours=2))}
    found = await told.slurm.ran(told.clock.now() - timedelta(hours=2), name)
    assert len(found) == (2 if name is None or {name} == known else 0)
    assert [word for word in told.runner.asked[-1] if word.startswith("--name")] == option


# --- changes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (done(code=None), SlurmUncertain),
        (done(b"", SILENT.stderr, 1), SlurmUncertain),
        (done(b"", b"scancel: error: Access/permission denied", 1), SlurmRefused),
    ],
)
async def test_a_cancel_that_failed_is_told_apart(answer, error):
    with pytest.raises(error):
        await Told(scancel=answer).slurm.cancel(parse_job_id("5"))


async def test_a_submission_is_one_command_with_the_script_on_its_input():
    told = Told(sbatch=done(b"77\n"))
    sent = await told.slurm.submit(["--hold"], b"#!/bin/sh\n", ["a b"], cwd="/p", env={})
    assert sent.job_id == 77
    assert told.runner.asked == [("sbatch", "--parsable", "--hold", "/dev/stdin", "a b")]
