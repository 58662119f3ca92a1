"""Optuna in an environment of its own: 165 MB, NumPy and SQLAlchemy among it, that nothing else here needs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.own_environment import interpreter

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WANTED = (ROOT / "requirements.txt", HERE / "requirements.txt")
HOME = Path("/var/tmp/slurm-agent-tools-optuna")

Search = Callable[..., Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.system)


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter that has Optuna; installed on first use, and again when the requirements change."""
    return interpreter(HOME, WANTED)


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
