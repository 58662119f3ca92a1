"""In a bare system that has Python and nothing else: each way to install it, and the tutorial, by an ordinary user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.install.conftest import ROOT, ran

BARE = (sys.executable, str(ROOT / "scripts/bare"))
CANNOT_BE_MADE = 69

pytestmark = pytest.mark.skipif(
    os.environ.get("SLURM_AGENT_TEST_BARE") != "yes",
    reason="makes a bare system, which takes a while: `make test-install` does, and .ci/run in its own",
)


@pytest.fixture
def system() -> Iterator[Path]:
    """A bare system, with what is committed."""
    with tempfile.TemporaryDirectory(prefix="slurm-bare-", dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        made = subprocess.run([*BARE, "make", name], capture_output=True, text=True, check=False)
        if made.returncode == CANNOT_BE_MADE:
            pytest.skip(made.stderr.strip())
        assert made.returncode == 0, made.stderr
        yield Path(name)


def test_a_newcomer_installs_it_in_each_way_and_walks_through_the_tutorial(
    system: Path, built: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran(sys.executable, ROOT / "scripts/bundle.py", built)
    with capfd.disabled():  # how long each took
        done = subprocess.run([*BARE, "newcomer", system, built], check=False)

    assert done.returncode == 0
