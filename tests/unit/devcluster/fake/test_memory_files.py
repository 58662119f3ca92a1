"""Files in memory keep the clock's time, and the fake Slurm writes its logs there."""

from __future__ import annotations

from slurm_agent_tools.devcluster.fake.fake_clock import START, FakeClock
from slurm_agent_tools.devcluster.fake.fake_files import MemoryFiles
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm


async def test_times_are_those_of_the_clock():
    clock = FakeClock()
    files = MemoryFiles(clock)
    clock.move(90)
    files.put("/a/b", b"x")
    clock.move(10)
    found = await files.stat("/a/b")
    assert (found.modified - START).total_seconds() == 90


async def test_jobs_write_their_logs_into_memory():
    files = MemoryFiles()
    slurm = FakeSlurm(files=files)
    place = slurm.place("/home/alice/project")
    number = slurm.submit("#!/bin/bash\necho hello\nsleep 5\necho done\n", "--output=%j.out", cwd="/home/alice/project")
    slurm.clock.move(3)
    assert await place.files.read(f"/home/alice/project/{number}.out") == b"hello\n"
    slurm.clock.move(10)
    assert await place.files.read(f"/home/alice/project/{number}.out") == b"hello\ndone\n"


async def test_a_job_whose_log_has_no_folder_in_memory_is_not_set_up():
    slurm = FakeSlurm(files=MemoryFiles())
    slurm.place("/home/alice/project")
    number = slurm.submit("#!/bin/bash\ntrue\n", "--output=logs/x.out", cwd="/home/alice/project")
    slurm.clock.move(3)
    assert (slurm.job(number).state, slurm.job(number).signal) == ("FAILED", 53)
