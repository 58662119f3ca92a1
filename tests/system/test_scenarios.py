"""The scenarios of tests/scenarios on a real Slurm: the fake one shows the same, and so did Slurm when it was recorded.

SLURM_AGENT_RECORD=1 writes down what the real one shows, for the unit tests.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.conftest import SLURM
from tests.scenarios import observed
from tests.scenarios.all_scenarios import SCENARIOS
from tests.scenarios.bench import Seen
from tests.scenarios.either import CONF, on_fake, on_real
from tests.scenarios.observed import Observed

from slurm_agent_tools.devcluster import lifecycle

VERSION = SLURM or "22.05"


@pytest.fixture(scope="module")
def shown() -> Iterator[Observed]:
    """What all scenarios show, on a cluster of their own: they take nodes away, and jobs are forgotten soon."""
    folder = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        cluster = anyio.run(partial(lifecycle.up, folder, slurm=SLURM, yes=True, extra_conf=CONF))
        found = anyio.run(on_real, SCENARIOS, VERSION, cluster)
        if os.environ.get("SLURM_AGENT_RECORD"):
            observed.save(VERSION, found)
        yield found
    finally:
        anyio.run(partial(lifecycle.down, folder, wipe=True))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
class TestBothSlurmsShowTheSame:
    def test_the_fake_one(self, scenario, shown, tmp_path):
        fake = anyio.run(on_fake, scenario, VERSION, tmp_path)
        assert observed.plain(fake) == observed.plain(_whole(shown[scenario.name]))

    def test_the_recorded_one(self, scenario, shown):
        assert observed.plain(_whole(shown[scenario.name])) == observed.load(VERSION)[scenario.name]


def _whole(seen: Seen | str) -> Seen:
    """What a scenario showed; one that broke on the real Slurm fails with all that was known then."""
    if isinstance(seen, str):
        pytest.fail(seen, pytrace=False)
    return seen
