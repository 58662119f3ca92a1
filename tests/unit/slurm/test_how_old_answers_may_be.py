"""How old each answer of the client may be, who is asked how often, and that no two separators are alike."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from operator import attrgetter

import pytest

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.devcluster.fake.fake_files import MemoryFiles
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import UnknownJob
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.units import JobId


class Asking:
    """A client with a clock of its own, in which commands take no time."""

    def __init__(self) -> None:
        self.slurm, self.clock = FakeSlurm(files=MemoryFiles()), FakeClock()
        self.client = SlurmClient(self.slurm, self.clock, SlurmSettings(cache_seconds=10), user=self.slurm.user)

    async def twice(self, question: str, passed: float, **more: object) -> Counter[str]:
        """What a second question costs after so many seconds."""
        ask = getattr(self.client, question) if "." not in question else getattr(self.client.running, question[8:])
        await ask(**more)
        before = Counter(self.client.calls)
        self.clock.move(passed)
        await ask(**more)
        return Counter(self.client.calls) - before


@pytest.fixture
def asking() -> Asking:
    return Asking()


@pytest.mark.parametrize(
    ("question", "passed", "more", "asked"),
    [
        ("queue", 10, {}, None),
        ("queue", 10.5, {}, "squeue"),
        ("queue", 0.5, {"max_age": 0}, "squeue"),
        ("queue", 30, {"max_age": 30}, None),
        ("queue", 3, {"max_age": 2}, "squeue"),
        ("nodes", 10, {}, None),
        ("nodes", 10.5, {}, "scontrol show nodes"),
        ("nodes", 0.5, {"max_age": 0}, "scontrol show nodes"),
        ("nodes", 3, {"max_age": 2}, "scontrol show nodes"),
        ("partitions", 10, {}, None),
        ("partitions", 10.5, {}, "scontrol show partition"),
        ("partitions", 60, {"max_age": 60}, None),
        ("partitions", 60.5, {"max_age": 60}, "scontrol show partition"),
        ("info", 3600, {}, None),
        ("info", 3600.5, {}, "scontrol show config"),
        ("running.reservations", 60, {}, None),
        ("running.reservations", 60.5, {}, "scontrol show reservation"),
    ],
)
async def test_an_answer_is_asked_for_again_once_it_is_too_old(asking: Asking, question, passed, more, asked):
    assert await asking.twice(question, passed, **more) == ({} if asked is None else {asked: 1})


async def test_who_wants_partitions_afresh_wants_what_their_nodes_have_too(asking: Asking):
    assert set(await asking.twice("partitions", 20, max_age=5)) == {"scontrol show partition"}
    found = await asking.twice("partitions", 20, fresh=True)
    assert found["scontrol show nodes"] == 1


async def test_what_a_running_job_uses_is_ten_seconds_old_at_most(asking: Asking):
    asking.slurm.next_job(after=None)
    number = asking.slurm.submit("#!/bin/bash\nsleep 60\n", cwd="/home/alice")
    await asking.slurm.clock.advance(5)
    for passed, asked in ((0, 1), (10, 1), (0.5, 2)):
        asking.clock.move(passed)
        await asking.client.running.use([number])
        assert asking.client.calls["sstat"] == asked


async def test_ages_are_those_of_the_last_answers(asking: Asking):
    assert asking.client.ages == {"queue": None, "nodes": None, "partitions": None}
    await asking.client.partitions()
    asking.clock.move(3)
    await asking.client.queue()
    asking.clock.move(4)
    assert asking.client.ages == {"queue": 4, "nodes": 7, "partitions": 7}


async def test_every_table_has_a_separator_that_nobody_can_foresee(asking: Asking):
    for _ in range(3):
        await asking.client.queue(max_age=0)
        await asking.client.ran(asking.clock.now() - timedelta(days=1))
        asking.clock.move(700)
        await asking.client.past()
    marks = [
        next(word.rpartition("\x1f")[2][:16] for word in argv if "\x1f" in word)
        for argv in asking.slurm.asked
        if any("\x1f" in word for word in argv)
    ]
    assert len(marks) >= 9
    assert len(set(marks)) == len(marks)
    assert all(len(mark.rstrip("%")) >= 8 for mark in marks)


async def test_a_cluster_says_its_name_its_version_and_whether_it_keeps_accounts(asking: Asking):
    info = await asking.client.info()
    assert (bool(info.name), bool(info.version), info.accounting) == (True, True, True)


async def test_a_job_is_looked_for_no_older_than_was_asked(asking: Asking):
    number = JobId(asking.slurm.submit("#!/bin/bash\nsleep 60\n", cwd="/home/alice"))
    for passed, more, asked in (
        (0, {}, 1),
        (10, {}, 1),
        (0.5, {}, 2),
        (5, {"max_age": 4}, 3),
        (0.5, {"fresh": True}, 4),
    ):
        asking.clock.move(passed)
        await asking.client.job(number, **more)
        assert asking.client.calls["squeue"] == asked
    with pytest.raises(UnknownJob):
        await asking.client.job(JobId(999))


async def test_the_jobs_of_others_are_not_mine(asking: Asking):
    mine = asking.slurm.submit("#!/bin/bash\nsleep 60\n", cwd="/home/alice")
    other = asking.slurm.submit("#!/bin/bash\nsleep 60\n", user="eve")
    queue = await asking.client.queue()
    assert {job.job_id.base for job in queue} == {mine, other}
    assert [job.job_id.base for job in asking.client.mine(queue)] == [mine]
    assert [job.job_id.base for job in asking.client.mine(list(queue))] == [mine]


class Slow(FakeSlurm):
    """Every command takes three seconds and a half."""

    async def run(self, argv, **more):
        return replace(await super().run(argv, **more), seconds=3.5)


async def test_a_slow_controller_is_asked_why_every_five_minutes_and_its_answers_may_be_older():
    asking = Asking()
    slow = Slow(files=MemoryFiles())
    client = SlurmClient(slow, asking.clock, SlurmSettings(cache_seconds=10), user=slow.user)
    assert (client.age_limit, (await client.diagnose()).factor) == (10, 1)
    for passed, asked in ((0, 1), (300, 1), (0.5, 2)):
        asking.clock.move(passed)
        for _ in range(2):
            await client.queue(max_age=0)
        verdict = await client.diagnose()
        assert client.calls["sdiag"] == asked
        assert verdict.factor == 4
    assert client.age_limit == 40


@pytest.mark.parametrize(("passed", "asked"), [(600, 0), (600.5, 1)])
async def test_what_was_waited_lately_is_kept_for_ten_minutes(asking: Asking, passed: float, asked: int):
    assert not asking.client.lookback.kept
    await asking.client.past()
    before = asking.client.calls["sacct"]
    asking.clock.move(passed)
    assert asking.client.lookback.kept == (asked == 0)
    await asking.client.past(ask=False)
    assert asking.client.calls["sacct"] == before
    await asking.client.past()
    assert (asking.client.calls["sacct"] > before) == bool(asked)


@pytest.mark.parametrize("question", ["accounting.recent", "recent_all", "ran"])
async def test_the_accounting_is_asked_from_a_little_before_the_time_on(asking: Asking, question: str):
    await attrgetter(question)(asking.client)(asking.clock.now() - timedelta(minutes=60))
    (since,) = [word for argv in asking.slurm.asked for word in argv if re.search(r"now-\d+minutes", word)]
    minutes = int(re.search(r"now-(\d+)minutes", since)[1])
    assert 60 <= minutes <= 75
