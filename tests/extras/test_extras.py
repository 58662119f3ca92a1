"""What needs OR-tools or LightGBM, in an environment of its own: 400 MB that nothing else here needs.

The tests themselves are those of the unit tests, which are skipped where an extra is not installed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.own_environment import interpreter

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WANTED = (ROOT / "requirements.txt", HERE / "requirements.txt")
HOME = Path("/var/tmp/slurm-agent-tools-extras")
TESTS = (
    "tests/unit/planning/test_exact.py",
    "tests/unit/planning/test_forecast.py",
    "tests/unit/services/test_plan_jobs.py",
)

pytestmark = pytest.mark.system


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter that has the extras; installed on first use, and again when the requirements change."""
    return interpreter(HOME, WANTED)


@pytest.mark.parametrize("tests", TESTS)
def test_what_needs_an_extra_holds_where_it_is_installed(python: Path, tests: str) -> None:
    argv = [python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", tests]
    done = subprocess.run(
        argv, cwd=ROOT, env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIPPED" not in done.stdout
