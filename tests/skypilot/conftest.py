"""SkyPilot in an environment of its own: 459 MB that nothing else here needs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
WANTED = HERE / "requirements.txt"
HOME = Path("/var/tmp/slurm-agent-tools-skypilot")
UV = Path(sys.executable).parent / "uv"

Read = Callable[[Sequence[str]], list[dict[str, Any]]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.system)


def _uv(*words: str | Path) -> None:
    done = subprocess.run([UV, *words], capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter that has SkyPilot; installed on first use, and again when the requirements change."""
    wanted = hashlib.sha256(WANTED.read_bytes() + sys.version.encode()).hexdigest()
    stamp = HOME / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(HOME, ignore_errors=True)
        _uv("venv", "--quiet", "--no-config", "--python", "/usr/bin/python3", HOME)
        _uv("pip", "install", "--quiet", "--no-config", "--python", HOME / "bin/python", "-r", WANTED)
        stamp.write_text(wanted)
    return HOME / "bin" / "python"


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
