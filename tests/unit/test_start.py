"""What the command line loads for one tool: modules and models are counted, which is most of what a start costs."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks import cli

COUNTS = """
import json, sys
from slurm_agent_tools.cli import main
code = main.main(["get_status", *sys.argv[1:]])
from pydantic import BaseModel
def below(kind):
    for one in kind.__subclasses__():
        yield one
        yield from below(one)
models = {one for one in below(BaseModel) if one.__module__.startswith("slurm_agent_tools.")}
sys.stderr.write(json.dumps({"modules": sorted(sys.modules), "models": len(models)}))
sys.exit(code)
"""
UNUSED = {
    "rich", "slurm_agent_tools.api.drawing", "slurm_agent_tools.models.report", "slurm_agent_tools.models.submission_answer",
    "slurm_agent_tools.models.diagnosis_answer", "slurm_agent_tools.services.drift", "slurm_agent_tools.services.job_alerts",
    "slurm_agent_tools.diagnosis.excerpt", "slurm_agent_tools.models.script_arguments", "slurm_agent_tools.models.toolset_arguments",
    "slurm_agent_tools.models.result",
}  # fmt: skip


def loaded(*words: str) -> tuple[set[str], int]:
    """The modules after get_status on an idle cluster, and how many models of ours were made."""
    with cli.idle_cluster() as (folder, env, _):
        done = subprocess.run(
            [sys.executable, "-c", COUNTS, *words], cwd=folder, env=env, capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 0, done.stderr[-500:]
    found = json.loads(done.stderr)
    return set(found["modules"]), found["models"]


def test_get_status_makes_few_models_and_loads_few_modules() -> None:
    modules, models = loaded("--json")
    assert modules & UNUSED == set()
    assert len([name for name in modules if name.startswith("slurm_agent_tools")]) <= 95
    assert models <= 70


def test_text_that_goes_into_a_pipe_is_not_drawn() -> None:
    modules, _ = loaded("--text")
    assert "rich" not in modules
