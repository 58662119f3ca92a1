"""What is foretold of jobs, in plans, at submissions and beside what happened: the tools over a fake Slurm."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.scenes import HEAD, Scene
from tests.unit.store.test_full_disk import Disk, made_older

from slurm_agent_tools.api import brief, serialize
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.decision import Decision, PolicyUsed
from slurm_agent_tools.models.job import PastWait, PastWaits
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.planning.foretold import TOLD
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Decided, Submission

PLAN = serialize.BY_NAME["plan_jobs"]
LIMIT = 600
ASKED = Resources(partition="cpu", nodes=1, cpus=1, gpus=0, memory_bytes=2**30, time_limit_seconds=LIMIT)


@pytest.fixture
def scene(tmp_path: Path):
    made = Scene(tmp_path)
    made.write("train.sh", f"{HEAD}sleep 60\n")
    yield made
    made.context.store.close()


def ran(scene: Scene, number: int, *, seconds: int = 60, script: str = "train.sh", first: int = 5000) -> None:
    """So many jobs of this script that have ended, a minute apart, the last an hour ago."""
    now = scene.slurm.clock.now()
    for place in range(number):
        at = now - timedelta(hours=1, seconds=300 * (number - place))
        token = f"old-{script}-{place}"
        scene.context.store.add(
            scene.context.owner,
            Submission(
                token=token, idempotency_key=token, phase="released", created=at, updated=at, script_path=script,
                script_sha256="0" * 64, request_sha256="0" * 64, job_name=script, slots=1, decision_id="d",
                job_id=first + place, requested=ASKED, released=at, delivered=at, started=at, run_seconds=seconds,
                ended=at + timedelta(seconds=seconds), outcome="COMPLETED", failed=False, seen="COMPLETED",
            ),
            Decided(Decision("d", "allow", PolicyUsed("1", "0" * 64))),
        )  # fmt: skip


async def plan(scene: Scene, *jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    ask = serialize.parse(PLAN, {"jobs": list(jobs), "seconds": 0, **more})
    return brief.answer(await scene.box.call("plan_jobs", ask), ask)


@pytest.mark.proves("predictions-are-used")
async def test_a_plan_takes_run_times_from_jobs_that_ended_with_interval_and_basis(scene: Scene):
    ran(scene, 40)
    body = await plan(scene, {"name": "train", "script": "train.sh"})
    assert 50 <= body["makespan_seconds"] <= 70
    (told,) = body["run_times"]
    assert told == "train: 00:01:00 (00:01:00 to 00:01:00, by 20 jobs)"
    assert body["first_start"] == "nobody is waiting now"
    assert not any("time limit counts" in text for text in body["assumptions"])


@pytest.mark.proves("predictions-are-used")
async def test_without_any_job_the_limit_counts_and_that_is_assumed_aloud(scene: Scene):
    body = await plan(scene, {"name": "train", "script": "train.sh"})
    assert body["makespan_seconds"] == LIMIT
    assert "run_times" not in body
    assert "No job like it has ended, so the time limit counts: train." in body["assumptions"]


async def test_what_the_caller_expects_is_not_foretold(scene: Scene):
    ran(scene, 40)
    body = await plan(scene, {"name": "train", "script": "train.sh", "expected": "5m"})
    assert body["makespan_seconds"] == 300
    assert "run_times" not in body


@pytest.mark.proves("predictions-are-used", "plans-are-short")
async def test_a_plan_of_many_foretold_scripts_stays_under_three_kilobytes(scene: Scene):
    names = [f"experiment-{number}" for number in range(14)]
    for number, name in enumerate(names):
        scene.write(f"{name}.sh", f"{HEAD}sleep 60\n")
        ran(scene, 4, script=f"{name}.sh", seconds=30 * (number + 1), first=6000 + 10 * number)
    ran(scene, 40)
    body = await plan(scene, *({"name": name, "script": f"{name}.sh"} for name in names))
    assert len(json.dumps(body).encode()) < 3000
    assert len(body["run_times"]) == 5
    assert body["run_times"][-1] == "10 more"
    rows = json.loads(await scene.box.view("plan", {"plan_id": body["uri"].rpartition("/")[2]}))
    assert len(rows["run_times"]) == 14
    assert "the nearest of the same user, name" in rows["run_times"][0]


@pytest.mark.proves("predictions-are-used")
async def test_where_somebody_waits_the_first_start_comes_from_recent_waits(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    now = scene.slurm.clock.now()
    waits = [
        PastWait(number, "cpu", 600, ASKED, "bob", now - timedelta(hours=9) + timedelta(seconds=700 * number))
        for number in range(40)
    ]

    async def past(**_: object) -> PastWaits:
        return PastWaits(tuple(waits), 24)

    monkeypatch.setattr(scene.context.slurm, "past", past)
    held = scene.slurm.command("sbatch", "--hold", "--partition=cpu", "--mem=1G", "--time=10", stdin=HEAD.encode())
    assert held.code == 0, held
    body = await plan(scene, {"name": "train", "script": "train.sh"})
    assert body["first_start"].startswith("00:10:00, in eight of ten cases ")
    assert "waits of jobs" in body["first_start"]


@pytest.mark.proves("estimates-are-compared")
async def test_a_submission_is_foretold_kept_and_compared_and_status_says_how_often_that_held(scene: Scene):
    ran(scene, 60, seconds=58)
    assert (await scene.status(["queue"])).queue.estimates is None
    for number in range(TOLD):
        reply = await scene.submit(idempotency_key=f"k{number}", justification="again, to compare it with the first")
        assert reply.status == "submitted", reply.summary
        assert "in eight of ten cases" in reply.foretold.run
        scene.slurm.clock.move(120)
        await scene.wait(reply.job_id)
    kept = [one for one in scene.context.store.ended_estimates(scene.context.owner) if one.said.kind == "run"]
    assert len(kept) == TOLD
    assert all(one.happened == pytest.approx(60, abs=3) for one in kept)
    assert "Run times: of the last 10 estimates" in (await scene.status(["queue"])).queue.estimates


@pytest.mark.proves("estimates-are-compared")
async def test_a_dry_run_foretells_and_keeps_nothing(scene: Scene):
    ran(scene, 60)
    await scene.status()
    reply = await scene.submit(dry_run=True)
    assert "00:01:00" in reply.foretold.run
    assert scene.context.store.ended_estimates(scene.context.owner) == []


async def test_without_earlier_jobs_nothing_is_foretold(scene: Scene):
    assert (await scene.submit()).foretold is None


async def test_jobs_of_another_project_are_not_this_callers(scene: Scene):
    ran(scene, 60)
    owner = scene.context.owner
    scene.box.context = scene.box.registry.context = replace(scene.context, owner=replace(owner, project="/elsewhere"))
    assert (await scene.submit(dry_run=True)).foretold is None


@pytest.mark.proves("estimates-are-compared")
@pytest.mark.parametrize("version", [2, 4])
async def test_an_older_ledger_that_a_full_disk_keeps_from_being_brought_up_breaks_no_reading(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, version: int
):
    ran(scene, 40)
    folder = scene.context.store.folder
    scene.context.store.close()
    made_older(folder, version)
    Disk(monkeypatch)
    store = Store(folder, clock=scene.slurm.clock)
    scene.box.context = scene.box.registry.context = replace(scene.context, store=store)
    status = await scene.box.call("get_status", serialize.parse(serialize.BY_NAME["get_status"], {}))
    assert status.queue.estimates is None
    assert any("the disk is full" in alert.message for alert in status.alerts)
    body = await plan(scene, {"name": "train", "script": "train.sh"}, pool={"cpus": 4})
    assert body["makespan_seconds"] == 60
    with pytest.raises(StorageError, match="the disk is full"):
        await scene.submit()
