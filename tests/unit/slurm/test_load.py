import pytest
from tests.unit.slurm.answers import done

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import SlurmGarbled, SlurmUnreachable
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient, Watcher
from slurm_agent_tools.slurm.commands import sdiag
from slurm_agent_tools.slurm.commands.sdiag import ControllerStatistics
from slurm_agent_tools.slurm.questions import CALM, ControllerAnswer, judge_load
from slurm_agent_tools.units import JobId

IDLE, BUSY = ControllerStatistics(3, 0, 0.04), ControllerStatistics(200, 0, 0.04)
QUICK, SLOW, STALLED = ControllerAnswer(0.02, 5_000), ControllerAnswer(9.0, 8_000_000), ControllerAnswer(2.5, 5_000)
SILENT = ControllerAnswer(6.0, 0, came=False)


@pytest.mark.parametrize(
    ("answers", "diagnosis", "kind", "factor"),
    [
        ([], None, "calm", 1),
        ([QUICK] * 6, BUSY, "calm", 1),
        ([QUICK] * 5 + [STALLED], None, "calm", 1),
        ([QUICK] * 5 + [STALLED], BUSY, "loaded", 3),
        ([ControllerAnswer(3.0, 8_000_000)] * 6, None, "calm", 1),  # a long answer may take its time
        ([SLOW, SLOW], IDLE, "loaded", 2),
        ([STALLED, STALLED], IDLE, "limited", 3),
        ([STALLED, STALLED], None, "limited", 3),
        ([STALLED, STALLED], BUSY, "loaded", 3),
        ([SILENT, SILENT], None, "loaded", 6),
        ([ControllerAnswer(60.0, 10)] * 3, IDLE, "limited", 6),
        ([STALLED, STALLED, *[QUICK] * 6], IDLE, "calm", 1),
    ],
)
def test_the_verdict_follows_from_the_last_answers(answers, diagnosis, kind, factor):
    found = judge_load(answers, diagnosis)
    assert (found.kind, found.factor) == (kind, factor)


def test_the_verdict_says_how_long_a_slow_answer_took():
    assert judge_load([QUICK, STALLED, ControllerAnswer(3.5, 10)], IDLE).seconds == 3.0


@pytest.mark.parametrize(
    ("diagnosis", "busy"),
    [
        (IDLE, False),
        (ControllerStatistics(100, 0, None), True),
        (ControllerStatistics(1, 500, 0.1), True),
        (ControllerStatistics(1, 0, 5.0), True),
    ],
)
def test_a_controller_is_busy_by_its_own_figures(diagnosis, busy):
    assert diagnosis.busy is busy


SDIAG = b"""\
*******************************************************
Server thread count:  3
Agent queue size:     17
DBD Agent queue size: 4

Main schedule statistics (microseconds):
	Last cycle:   47202
	Mean cycle:   36792
	Mean depth cycle:  0

Backfilling stats
	Mean cycle:   99999999
"""


def test_the_controllers_figures_are_read():
    assert sdiag.parse(done(SDIAG)) == ControllerStatistics(threads=3, agent_queue=17, mean_cycle=0.036792)


def test_a_controller_before_its_first_cycle_has_no_mean_cycle():
    assert sdiag.parse(done(SDIAG.replace(b"Mean cycle", b"Other"))).mean_cycle is None


@pytest.mark.parametrize("answer", [b"", b"lorem", SDIAG.replace(b"17", b"many")])
def test_other_figures_are_an_error(answer):
    with pytest.raises(SlurmGarbled):
        sdiag.parse(done(answer))


def test_a_silent_controller_has_no_figures():
    with pytest.raises(SlurmUnreachable):
        sdiag.parse(done(code=None))


class Slow:
    """A client of a controller that takes `seconds` for each look at the queue."""

    def __init__(self, seconds):
        self.fake = FakeSlurm()
        self.clock, self.number = (
            self.fake.clock,
            self.fake.submit("#!/bin/bash\nsleep infinity\n", "--output=/dev/null"),
        )
        self.clock.move(60)
        self.fake.slow("squeue", seconds)
        self.slurm = SlurmClient(self.fake, self.clock, SlurmSettings(), user=self.fake.user)

    async def look(self, times=2):
        for _ in range(times):
            await self.slurm.queue(max_age=0)
            self.clock.move(1)


async def test_a_quick_controller_is_not_asked_how_it_is():
    scene = Slow(0.01)
    await scene.look()
    assert await scene.slurm.diagnose() == CALM
    assert scene.slurm.calls["sdiag"] == 0
    assert scene.slurm.age_limit == 10


async def test_a_slow_controller_is_asked_how_it_is_every_five_minutes():
    scene = Slow(2.5)
    await scene.look()
    for _ in range(3):
        assert (await scene.slurm.diagnose()).kind == "limited"
    scene.clock.move(301)
    await scene.slurm.diagnose()
    assert scene.slurm.calls["sdiag"] == 2


async def test_a_controller_that_does_not_tell_its_figures_is_judged_without_them():
    scene = Slow(2.5)
    scene.fake.garble("sdiag", "lorem", times=None)
    await scene.look()
    assert (await scene.slurm.diagnose()).kind == "limited"


async def test_a_limited_controller_is_looked_at_less_often_and_its_answers_are_kept_longer():
    scene = Slow(2.5)
    await scene.look()
    assert scene.slurm.age_limit == 30
    view = await scene.slurm.glance(JobId(scene.number), max_age=10)
    assert view is not None
    assert Watcher(scene.slurm, scene.clock).pause(view) == 30
    scene.fake.slow("squeue", 0)
    await scene.look(6)
    assert Watcher(scene.slurm, scene.clock).pause(view) == 10
