"""Curves of what a job used: what was looked at, by whom, and what nobody measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.api.campaigns import CampaignScene, to_the_end
from tests.unit.server.web.browsing import looking
from tests.unit.services.scenes import Scene, sent

from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.insights import gpu_metrics
from slurm_agent_tools.insights.gpu_metrics import GpuSeries
from slurm_agent_tools.insights.use_curves import UseLooks, drawable, series
from slurm_agent_tools.models.shapes import RunningShown
from slurm_agent_tools.store.submissions import Owner

BEGAN = datetime(2026, 11, 21, 12, tzinfo=UTC)
ME, OTHER = Owner("lab", "ada", "/home/ada/p"), Owner("lab", "ada", "/home/ada/q")


def after(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def seen(memory: float | None, cpu: float | None) -> RunningShown:
    unknown = {"elapsed_seconds": None, "time_left_seconds": None, "estimated_end": None, "estimated_from": None}
    return RunningShown(job_id="1", parts=1, memory_share=memory, cpu_seconds=cpu, **unknown)


def test_memory_is_drawn_at_each_look_and_cpu_between_two_of_them():
    looks = UseLooks()
    for seconds, memory, cpu in (
        (0, 0.1, 0.0),
        (60, 0.2, 120.0),
        (120, None, 240.0),
        (180, 0.4, 10.0),
        (240, 0.4, 250.0),
    ):
        looks.keep(ME, 1, after(seconds), seen(memory, cpu))
    lines = series(looks.of(ME, 1), 4)
    assert lines["memory"] == [(after(0), 0.1), (after(60), 0.2), (after(180), 0.4), (after(240), 0.4)]
    assert lines["CPU"] == [(after(60), 0.5), (after(120), 0.5), (after(240), 1.0)]  # at 180 a step had ended
    assert drawable(lines, BEGAN)["CPU"] == [[1, 50], [2, 50], [4, 100]]
    assert series(looks.of(ME, 1), None)["CPU"] == []


def test_looks_are_kept_apart_by_job_and_project_and_are_bounded():
    looks = UseLooks()
    for number in range(2000):
        looks.keep(ME, 1, after(10 * number), seen(0.5, None))
    assert len(looks.of(ME, 1)) == 720
    looks.keep(ME, 1, after(10 * 1999 + 1), seen(0.9, None))
    assert looks.of(ME, 1)[-1].memory_share == 0.5  # a second later is no new point
    assert looks.of(OTHER, 1) == looks.of(ME, 2) == ()
    for number in range(2, 300):
        looks.keep(ME, number, BEGAN, seen(0.5, None))
    assert looks.of(ME, 1) == ()


@pytest.mark.parametrize("nothing", [None, seen(None, None)])
def test_what_was_not_measured_is_no_look(nothing: RunningShown | None):
    looks = UseLooks()
    looks.keep(ME, 1, BEGAN, nothing)
    assert drawable(series(looks.of(ME, 1), 4), BEGAN) == {}


async def test_a_job_that_is_looked_at_has_curves_and_another_is_told_as_not_measured(tmp_path: Path):
    scene = Scene(tmp_path)
    scene.slurm.next_job(after=None, memory=2**29)
    job_id = await sent(scene, seconds=30)
    visit = looking(scene.box)
    await visit.enter()
    for _ in range(3):
        shown = await visit.see(f"job/{job_id}")
        await scene.slurm.clock.advance(10)
    assert "Use over time" in shown.text
    assert any(tag == "polyline" for tag, _ in shown.tags)
    assert not [tag for tag, attributes in shown.tags if tag == "style" or "style" in attributes]
    quick = await sent(scene, job_name="quick", seconds=90)
    told = (await visit.see(f"job/{quick}")).text
    assert "Not measured, memory and CPU: nobody looked at it here while it ran." in told


async def test_the_gpus_of_a_job_are_drawn_where_prometheus_has_them_and_else_not_measured(tmp_path: Path, monkeypatch):
    scene = Scene(tmp_path)
    job = scene.slurm.submit("#!/bin/bash\nsleep 3000\n", "--partition=gpu", "--gres=gpu:2", "--time=2:00:00")
    await scene.slurm.clock.advance(120)
    visit = looking(scene.box)
    await visit.enter()
    assert "GPUs: no Prometheus is set (gpu_metrics.url)" in (await visit.see(f"job/{job}")).text
    now = scene.context.clock.now()

    async def told(_: Any, jobs: list[int], since: datetime, until: datetime) -> GpuSeries:
        assert (jobs, since <= until <= scene.context.clock.now()) == ([job], True)
        return GpuSeries({job: (((now, 0.5), (now + timedelta(seconds=30), 0.7)), ((now, 0.0),))})

    monkeypatch.setattr(gpu_metrics, "series", told)
    await scene.slurm.clock.advance(10)
    shown = await visit.see(f"job/{job}")
    assert "GPU 0" in shown.text
    assert "GPU 1" in shown.text
    assert "no Prometheus" not in shown.text


async def test_the_trials_of_a_campaign_are_drawn_when_they_ran(tmp_path: Path):
    scene = CampaignScene(tmp_path)
    scene.slurm.on_start(lambda _: Ending(after=30, output="val_loss=0.5\n"))
    await to_the_end(scene)
    visit = looking(scene.box)
    await visit.enter()
    shown = await visit.see("campaigns/rates")
    assert "Which trial ran when" in shown.text
    assert "hours since the first was sent" in shown.text
    assert "r1-t1 passed" in shown.text


async def test_cost_by_tag_and_what_right_sizing_would_have_saved_are_shown(tmp_path: Path):
    scene = Scene(tmp_path)
    for number in range(5):
        scene.slurm.next_job(after=300, memory=2**28)
        scene.write("train.sh", scene.project.joinpath("train.sh").read_text() + f"# {number}\n")
        await sent(scene, seconds=400)
    visit = looking(scene.box)
    await visit.enter()
    shown = (await visit.see("cost")).text
    assert "a job counts under each of its tags" in shown
    assert "completed0" in shown  # no GPU hour
    row = shown.partition("Runs that would have failed")[2].split("\n")
    assert (
        next(line for line in row if line.startswith("train"))
        == "train.sh51Gnot known1100:10:0000:06:00not known0not known0"
    )
