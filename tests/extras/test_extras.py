"""What needs OR-tools or LightGBM, in an environment of its own: 400 MB that nothing else here needs.

The tests themselves are those of the unit tests, which are skipped where an extra is not installed.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WANTED = (ROOT / "requirements.txt", HERE / "requirements.txt")
HOME = Path("/var/tmp/slurm-agent-tools-extras")
UV = Path(sys.executable).parent / "uv"
TESTS = (
    "tests/unit/planning/test_exact.py",
    "tests/unit/planning/test_forecast.py",
    "tests/unit/services/test_plan_jobs.py",
)

pytestmark = pytest.mark.system


def _uv(*words: str | Path) -> None:
    done = subprocess.run([UV, *words], capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter that has the extras; installed on first use, and again when the requirements change."""
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in WANTED) + sys.version.encode()).hexdigest()
    stamp = HOME / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(HOME, ignore_errors=True)
        _uv("venv", "--quiet", "--no-config", "--python", "/usr/bin/python3", HOME)
        for path in WANTED:
            _uv("pip", "install", "--quiet", "--no-config", "--python", HOME / "bin/python", "-r", path)
        stamp.write_text(wanted)
    return HOME / "bin" / "python"


@pytest.mark.parametrize("tests", TESTS)
def test_what_needs_an_extra_holds_where_it_is_installed(python: Path, tests: str) -> None:
    argv = [python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", tests]
    done = subprocess.run(
        argv, cwd=ROOT, env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIPPED" not in done.stdout
