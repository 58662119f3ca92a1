"""The private Slurm comes up, and holds a job to its memory, whatever control groups the machine has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.system.cgroup_layouts import LAYOUTS

from slurm_agent_tools.devcluster import cgroups, lifecycle

PRIVATE = ["unshare", "--mount", "--propagation", "private"]
STATES = {"polling": "FAILED", "cgroup/v1": "OUT_OF_MEMORY", "cgroup/v2": "OUT_OF_MEMORY"}


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount other control groups in a namespace")
    if subprocess.run([*PRIVATE, "true"], capture_output=True).returncode != 0:
        pytest.skip("this root may make no mount namespace")


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    anyio.run(partial(lifecycle.down, path, wipe=True))
    if path.exists():
        path.rmdir()


def tried(layout: str, folder: Path) -> dict[str, Any]:
    """What a cluster under a layout told."""
    script = Path(__file__).with_name("cgroup_layouts.py")
    argv = [*PRIVATE, sys.executable, str(script), layout, str(folder), os.environ.get("SLURM_AGENT_TEST_SLURM", "")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert set(found["nodes"].values()) == {"idle"}
    assert found["memory"]["reason"]
    assert any(found["memory"]["reason"] in line for line in found["said"])
    assert found["state"] == STATES[found["memory"]["by"]]
    return found


@pytest.mark.parametrize("layout", ["a bare tmpfs", "nothing mounted", "version 2 read-only"])
def test_without_control_groups_to_write_in_memory_is_polled(folder, layout):
    found = tried(layout, folder)

    assert found["memory"]["by"] == "polling"
    assert "Constrain" not in found["conf"]


def test_with_version_2_alone_it_comes_up_whatever_the_kernel_gives(folder):
    found = tried("version 2 alone", folder)

    held_by_version_1 = len(Path("/proc/self/cgroup").read_text().splitlines()) > 1
    if held_by_version_1:
        assert found["memory"]["by"] == "polling"
        assert "version 1 holds" in found["memory"]["reason"]
    else:
        assert found["memory"]["by"] == cgroups.ways(cgroups.here())[0][0].limits


@pytest.mark.parametrize("layout", ["version 1 alone", "version 1 read-only"])
def test_version_1_limits_memory_only_where_it_may_be_written(folder, layout):
    mounted = {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}
    needed = {argv[-1] for argv in LAYOUTS[layout]}
    if not needed <= mounted:
        pytest.skip(f"this machine has no {', '.join(sorted(needed - mounted))} to take away")

    assert tried(layout, folder)["memory"]["by"] == ("cgroup/v1" if layout == "version 1 alone" else "polling")


def test_a_folder_that_was_used_with_control_groups_comes_up_without_them_and_again_with_them(folder):
    first = tried("as it is", folder)
    assert first["memory"]["by"] == cgroups.ways(cgroups.here())[0][0].limits
    second = tried("nothing mounted", folder)

    assert second["memory"]["by"] == "polling"
    assert "Constrain" not in second["conf"]
    assert tried("as it is", folder)["conf"] == first["conf"]
