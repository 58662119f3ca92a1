"""The command `fleet`: its words, what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_agent_tools.cli.main import main


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SLURM_AGENT_SLURM__BIN_DIR", str(tmp_path / "no-slurm"))
    return tmp_path


@pytest.mark.usefixtures("project")
def test_without_a_slurm_each_section_says_so_and_the_command_fails(capsys):
    assert main(["fleet", "free", "inventory", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "partial"
    assert told["free"]["error"]["code"] == told["inventory"]["error"]["code"]


@pytest.mark.proves("bad-input-names-the-field")
@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["everything"], "sections"), (["--match", "gpus"], "--match"), (["--match", "cpus=4"], "--match"),
        (["--match", "gpus=two"], "match.gpus"), (["--watch"], "--watch"), (["--watch", "--json"], "--watch"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_names_its_field(words, field, capsys):
    assert main(["fleet", *words, "--json"]) == 2
    assert field in json.loads(capsys.readouterr().out)["error"]["message"]


@pytest.mark.usefixtures("project")
def test_the_toolset_can_be_switched_off(monkeypatch, capsys):
    monkeypatch.setenv("SLURM_AGENT_TOOLSETS", '["core"]')
    assert main(["fleet"]) == 2
    assert "toolset fleet" in capsys.readouterr().err
