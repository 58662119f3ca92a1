"""The demo as a person runs it, on the cluster of these tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/tutorial/demo.md"

pytestmark = pytest.mark.proves("demo-checks-itself")


def test_the_demo_agrees_with_slurm_and_shows_every_step(cluster):
    done = subprocess.run(
        [sys.executable, "-m", "slurm_agent_tools", "demo", "--folder", str(cluster.folder)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "25 of 25 checks agree with what Slurm says."
    for words in ("is COMPLETED (exit code 0)", "out-of-memory", "JUSTIFIED", "sbatch scripts/slurm/generated/wide-"):
        assert words in done.stdout
    assert skeleton(shown_on_its_page()) == skeleton(done.stdout)


def shown_on_its_page() -> str:
    """The demo's output as its page has it; `make readme` refreshes it."""
    return PAGE.read_text().split("<!-- demo output", 1)[1].split("<!-- end of demo output", 1)[0]


def skeleton(text: str) -> list[str]:
    """The steps, the calls and what was compared, without ids, times and places."""
    lines = [line for line in text.splitlines() if re.match(r"\d+\. |   [>=!] ", line)]
    return [re.sub(r"\d+", "N", re.split(r"job_id=|: ", line)[0]) for line in lines]
