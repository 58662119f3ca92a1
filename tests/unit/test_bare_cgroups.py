"""What a bare system leaves of control groups, and what it leaves alone: scripts/bare/cgroups.py on a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.unit.shipped_scripts import script


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = script("bare/cgroups")
    monkeypatch.setattr(module, "hierarchies", lambda: {"memory": tmp_path})
    return module


@pytest.fixture
def beside() -> Iterator[int]:
    """The number of a process that runs beside this one."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()


def test_the_empty_child_of_a_run_beside_this_one_stays(groups: ModuleType, tmp_path: Path, beside: int) -> None:
    just_made = tmp_path / f"slurm-bare-{beside}" / "slurm" / "job_1"
    just_made.mkdir(parents=True)
    groups.sweep()
    assert just_made.is_dir()


def test_what_this_process_and_a_killed_run_left_goes(groups: ModuleType, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    for number in (os.getpid(), ended.pid):
        (tmp_path / f"slurm-bare-{number}" / "slurm" / "job_1").mkdir(parents=True)
    (tmp_path / "slurm-agent-devcluster").mkdir()
    groups.sweep()
    assert [place.name for place in tmp_path.iterdir()] == ["slurm-agent-devcluster"]
