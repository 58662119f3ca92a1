"""docs/guides/campaigns.md: its commands are run, and every field of the file stands in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from tests.unit.cli.command_here import command_here

from slurm_agent_tools.campaigns.file_reader import problems_of, schema
from slurm_agent_tools.cli.commands.init_command import CAMPAIGNS
from slurm_agent_tools.models.campaign_file import Fix

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "campaigns.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE, re.DOTALL)


def test_every_example_of_the_guide_is_written_and_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = [line for block in blocks("bash") for line in block.splitlines() if " init " in line]
    assert {line.split()[-1] for line in lines} == set(CAMPAIGNS)
    for line in lines:
        done = command_here(monkeypatch, capfd)(line, tmp_path)
        assert done.returncode == 0, (line, done.stderr)
        path = tmp_path / "campaigns" / f"{line.split()[-1]}.yaml"
        assert list(problems_of(path.read_bytes(), str(path))) == []


def fields() -> set[str]:
    made = schema()
    return {name for part in (made, *made["$defs"].values()) for name in part.get("properties", {})}


@pytest.mark.parametrize("field", sorted(fields()))
def test_every_field_stands_in_the_guide(field: str) -> None:
    assert re.search(rf"`{field}`|`[^`\n]*\b{field}:[^`\n]*`|\b{field}: ", GUIDE)


def test_the_fixes_of_the_guide_are_right() -> None:
    (block,) = blocks("yaml")
    for one in yaml.safe_load(block)["fixes"]:
        Fix.model_validate(one, by_alias=True, by_name=False)
