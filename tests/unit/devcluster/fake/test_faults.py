"""What goes wrong on command: the client meets it as it would meet it on a cluster."""

from __future__ import annotations

import pytest

from slurm_agent_tools.devcluster.fake.fake_files import MemoryFiles
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import SlurmGarbled, SlurmRefused, SlurmUncertain, SlurmUnreachable
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.units import JobId

SCRIPT = b"#!/bin/bash\nsleep 60\n"


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm(files=MemoryFiles())  # jobs begin, and write their logs


@pytest.fixture
def client(slurm: FakeSlurm) -> SlurmClient:
    return SlurmClient(slurm, slurm.clock, SlurmSettings(), user="alice")


async def send(client: SlurmClient) -> int:
    return (await client.submit(["--time=5"], SCRIPT, [], cwd="/", env={})).job_id


async def test_a_lost_reply_is_uncertain_and_the_job_is_there(slurm, client):
    slurm.lose_next_reply("sbatch")
    with pytest.raises(SlurmUncertain):
        await send(client)
    assert [job.job_id for job in await client.queue(max_age=0)] == [JobId(1)]
    assert await send(client) == 2  # only the next reply was lost


async def test_a_lost_request_is_uncertain_and_there_is_no_job(slurm, client):
    slurm.lose_next_request("sbatch")
    with pytest.raises(SlurmUncertain):
        await send(client)
    assert list(await client.queue(max_age=0)) == []


@pytest.mark.parametrize(("carried_out", "there"), [(False, 0), (True, 1)])
async def test_a_command_that_hangs_takes_the_whole_time_limit(slurm, client, carried_out: bool, there: int):
    slurm.hang("sbatch", carried_out=carried_out)
    before = slurm.clock.seconds
    with pytest.raises(SlurmUncertain):
        await send(client)
    assert slurm.clock.seconds - before == pytest.approx(client.settings.submit_timeout, abs=0.1)
    assert len(await client.queue(max_age=0)) == there


async def test_a_question_that_hangs_is_no_answer(slurm, client):
    slurm.hang("squeue")
    with pytest.raises(SlurmUnreachable):
        await client.queue(max_age=0)


async def test_a_refusal_in_given_words_is_told_in_them_and_as_often_as_asked(slurm, client):
    for _ in range(2):
        slurm.fail("sbatch", "sbatch: error: QOSMaxSubmitJobPerUserLimit\n")
    for _ in range(2):
        with pytest.raises(SlurmRefused, match="QOSMaxSubmitJobPerUserLimit"):
            await send(client)
    assert await send(client) == 1


async def test_a_fault_of_one_subcommand_leaves_the_others_alone(slurm, client):
    number = await send(client)
    slurm.fail("scontrol release", "Unable to contact slurm controller\n")
    assert (await client.held(JobId(number))).resources.time_limit_seconds == 300
    with pytest.raises((SlurmUncertain, SlurmUnreachable)):
        await client.release(JobId(number))


async def test_garbage_is_told_as_garbage(slurm, client):
    slurm.garble("squeue")
    with pytest.raises(SlurmGarbled, match="Lmod"):
        await client.queue(max_age=0)
    slurm.clock.move(1)
    assert list(await client.queue(max_age=0)) == []


async def test_something_may_happen_just_before_a_command_comes(slurm, client):
    number = await send(client)
    slurm.clock.move(2)
    slurm.before_next("scancel", lambda: slurm.clock.move(120))
    await client.cancel(JobId(number))
    assert slurm.job(number).state == "COMPLETED"  # it had ended by itself


async def test_a_controller_that_is_away_answers_no_question_until_it_is_back(slurm, client):
    slurm.controller_down()
    for ask in (lambda: client.queue(max_age=0), client.nodes, lambda: client.cancel(JobId(1))):
        with pytest.raises((SlurmUnreachable, SlurmUncertain)):
            await ask()
    assert slurm.command("sinfo", "--version").out == "slurm-wlm 22.05.8\n"
    slurm.controller_down(False)
    assert list(await client.queue(max_age=0)) == []


async def test_an_accounting_that_is_away_leaves_the_queue_standing(slurm, client):
    number = await send(client)
    slurm.accounting_down()
    assert (await client.job(JobId(number), fresh=True)).job.state == "PENDING"
    slurm.clock.move(400)
    with pytest.raises(SlurmUnreachable):
        await client.job(JobId(number), fresh=True)
    slurm.accounting_down(False)
    slurm.clock.move(60)
    assert (await client.job(JobId(number), fresh=True)).job.state == "COMPLETED"


async def test_a_job_that_the_controller_forgot_is_told_by_the_accounting(slurm, client):
    slurm.next_job(exit_code=3, after=5)
    number = await send(client)
    slurm.clock.move(30)
    slurm.forget(number)
    assert list(await client.queue(max_age=0)) == []
    view = await client.job(JobId(number), fresh=True)
    assert (view.job.state, view.job.exit_code, view.job.elapsed_seconds) == ("FAILED", 3, 5)
    assert slurm.job(number).code == 3


async def test_a_late_accounting_does_not_know_what_just_happened(slurm):
    slurm.accounting_delay(30)
    number = slurm.submit("#!/bin/bash\nsleep 5\n")
    asked = ("sacct", "-n", "-P", "-j", str(number), "-o", "State")
    slurm.clock.move(20)
    assert slurm.command(*asked).out == ""
    slurm.clock.move(12)
    assert slurm.command(*asked).out.splitlines() == ["RUNNING", "RUNNING"]  # of the job and of its script
    slurm.clock.move(20)
    assert slurm.command(*asked).out.splitlines() == ["COMPLETED", "COMPLETED"]


async def test_a_slow_command_takes_its_time_of_the_clock_and_no_longer_than_it_may(slurm):
    slurm.slow("sinfo", 4)
    before = slurm.clock.seconds
    done = await slurm.run(["sinfo", "--version"])
    assert (done.exit_code, slurm.clock.seconds - before) == (0, pytest.approx(4, abs=0.05))
    done = await slurm.run(["sinfo", "--version"], timeout=3)
    assert done.timed_out
    assert slurm.clock.seconds - before == pytest.approx(7, abs=0.05)


async def test_a_user_above_the_rate_waits_and_comes_through(slurm):
    slurm.limit_rate(3)
    times = [(await slurm.run(["sinfo", "--version"])).seconds for _ in range(5)]
    assert [round(one, 1) for one in times] == [0.0, 0.0, 0.0, 1.0, 0.0]
    assert (await slurm.run(["date", "+%s"])).seconds < 1  # not a command of Slurm's


async def test_an_answer_above_the_bound_is_cut_and_says_so(slurm):
    done = await slurm.run(["scontrol", "show", "config"], max_output=20)
    assert (len(done.stdout), done.truncated) == (20, True)
    assert not (await slurm.run(["scontrol", "show", "config"])).truncated


async def test_the_commands_through_the_seam_are_counted_and_those_past_it_are_not(slurm):
    slurm.command("sinfo", "--version")
    slurm.submit()
    await slurm.run(["sinfo", "--version"])
    assert slurm.counts == {"sinfo": 1}
