"""What every commit of this repository must hold."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from slurm_agent_tools.api.catalogue import TOOLS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
REQUIREMENTS = (ROOT / "requirements.txt").read_text()
BINARY = {".png", ".gz", ".whl", ".bin", ".lock"}
SKIPPED = {
    ".git",
    ".venv",
    "node_modules",
    "__pycache__",
    "build",
    "dist",
    "results",
    "generated",
    "documents",
    "logs",
    ".hypothesis",
}
# Assembled from parts, so that this file passes its own test.
HOSTS = re.compile("|".join(("pypi" + r"\.org", "python" + "hosted", "npmjs" + r"\.", "deb" + r"\.debian")))
MACHINE = re.compile("|".join(("/" + "work/", "/" + "root/")))


def files(*patterns: str) -> list[Path]:
    return [path for path in every_file() if any(path.match(pattern) for pattern in patterns or ("*",))]


@cache
def every_file() -> list[Path]:
    found: list[Path] = []
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if name not in SKIPPED and not name.endswith("_cache")]
        found += [Path(folder, name) for name in names if name not in SKIPPED]
    return sorted(path for path in found if path.is_file())


def texts(*patterns: str) -> list[Path]:
    return [path for path in files(*patterns) if path.suffix not in BINARY]


def hits(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in paths
        if pattern.search(text := path.read_text(errors="replace"))
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_the_host_of_a_package_registry():
    assert hits(HOSTS, texts()) == []


def test_no_file_names_a_path_of_the_machine_it_was_written_on():
    assert hits(MACHINE, [path for path in texts() if "tests" not in path.relative_to(ROOT).parts]) == []


THEIRS = re.compile(r"(mcp|mcp_types|uvicorn|starlette|h11)\.(.*\.)?_|uvicorn\.protocols|h11$")
THEIR_NAMES = re.compile(r"\b(mcp|mcp_types|uvicorn|starlette|h11)\b")


def imported(path: Path) -> set[str]:
    """The full name of all that a module imports from elsewhere; nothing of one that names none of theirs."""
    found: set[str] = set()
    text = path.read_text()
    for node in ast.walk(ast.parse(text if THEIR_NAMES.search(text) else "")):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def test_the_server_uses_public_parts_of_the_sdk_and_of_uvicorn_alone():
    """Else every release of theirs would need a pin."""
    taken = {name for path in (ROOT / "src").rglob("*.py") for name in imported(path)}
    assert {name for name in taken if THEIRS.match(name)} == set()
    assert "uvicorn" in taken


def test_continuous_integration_runs_lint_and_the_tests_by_make():
    script = ROOT / ".ci/run"

    assert script.stat().st_mode & 0o111
    assert {"make lint", "make test"} <= set(script.read_text().splitlines())


def test_no_client_file_puts_the_server_into_the_sandbox_that_approves_every_call():
    clients = [path for path in texts("*.json") if path.name in {"mcp.json", ".mcp.json", "vscode-mcp.json"}]

    assert len(clients) == 4
    assert [path for path in clients if "sandbox" in path.read_text()] == []


def test_both_client_files_start_the_same_command():
    code = json.loads((ROOT / ".vscode/mcp.json").read_text())["servers"]["slurm-agent-tools"]
    claude = json.loads((ROOT / ".mcp.json").read_text())["mcpServers"]["slurm-agent-tools"]

    assert code.pop("cwd") == "${workspaceFolder}"
    words = ["run", "slurm-agent-tools", "serve"]
    assert code == claude == {"type": "stdio", "command": "uv", "args": words, "env": {"PYTHONPATH": ""}}


def brought_by(name: str, extra: str = "") -> set[str]:
    """The package and all that it needs on this machine, as an installer takes them."""
    found, waiting = set[str](), [(name, extra)]
    while waiting:
        package, wanted = waiting.pop()
        found.add(canonicalize_name(package))
        for line in importlib.metadata.requires(package) or []:
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": wanted}):
                extras = need.extras or {""}
                waiting += [(need.name, one) for one in extras if canonicalize_name(need.name) not in found]
    return found


def pinned(requirements: str) -> dict[str, str]:
    """Each package's own lines by its name."""
    blocks = re.split(r"\n(?=\S)", "\n".join(line for line in requirements.splitlines() if not line.startswith("#")))
    return {block.split("==")[0]: block.strip() for block in blocks if block.strip()}


def test_an_installation_brings_the_product_and_not_its_developers_tools():
    brought, whole = pinned((ROOT / "requirements-run.txt").read_text()), pinned(REQUIREMENTS)
    builds = {Requirement(line).name for line in PROJECT["build-system"]["requires"]}
    tools = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependency-groups"]["dev"]} - builds

    assert brought.items() <= whole.items()
    assert brought_by("slurm-agent-tools") | builds <= brought.keys() | {"slurm-agent-tools"}
    assert not brought.keys() & tools
    assert len(brought) <= 50


def test_no_command_of_the_client_files_lets_uv_choose_packages():
    """uv holds packages to a hash by its lock file alone, which would name an index here."""
    assert PROJECT["tool"]["uv"]["managed"] is False
    assert "--require-hashes -r requirements-run.txt" in (ROOT / "Makefile").read_text()
    assert "--require-hashes -r requirements.txt" in (ROOT / "scripts/setup.sh").read_text()


def test_the_exact_versions_are_the_same_in_both_places():
    with_marker = re.findall(r"^([a-z0-9-]+==[^ ]+(?: ; [^\\]+?)?) \\$", REQUIREMENTS, re.MULTILINE)

    assert PROJECT["tool"]["uv"]["constraint-dependencies"] == with_marker
    assert set(PROJECT["tool"]["uv"]["build-constraint-dependencies"]) <= set(with_marker)


def test_every_requirement_has_a_hash_and_one_exact_version():
    blocks = re.split(r"\n(?=\S)", "\n".join(line for line in REQUIREMENTS.splitlines() if not line.startswith("#")))

    assert len(blocks) > 50
    assert [block for block in blocks if "==" not in block or "--hash=sha256:" not in block] == []


def test_everything_that_the_project_asks_for_is_pinned():
    asked = [
        *PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"], *PROJECT["build-system"]["requires"],
    ]  # fmt: skip
    pinned = {line.split("==")[0] for line in PROJECT["tool"]["uv"]["constraint-dependencies"]}

    assert {re.split(r"[<>=\[ ]", name)[0].lower() for name in asked} <= pinned


def test_no_module_is_longer_than_four_hundred_lines():
    long = {
        str(path.relative_to(ROOT)): lines
        for path in files("*.py")
        if (lines := len(path.read_text().splitlines())) >= 400
    }

    assert long == {}


@pytest.mark.parametrize("page", texts("*.md"), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_pages_leads_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    inside = [link for link in links if not re.match(r"[a-z]+:", link)]

    assert [link for link in inside if not (page.parent / link).exists()] == []


def test_the_agent_file_is_in_todays_format_and_knows_every_tool():
    _, head, body = (ROOT / ".github/agents/slurm-manager.agent.md").read_text().split("---\n", 2)
    front = yaml.safe_load(head)

    assert set(front) == {"name", "description", "argument-hint", "tools"}
    assert "slurm-agent-tools/*" in front["tools"]
    assert [tool.name for tool in TOOLS if f"`{tool.name}`" not in body] == []
    assert "STATUS: BLOCKED" in body
    assert "uv run python -m tools.agent_tools." in body


def test_the_top_level_is_the_one_that_was_drawn():
    drawn = {"pyproject.toml", "src", "tests", "policies", "scripts", ".vscode", "README.md"}

    assert drawn <= {path.name for path in ROOT.iterdir()}
    assert (ROOT / "scripts/slurm/generated/.gitkeep").is_file()


def test_the_imports_keep_the_rules_of_the_house():
    checked = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout


def test_the_set_up_never_takes_the_python_of_the_environment_that_it_makes_anew():
    """With .venv active, its own python3 is the first on PATH; `make` took .venv away and then had no Python."""
    text = (ROOT / "scripts/setup.sh").read_text()
    functions = text[text.index("as_anyone()") : text.index("make_venv()")]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-c", f"{functions}\nfind_python"], env={"PATH": path}, capture_output=True, text=True, timeout=30
    )
    found = Path(done.stdout.strip())
    assert found.is_file(), done.stderr
    assert not found.is_relative_to(Path(sys.prefix).resolve())
    assert not found.is_symlink()
