"""What a client keeps, shares and asks anew: details of few and of many jobs, a crowd's waits, equipment on disk."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from tests.unit.slurm.answers import Prepared, done
from tests.unit.slurm.clocks import START, queued
from tests.unit.slurm.test_parsers import SHOWN
from tests.unit.slurm.test_watcher import Scene, together
from tests.unit.slurm.told import Told

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.answer_cache import (
    Backdrop,
    Equipment,
    KeptBackdrop,
    SharedAnswer,
    SharedAnswers,
    backdrop_mark,
    backdrop_of,
)
from slurm_agent_tools.slurm.client import offset
from slurm_agent_tools.slurm.questions import CommandRunner, ControllerAnswer
from slurm_agent_tools.units import JobId

# --- answers that are shared --------------------------------------------------------------------------------------


class Counted:
    """Questions whose answers are numbers, and which fail when told to."""

    def __init__(self) -> None:
        self.clock, self.asked, self.error = FakeClock(), 0, None
        self.one = SharedAnswer(self.clock, self._one)
        self.many = SharedAnswers(self.clock, self._many)

    async def _one(self) -> int:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.asked

    async def _many(self, keys, _age):
        return dict.fromkeys(keys, await self._one())


@pytest.mark.parametrize("kind", ["one", "many"])
@pytest.mark.parametrize(("passed", "asked"), [(10, 1), (10.001, 2)])
async def test_an_answer_is_used_up_to_its_age_and_not_beyond(kind, passed, asked):
    counted = Counted()
    ask = partial(counted.one.get, 10) if kind == "one" else partial(counted.many.get, [1], 10)
    await ask()
    counted.clock.move(passed)
    await ask()
    assert counted.asked == asked


@pytest.mark.parametrize("kind", ["one", "many"])
@pytest.mark.parametrize(("age", "passed", "asked"), [(10, 1, 1), (10, 1.001, 2), (0.5, 0.5, 1), (0.5, 0.501, 2)])
async def test_a_failure_ages_faster_than_an_answer(kind, age, passed, asked):
    counted = Counted()
    counted.error = SlurmUnreachable("silent")
    ask = partial(counted.one.get, age) if kind == "one" else partial(counted.many.get, [1], age)
    for _ in range(2):
        with pytest.raises(SlurmUnreachable):
            await ask()
        counted.clock.move(passed)
    counted.clock.move(-passed)
    assert counted.asked == asked


async def test_an_answer_of_the_very_moment_of_a_change_counts():
    counted = Counted()
    counted.one.changed()
    await counted.one.get(10)
    await counted.one.get(10)
    assert counted.asked == 1


# --- commands -----------------------------------------------------------------------------------------------------


async def test_only_the_controllers_last_answers_are_remembered():
    runner = CommandRunner(Prepared(dict.fromkeys(("squeue", "sacct"), lambda _: done(b"xy"))), SlurmSettings())
    for _ in range(9):
        await runner.run(["squeue"])
        await runner.run(["sacct"])
    assert len(runner.answers) == 6
    assert set(runner.answers) == {ControllerAnswer(0.01, 2)}
    assert runner.calls == {"squeue": 9, "sacct": 9}


async def test_what_changes_something_gets_more_time_than_a_question():
    limits = []

    class Noting(Prepared):
        async def run(self, argv, **more):
            limits.append((more["timeout"], more["stdin"], more["cwd"], more["env"]))
            return await super().run(argv, **more)

    settings = SlurmSettings(read_timeout=3, submit_timeout=70)
    runner = CommandRunner(Noting({"sbatch": lambda _: done()}), settings)
    await runner.run(["sbatch"], stdin=b"a", cwd="/p", env={"A": "1"})
    await runner.change(["sbatch"], stdin=b"b", cwd="/q", env={"B": "1"})
    assert limits == [(3, b"a", "/p", {"A": "1"}), (70, b"b", "/q", {"B": "1"})]


# --- one job and many ---------------------------------------------------------------------------------------------


async def test_a_glance_sees_what_goes_on_in_the_queue_and_nothing_else():
    told = Told()
    rows = queued("5") + queued("6", "COMPLETED") + queued("7_1", "COMPLETED") + queued("7_2")
    told.answers["squeue"] = done(rows)
    seen = {number: await told.slurm.glance(JobId(number), max_age=5) for number in (5, 6, 7, 8)}
    assert [number for number, view in seen.items() if view is not None] == [5, 7]
    assert len(seen[7].tasks) == 2
    assert set(told.slurm.calls) == {"squeue"}


async def test_a_glance_may_be_as_old_as_it_says():
    told = Told(squeue=done(queued("5")))
    for moved in (0, 5, 0.1):
        told.clock.move(moved)
        await told.slurm.glance(JobId(5), max_age=5)
    assert told.slurm.calls["squeue"] == 2


def listing(records: str, count: int) -> bytes:
    return f"last_update_time=100, records={count}\n{records}".encode()


def record(number: int) -> str:
    return SHOWN.format(name="a").replace("JobId=7", f"JobId={number}")


@pytest.mark.parametrize(("length", "listed"), [(1000, True), (1001, False)])
async def test_many_jobs_are_told_of_in_one_listing_unless_the_queue_is_too_long_for_that(length, listed):
    rows = b"".join(queued(str(number), "PENDING") for number in range(1, length + 1))
    told = Told(squeue=done(rows), scontrol=done(listing("\n".join(map(record, range(1, 8))), 7)))
    found = await told.slurm.jobs([JobId(number) for number in range(1, 10)])
    assert len(found) == 9
    asked = [argv for argv in told.runner.asked if argv[:3] == ("scontrol", "show", "job")]
    assert (len(asked), asked[0][-1] == "--verbose" if asked else None) == ((1, True) if listed else (0, None))


# --- waiting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["alice", "bob", "user17"])
def test_the_ticks_of_a_user_lie_within_five_minutes_and_always_at_the_same_second(user):
    assert 0 <= offset(user) < 300
    assert len({offset(f"user{number}") for number in range(100)}) > 90


async def test_a_wait_that_ended_is_no_longer_one_of_the_crowd():
    looks = []
    scene = Scene(lambda passed: looks.append(passed) or queued("5"))
    await together(*(partial(scene.wait, 0, progress=False) for _ in range(200)))
    began = scene.passed
    await scene.wait(61, progress=False)
    assert looks[-1] - began == pytest.approx(61 - 0.004, abs=0.002)


# --- what nodes have ----------------------------------------------------------------------------------------------

NODES = [
    Node("a", "idle", ("p",), 8, 0, 100, 50, gpus=4, gpus_used=0, threads_per_core=1),
    Node("b", "idle", ("p",), 16, 0, 60, 50, gpus=2, gpus_used=0, threads_per_core=2),
    Node("c", "idle", ("p",), 4, 0, 80, None, gpus=0, gpus_used=0),
]
EQUIPMENT = Equipment(4, 16, 60, 100, 2, 2, 6)


def test_equipment_is_the_most_of_some_and_the_least_of_others():
    assert Equipment.of(NODES) == EQUIPMENT
    assert Equipment.of([]) == Equipment(0, 0, 0, 0, 0, 1, 0)
    part = EQUIPMENT.on(Partition("p", "UP", default=True, nodes=3, max_time_seconds=None, default_time_seconds=None))
    assert (part.name, part.gpus_per_node, part.cpus_per_node, part.total_gpus) == ("p", 4, 16, 6)
    assert (part.memory_per_node, part.memory_per_node_max, part.gpus_per_node_min) == (60, 100, 2)


def test_a_mark_changes_with_all_but_states():
    one = backdrop_mark(done(b"PartitionName=a State=UP Nodes=1"))
    assert backdrop_mark(done(b"PartitionName=a State=DOWN Nodes=1")) == one
    assert backdrop_mark(done(b"PartitionName=a State=UP Nodes=2")) != one


NOW = datetime.fromtimestamp(START, UTC)


def told(at: datetime = NOW) -> Backdrop:
    return backdrop_of(at, "sign", {"DefMemPerCPU": "7", "ClusterName": "lab"}, {"p": NODES})


def test_only_what_partitions_rest_on_is_kept():
    assert told() == Backdrop(float(START), "sign", {"DefMemPerCPU": "7"}, {"p": EQUIPMENT})


@pytest.mark.parametrize(
    ("passed", "sign", "names", "there"),
    [(0, "sign", {"p"}, True), (3600, "sign", {"p"}, True), (3600.5, "sign", {"p"}, False), (-0.5, "sign", {"p"}, False),
     (0, "other", {"p"}, False), (0, "sign", {"p", "q"}, False), (0, "sign", set(), False)],
)  # fmt: skip
@pytest.mark.parametrize("kept", ["in memory", "on disk"])
async def test_what_is_kept_holds_for_an_hour_beside_just_these_partitions(tmp_path, kept, passed, sign, names, there):
    path = tmp_path / "kept.json"
    writer = KeptBackdrop(path)
    await writer.keep(told())
    reader = writer if kept == "in memory" else KeptBackdrop(path)
    now = datetime.fromtimestamp(START + passed, UTC)
    assert (await reader.get(now, sign, frozenset(names)) == told()) == there


async def test_what_was_forgotten_is_not_read_again(tmp_path: Path):
    path = tmp_path / "kept.json"
    await KeptBackdrop(path).keep(told())
    reader = KeptBackdrop(path)
    reader.forget()
    assert await reader.get(NOW, "sign", frozenset({"p"})) is None


async def test_a_disk_that_cannot_be_written_leaves_it_in_memory(tmp_path: Path):
    kept = KeptBackdrop(tmp_path / "none" / "kept.json")
    await kept.keep(told())
    assert await kept.get(NOW, "sign", frozenset({"p"})) == told()


async def test_a_file_with_more_in_it_than_we_keep_gives_no_more(tmp_path: Path):
    path = tmp_path / "kept.json"
    await KeptBackdrop(path).keep(told())
    assert os.listdir(tmp_path) == ["kept.json"]  # noqa: PTH208 - a test may wait for a disk
    assert path.stat().st_mode & 0o777 == 0o600
    written = json.loads(path.read_text())
    path.write_text(json.dumps({**written, "config": {"DefMemPerCPU": "7", "Other": "1", "MaxMemPerCPU": 3}}))
    assert await KeptBackdrop(path).get(NOW, "sign", frozenset({"p"})) == told()
    zero = dict.fromkeys(written["equipment"]["p"], 0)
    path.write_text(json.dumps({**written, "equipment": {"p": zero}}))
    found = await KeptBackdrop(path).get(NOW, "sign", frozenset({"p"}))
    assert found == replace(told(), equipment={"p": Equipment(0, 0, 0, 0, 0, 0, 0)})
