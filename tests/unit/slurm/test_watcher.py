from dataclasses import replace
from functools import partial

import anyio
import pytest
from tests.unit.slurm.answers import Prepared, done
from tests.unit.slurm.clocks import START, accounted, queued
from tests.unit.virtual_time import VirtualClock, in_no_time, passed

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.errors import SlurmUnreachable, UnknownJob
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient, Watcher, offset, poll_interval
from slurm_agent_tools.units import JobId

UNKNOWN = done(b"", b"slurm_load_jobs error: Invalid job id specified", 1)
SILENT = done(b"", b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1)
DAY = 86400


def _noted(scene, seen, _):
    seen.append(scene.passed)
    return done(queued("5"))


async def together(*works):
    async with anyio.create_task_group() as group:
        for work in works:
            group.start_soon(work)


class Scene:
    """A cluster whose answers follow the fake clock, and a watcher over it."""

    def __init__(self, queue, accounts=lambda _: b"") -> None:
        self.clock = FakeClock()
        self.runner = Prepared(
            {
                "squeue": lambda _: self._answer(queue),
                "scontrol": lambda _: UNKNOWN,
                "sacct": lambda _: self._answer(accounts),
            }
        )
        self.slurm = SlurmClient(self.runner, self.clock, SlurmSettings(), user="alice")
        self.watcher = Watcher(self.slurm, self.clock)
        self.views, self.progress = [], []

    @property
    def passed(self):
        return self.clock.seconds - START

    def _answer(self, what):
        found = what(self.passed)
        return found if not isinstance(found, bytes) else done(found)

    async def wait(self, timeout, *, job=5, progress=True):
        async def say(view, passed):
            self.progress.append(passed)

        self.views.append(await self.watcher.wait(JobId(job), timeout, say if progress else None))

    async def run(self, timeout, **more):
        await together(partial(self.wait, timeout, **more))
        return self.views[0]


@pytest.mark.parametrize(
    ("age", "limit", "ran", "seconds"),
    [
        (0, None, 0, 10),
        (299, None, 299, 10),
        (300, None, 300, 30),
        (1799, None, 1799, 30),
        (1800, None, 1800, 300),
        (DAY, None, DAY, 300),
        (DAY, -1, DAY, 300),
        (7000, 36000, 7000, 300),
        (33000, 36000, 32399, 300),
        (33000, 36000, 32400, 60),
        (36000, 36000, 36000, 60),
        (600, 600, 590, 30),
        (100, 60, 59, 10),
        (DAY, 3600, 0, 300),
    ],
)
def test_the_pauses_follow_the_age_and_the_last_tenth(age, limit, ran, seconds):
    assert poll_interval(age, limit, ran) == seconds


async def test_a_wait_ends_at_the_first_look_after_the_end():
    scene = Scene(lambda passed: queued("5") if passed < 35 else b"", lambda _: accounted("5"))
    view = await scene.run(1000)
    assert view.job.state == "COMPLETED"
    assert 35 <= scene.passed <= 45


async def test_a_job_that_is_over_is_not_waited_for():
    scene = Scene(lambda _: b"", lambda _: accounted("5", "FAILED", "7:0"))
    view = await scene.run(1000)
    assert (view.job.state, view.job.exit_code, scene.passed, scene.progress) == ("FAILED", 7, 0, [])


@pytest.mark.parametrize("timeout", [0, 0.5, 1, 7, 25, 601])
async def test_a_wait_returns_when_the_time_is_up(timeout):
    scene = Scene(lambda _: queued("5"))
    view = await scene.run(timeout)
    assert view.job.state == "RUNNING"
    assert scene.passed == pytest.approx(timeout, abs=0.01)


async def test_progress_comes_every_two_seconds_and_rises():
    scene = Scene(lambda _: queued("5"))
    await scene.run(45)
    assert scene.progress == sorted(scene.progress)
    assert len(scene.progress) >= 22
    assert max(later - before for before, later in zip(scene.progress, scene.progress[1:], strict=False)) <= 2


async def test_a_wait_without_progress_is_the_same_wait():
    scene = Scene(lambda passed: queued("5") if passed < 35 else b"", lambda _: accounted("5"))
    assert (await scene.run(1000, progress=False)).job.state == "COMPLETED"


@pytest.mark.proves("waits-share-queries")
async def test_fifty_waits_cost_one_look_at_the_queue_per_tick():
    queue = b"".join(queued(str(number)) for number in range(1, 51))
    scene = Scene(lambda _: queue)
    await together(*(partial(scene.wait, 60, job=number, progress=False) for number in range(1, 51)))
    assert len(scene.views) == 50
    assert scene.slurm.calls["squeue"] <= 8  # at the start, at six ticks of ten seconds, at the end
    assert scene.slurm.calls["sacct"] == 0


@pytest.mark.proves("waits-share-queries")
async def test_fifty_waits_for_one_job_ask_the_accounting_once_when_it_ends():
    scene = Scene(lambda passed: queued("5") if passed < 35 else b"", lambda _: accounted("5"))
    await together(*(partial(scene.wait, 600, progress=False) for _ in range(50)))
    assert {view.job.state for view in scene.views} == {"COMPLETED"}
    assert scene.slurm.calls["sacct"] == 1
    assert scene.slurm.calls["squeue"] <= 6


@pytest.mark.proves("crowds-are-cheap")
async def test_five_hundred_waits_over_two_hundred_jobs_that_end_at_once_cost_as_many_looks_as_one():
    ids = [str(number) for number in range(1, 201)]
    queue, accounts = b"".join(map(queued, ids)), b"".join(map(accounted, ids))
    scene = Scene(lambda passed: queue if passed < 35 else b"", lambda _: accounts)
    waits = [partial(scene.wait, 600, job=number % 200 + 1, progress=False) for number in range(500)]
    await together(*waits)
    assert {view.job.state for view in scene.views} == {"COMPLETED"}
    assert len(scene.views) == 500
    alone = Scene(lambda passed: queue if passed < 35 else b"", lambda _: accounts)
    await alone.run(600)
    assert scene.slurm.calls["squeue"] == alone.slurm.calls["squeue"]
    assert scene.slurm.calls["sacct"] == alone.slurm.calls["sacct"] == 1
    assert scene.slurm.calls["scontrol show job"] <= alone.slurm.calls["scontrol show job"] + 4


@pytest.mark.proves("crowds-are-cheap")
async def test_five_hundred_waits_that_began_within_three_seconds_look_together_when_their_time_is_up():
    scene = Scene(lambda _: queued("5"))

    async def late(number):
        await scene.clock.sleep(5 + number * 0.006)
        await scene.wait(60, progress=False)

    await together(*(partial(late, number) for number in range(500)))
    assert len(scene.views) == 500
    assert scene.slurm.calls["squeue"] == 8  # at the start, at six ticks, and one at the end


@pytest.mark.parametrize(("waits", "before"), [(1, 0.004), (50, 0.2), (100, 0.4)])
async def test_the_last_look_of_a_crowd_leaves_time_for_all_their_answers(waits, before):
    looks = []
    scene = Scene(lambda passed: looks.append(passed) or queued("5"))
    await together(*(partial(scene.wait, 61, progress=False) for _ in range(waits)))
    assert len(scene.views) == waits
    assert 61 - looks[-1] == pytest.approx(before, abs=0.01)


@pytest.mark.proves("crowds-are-cheap")
async def test_two_hundred_users_do_not_look_in_the_same_second():
    seconds = [int(offset(f"user{number}")) % 10 for number in range(200)]
    assert max(seconds.count(second) for second in range(10)) < 40
    one, other = Scene(lambda _: queued("5")), Scene(lambda _: queued("5"))
    other.watcher = Watcher(SlurmClient(other.runner, other.clock, SlurmSettings(), user="bob"), other.clock)
    looks = [[], []]
    for scene, seen in zip((one, other), looks, strict=True):
        scene.runner.answers["squeue"] = partial(_noted, scene, seen)
        await scene.run(30)
    assert not {round(moment) for moment in looks[0][1:-1]} & {round(moment) for moment in looks[1][1:-1]}


@pytest.mark.proves("crowds-are-cheap")
async def test_on_a_long_queue_only_a_few_jobs_are_asked_about_one_by_one():
    queue = b"".join(queued(str(number)) for number in range(1, 1501))
    scene = Scene(lambda _: queue)
    waits = [partial(scene.wait, 30, job=number + 1, progress=False) for number in range(100)]
    await together(*waits)
    assert scene.slurm.calls["scontrol show job"] <= 4


async def test_a_busy_controller_is_looked_at_less_often():
    figures = b"Server thread count: 200\nAgent queue size: 0\n"

    async def looks(seconds):
        scene = Scene(lambda _: queued("5"))
        scene.runner.answers = {
            "squeue": lambda _: replace(done(queued("5")), seconds=seconds),
            "scontrol": lambda _: UNKNOWN,
            "sdiag": lambda _: done(figures),
        }
        await scene.run(120)
        return scene.slurm.calls

    quick, slow = await looks(0.1), await looks(3.5)
    assert (quick["squeue"], quick["sdiag"]) == (14, 0)  # at the start, at twelve ticks, at the end
    assert (slow["squeue"] <= 6, slow["sdiag"]) == (True, 1)


async def test_a_requeue_in_between_does_not_end_the_wait():
    def queue(passed):
        if passed < 15:
            return queued("5")
        if passed < 45:
            return queued("5", "PENDING", reason="BeginTime")
        return queued("5") if passed < 75 else b""

    earlier, later = accounted("5", "NODE_FAIL"), accounted("5", "COMPLETED")
    scene = Scene(queue, lambda passed: earlier if passed < 75 else later)
    view = await scene.run(1000)
    assert view.job.state == "COMPLETED"
    assert scene.passed >= 75


async def test_an_accounting_that_lags_does_not_end_the_wait():
    scene = Scene(
        lambda passed: queued("5") if passed < 15 else b"",
        lambda passed: accounted("5", "RUNNING", End="Unknown") if passed < 55 else accounted("5"),
    )
    view = await scene.run(1000)
    assert view.job.state == "COMPLETED"
    assert scene.passed >= 55


async def test_an_outage_in_the_middle_is_an_error_and_no_end():
    scene = Scene(lambda passed: queued("5") if passed < 15 else SILENT, lambda _: accounted("5", "RUNNING"))
    with pytest.raises(BaseExceptionGroup) as caught:
        await scene.run(1000)
    assert caught.group_contains(SlurmUnreachable)
    assert 15 <= scene.passed <= 25


async def test_a_job_that_nobody_knows_is_not_waited_for():
    scene = Scene(lambda _: b"")
    with pytest.raises(BaseExceptionGroup) as caught:
        await scene.run(1000)
    assert caught.group_contains(UnknownJob)
    assert scene.passed == 0


@pytest.mark.proves("wait-is-bounded")
@in_no_time
async def test_a_look_that_is_never_answered_is_given_up_soon_after_the_asked_time():
    class Stuck(Prepared):
        async def run(self, argv, **more):
            if len(self.asked) == 2:  # the first look took squeue and scontrol
                await anyio.sleep_forever()
            return await super().run(argv, **more)

    runner = Stuck({"squeue": lambda _: done(queued("5")), "scontrol": lambda _: UNKNOWN})
    clock = VirtualClock()
    slurm = SlurmClient(runner, clock, SlurmSettings(), user="alice")
    with pytest.raises(SlurmUnreachable):
        await Watcher(slurm, clock).wait(JobId(5), 45)
    assert 45 < passed() <= 45 + 2
