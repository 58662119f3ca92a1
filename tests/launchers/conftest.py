"""torch, accelerate, deepspeed and MPI in an environment of their own: 3 GB that nothing else here needs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.faces import Place

HERE = Path(__file__).parent
WANTED = HERE / "requirements.txt"
HOME = Path("/var/tmp/slurm-agent-tools-launchers")  # where the cluster's user may read it
UV = Path(sys.executable).parent / "uv"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.system)


def _uv(*words: str | Path, **env: str) -> None:
    done = subprocess.run(
        [UV, *words], capture_output=True, text=True, timeout=1800, check=False, env=os.environ | env, umask=0o022
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with their commands; installed on first use, and again when the requirements change."""
    wanted = hashlib.sha256(WANTED.read_bytes() + sys.version.encode()).hexdigest()
    stamp = HOME / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(HOME, ignore_errors=True)
        # The system's own interpreter: the cluster's user cannot enter a folder of root's.
        _uv("venv", "--quiet", "--no-config", "--python", "/usr/bin/python3", HOME)
        install = ("pip", "install", "--quiet", "--no-config", "--python", HOME / "bin/python", "-r", WANTED)
        _uv(*install, "--no-build-isolation-package", "deepspeed", DS_BUILD_OPS="0")
        stamp.write_text(wanted)
    return HOME / "bin"


@pytest.fixture
def project(place: Place) -> Place:
    """A project of its own that holds the programs."""
    made = place.another() if place.another is not None else place
    shutil.copytree(HERE / "programs", made.project, dirs_exist_ok=True)
    (made.project / "logs/slurm").mkdir(parents=True, exist_ok=True)
    made.own()
    return made
