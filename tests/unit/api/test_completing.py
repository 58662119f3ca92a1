"""What completes the arguments of prompts and resources, over the SDK's own client, in both protocol eras."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.types import PromptReference, ResourceTemplateReference
from tests.unit.offered import Scene, job, scenes
from tests.watchdog import SECONDS

from slurm_agent_tools.api import views
from slurm_agent_tools.errors import SlurmUnreachable

pytestmark = pytest.mark.proves("offers-only-read")


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scenes(tmp_path) as made:
        yield made


async def values(client: Client, argument: str, typed: str, *, prompt: str = "run_job", uri: str = "") -> list[str]:
    ref = ResourceTemplateReference(uri=uri) if uri else PromptReference(name=prompt)
    return (await client.complete(ref, {"name": argument, "value": typed})).completion.values


async def test_job_ids_are_those_of_ledger_and_queue_newest_first(scene: Scene, era: str):
    scene.submitted(7)
    scene.slurm.known = {12: job(12), 70: job(70), 71: replace(job(71), user="bob")}
    async with scene.client(era) as client:
        assert await values(client, "job_id", "", prompt="report") == ["70", "12", "7"]
        assert await values(client, "job_id", "7", uri="slurm://jobs/{job_id}/log") == ["70", "7"]
        scene.slurm.away = SlurmUnreachable("away")
        assert await values(client, "job_id", "", uri="slurm://jobs/{job_id}") == ["7"]


async def test_partitions_begin_with_the_default_and_can_be_said_back(scene: Scene, era: str):
    async with scene.client(era) as client:
        assert await values(client, "partition", "") == ["main", "bigmem", "gpu"]
        assert await values(client, "partition", "MEM") == ["bigmem"]


async def test_tags_are_those_of_remembered_jobs(scene: Scene):
    scene.submitted(7, outcome="FAILED", run_id="r9")
    async with scene.client() as client:
        found = await values(client, "tag", "", uri="slurm://history{?tag,query}")

    assert {"slurm", "7", "failed", "r9"} <= set(found)


async def test_scripts_are_found_inside_the_project_alone(scene: Scene, tmp_path: Path):
    for path in ("a.sh", "jobs/b.sbatch", "scripts/slurm/generated/c.slurm", "jobs/notes.txt", ".git/hooks/d.sh"):
        scene.write(path, "#!/bin/sh\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "e.sh").write_text("#!/bin/sh\n")
    (scene.project / "out").symlink_to(outside)
    (scene.project / "link.sh").symlink_to(outside / "e.sh")
    (scene.project / "round").symlink_to(scene.project)
    async with scene.client() as client:
        assert await values(client, "script", "") == ["a.sh", "jobs/b.sbatch", "scripts/slurm/generated/c.slurm"]
        assert await values(client, "script", "b.sb") == ["jobs/b.sbatch"]


async def test_at_most_a_hundred_values_are_told_with_how_many_there_are(scene: Scene, era: str):
    for number in range(130):
        scene.write(f"jobs/{number:03}.sh", "#!/bin/sh\n")
    async with scene.client(era) as client:
        found = (await client.complete(PromptReference(name="run_job"), {"name": "script", "value": ""})).completion

    assert (len(found.values), found.total, found.has_more) == (100, 130, True)


@pytest.mark.parametrize("away", [SlurmUnreachable("away"), RuntimeError("broken")])
async def test_what_cannot_be_completed_is_no_error(scene: Scene, away: Exception, era: str):
    scene.slurm.away = away
    async with scene.client(era) as client:
        assert await values(client, "partition", "") == []
        assert await values(client, "goal", "x") == []
        assert await values(client, "script", "", prompt="nothing") == []
        assert await values(client, "query", "", uri="slurm://history{?tag,query}") == []
        assert await values(client, "job_id", "", uri="slurm://nothing/{job_id}") == []


async def test_a_slow_cluster_holds_up_no_completion(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    async def never(_: object) -> list[str]:
        await anyio.sleep_forever()
        return []

    monkeypatch.setattr(views, "SECONDS", 0.05)
    monkeypatch.setitem(views.COMPLETED, "partition", never)
    async with scene.client() as client:
        with anyio.fail_after(SECONDS):
            assert await values(client, "partition", "") == []
