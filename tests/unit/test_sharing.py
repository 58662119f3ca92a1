"""Tests are shared out among processes: each runs once, and one that fails is told wherever it ran."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.effort import some
from tests.sharing import BEGUN_FIRST
from tests.watchdog import SECONDS

ROOT = Path(__file__).parents[2]
MEETS = """
import os
from pathlib import Path
from tests.watchdog import until
HERE = Path(__file__).parent

def test_meets_the_other():
    (HERE / "{own}.begun").write_text(str(os.getpid()))
    until((HERE / "{other}.begun").exists)

def test_is_run_once():
    with (HERE / "{own}.ended").open("a") as file:
        file.write("run")
    assert "{own}" != "{fails}"
"""

STARTS = """
import inspect
import subprocess
import sys
from mcp.client.stdio import stdio_client

def test_starts_a_server():
    kept = inspect.signature(stdio_client).parameters["errlog"].default
    assert subprocess.run([sys.executable, "-c", ""], stderr=kept).returncode == 0
"""


@pytest.mark.parametrize("fails", some(["b", "a", "none"]))
def test_two_files_run_at_the_same_time_and_a_failure_of_either_is_told(tmp_path: Path, fails: str) -> None:
    for own, other in ("ab", "ba"):
        (tmp_path / f"test_{own}.py").write_text(MEETS.format(own=own, other=other, fails=fails))
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n"
    )
    done = shared(tmp_path)

    assert done.returncode == (fails != "none"), done.stdout + done.stderr
    assert [(tmp_path / f"{name}.ended").read_text() for name in "ab"] == ["run", "run"]
    assert len({(tmp_path / f"{name}.begun").read_text() for name in "ab"}) == 2
    assert done.stdout.count(f"assert '{fails}' != '{fails}'") == (fails != "none")
    assert fails != "none" or len(re.findall(r"^\.\. +\[ 50%\]$", done.stdout, re.MULTILINE)) == 2, done.stdout
    assert done.stdout.count("2 passed") + done.stdout.count("1 failed, 1 passed") == 2


def test_a_server_can_be_started_in_every_process(tmp_path: Path) -> None:
    for own, other in ("ab", "ba"):
        (tmp_path / f"test_{own}.py").write_text(MEETS.format(own=own, other=other, fails="none") + STARTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    done = shared(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("3 passed") == 2


def shared(folder: Path) -> subprocess.CompletedProcess[str]:
    """The tests of a folder, shared out among two processes."""
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.sharing", "--processes", "2", str(folder)]
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=2 * SECONDS)


def test_the_files_that_are_begun_first_are_there() -> None:
    assert [path for path in BEGUN_FIRST if not (ROOT / path).exists()] == []
