"""A controller that limits how often a user may ask (rl_enable, 23.02 and later): its commands wait, none fails.

Only collected for a version that can do it: SLURM_AGENT_TEST_SLURM.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.conftest import SLURM, make_place
from tests.system.faces import Place, call

from slurm_agent_tools.devcluster import lifecycle

LIMITS = "SlurmctldParameters=rl_enable,rl_bucket_size=4,rl_refill_rate=1,rl_refill_period=1"


@pytest.fixture
def limited() -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield make_place(anyio.run(partial(lifecycle.up, folder, slurm=SLURM, extra_conf=LIMITS, yes=True)))
    finally:
        anyio.run(partial(lifecycle.down, folder, wipe=True))


async def test_a_rate_limit_is_named_and_the_controller_asked_less(limited: Place) -> None:
    async with limited.client() as client:
        for _ in range(6):
            body = await call(client, "get_status", detailed=True, refresh=True)
            alerts = {alert["code"]: alert["message"] for alert in body["alerts"]}
            if "controller-limited" in alerts:
                break
        assert "rate limit" in alerts["controller-limited"]

        asked = (await call(client, "get_status", detailed=True))["slurm_calls"]
        again = await call(client, "get_status", detailed=True)

    assert again["slurm_calls"]["squeue"] == asked["squeue"]
    assert again["slurm"]["active_jobs"] == 0
