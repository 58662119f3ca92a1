"""Everything below this folder needs the real Slurm."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.system.faces import Place
from tests.system.site_service import site_service  # noqa: F401 - a fixture of several files

HERE = Path(__file__).parent
collect_ignore = [] if os.environ.get("SLURM_AGENT_TEST_SLURM") else ["test_rate_limit.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.system)


@pytest.fixture
def fresh(place: Place) -> Place:
    """A project of its own with an empty ledger, and no job of the user in the queue."""
    made = place.another()
    made.slurm("scancel", f"--user={made.cluster.user}")
    for _ in range(600):
        if not made.slurm("squeue", "-h", "-t", "pending,running,completing", f"--user={made.cluster.user}"):
            break
        time.sleep(0.1)
    (made.project / "logs/slurm").mkdir(parents=True, exist_ok=True)
    made.own()
    return made
