from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from slurm_agent_tools.campaigns.file_reader import problems_of
from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import init_command
from slurm_agent_tools.errors import InputError, StorageError

pytestmark = pytest.mark.proves("init-overwrites-nothing")

FILES = {
    "slurm-agent.toml", "policies/project.yaml", "policies/policy.schema.json",
    ".vscode/mcp.json", ".mcp.json",
    ".github/agents/slurm-manager.agent.md", ".claude/skills/slurm-experiments/SKILL.md", "scripts/slurm/example.sh",
    "scripts/slurm/generated/.gitkeep", "logs/slurm/.gitkeep",
    "results/.gitkeep",
}  # fmt: skip


def called(folder: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    init_command.add_arguments(parser)
    return init_command.run(parser.parse_args([str(folder), *words]))


def told(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert called(folder, "--json", *words) == 0
    return json.loads(capsys.readouterr().out)


def test_an_empty_folder_gets_every_file(tmp_path, capsys):
    body = told(tmp_path / "new", capsys)

    assert body["folder"] == str(tmp_path / "new")
    assert {file["path"]: file["action"] for file in body["files"]} == dict.fromkeys(FILES, "created")
    assert all((tmp_path / "new" / path).is_file() for path in FILES)


def test_the_tutorials_files_are_those_of_its_page(tmp_path, capsys):
    page = (Path(__file__).parents[3] / "docs/tutorial/first-experiment.md").read_text()
    shown = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', page, re.MULTILINE | re.DOTALL))
    body = told(tmp_path, capsys, "--tutorial")

    assert {file["path"] for file in body["files"]} == FILES | set(shown)
    assert {path: (tmp_path / path).read_text() for path in shown} == shown
    assert len(shown) == 4


def test_what_comes_next_begins_with_the_way_to_the_folder(tmp_path, monkeypatch, capsys):
    there = tmp_path / "my runs"
    assert told(there, capsys)["next"][0] == f"cd '{there}'"
    monkeypatch.chdir(there)
    assert not told(Path(), capsys)["next"][0].startswith("cd ")


def test_with_the_tutorial_what_comes_next_tells_the_job_that_fails_as_well(tmp_path, capsys):
    plain, tutorial = told(tmp_path, capsys)["next"], told(tmp_path, capsys, "--tutorial")["next"]

    [broken] = [line for line in tutorial if line not in plain]
    assert broken.strip() == "Run scripts/slurm/broken.sh and tell me what happened."
    assert [line for line in tutorial if line != broken] == plain
    assert "example.sh" in tutorial[tutorial.index(broken) - 1]


def test_what_comes_next_brings_a_devcluster_up_as_the_readme_does(tmp_path, capsys):
    [line] = [line for line in told(tmp_path, capsys)["next"] if "devcluster up" in line]
    command = line.partition("#")[0].strip()

    assert f"`{command}`" in (Path(__file__).parents[3] / "README.md").read_text()


def test_the_example_is_allowed_as_it_is_and_its_metrics_can_be_read(tmp_path, monkeypatch, capsys):
    called(tmp_path)
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "scripts/slurm/example.sh"
    capsys.readouterr()

    assert main.main(["policy", "check", "--json", str(script)]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "allow"
    quick = script.read_text().replace("sleep 1", ":")
    ran = subprocess.run(["bash", "-eu"], input=quick, capture_output=True, text=True, timeout=60, check=True)
    (tmp_path / "logs/slurm/example-1.out").write_text(ran.stdout)
    assert main.main(["analyze_log", "--path", "logs/slurm/example-1.out", "--mode", "metrics", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert metrics["loss"] == pytest.approx(0.3)


def test_a_second_run_changes_nothing(tmp_path, capsys):
    told(tmp_path, capsys)
    (tmp_path / "slurm-agent.toml").write_text("# mine\n")
    before = {path: (tmp_path / path).read_bytes() for path in FILES}

    body = told(tmp_path, capsys)

    assert {file["action"] for file in body["files"]} == {"kept"}
    assert {path: (tmp_path / path).read_bytes() for path in FILES} == before


def test_a_dangling_link_is_kept_and_not_followed(tmp_path, capsys):
    (tmp_path / ".mcp.json").symlink_to(tmp_path / "elsewhere.json")

    body = told(tmp_path, capsys)

    assert {"path": ".mcp.json", "action": "kept"} in body["files"]
    assert not (tmp_path / "elsewhere.json").exists()


def test_nothing_is_written_through_a_link_that_leads_out_of_the_folder(tmp_path, capsys):
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    for place in (folder, outside, folder / "inside"):
        place.mkdir()
    (folder / ".vscode").symlink_to(outside)
    (folder / "logs").symlink_to("../outside/none")
    (folder / "results").symlink_to("inside")

    body = told(folder, capsys)

    assert list(outside.iterdir()) == []
    actions = {entry["path"]: entry["action"] for entry in body["files"]}
    assert (actions[".vscode/mcp.json"], actions["logs/slurm/.gitkeep"]) == ("kept", "kept")
    assert actions["results/.gitkeep"] == "created"
    behind = [note.split()[0] for note in body["notes"] if "behind a link that leads out" in note]
    assert sorted(behind) == [".vscode/mcp.json", "logs/slurm/.gitkeep"]


def test_the_client_files_start_the_server_and_never_in_the_sandbox(tmp_path):
    called(tmp_path)

    code = json.loads((tmp_path / ".vscode/mcp.json").read_text())["servers"]["slurm-agent-tools"]
    claude = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["slurm-agent-tools"]
    assert code.pop("cwd") == "${workspaceFolder}"
    start = {"type": "stdio", "command": "slurm-agent-tools", "args": ["serve"], "env": {"PYTHONPATH": ""}}
    assert code == claude == start


def test_the_settings_name_the_policy_file_and_both_can_be_read(tmp_path):
    called(tmp_path)

    settings = tomllib.loads((tmp_path / "slurm-agent.toml").read_text())
    assert settings == {"policy": "policies/project.yaml"}
    assert yaml.safe_load((tmp_path / settings["policy"]).read_text()) is None


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        (".vscode/mcp.json", '{"servers": {"other": {}}}', "does not name this server"),
        (".vscode/mcp.json", '{// mine\n"servers": {}}', "is not plain JSON"),
        (".mcp.json", "[]", "does not name this server"),
    ],
)
def test_a_client_file_without_our_server_is_kept_and_the_lines_to_add_are_told(tmp_path, capsys, path, content, words):
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(content)

    notes = told(tmp_path, capsys)["notes"]

    assert (tmp_path / path).read_text() == content
    assert [note for note in notes if path in note and words in note and '"command": "slurm-agent-tools"' in note]


def test_a_client_file_that_names_our_server_gets_no_note(tmp_path, capsys):
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"slurm-agent-tools": {"command": "elsewhere"}}}')

    notes = told(tmp_path, capsys)["notes"]

    assert not [note for note in notes if ".mcp.json" in note]


@pytest.mark.parametrize("path", ["tools/__init__.py", "tools.py", "tools/agent_tools/__init__.py"])
def test_a_package_of_the_users_that_hides_ours_is_told(tmp_path, capsys, path):
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).touch()

    notes = told(tmp_path, capsys)["notes"]

    assert [note for note in notes if "hides tools.agent_tools" in note]


def test_a_plain_folder_named_tools_hides_nothing(tmp_path, capsys):
    (tmp_path / "tools").mkdir()

    assert not [note for note in told(tmp_path, capsys)["notes"] if "hides" in note]


def test_the_text_says_for_each_file_what_became_of_it(tmp_path, capsys):
    (tmp_path / "slurm-agent.toml").touch()

    assert called(tmp_path) == 0

    lines = capsys.readouterr().out.splitlines()
    assert "  kept     slurm-agent.toml" in lines
    assert "  created  .mcp.json" in lines


def test_a_file_in_the_place_of_the_folder_is_an_input_error(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(InputError, match=r"folder: .* is not a folder"):
        called(tmp_path / "file")


def test_a_file_in_the_place_of_a_folder_inside_is_told(tmp_path):
    (tmp_path / "results").touch()

    with pytest.raises(StorageError, match="results is not a folder"):
        called(tmp_path)


def test_the_agent_file_is_the_one_of_this_repository(tmp_path):
    called(tmp_path)

    ours = Path(__file__).parents[3] / ".github/agents/slurm-manager.agent.md"
    assert (tmp_path / ".github/agents/slurm-manager.agent.md").read_text() == ours.read_text()


def test_a_command_that_only_this_environment_has_is_told_with_its_full_path(tmp_path, capsys, monkeypatch):
    here = tmp_path / "environment" / "bin"
    here.mkdir(parents=True)
    for name in ("python", "slurm-agent-tools"):
        (here / name).touch(0o755)
    (tmp_path / "linked").symlink_to(here.parent)
    monkeypatch.setattr(sys, "prefix", str(here.parent))
    monkeypatch.setattr(sys, "executable", str(here / "python"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "linked" / "bin"), "/usr/bin"]))

    [note] = [note for note in told(tmp_path / "mine", capsys)["notes"] if "on your PATH" in note]

    assert f"{here}/slurm-agent-tools" in note


def test_a_command_that_the_login_finds_gets_no_note(tmp_path, capsys, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "slurm-agent-tools").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    assert not [note for note in told(tmp_path / "mine", capsys)["notes"] if "PATH" in note]


@pytest.mark.parametrize("kind", init_command.CAMPAIGNS)
def test_an_example_of_a_campaign_is_written_alone_and_once(tmp_path, capsys, kind):
    body = told(tmp_path, capsys, "--campaign", kind)
    files = {file["path"]: file["action"] for file in body["files"]}
    assert files[f"campaigns/{kind}.yaml"] == "created"
    assert not (tmp_path / "slurm-agent.toml").exists()
    text = (tmp_path / "campaigns" / f"{kind}.yaml").read_text()
    assert list(problems_of(text.encode(), f"campaigns/{kind}.yaml")) == []
    schema = text.splitlines()[0].partition("$schema=")[2]
    assert (tmp_path / "campaigns" / schema).is_file()
    programs = {word for word in text.replace(",", " ").split() if word.endswith(".py")}
    assert programs
    assert all((tmp_path / program).is_file() for program in programs)

    (tmp_path / "campaigns" / f"{kind}.yaml").write_text("# mine\n")
    again = told(tmp_path, capsys, "--campaign", kind)
    assert {file["action"] for file in again["files"]} == {"kept"}
    assert (tmp_path / "campaigns" / f"{kind}.yaml").read_text() == "# mine\n"


def test_a_campaign_that_is_no_example_is_told_with_those_that_are(tmp_path):
    with pytest.raises(InputError, match="is not an example") as raised:
        called(tmp_path / "new", "--campaign", "alchemy")
    assert "learning-rate" in raised.value.hint
    assert not (tmp_path / "new").exists()
