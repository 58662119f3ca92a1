"""Every command in the README and on the page of the command line is run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.faces import Place

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = README + (ROOT / "docs/reference/command-line.md").read_text()
CLAUDE = (ROOT / "docs/get-started/claude.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"^```bash\n(.*?)^```", PAGES, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.strip()
]
TARGETS = [line for line in COMMANDS if line.startswith("make ")]
CLUSTER = [line for line in COMMANDS if " devcluster " in line]
FOLDERS = [line for line in COMMANDS if line.startswith("cd ")]
SHELL = [*FOLDERS, *(line for line in COMMANDS if line.startswith("export "))]
TOOLS = list(dict.fromkeys(line for line in COMMANDS if line not in {*TARGETS, *CLUSTER, *SHELL}))


@pytest.fixture(scope="module")
def ready(place: Place) -> dict[str, str]:
    """A project with the script that the README names, and a real job for the id that it names."""
    script = place.project / "scripts/slurm/train.sh"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --output=logs/slurm/%x-%j.out\necho loss: 0.5\n")
    place.own()
    job = place.slurm("sbatch", "--parsable", "-pcpu", "-o", "out-%j.txt", stdin=b"#!/bin/bash\nexit 3\n")
    place.cli("wait_for_job", f"--job-id={job}", "--timeout=60")
    return {"12345": job, "~/experiments": str(place.project.parent / "experiments")}


@pytest.mark.proves("readme-is-run")
def test_the_readme_names_the_commands_that_newcomers_need():
    assert TARGETS[:2] == ["make demo", "make test"]
    assert len(TOOLS) >= 9
    assert {"up", "status", "env", "down"} <= {line.split(" devcluster ")[1].split()[0] for line in CLUSTER}


def test_the_folder_that_is_entered_is_the_one_that_was_set_up():
    made = [line.split()[-1] for line in COMMANDS if " init " in line]
    assert FOLDERS
    assert {line.removeprefix("cd ") for line in FOLDERS} <= set(made)


@pytest.mark.parametrize("line", TARGETS)
def test_every_make_target_of_the_readme_exists(line):
    done = subprocess.run(["make", "-n", *line.split()[1:]], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.proves("readme-is-run")
@pytest.mark.parametrize("line", TOOLS)
def test_every_command_of_both_pages_runs_as_it_is_written(place, ready, line):
    """`X` and `uv run X` become X of this environment; the job id and the folder become real ones."""
    words = [ready.get(word, word) for word in shlex.split(line)]
    words = words if words[:2] == ["uv", "run"] else ["uv", "run", *words]
    program = (
        [sys.executable, *words[3:]]
        if words[2] == "python"
        else [sys.executable, "-m", "slurm_agent_tools", *words[3:]]
    )
    assert words[2] in {"python", "slurm-agent-tools"}
    done = place.run(program)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.strip()
    if words[2] == "python":
        assert json.loads(done.stdout)["summary"]


@pytest.mark.proves("readme-is-run")
def test_the_private_slurm_is_used_as_the_readme_says(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    env = {**os.environ, "SLURM_AGENT_DEVCLUSTER": f"/tmp/sat-readme-{os.getpid()}"}
    for line in CLUSTER:
        words = [sys.executable, "-m", "slurm_agent_tools", *shlex.split(line)[3:]]
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    subprocess.run(["rm", "-rf", env["SLURM_AGENT_DEVCLUSTER"]], check=True)


def test_the_claude_desktop_snippet_starts_the_server(place):
    snippet = json.loads(re.findall(r"^```json\n(.*?)^```", CLAUDE, re.MULTILINE | re.DOTALL)[0])
    [(name, entry)] = snippet["mcpServers"].items()
    assert name == "slurm-agent-tools"
    assert Path(entry["command"]).name == "slurm-agent-tools"
    assert entry["args"] == ["serve"]
    question = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    place.extra |= {"SLURM_AGENT_PROJECT_ROOT": str(place.project)}
    command = [str(Path(sys.executable).parent / "slurm-agent-tools"), *entry["args"]]
    done = place.run(command, stdin=json.dumps(question).encode() + b"\n", seconds=30)
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "slurm-agent-tools"
    del place.extra["SLURM_AGENT_PROJECT_ROOT"]
