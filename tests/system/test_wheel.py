"""The built wheel alone: installed in an environment of its own, it sets up a folder, judges a script and serves."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from slurm_agent_tools.api.catalogue import TOOLS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.proves("wheel-is-whole")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    ran([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """The interpreter of a fresh environment: the package from the wheel, the packages it needs from this one."""
    folder = wheel.parent / "venv"
    ran([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    made = folder / "bin" / "python"
    ran([sys.executable, "-m", "uv", "pip", "install", "--no-deps", "--no-index", "--python", made, wheel])
    # Found after the wheel's own files; .pth files in there are not read, so an editable install does not count.
    needs = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages" / "needs.pth"
    needs.write_text(sysconfig.get_path("purelib") + "\n")
    (folder / "bin" / "shfmt").symlink_to(Path(sysconfig.get_path("scripts")) / "shfmt")
    return made


@pytest.fixture(scope="module")
def project(python: Path) -> Path:
    folder = python.parents[2] / "experiments"
    folder.mkdir()
    ran([python, "-m", "slurm_agent_tools", "init", "."], cwd=folder)
    return folder


def ran(argv: list[str | Path], *, cwd: Path | None = None, exit_code: int = 0) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=60, check=False, env=environment())
    assert done.returncode == exit_code, (argv, done.stdout, done.stderr)
    return done.stdout


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PYTHONPATH"))}


def test_the_package_that_runs_is_the_one_from_the_wheel(python, project):
    place = ran([python, "-c", "import slurm_agent_tools as it; print(it.__file__)"], cwd=project)

    assert Path(place.strip()).is_relative_to(python.parents[1])


def test_init_writes_every_file_from_the_wheel(project):
    assert {path.name for path in project.iterdir()} >= {".github", ".mcp.json", ".vscode", "policies", "scripts"}
    agent = ROOT / ".github/agents/slurm-manager.agent.md"
    assert (project / ".github/agents/slurm-manager.agent.md").read_text() == agent.read_text()


def test_the_policy_judges_a_script(python, project):
    script = project / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --time=10\n#SBATCH --mem=1G\nexport CUDA_VISIBLE_DEVICES=0\n")

    said = ran([python, "-m", "slurm_agent_tools", "policy", "check", "--json", "job.sh"], cwd=project, exit_code=3)

    assert json.loads(said)["verdict"] == "deny"


def test_the_policy_is_shown(python, project):
    shown = ran([python, "-m", "slurm_agent_tools", "policy", "show"], cwd=project)

    assert "max_concurrent_jobs" in shown


def test_the_thin_modules_are_there(python, project):
    assert "--sections" in ran([python, "-m", "tools.agent_tools.get_status", "--help"], cwd=project)


async def test_the_server_answers_over_stdio(python, project):
    server = StdioServerParameters(
        command=str(python), args=["-m", "slurm_agent_tools", "serve"], cwd=str(project), env=environment()
    )

    async with Client(server) as client:
        tools = (await client.list_tools()).tools

    assert len(tools) == len(TOOLS)


def test_the_console_command_is_installed(python):
    assert ran([python.parent / "slurm-agent-tools", "--version"]).startswith("slurm-agent-tools ")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of what is in the repository, as somebody has it who installs it."""
    names = ran(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT).splitlines()
    for name in (name for name in names if not name.startswith(("tests/", "benchmarks/")) and (ROOT / name).is_file()):
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "src" / name)
    return tmp_path / "src"


def installed(sources: Path) -> subprocess.CompletedProcess[str]:
    words = ["make", "install", f"PREFIX={sources.parent}/own", f"PYTHON={sys._base_executable}"]
    return subprocess.run(words, cwd=sources, capture_output=True, text=True, timeout=300, env=environment())


def test_make_install_puts_the_command_where_clients_find_it(sources: Path):
    done = installed(sources)
    own = sources.parent / "own"

    assert done.returncode == 0, done.stderr
    assert ran([own / "bin/slurm-agent-tools", "--version"]).startswith("slurm-agent-tools ")
    assert not (own / "share/slurm-agent-tools/bin/pytest").exists()
    assert (own / "share/man/man1/slurm-agent-tools-submit_job.1").is_file()
    assert "complete -o default" in (own / "share/bash-completion/completions/slurm-agent-tools").read_text()
    assert (own / "share/zsh/site-functions/_slurm-agent-tools").read_text().startswith("#compdef slurm-agent-tools\n")
    assert (own / "share/fish/vendor_completions.d/slurm-agent-tools.fish").is_file()

    done = subprocess.run(
        ["make", "uninstall", f"PREFIX={own}"], cwd=sources, capture_output=True, text=True, check=True
    )
    assert sorted(path.name for path in own.rglob("*")) == ["bin", "share"], done.stdout


def test_make_install_takes_no_package_of_another_hash(sources: Path):
    """As an index would offer it that somebody else has taken over."""
    pins = sources / "requirements-run.txt"
    pins.write_text(
        re.sub(
            r"(idna==\S+ \\\n(?:.*\n)*?)(?=\S)",
            lambda match: re.sub("sha256:..", "sha256:00", match[0]),
            pins.read_text(),
        )
    )
    done = installed(sources)

    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (sources.parent / "own/bin/slurm-agent-tools").exists()
