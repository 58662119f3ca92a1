"""docs/guides/new-backend.md: every command in it is run, in its order, in one fresh project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.cli.command_here import Run, command_here

from slurm_agent_tools.backends import page_templates, pages

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "new-backend.md"
TEXT = "".join(GUIDE.read_text().split("```")[::2])
LINES = [
    line for block in re.findall(r"```bash\n(.*?)```", GUIDE.read_text(), re.DOTALL) for line in block.splitlines()
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guide")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    return command_here(monkeypatch, capfd)


def test_every_command_of_the_guide_is_done_in_its_order(project: Path, run: Run) -> None:
    assert len(LINES) == 8
    said = []
    for line, code in zip(LINES, [0] * 7 + [3], strict=True):  # the last one has a question for a person
        done = run(line, project)
        assert done.returncode == code, (line, done.stdout, done.stderr)
        said.append(done.stdout)
    assert "rented: skypilot" in said[2]
    assert "right" in said[5]
    assert "rented" in said[6]
    assert "ask_person" in said[7]
    for line in re.findall(r"`(slurm-agent-tools [^`]+|backends [a-z]+)`", TEXT):
        done = run(f"slurm-agent-tools {line.removeprefix('slurm-agent-tools ')}", project)
        assert done.returncode == 0, (line, done)


def test_the_guide_names_the_same_templates_and_fields_as_the_code() -> None:
    text = GUIDE.read_text()
    assert all(f"`{name}`" in text for name in page_templates.TEMPLATES)
    fields = {info.alias or name for name, info in pages.BackendPage.model_fields.items()}
    named = set(re.findall(r"^\| `(\w+)", text, re.MULTILINE))
    assert named <= fields
