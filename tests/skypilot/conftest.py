"""SkyPilot in an environment of its own: 459 MB that nothing else here needs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.own_environment import interpreter

HERE = Path(__file__).parent
WANTED = HERE / "requirements.txt"
HOME = Path("/var/tmp/slurm-agent-tools-skypilot")

Read = Callable[[Sequence[str]], list[dict[str, Any]]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.system)


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter that has SkyPilot; installed on first use, and again when the requirements change."""
    return interpreter(HOME, [WANTED])


@pytest.fixture(scope="session")
def reads(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Read:
    """SkyPilot's own reading of task files, in one process with a home of its own."""
    home = tmp_path_factory.mktemp("home")

    def read(texts: Sequence[str]) -> list[dict[str, Any]]:
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"}
        argv = [python, "-I", HERE / "reading.py"]
        done = subprocess.run(
            argv, input=json.dumps(texts), capture_output=True, text=True, timeout=300, check=False, cwd=home, env=env
        )
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
        return found

    return read
