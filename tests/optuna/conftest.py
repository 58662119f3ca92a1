"""Optuna in an environment of its own: 165 MB, NumPy and SQLAlchemy among it, that nothing else here needs."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WANTED = HERE / "requirements.txt"
HOME = Path("/var/tmp/slurm-agent-tools-optuna")
UV = Path(sys.executable).parent / "uv"

Search = Callable[..., Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.system)


def _uv(*words: str | Path) -> None:
    done = subprocess.run([UV, *words], capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter that has Optuna; installed on first use, and again when the requirements change."""
    wanted = hashlib.sha256(WANTED.read_bytes() + sys.version.encode()).hexdigest()
    stamp = HOME / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(HOME, ignore_errors=True)
        _uv("venv", "--quiet", "--no-config", "--python", "/usr/bin/python3", HOME)
        _uv("pip", "install", "--quiet", "--no-config", "--python", HOME / "bin/python", "-r", WANTED)
        stamp.write_text(wanted)
    return HOME / "bin" / "python"


@pytest.fixture(scope="session")
def search(python: Path) -> Search:
    """Runs `searching.py` with what it is asked, in the environment that has Optuna."""

    def searched(**question: Any) -> Any:
        argv = [python, "-I", HERE / "searching.py", ROOT]
        done = subprocess.run(
            argv, input=json.dumps(question), capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return searched
