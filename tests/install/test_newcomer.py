"""In a bare system that has Python and nothing else: each way to install it, and the tutorial, by an ordinary user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.install.conftest import BARE, BARE_ALONE, ROOT, ran

pytestmark = BARE_ALONE


def test_a_newcomer_installs_it_in_each_way_and_walks_through_the_tutorial(
    bare_system: Path, built: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran(sys.executable, ROOT / "scripts/bundle.py", built)
    with capfd.disabled():  # how long each took
        done = subprocess.run([*BARE, "newcomer", bare_system, built], check=False)

    assert done.returncode == 0
