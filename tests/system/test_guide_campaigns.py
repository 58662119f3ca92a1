"""docs/guides/campaigns.md on a real Slurm: its commands in their order, from the example to the report."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.faces import Place

GUIDE = (Path(__file__).parents[2] / "docs/guides/campaigns.md").read_text()

LINES = [line for block in re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL) for line in block.splitlines()]


def done(place: Place, line: str) -> subprocess.CompletedProcess[bytes]:
    program, *words = shlex.split(line)
    assert program == "slurm-agent-tools"
    return place.run([sys.executable, "-m", "slurm_agent_tools", *words], seconds=300)


@pytest.mark.proves("campaign-values-are-words")
def test_the_commands_of_the_guide_carry_a_campaign_from_the_example_to_its_report(fresh: Place):
    assert [line.split()[1:3] for line in LINES[-5:]] == [
        ["campaign", what] for what in ("plan", "run", "status", "report", "stop")
    ]  # fmt: skip
    for line in LINES:
        ended = done(fresh, line)
        assert ended.returncode == 0, (line, ended.stdout, ended.stderr)
    trials = sorted((fresh.project / "runs/learning-rate").iterdir())
    assert (
        len(trials) == 1 + 13 + 10 + 8
    )  # smoke; a grid and the baseline; two, five times each, and more of the baseline
    report = (fresh.project / "campaigns/learning-rate.report.md").read_text()
    assert "## Objective and scope" in report
    assert "Chosen configuration" in report
