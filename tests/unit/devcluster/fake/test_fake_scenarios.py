"""The fake Slurm shows in every scenario what a real one of each version showed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scenarios import observed
from tests.scenarios.all_scenarios import SCENARIOS
from tests.scenarios.either import VERSIONS, on_fake


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_the_fake_slurm_shows_what_slurm_showed(scenario, version: str, tmp_path: Path):
    seen = await on_fake(scenario, version, tmp_path)
    assert observed.plain(seen) == observed.load(version)[scenario.name]


def test_there_are_at_least_60_scenarios_and_each_has_its_own_name():
    names = {scenario.name for scenario in SCENARIOS}
    assert len(names) == len(SCENARIOS) >= 60
