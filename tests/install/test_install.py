"""As users install it, with the tools that they use: each way ends in a server that answers and lists its tools."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from tests.conformance import npm_packages
from tests.install.conftest import ROOT, plain, ran
from tests.own_environment import UV

from slurm_agent_tools.api.catalogue import TOOLS

PINS = ROOT / "requirements-run.txt"
PYTHON = "/usr/bin/python3"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "experiments"
    folder.mkdir()
    return folder


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """The tested versions as constraints: tools that check no hashes take them this way."""
    lines = [line.partition(" \\")[0] for line in PINS.read_text().splitlines() if line[:1].isalpha()]
    (tmp_path / "versions.txt").write_text("\n".join(lines))
    return tmp_path / "versions.txt"


async def serves(command: str | Path, args: list[str], cwd: Path, env: dict[str, str]) -> None:
    """A client starts it, says `initialize`, and lists every tool."""
    server = StdioServerParameters(command=str(command), args=args, cwd=str(cwd), env=env)
    async with Client(server) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {tool.name for tool in TOOLS}


def test_wheel_and_source_distribution_are_as_an_index_wants_them(built: Path, tools: Path) -> None:
    said = ran(tools / "twine", "check", "--strict", *sorted(built.iterdir()))

    assert said.count("PASSED") == 2


def test_the_source_distribution_makes_the_same_wheel(built: Path, wheel: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    ran("tar", "-xf", archive, cwd=tmp_path)
    (folder,) = tmp_path.iterdir()
    ran(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again", cwd=folder)
    (again,) = (tmp_path / "again").glob("*.whl")

    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


async def test_pip_installs_it_into_an_empty_environment_by_hashes(wheel: Path, project: Path, tmp_path: Path) -> None:
    ran(PYTHON, "-m", "venv", tmp_path / "empty")
    python = tmp_path / "empty/bin/python"
    ran(python, "-m", "pip", "install", "-qq", "--require-hashes", "-r", PINS, env=plain())
    ran(python, "-m", "pip", "install", "-qq", "--no-index", "--no-deps", wheel, env=plain())
    ran(python, "-m", "pip", "check", env=plain())

    await serves(tmp_path / "empty/bin/slurm-agent-tools", ["serve"], project, plain())


async def test_uv_tool_installs_it(wheel: Path, versions: Path, project: Path, tmp_path: Path) -> None:
    env = plain(UV_TOOL_DIR=str(tmp_path / "tools"), UV_TOOL_BIN_DIR=str(tmp_path / "bin"))
    ran(UV, "tool", "install", "--quiet", "--python", PYTHON, "--constraints", versions, wheel, env=env)

    await serves(tmp_path / "bin/slurm-agent-tools", ["serve"], project, env)


async def test_uvx_runs_it_without_installing(wheel: Path, versions: Path, project: Path, tmp_path: Path) -> None:
    env = plain(UV_TOOL_DIR=str(tmp_path / "tools"))
    words = ["tool", "run", "--quiet", "--python", PYTHON, "--constraints", str(versions), "--from", str(wheel)]
    ran(UV, *words, "slurm-agent-tools", "--version", env=env)

    await serves(UV, [*words, "slurm-agent-tools", "serve"], project, env)


async def test_pipx_installs_it(wheel: Path, versions: Path, project: Path, tools: Path, tmp_path: Path) -> None:
    homes = {"PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin", "PIPX_MAN_DIR": "man", "PIPX_COMPLETION_DIR": "completion"}
    env = plain(**{name: str(tmp_path / folder) for name, folder in homes.items()})
    ran(tools / "pipx", "install", "--python", PYTHON, f"--pip-args=--constraint {versions}", wheel, env=env)

    await serves(tmp_path / "bin/slurm-agent-tools", ["serve"], project, env)


# --- The bundle of Claude Desktop -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mcpb() -> Callable[..., str]:
    """The official tool for bundles."""
    cli = npm_packages.installed() / "@anthropic-ai/mcpb/dist/cli/cli.js"

    def call(*words: str | Path) -> str:
        done = npm_packages.run([cli, *words], 120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, mcpb: Callable[..., str]) -> Path:
    """The bundle, unpacked by the official tool."""
    folder = tmp_path_factory.mktemp("bundle")
    ran(sys.executable, ROOT / "scripts/bundle.py", folder / "made")
    (made,) = (folder / "made").glob("*.mcpb")
    mcpb("unpack", made, folder / "unpacked")
    return folder / "unpacked"


def test_the_official_tool_accepts_the_manifest(bundle: Path, mcpb: Callable[..., str]) -> None:
    assert "passes" in mcpb("validate", bundle / "manifest.json")


@pytest.mark.parametrize("left_empty", ["", "${user_config.host}"])
async def test_the_bundle_starts_as_claude_desktop_starts_it(bundle: Path, project: Path, left_empty: str) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    start = manifest["server"]["mcp_config"]
    form = {name: field["default"] for name, field in manifest["user_config"].items()}
    form |= {"project_folder": str(project), "host": left_empty}

    def filled(text: str) -> str:
        for name, value in form.items():
            text = text.replace(f"${{user_config.{name}}}", value)
        return text.replace("${__dirname}", str(bundle))

    env = plain(**{name: filled(value) for name, value in start["env"].items()}, UV_PYTHON=PYTHON)
    assert start["command"] == "uv"
    await serves(UV, [filled(word) for word in start["args"]], project.parent, env)


def test_the_same_sources_make_the_same_bundle(tmp_path: Path) -> None:
    for name in ("one", "two"):
        ran(sys.executable, ROOT / "scripts/bundle.py", tmp_path / name)
    one, two = (next((tmp_path / name).glob("*.mcpb")) for name in ("one", "two"))

    assert one.read_bytes() == two.read_bytes()


# --- Other files of a release -----------------------------------------------------------------------------------------


def test_the_bill_of_materials_is_valid_and_has_every_package(tools: Path, tmp_path: Path) -> None:
    ran(sys.executable, ROOT / "scripts/sbom.py", tmp_path)
    (made,) = tmp_path.glob("*.cdx.json")
    check = (
        "import sys; from cyclonedx.schema import SchemaVersion; from cyclonedx.validation.json import JsonStrictValidator;"
        "sys.exit(str(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()) or '') or 0)"
    )
    ran(tools / "python", "-c", check, made)
    body = json.loads(made.read_text())
    named = {f"{one['name']}=={one['version']}" for one in body["components"]}

    assert named == {line.split(" ")[0] for line in PINS.read_text().splitlines() if line[:1].isalpha()}
    assert all(
        one["name"] == "slurm-agent-tools:sha256" for part in body["components"] for one in part["properties"][:1]
    )
