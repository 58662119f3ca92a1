"""A project full of modules that are named as Python's and ours: none of them is run by a command that starts there."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from benchmarks import start
from tests.effort import some

from slurm_agent_tools import cli

TRAP = "import os\nopen({marker!r}, 'a').write(__name__ + '\\n')\n"
# What is loaded before the first line of ours: by the interpreter, by an installed command (`re` and what it needs), and
# by `python -m`, which only -P keeps from looking into the working folder for it.
EARLIER = subprocess.run(
    [sys.executable, "-c", "import sys, re, runpy, importlib.util; print(*sys.modules)"],
    capture_output=True,
    text=True,
    check=True,
).stdout.split()
NAMES = sorted(
    (set(sys.stdlib_module_names) | set(packages_distributions())) - {"tools"} - set(sys.builtin_module_names)
)
LATER = sorted(set(NAMES) - set(EARLIER) - {"slurm_agent_tools"})
COMMAND = Path(sys.executable).parent / "slurm-agent-tools"
CONFIG = {"lr": 0.1}


def trap(folder: Path, names: list[str]) -> Path:
    """Modules and packages that say in a file that they were run; the file."""
    folder.mkdir(exist_ok=True)
    marker = folder.parent / "was-run.txt"
    for number, name in enumerate(names):
        place = folder / f"{name}.py" if number % 2 else folder / name / "__init__.py"
        place.parent.mkdir(exist_ok=True)
        place.write_text(TRAP.format(marker=str(marker)))
    for name in ("sitecustomize.py", "usercustomize.py"):
        (folder / name).write_text(TRAP.format(marker=str(marker)))
    (folder / "evil.pth").write_text(f"import os; open({str(marker)!r}, 'a').write('pth')\n")
    return marker


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a configuration and its schema, which is checked in a process of its own."""
    folder = tmp_path / "project"
    (folder / "configs").mkdir(parents=True)
    (folder / "slurm-agent.toml").write_text("")
    (folder / "configs/schema.json").write_text('{"type": "object"}')
    (folder / "train.json").write_text(json.dumps(CONFIG))
    return folder


def ran(words: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env = {**kept, "XDG_STATE_HOME": str(folder.parent / "state"), **more}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=60)


def checked(done: subprocess.CompletedProcess[str], marker: Path) -> None:
    assert not marker.exists(), marker.read_text()
    assert json.loads(done.stdout)["status"] == "valid", done.stderr


@pytest.mark.parametrize("module", ["tools.agent_tools.validate_config", "slurm_agent_tools"])
def test_python_m_runs_nothing_that_lies_in_the_working_folder(project: Path, module: str):
    marker = trap(project, [*LATER, *(["slurm_agent_tools"] if module.startswith("tools") else [])])
    words = [] if module.startswith("tools") else ["validate-config", "--json"]
    done = ran([sys.executable, "-m", module, *words, "--config-path", "train.json"], project)

    checked(done, marker)


def test_python_p_m_runs_nothing_at_all_of_the_working_folder(project: Path):
    marker = trap(project, [*NAMES, "tools"])
    done = ran(
        [sys.executable, "-P", "-m", "tools.agent_tools.validate_config", "--config-path", "train.json"], project
    )

    checked(done, marker)


@pytest.mark.parametrize("module", ["tools.agent_tools.get_status", "slurm_agent_tools"])
def test_python_m_runs_nothing_of_the_working_folder_when_it_fails(project: Path, module: str):
    marker = trap(project, LATER)
    done = ran([sys.executable, "-m", module, "--no-such-option"], project)

    assert not marker.exists(), marker.read_text()
    assert done.returncode == 2, done.stderr


@pytest.mark.parametrize("said", some(["", "{project}", ".", ":/nowhere", "/nowhere:", "../project/"]))
def test_a_python_path_that_leads_into_the_project_is_left_out(project: Path, said: str):
    marker = trap(project, LATER)
    for name in ("sitecustomize.py", "usercustomize.py"):  # the interpreter's own, before any line of ours
        (project / name).unlink()
    words = [str(COMMAND), "validate-config", "--config-path", "train.json", "--json"]
    done = ran(words, project, PYTHONPATH=said.format(project=project))

    checked(done, marker)


def test_a_python_path_from_above_the_working_folder_is_the_projects_too(project: Path):
    inner = project / "src"
    marker = trap(inner, LATER)
    for name in ("sitecustomize.py", "usercustomize.py"):
        (inner / name).unlink()
    below = project / "deep" / "er"
    below.mkdir(parents=True)
    words = [str(COMMAND), "validate-config", "--config-path", str(project / "train.json"), "--json"]

    checked(ran(words, below, PYTHONPATH=str(inner), SLURM_AGENT_PROJECT_ROOT=""), marker)


def test_only_what_leads_into_the_project_is_left_out(project: Path, monkeypatch: pytest.MonkeyPatch):
    elsewhere, inner = project.parent / "elsewhere", project / "src"
    below = project / "deep" / "er"
    below.mkdir(parents=True)
    (project.parent / "link").symlink_to(project)
    parts = [str(elsewhere), "", str(inner), ".", str(project.parent / "link" / "src"), str(project.parent)]
    monkeypatch.chdir(below)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(parts))
    monkeypatch.delenv("SLURM_AGENT_PROJECT_ROOT", raising=False)
    before = list(sys.path)
    monkeypatch.setattr(sys, "path", [*before, str(below), *parts[:1], *parts[2:3], *parts[4:]])
    runpy.run_path(str(Path(cli.__file__)))

    assert os.environ["PYTHONPATH"].split(os.pathsep) == [str(elsewhere), str(project.parent)]
    assert sys.path == [*before, str(elsewhere), str(project.parent)]


def test_without_a_mark_the_working_folder_is_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "src"), str(tmp_path.parent)]))
    monkeypatch.delenv("SLURM_AGENT_PROJECT_ROOT", raising=False)
    runpy.run_path(str(Path(cli.__file__)))

    assert os.environ["PYTHONPATH"] == str(tmp_path.parent)


def test_the_server_runs_nothing_that_lies_in_the_project(project: Path):
    marker = trap(project, NAMES)
    asked = json.dumps(start.INITIALIZE) + "\n"
    env = {name: os.environ[name] for name in ("PATH", "HOME")}
    done = subprocess.run([str(COMMAND), "serve"], input=asked, cwd=project, env=env, capture_output=True, text=True)

    assert "serverInfo" in done.stdout, done.stderr
    assert not marker.exists(), marker.read_text()
