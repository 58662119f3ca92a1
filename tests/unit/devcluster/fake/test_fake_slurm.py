"""The fake Slurm by its public names: faults on command, time, files, and loud errors."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import anyio
import pytest

from slurm_agent_tools.devcluster.fake.answering import UnknownCommand
from slurm_agent_tools.devcluster.fake.endings import Ending, StepEnding
from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.devcluster.fake.fake_files import MemoryFiles
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.devcluster.fake.hardware import FakeNode
from slurm_agent_tools.errors import SlurmGarbled, SlurmRefused, SlurmUncertain, SlurmUnreachable, UnknownJob
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient, Watcher
from slurm_agent_tools.units import JobId

PAGE = Path(__file__).parents[4] / "docs/concepts/fake-slurm.md"
HOME = "/home/alice"
SCRIPT = b"#!/bin/bash\nsleep 5\n"


@pytest.fixture
def files() -> MemoryFiles:
    made = MemoryFiles()
    made.add_folder(HOME)
    return made


@pytest.fixture
def slurm(files: MemoryFiles) -> FakeSlurm:
    return FakeSlurm(files=files)


@pytest.fixture
def client(slurm: FakeSlurm) -> SlurmClient:
    return SlurmClient(slurm, slurm.clock, SlurmSettings(), user="alice")


async def submitted(client: SlurmClient, *options: str) -> JobId:
    return JobId((await client.submit(options, SCRIPT, (), cwd=HOME, env={})).job_id)


async def state(client: SlurmClient, number: int) -> str:
    return (await client.job(JobId(number), fresh=True)).job.state


async def test_the_example_of_the_page_runs():
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    compiled = compile(code[1], str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names: dict[str, object] = {}
    await eval(compiled, names)  # noqa: S307 - our own page
    assert names["number"] == 1


@pytest.mark.parametrize(
    "argv", [["sshare"], ["squeue", "--json"], ["scontrol", "show", "burst"], ["sacct", "--foo=1"], ["sinfo", "-R"]]
)
async def test_an_unknown_command_line_is_an_error_that_names_it(slurm, argv):
    with pytest.raises(UnknownCommand, match=argv[0]):
        await slurm.run(argv)


async def test_a_lost_reply_leaves_a_job_and_a_lost_request_does_not(slurm, client):
    slurm.lose_next_reply("sbatch")
    with pytest.raises(SlurmUncertain):
        await submitted(client, "--comment=sat-0123456789abcdef")
    assert await client.find_token("sat-0123456789abcdef") is not None
    slurm.lose_next_request("sbatch")
    with pytest.raises(SlurmUncertain):
        await submitted(client, "--comment=sat-fedcba9876543210")
    assert await client.find_token("sat-fedcba9876543210") is None


async def test_a_command_that_hangs_takes_the_callers_limit_and_no_real_time(slurm, client):
    slurm.hang("squeue")
    before = slurm.clock.seconds
    with pytest.raises(SlurmUnreachable, match="did not answer"):
        await client.queue(max_age=0)
    assert slurm.clock.seconds - before == pytest.approx(client.settings.read_timeout, abs=0.1)
    await slurm.clock.advance(1)
    assert len(await client.queue(max_age=0)) == 0


async def test_daemons_that_are_away(slurm, client):
    job = await submitted(client)
    slurm.controller_down()
    with pytest.raises(SlurmUnreachable):
        await client.queue(max_age=0)
    slurm.controller_down(False)
    await slurm.clock.advance(20)
    slurm.forget(job.base)
    slurm.accounting_down()
    with pytest.raises(SlurmUnreachable):
        await client.job(job, fresh=True)
    slurm.accounting_down(False)
    await slurm.clock.advance(2)
    assert await state(client, job.base) == "COMPLETED"


async def test_garbage_is_never_an_empty_queue(slurm, client):
    slurm.garble("squeue")
    with pytest.raises(SlurmGarbled):
        await client.queue(max_age=0)


async def test_an_accounting_that_is_late_leaves_a_forgotten_job_unknown(slurm, client):
    slurm.accounting_delay(30)
    job = await submitted(client)
    await slurm.clock.advance(10)
    slurm.forget(job.base)
    with pytest.raises(UnknownJob):
        await client.job(job, fresh=True)
    await slurm.clock.advance(25)
    assert await state(client, job.base) == "UNKNOWN"  # its start is told, its end is not
    await slurm.clock.advance(10)
    assert await state(client, job.base) == "COMPLETED"


async def test_the_controller_forgets_what_ended_longer_ago_than_min_job_age(slurm, client):
    job = await submitted(client)
    await slurm.clock.advance(400)
    assert len(await client.queue(max_age=0)) == 0
    assert (await client.job(job)).job.sources == ("sacct",)


async def test_a_rate_limit_makes_a_crowd_of_questions_wait_in_the_clocks_time(slurm, client):
    slurm.limit_rate(2)
    before = slurm.clock.seconds
    for _ in range(4):
        await slurm.run(["scontrol", "ping"])
    assert slurm.clock.seconds - before > 1


async def test_somebody_else_may_act_in_the_moment_of_a_command(slurm, client):
    job = await submitted(client, "--hold")
    slurm.before_next("scontrol release", lambda: slurm.command("scancel", str(job.base)))
    with pytest.raises(SlurmRefused, match="already finished"):
        await client.release(job)
    assert await state(client, job.base) == "CANCELLED"


async def test_what_was_told_of_each_task_comes_true(slurm, client):
    slurm.next_job(tasks={1: Ending(signal=11), 2: Ending(after=None)})
    number = slurm.submit("#!/bin/bash\ntrue\n", "--array=0-2", "--time=1", cwd=HOME)
    await slurm.clock.advance(70)
    tasks = (await client.job(JobId(number), fresh=True)).tasks
    assert [task.state for task in tasks] == ["COMPLETED", "FAILED", "TIMEOUT"]


async def test_steps_and_memory_that_were_told_reach_the_accounting(slurm, client):
    slurm.next_job(steps=(StepEnding("train", out_of_memory=True, memory=2**30),), exit_code=1)
    job = JobId(slurm.submit(cwd=HOME))
    await slurm.clock.advance(5)
    view = await client.job(job, fresh=True)
    step = next(step for step in view.job.steps if step.step_id == "0")
    assert (step.state, step.max_rss_bytes) == ("OUT_OF_MEMORY", 2**30)


async def test_a_watcher_waits_without_real_time(slurm, client):
    job = await submitted(client)
    with anyio.fail_after(20):
        view = await Watcher(client, slurm.clock).wait(job, 3600)
    assert view.over
    assert view.job.state == "COMPLETED"


async def test_output_comes_at_its_time(slurm, files):
    slurm.next_job(after=10, output=[(0, "one\n"), (5, "two\n")])
    number = slurm.submit(cwd=HOME)
    await slurm.clock.advance(3)
    path = f"{HOME}/slurm-{number}.out"
    assert await files.read(path) == b"one\n"
    await slurm.clock.advance(5)
    assert await files.read(path) == b"one\ntwo\n"


async def test_nodes_of_the_tests_own_hold_so_many_jobs_and_no_more(files):
    slurm = FakeSlurm(files=files, nodes=[FakeNode("n1", cpus=2, memory=4000)])
    numbers = [slurm.submit(cwd=HOME) for _ in range(3)]
    await slurm.clock.advance(2)
    assert [slurm.job(number).state for number in numbers] == ["RUNNING", "RUNNING", "PENDING"]
    assert slurm.job(numbers[2]).reason == "Resources"


async def test_a_node_that_fails_takes_its_jobs_with_it_and_begins_those_again_that_may(slurm, client):
    lost = slurm.submit("#!/bin/bash\nsleep 600\n", "--no-requeue", cwd=HOME)
    again = slurm.submit("#!/bin/bash\nsleep 600\n", "--requeue", cwd=HOME)
    await slurm.clock.advance(2)
    slurm.fail_node("cpu01")
    assert await state(client, lost) == "NODE_FAIL"
    await slurm.clock.advance(130)
    view = await client.job(JobId(again), fresh=True)
    assert (view.job.state, view.job.restarts, view.job.nodes) == ("RUNNING", 1, "cpu02")


async def test_other_users_jobs_are_theirs(slurm, client):
    number = slurm.submit(user="bob", cwd=HOME)
    assert not client.mine(await client.queue(max_age=0))
    answer = slurm.command("scancel", str(number))
    assert (answer.code, "Access/permission denied" in answer.err) == (1, True)


async def test_a_cluster_without_accounting(files):
    slurm = FakeSlurm(files=files, accounting=False)
    client = SlurmClient(slurm, slurm.clock, SlurmSettings(), user="alice")
    job = await submitted(client)
    await slurm.clock.advance(20)
    assert not (await client.info()).accounting
    assert await state(client, job.base) == "COMPLETED"


class TestTheClock:
    async def test_sleepers_wake_in_the_order_of_their_time(self):
        clock, woken = FakeClock(), list[int]()

        async def sleeper(seconds: int) -> None:
            await clock.sleep(seconds)
            woken.append(seconds)

        async with anyio.create_task_group() as group:
            for seconds in (30, 10, 20):
                group.start_soon(sleeper, seconds)
        assert woken == [10, 20, 30]

    async def test_a_steady_one_moves_only_when_it_is_told_to(self):
        clock, woken = FakeClock(steady=True), list[str]()

        async def sleeper() -> None:
            await clock.sleep(10)
            woken.append("up")

        async with anyio.create_task_group() as group:
            group.start_soon(sleeper)
            await anyio.lowlevel.checkpoint()
            await clock.advance(9)
            assert not woken
            await clock.advance(1)
            assert woken


class TestFilesInMemory:
    async def test_they_do_what_files_do(self, files):
        assert await files.write_new(f"{HOME}/a/b.txt", b"one")
        assert not await files.write_new(f"{HOME}/a/b.txt", b"two")
        assert await files.append(f"{HOME}/a/b.txt", b"+")
        assert not await files.append(f"{HOME}/none", b"+")
        assert await files.read(f"{HOME}/a/b.txt", offset=1, size=2) == b"ne"
        assert await files.read_parts(f"{HOME}/a/b.txt", [(0, 1), (3, 1)]) == [b"o", b"+"]
        assert await files.list(HOME) == ["a"]
        assert await files.list("/none") is None
        found = await files.stat(f"{HOME}/a/b.txt")
        assert found is not None
        assert (found.size, found.kind) == (4, "file")
        assert await files.stat(f"{HOME}/none") is None
