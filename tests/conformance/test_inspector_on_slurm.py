"""The official MCP Inspector calls every tool over stdio, in both eras, against a real Slurm."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.system.faces import Place

from slurm_agent_tools.api.catalogue import TOOLS

pytestmark = [pytest.mark.conformance, pytest.mark.system, pytest.mark.proves("conformance")]
SCRIPT = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --output=logs/slurm/%x-%j.out\necho loss: 0.5; sleep 300\n"

CAMPAIGN = """
campaign: 1
objective: {metric: loss, direction: minimize}
stages:
  - name: training
    kind: cpu
    command: [sleep, "5"]
    resources: {cpus: 1, memory: "100M", time_limit: "2min", partition: cpu}
rounds:
  - {kind: smoke}
limits: {cpu_hours: 1}
"""


@pytest.fixture
def call(place: Place, node: Callable[..., Any], packages: Path, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Call one tool; the structured answer."""
    launcher = packages / "inspector" / "clients" / "launcher" / "build" / "index.js"
    server = place.cluster.as_user([sys.executable, "-m", "slurm_agent_tools", "serve"])
    places = [word for name, value in place.environment().items() for word in ("-e", f"{name}={value}")]

    def ask(era: str, tool: str, **arguments: object) -> dict[str, Any]:
        words = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
        argv = [launcher, "--cli", *server, "--cwd", place.project, "--connect-timeout", "60000", *places, *words]
        done: subprocess.CompletedProcess[str] = node(
            [*argv, "--format", "json", "--protocol-era", era], 90, home=tmp_path
        )
        assert done.returncode == 0, (tool, done.stdout, done.stderr)
        result = json.loads(done.stdout)["result"]
        told = result["structuredContent"]
        assert result["content"][0]["text"].startswith(f"{told['status']}: {told['summary']}")
        return dict(result["structuredContent"])

    return ask


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_every_tool_is_called_on_the_way_of_one_job(call, place, era):
    (place.project / f"{era}.sh").write_text(SCRIPT)
    place.own()
    said = {
        "get_status": call(era, "get_status", refresh=True)["status"],
        "validate_config": call(era, "validate_config", config_path=f"{era}.sh")["status"],
        "generate_script": call(era, "generate_script", name="g", command="true", gpus=0)["status"],
    }
    said["choose_backend"] = call(era, "choose_backend", script=f"{era}.sh", expected="2h")["status"]
    asked = [{"name": "a", "script": f"{era}.sh", "expected": "2h"}]
    said["plan_jobs"] = call(era, "plan_jobs", jobs=asked)["status"]
    said["get_fleet"] = call(era, "get_fleet", match={"gpus": 1})["status"]
    (place.project / "campaigns").mkdir(exist_ok=True)
    (place.project / f"campaigns/{era}.yaml").write_text(CAMPAIGN)
    place.own()
    said["get_campaign"] = call(era, "get_campaign", name=era, view="plan")["status"]
    said["advance_campaign"] = call(era, "advance_campaign", name=era, timeout_seconds=0)["status"]
    said["advance_campaign"] = call(era, "advance_campaign", name=era, timeout_seconds=0, stop="seen enough")["status"]
    sent = call(era, "submit_job", script=f"{era}.sh")
    job = sent["job_id"]
    said["submit_job"] = sent["status"]
    said["wait_for_job"] = call(era, "wait_for_job", job_id=int(job), timeout_seconds=1)["status"]
    said["analyze_log"] = call(era, "analyze_log", job_id=job)["status"]
    said["cancel_job"] = call(era, "cancel_job", job_id=job, reason="seen enough")["status"]
    saved = [
        call(era, "save_result", name="r", status="cancelled", metrics={"loss": 0.5}, job_id=job) for _ in range(2)
    ]
    said["save_result"] = saved[0]["status"]
    paths = [result["file_path"] for result in saved]
    said["compare_results"] = call(era, "compare_results", baseline=paths[0], target=paths[1])["status"]
    assert said["wait_for_job"] in {"running", "pending"}
    assert said == {
        "get_status": "ok",
        "validate_config": "valid",
        "generate_script": "written",
        "submit_job": "submitted",
        "wait_for_job": said["wait_for_job"],
        "analyze_log": "ok",
        "save_result": "saved",
        "compare_results": "ok",
        "cancel_job": "cancelled",
        "choose_backend": "chosen",
        "plan_jobs": "planned",
        "get_fleet": "ok",
        "get_campaign": "planned",
        "advance_campaign": "stopped",
    }
    assert set(said) == {tool.name for tool in TOOLS} - {"sync_files"}  # for a cluster elsewhere alone
