"""What mended a failure in this project comes back with the diagnosis of the next one of its kind."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from tests.unit.services.scenes import Scene, failed

from slurm_agent_tools.diagnosis.lessons import PLACE, lesson, with_lesson


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def kept(scene: Scene, category: str) -> None:
    line = lesson(date(2026, 11, 23), category, "torch was not there", "module load pytorch")
    scene.write(PLACE, with_lesson("", line))


@pytest.mark.proves("lessons-come-back")
async def test_a_lesson_of_the_same_category_is_in_the_diagnosis(scene: Scene) -> None:
    job_id = await failed(scene)
    category = (await scene.analyse(job_id=job_id)).diagnosis.category
    kept(scene, category)
    reply = await scene.analyse(job_id=job_id)
    assert reply.lessons == ["2026-11-23: torch was not there. Mended by: module load pytorch."]
    assert "lessons" in reply.written_by_others


async def test_a_lesson_of_another_category_is_not(scene: Scene) -> None:
    kept(scene, "host-out-of-memory")
    assert (await scene.analyse(job_id=await failed(scene))).lessons == []


async def test_lessons_that_cannot_be_read_are_told_and_the_diagnosis_stays(scene: Scene) -> None:
    (scene.project / PLACE).mkdir(parents=True)
    reply = await scene.analyse(job_id=await failed(scene))
    assert reply.diagnosis.category == "missing-module"
    assert reply.lessons[0].startswith(f"{PLACE} was not read")
