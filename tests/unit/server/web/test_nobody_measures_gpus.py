"""A cluster on which nobody measures GPUs: whatever shows their use says so, in every tool, page, view, metric and line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client import advertise
from mcp.server.apps import APP_MIME_TYPE
from tests.unit.server.http.test_machine_pages import GPU_JOB
from tests.unit.server.http.test_machine_pages import Scene as Monitored
from tests.unit.server.web.browsing import Seen, looking
from tests.unit.services.scenes import HEAD, Scene, sent

from slurm_agent_tools.api import render
from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.server.web.chat_views import MARKUP
from slurm_agent_tools.settings import Settings

GPU = f"{HEAD}#SBATCH --partition=gpu\n#SBATCH --gres=gpu:1\n#SBATCH --mem=4G\n#SBATCH --time=1:00:00\nsleep 60\n"

pytestmark = pytest.mark.proves("not-measured")


class GpuScene(Scene):
    """One job with a GPU that is over, and one that runs."""

    over = runs = ""


@pytest.fixture
async def scene(tmp_path: Path) -> GpuScene:
    made = GpuScene(tmp_path)
    made.write("gpu.sh", GPU)
    made.over = await sent(made, script="gpu.sh", job_name="over", seconds=90)
    made.write("gpu.sh", GPU.replace("sleep 60", "sleep 3000"))
    made.runs = await sent(made, script="gpu.sh", job_name="runs", seconds=700)
    return made


# What each answer says about the GPUs of a job that runs, or of one that is over: no number, and that it is not measured.
ASKED = {
    "get_fleet of all": ("get_fleet", {}, "no Prometheus is set"),
    "get_fleet of idle": ("get_fleet", {"sections": ["idle"]}, "no Prometheus is set"),
    "wait_for_job that is over": ("wait_for_job", {"job_id": "over"}, "GPU efficiency: not measured"),
}


def numbers(told: Any, name: str = "") -> list[tuple[str, float]]:
    """Every number whose name says that it is the use of GPUs."""
    if isinstance(told, dict):
        return [one for key, value in told.items() for one in numbers(value, key)]
    if isinstance(told, list):
        return [one for value in told for one in numbers(value, name)]
    return [(name, told)] if isinstance(told, int | float) and name in {"utilization", "gpu", "gpu_used"} else []


@pytest.mark.parametrize("asked", ASKED)
async def test_each_tool_its_lines_and_its_view_say_that_it_is_not_measured(scene: GpuScene, asked: str):
    tool, ask, said = ASKED[asked]
    known = {"over": scene.over}
    words = {name: known.get(str(value), value) for name, value in ask.items()}
    offer = advertise("io.modelcontextprotocol/ui", {"mimeTypes": [APP_MIME_TYPE]})
    async with Client(build_server(scene.box, Settings()), extensions=[offer]) as client:
        result = await client.call_tool(tool, {**words, "detail": "full"})
    body = result.structured_content or {}
    assert said in json.dumps(body)
    assert numbers(body) == []
    assert said in "\n".join(render.lines(render.pieces(body)))
    view = re.sub(r"\s+", " ", Seen((result.meta or {})[MARKUP]).text)
    assert "not measured" in view.lower()
    assert not re.search(r"(?:GPUs used|Use of the GPUs) *\d", view), view


@pytest.mark.parametrize("page", ["now", "job/over", "job/runs"])
async def test_each_page_says_that_it_is_not_measured(scene: GpuScene, page: str):
    visit = looking(scene.box)
    await visit.enter()
    text = (await visit.see(page.replace("over", scene.over).replace("runs", scene.runs))).text
    assert re.search(r"Not measured.*no Prometheus is set", text, re.DOTALL)
    assert not re.search(r"GPU \d+ *\d+ ?%", text)


async def test_monitoring_gets_no_series_of_it(tmp_path: Path):
    made = Monitored(tmp_path / "m")
    made.slurm.submit(*GPU_JOB)
    await made.slurm.clock.advance(700)
    told = {name for name, *_ in await made.samples()}
    assert "slurm_agent_own_gpus" in told
    assert "slurm_agent_own_gpu_use_ratio" not in told


async def test_of_shares_of_gpus_only_what_is_given_to_jobs_is_a_number(scene: GpuScene):
    """get_status tells how much of the GPUs is given away, which is not how busy they are: it names no job's use."""
    told = (await scene.status(["gpu", "queue"], detail="full")).model_dump(mode="json")
    assert told["queue"]["utilization"]["gpu"] == round(1 / told["gpu"]["total"], 3)
