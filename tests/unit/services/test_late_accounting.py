"""An accounting that is told of a job late: what it does not have yet is asked for again, for a day."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.services.scenes import Scene, failed, sent

from slurm_agent_tools.errors import UnknownJob

DAY = 24 * 3600


@pytest.fixture
def scene(tmp_path: Path):
    scene = Scene(tmp_path)
    yield scene
    scene.context.store.close()


def lost(scene: Scene, number: str) -> dict[int, object]:
    """The controller forgets a job of which the accounting was not told; what it would have been told."""
    told = scene.slurm.controller.accounting.told
    kept = dict(told)
    scene.slurm.forget(int(number))
    told.clear()
    scene.slurm.clock.move(30)
    return kept


def asked(scene: Scene) -> int:
    return sum(argv[0] == "sacct" for argv in scene.slurm.asked)


def remembered(scene: Scene) -> str:
    (found,) = scene.context.store.history(scene.context.owner)
    return found.state


async def test_a_job_that_the_accounting_is_told_of_hours_later_is_remembered_with_its_end(scene: Scene):
    number = await failed(scene)
    kept = lost(scene, number)
    await scene.status()
    first = await scene.wait(number)
    assert (first.status, "may still be told" in str(first.alerts)) == ("unknown", True)
    scene.slurm.clock.move(6 * 3600)
    scene.slurm.controller.accounting.told.update(kept)  # type: ignore[arg-type]
    await scene.status()
    assert remembered(scene) == "FAILED"
    assert (await scene.wait(number)).status == "finished"


async def test_after_a_day_without_it_the_accounting_is_believed_and_not_asked_again(scene: Scene):
    number = await sent(scene, seconds=120)
    lost(scene, number)
    for _ in range(4):
        scene.slurm.clock.move(DAY / 3)
        await scene.status()
    assert remembered(scene) == "UNKNOWN"
    with pytest.raises(UnknownJob):
        await scene.wait(number)
    before = asked(scene)
    scene.slurm.clock.move(3600)
    await scene.status(["jobs"])
    assert asked(scene) == before


async def test_calls_that_follow_each_other_do_not_ask_for_it_each_time(scene: Scene):
    number = await sent(scene, seconds=120)
    lost(scene, number)
    counts = list[int]()
    for _ in range(4):
        await scene.status(["jobs"])
        counts.append(asked(scene))
        scene.slurm.clock.move(60)
    assert len(set(counts)) == 1
    scene.slurm.clock.move(600)
    await scene.status(["jobs"])
    assert asked(scene) > counts[0]
