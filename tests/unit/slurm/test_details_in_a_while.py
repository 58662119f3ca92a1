"""Details of a few jobs are asked for one by one; of more within ten seconds in one listing of all."""

from __future__ import annotations

import pytest

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.devcluster.fake.fake_files import MemoryFiles
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.units import JobId


def details(slurm: FakeSlurm) -> list[str]:
    """What `scontrol show job` was asked about, in turn; of a listing its last option."""
    return [argv[-1] for argv in slurm.asked if argv[:3] == ("scontrol", "show", "job")]


@pytest.mark.parametrize(("later", "alone"), [(0, False), (9, False), (10, True), (60, True)])
async def test_after_ten_seconds_a_few_more_are_asked_about_one_by_one(later, alone):
    slurm = FakeSlurm(files=MemoryFiles())
    clock = FakeClock()  # the client's own, in which a command takes no time
    client = SlurmClient(slurm, clock, SlurmSettings(cache_seconds=10), user=slurm.user)
    numbers = [slurm.submit("#!/bin/bash\nexit 200\n", cwd="/home/alice") for _ in range(5)]
    await slurm.clock.advance(5)

    await client.jobs([JobId(number) for number in numbers[:4]])
    assert sorted(details(slurm)) == [str(number) for number in numbers[:4]]
    clock.move(later)
    await client.jobs([JobId(numbers[4])])

    assert (details(slurm)[4] == str(numbers[4])) is alone
