"""What is built once for all tests of an installation: wheel, source distribution, and the tools that check them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.own_environment import interpreter

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
HOME = Path("/var/tmp/slurm-agent-tools-release")
BARE = (sys.executable, str(ROOT / "scripts/bare"))
CANNOT_BE_MADE = 69
BARE_ALONE = pytest.mark.skipif(
    os.environ.get("SLURM_AGENT_TEST_BARE") != "yes",
    reason="makes a bare system, which takes a while: `make test-install` does",
)


def ran(*argv: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, seconds: float = 600) -> str:
    """Standard output of a program that must end with 0."""
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout


def plain(**more: str) -> dict[str, str]:
    """The environment without settings of ours, of Slurm or of an active environment."""
    without = ("SLURM", "PYTHONPATH", "VIRTUAL_ENV", "UV_PROJECT", "PIPX")
    return {name: value for name, value in os.environ.items() if not name.startswith(without)} | more


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    ran(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def tools() -> Path:
    """The folder of twine, pipx and what checks a bill of materials; installed on first use."""
    return interpreter(HOME, (HERE / "requirements.txt",)).parent


@pytest.fixture(scope="session")
def bare_system() -> Iterator[Path]:
    """A bare system, with what is committed."""
    with tempfile.TemporaryDirectory(prefix="slurm-bare-", dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        made = subprocess.run([*BARE, "make", name], capture_output=True, text=True, check=False)
        if made.returncode == CANNOT_BE_MADE:
            pytest.skip(made.stderr.strip())
        assert made.returncode == 0, made.stderr
        yield Path(name)
