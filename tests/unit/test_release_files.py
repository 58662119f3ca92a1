"""Files that others read to find, install and start the tools: each says what is so, in the form that its reader wants."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import trove_classifiers
from tests.unit.shipped_scripts import script

from slurm_agent_tools import __version__
from slurm_agent_tools.cli import main
from slurm_agent_tools.settings import Settings, load, setting_sources

ROOT = Path(__file__).parents[2]
SERVER = json.loads((ROOT / "server.json").read_text())
CONTAINER = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
MODULES = ROOT / "deploy/modulefiles/slurm-agent-tools"


# --- server.json: the rules of the registry's schema of 2025-12-11 ------------------------------------------------------


def faults(server: dict[str, Any]) -> list[str]:
    """What the registry would refuse, or warn of."""
    found = []
    known = {"$schema", "name", "title", "description", "version", "packages", "repository", "websiteUrl", "remotes"}
    found += [f"unknown field {name}" for name in server.keys() - known]
    if not re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"]) or not 3 <= len(server["name"]) <= 200:
        found.append("name is not NAMESPACE/NAME")
    found += [f"{name} is longer than 100" for name in ("title", "description") if not 1 <= len(server[name]) <= 100]
    if not re.fullmatch(r"\d+\.\d+\.\d+\S*", server["version"]):
        found.append("version is a range or none")
    for package in server["packages"]:
        found += [f"package without {name}" for name in {"registryType", "identifier", "transport"} - package.keys()]
        if package.get("transport") != {"type": "stdio"}:
            found.append("transport is not stdio")
        for word in package.get("packageArguments", ()):
            if word["type"] != "positional" or not {"value", "valueHint"} & word.keys():
                found.append("a word without a value")
        for variable in package.get("environmentVariables", ()):
            known = {
                "name",
                "description",
                "format",
                "isRequired",
                "isSecret",
                "default",
                "choices",
                "value",
                "placeholder",
            }
            found += [f"unknown field {name} of {variable['name']}" for name in variable.keys() - known]
            if variable.get("format", "string") not in {"string", "number", "boolean", "filepath"}:
                found.append(f"format of {variable['name']}")
    return found


def test_server_json_is_what_the_registry_takes() -> None:
    assert faults(SERVER) == []
    assert SERVER["$schema"].endswith("/schemas/2025-12-11/server.schema.json")


def test_the_page_of_the_package_names_the_entry_of_the_registry_as_it_is_asked_for() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["readme"] == "README.md"
    assert f"<!-- mcp-name: {SERVER['name']} -->" in (ROOT / "README.md").read_text()


def test_what_the_registry_would_refuse_is_noticed() -> None:
    bad = {**SERVER, "name": "no namespace", "description": "x" * 101, "version": "^1.0", "more": 1}

    assert len(faults(bad)) == 4


def test_server_json_names_this_version_and_settings_that_there_are() -> None:
    (package,) = SERVER["packages"]

    assert {SERVER["version"], package["version"]} == {__version__}
    assert next(word["value"] for word in package["packageArguments"]) in main.COMMANDS
    tables = ("clusters", "slurm")
    values = {each["name"]: "x" for each in package["environmentVariables"]}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setenv(name, value)
        said = setting_sources.environment(Settings, tables)
    assert set(said["clusters"]["cluster"]) == {"host", "remote_root"}


def test_the_form_of_the_bundle_becomes_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = script("bundle")
    filled = {
        "project_folder": str(tmp_path),
        "host": "login",
        "user": "ada",
        "remote_root": "w",
        "slurm_folder": "/opt",
    }
    assert filled.keys() == bundle.FIELDS.keys() == bundle.manifest()["user_config"].keys()
    for variable, field in bundle.VARIABLES.items():
        monkeypatch.setenv(variable, filled[field])
    settings = load()

    assert settings.project_root == tmp_path
    assert (settings.clusters["cluster"].host, settings.clusters["cluster"].user) == ("login", "ada")
    assert settings.slurm.bin_dir == Path("/opt")


def test_the_bundle_holds_every_package_to_the_tested_version() -> None:
    text = script("bundle").project("it.whl")
    pins = tomllib.loads(text)["tool"]["uv"]["constraint-dependencies"]
    names = [line.split("==")[0] for line in (ROOT / "requirements-run.txt").read_text().splitlines() if "==" in line]

    assert [pin.split("==")[0] for pin in pins] == names


def test_the_index_is_told_what_is_so() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = [each.rsplit(" ", 1)[1] for each in project["classifiers"] if ":: Python :: 3." in each]
    tested = re.search(r"python: \[(.+)\]", (ROOT / ".github/workflows/tests.yaml").read_text())

    assert set(project["classifiers"]) <= trove_classifiers.classifiers
    assert tested is not None
    assert versions == json.loads(f"[{tested[1]}]")
    assert project["requires-python"] == f">={versions[0]}"
    assert not any(each.startswith("License ::") for each in project["classifiers"])  # beside `license` it is refused
    assert (ROOT / "src/slurm_agent_tools/py.typed").exists()


# --- Container image --------------------------------------------------------------------------------------------------


def instructions(name: str) -> list[str]:
    return [line.removeprefix(f"{name} ").strip() for line in CONTAINER.splitlines() if line.startswith(f"{name} ")]


def stage(name: str) -> str:
    return CONTAINER.partition(f" AS {name}\n")[2].partition("\nFROM ")[0]


@pytest.mark.parametrize("target", ["serve", "devcluster"])
def test_no_process_of_an_image_is_roots(target: str) -> None:
    users = re.findall(r"^USER (\d+):", stage(target), re.MULTILINE)

    assert int(users[-1]) > 1000


def test_an_image_is_made_of_files_that_are_there_and_are_let_in() -> None:
    own = [words for line in instructions("COPY") if "--from" not in line for words in line.split()[:-1]]
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]

    assert own
    assert [path for path in own if not (ROOT / path).exists()] == []
    assert [path for path in own if not any(Path(path).is_relative_to(each) for each in let_in)] == []
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = [*built["packages"], *built["force-include"], "README.md", "LICENSE", "pyproject.toml"]
    assert [path for path in needed if not any(Path(path).is_relative_to(each) for each in own)] == []


def test_an_image_starts_a_command_with_options_that_there_are() -> None:
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["slurm-agent-tools"]
    for line in instructions("CMD"):
        name, *options = json.loads(line)
        main.command_parser(name).parse_args(options)
    assert "--require-hashes -r /src/requirements-run.txt" in CONTAINER
    with pytest.MonkeyPatch.context() as patch:
        for name, value in re.findall(r"(SLURM_AGENT_[A-Z_]+)=(\S+)", CONTAINER):
            patch.setenv(name, value)
        assert setting_sources.environment(Settings, ()).keys() == {"state_dir", "project_root", "http"}


def ended(*words: str) -> bool:
    """Whether it ended well, and soon."""
    try:
        return subprocess.run(words, capture_output=True, timeout=60, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def test_a_builder_that_is_at_hand_builds_the_image() -> None:
    """Where there is none, or no base image can be had, the tests above are what can be checked."""
    builder = next((name for name in ("podman", "buildah", "docker") if shutil.which(name)), None)
    base = re.findall(r"^ARG BASE=(\S+)", CONTAINER, re.MULTILINE)[0]
    if builder is None or not ended(builder, "info") or not ended(builder, "pull", base):
        pytest.skip("no builder of images runs here, or the base image cannot be had")
    words = [builder, "build", "--target", "serve", "-t", "slurm-agent-tools-test", "-f", "Containerfile", "."]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# --- make install -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("search", "tells"), [("/usr/bin:/bin", True), ("/own/bin:/usr/bin:/bin", False)])
def test_make_install_says_so_where_the_command_would_not_be_found(search: str, tells: bool) -> None:
    words = ["make", "--silent", "on-path", "PREFIX=/own"]
    done = subprocess.run(words, cwd=ROOT, env={"PATH": search}, capture_output=True, text=True, check=True)

    assert ('export PATH="/own/bin:$PATH"' in done.stdout) is tells
    assert done.stdout.startswith("Installed: ")
    assert "/own/bin" in done.stdout


def test_make_install_says_first_what_it_does_and_how_long_it_takes_and_last_where_it_is() -> None:
    words = ["make", "-n", "install", "PREFIX=/own"]
    env = {"PATH": os.environ["PATH"]}  # in another make it would tell of folders
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    first, *_, last = done.stdout.strip().splitlines()
    assert first.startswith("echo 'Installing slurm-agent-tools for you into /own/share/slurm-agent-tools: ")
    assert "about a minute" in first
    assert last == "esac"  # of what `on-path` says


# --- Module files -----------------------------------------------------------------------------------------------------

TCL = """proc module-whatis {text} {}; proc conflict {name} {puts "conflict $name"}
proc prepend-path {name value} {puts "$name $value"}
set ModulesCurrentModulefile /modules/slurm-agent-tools/1.2.3
source %s
ModulesHelp
"""

LUA = """function pathJoin(a, b) return a .. "/" .. b end
function myModuleVersion() return "1.2.3" end
function help(text) end
function whatis(text) end
function conflict(name) print("conflict " .. name) end
function prepend_path(name, value) print(name .. " " .. value) end
dofile(arg[1])
"""

PATHS = [
    "conflict slurm-agent-tools", "PATH /apps/slurm-agent-tools/1.2.3/bin", "MANPATH /apps/slurm-agent-tools/1.2.3/share/man",
]  # fmt: skip


def test_the_module_file_in_tcl_leads_to_the_installed_version() -> None:
    if shutil.which("tclsh") is None:
        pytest.skip("tclsh is not installed")
    text = TCL % (MODULES / "default.tcl")
    done = subprocess.run(["tclsh"], input=text, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.splitlines() == PATHS
    assert (MODULES / "default.tcl").read_text().startswith("#%Module1.0\n")


def test_the_module_file_in_lua_leads_to_the_installed_version(tmp_path: Path) -> None:
    lua = next(filter(None, map(shutil.which, ("lua5.4", "lua5.3", "lua5.1"))), None)
    if lua is None:
        pytest.skip("Lua is not installed")
    (tmp_path / "lmod.lua").write_text(LUA)
    argv = [lua, tmp_path / "lmod.lua", MODULES / "default.lua"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.splitlines() == PATHS


# --- Manual pages -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, ROOT / "scripts/man.py", folder], check=True, capture_output=True, timeout=120)
    return folder / "man1"


def test_every_command_has_a_manual_page_with_its_options(pages: Path) -> None:
    names = {path.stem for path in pages.iterdir()}

    assert {f"slurm-agent-tools-{name}" for name in (*main.COMMANDS, "submit_job")} < names
    assert "\\-\\-time\\-limit" in (pages / "slurm-agent-tools-submit_job.1").read_text()
    assert "POLICY CHECK" in (pages / "slurm-agent-tools-policy.1").read_text()


def test_the_manual_pages_are_set_without_a_warning(pages: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    words = ["groff", "-man", "-Tutf8", "-ww", "-Wbreak", *sorted(pages.iterdir())]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr) == (0, "")


# --- The check before a release ---------------------------------------------------------------------------------------

NAMING = ("pyproject.toml", "server.json", "CHANGELOG.md", "src/slurm_agent_tools/__init__.py")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository that is ready: a date in the changelog, everything committed, no tag."""
    for name in NAMING:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    log = tmp_path / "CHANGELOG.md"
    log.write_text(re.sub(rf"## {re.escape(__version__)}.*", f"## {__version__}, 2026-12-01", log.read_text(), count=1))
    for line in ("init -q -b main", "add -A", "-c user.name=a -c user.email=a@b commit -qm All"):
        subprocess.run(["git", *shlex.split(line)], cwd=tmp_path, check=True, timeout=60)
    return tmp_path


def release_faults(tree: Path, tag: str | None = None) -> list[str]:
    release = script("release")
    return [*release.faults_of_files(tree), *release.faults_of_git(tree, __version__, tag)]


def test_a_tree_that_is_ready_has_no_fault(tree: Path) -> None:
    assert release_faults(tree) == []
    assert release_faults(tree, f"v{__version__}") == []


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("CHANGELOG.md", ", 2026-12-01", ", not released", "its date"),
        ("CHANGELOG.md", f"## {__version__}", "## 0.0.1", "has no part"),
        ("server.json", f'"version": "{__version__}"', '"version": "9.9.9"', "server.json: 9.9.9"),
        ("src/slurm_agent_tools/__init__.py", __version__, "9.9.9", "__init__.py: 9.9.9"),
    ],
)
def test_what_is_missing_for_a_release_is_said(tree: Path, file: str, old: str, new: str, said: str) -> None:
    path = tree / file
    path.write_text(path.read_text().replace(old, new))

    assert any(said in fault for fault in release_faults(tree))
    assert any("not committed" in fault for fault in release_faults(tree))


def test_a_tag_that_is_there_or_of_another_version_is_said(tree: Path) -> None:
    subprocess.run(["git", "tag", f"v{__version__}"], cwd=tree, check=True, timeout=60)

    assert any("is there already" in fault for fault in release_faults(tree))
    assert any("not that of this version" in fault for fault in release_faults(tree, "v9.9.9"))
