"""What a start loads: modules and models are counted, which is most of what it costs."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks import cli, start

from slurm_agent_tools.api import schemas

COUNTS = """
import json, sys
from slurm_agent_tools.cli import main
code = main.main(sys.argv[1:])
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
    "slurm_agent_tools.models.result", "slurm_agent_tools.diagnosis.alert_types",
}  # fmt: skip


def loaded(*words: str, said: str = "") -> tuple[set[str], int]:
    """The modules after a command on an idle cluster to which `said` was said, and how many models of ours were made."""
    with cli.idle_cluster() as (folder, env, _):
        argv = [sys.executable, "-c", COUNTS, *words]
        done = subprocess.run(argv, cwd=folder, env=env, input=said, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-500:]
    assert not said or "serverInfo" in done.stdout
    found = json.loads(done.stderr)
    return set(found["modules"]), found["models"]


def test_get_status_makes_few_models_and_loads_few_modules() -> None:
    modules, models = loaded("get_status", "--json")
    assert modules & UNUSED == set()
    assert len([name for name in modules if name.startswith("slurm_agent_tools")]) <= 95
    assert models <= 70


def test_text_that_goes_into_a_pipe_is_not_drawn() -> None:
    modules, _ = loaded("get_status", "--text")
    assert "rich" not in modules


def test_a_server_says_hello_before_it_loads_the_shapes_of_its_answers() -> None:
    modules, _ = loaded("serve", said=json.dumps(start.INITIALIZE) + "\n")
    assert "slurm_agent_tools.server.mcp_server" in modules
    assert modules & {reply.__module__ for reply in schemas.replies().values()} == set()
