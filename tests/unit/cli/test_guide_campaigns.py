"""docs/guides/campaigns.md: its commands are run, and every field of the file stands in it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from slurm_agent_tools.campaigns.file_reader import problems_of, schema
from slurm_agent_tools.cli.commands.init_command import CAMPAIGNS
from slurm_agent_tools.models.campaign_file import Fix

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "campaigns.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE, re.DOTALL)


def test_every_example_of_the_guide_is_written_and_right(tmp_path: Path) -> None:
    lines = [line for block in blocks("bash") for line in block.splitlines() if " init " in line]
    assert {line.split()[-1] for line in lines} == set(CAMPAIGNS)
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "slurm-agent-tools"
        done = subprocess.run(
            [sys.executable, "-m", "slurm_agent_tools", *words],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")},
        )  # fmt: skip
        assert done.returncode == 0, (line, done.stderr)
        path = tmp_path / "campaigns" / f"{words[-1]}.yaml"
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
