"""A project in which commands are given up early."""

from __future__ import annotations

import pytest
from tests.system.faces import Place


@pytest.fixture
def ready(fresh: Place) -> Place:
    """A project whose caller has looked at the cluster; commands are given up early."""
    fresh.extra |= {f"SLURM_AGENT_SLURM__{name}": "2" for name in ("READ_TIMEOUT", "SUBMIT_TIMEOUT", "CACHE_SECONDS")}
    assert fresh.cli("get_status")[0] == 0
    return fresh
