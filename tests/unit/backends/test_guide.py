"""Every command of the guide about other schedulers, as it is printed there."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from slurm_agent_tools.cli import main

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "other-schedulers.md"
COMMANDS = re.findall(r"^\$ slurm-agent-tools (.*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_guide_shows_a_command_for_each_format():
    for scheduler in ("pbs", "kubernetes", "skypilot"):
        assert any(f"--format {scheduler}" in command for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_guide_writes_its_file(command: str, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / ".state"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".state"))
    monkeypatch.chdir(tmp_path)

    assert main.main([*shlex.split(command), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (tmp_path / answer["path"]).exists()
    assert answer["path"] in answer["manual_commands"][0]
