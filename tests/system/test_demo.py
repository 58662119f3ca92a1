"""The demo as a person runs it, on the cluster of these tests."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.proves("demo-checks-itself")


def test_the_demo_agrees_with_slurm_and_shows_every_step(cluster):
    done = subprocess.run(
        [sys.executable, "-m", "slurm_agent_tools", "demo", "--folder", str(cluster.folder)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "19 of 19 checks agree with what Slurm says."
    for words in ("is COMPLETED (exit code 0)", "out-of-memory", "JUSTIFIED", "sbatch scripts/slurm/generated/wide-"):
        assert words in done.stdout
