"""What the client changes in Slurm: all that the caller said arrives there, and what Slurm says comes back whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import SlurmRefused, SlurmUncertain, SlurmUnreachable, UnknownJob
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import JobId

SCRIPT = b"#!/bin/bash\n#SBATCH --time=10\nsleep 60\n"
HERE: dict[str, Any] = {"cwd": "/home/alice/runs", "env": {"SEED": "7"}}
SETTINGS = SlurmSettings(read_timeout=4, submit_timeout=9)


class Watched:
    """A fake Slurm, and with what each command came to it."""

    def __init__(self, version: str = "22.05") -> None:
        self.slurm = FakeSlurm(version=version)
        self.client = SlurmClient(self, self.slurm.clock, SETTINGS, user="alice")
        self.came: list[tuple[list[str], dict[str, Any]]] = []

    async def run(self, argv: Sequence[str], **more: Any) -> Completed:
        self.came.append((list(argv), more))
        return await self.slurm.run(argv, **more)


@pytest.fixture
def watched() -> Watched:
    return Watched()


async def test_a_submission_arrives_with_its_script_folder_environment_options_and_arguments(watched):
    sent = await watched.client.submit(["--hold", "--job-name=a b"], SCRIPT, ["--lr", "0 1"], **HERE)
    argv, more = watched.came[-1]
    assert argv == ["sbatch", "--parsable", "--hold", "--job-name=a b", "/dev/stdin", "--lr", "0 1"]
    assert more == {"stdin": SCRIPT, **HERE, "timeout": SETTINGS.submit_timeout}
    job = watched.slurm.job(sent.job_id)
    assert (job.work_dir, job.request.name, job.request.script) == ("/home/alice/runs", "a b", SCRIPT)


async def test_a_question_without_a_job_arrives_as_whole_and_leaves_none(watched):
    told = await watched.client.test_only(["--job-name=a"], SCRIPT, ["x"], **HERE)
    argv, more = watched.came[-1]
    assert (argv[-2:], {name: more[name] for name in ("stdin", "cwd", "env")}) == (
        ["/dev/stdin", "x"],
        {"stdin": SCRIPT, **HERE},
    )
    assert more["timeout"] == SETTINGS.read_timeout
    assert told.accepted
    assert watched.slurm.controller.jobs == {}


@pytest.mark.parametrize("version", ["22.05", "24.11"])
async def test_slurm_gives_the_scripts_bytes_back_and_no_others_for_an_unknown_job(version):
    watched = Watched(version)
    sent = await watched.client.submit([], SCRIPT, [], **HERE)
    assert await watched.client.batch_script(JobId(sent.job_id)) == SCRIPT
    if version == "22.05":  # which says so and ends with 0
        assert await watched.client.batch_script(JobId(99)) == b""
    else:
        with pytest.raises(SlurmRefused):
            await watched.client.batch_script(JobId(99))
    with pytest.raises(UnknownJob):
        await watched.client.held(JobId(99))


async def test_what_goes_on_in_between_is_told_by_the_kind_of_error(watched):
    sent = await watched.client.submit(["--hold"], SCRIPT, [], **HERE)
    job = JobId(sent.job_id)
    for action in (watched.client.release, watched.client.cancel):
        watched.slurm.hang("scontrol release" if action == watched.client.release else "scancel")
        with pytest.raises(SlurmUncertain):
            await action(job)
    watched.slurm.hang("sbatch")
    with pytest.raises(SlurmUncertain):
        await watched.client.submit([], SCRIPT, [], **HERE)
    watched.slurm.hang("sbatch")
    with pytest.raises(SlurmUnreachable):  # a question changes nothing, so nothing is uncertain
        await watched.client.test_only([], SCRIPT, [], **HERE)
    with pytest.raises(SlurmRefused):
        await watched.client.submit(["--partition=nowhere"], SCRIPT, [], **HERE)


async def test_every_command_is_counted_by_its_kind(watched):
    sent = await watched.client.submit(["--hold"], SCRIPT, [], **HERE)
    await watched.client.held(JobId(sent.job_id))
    await watched.client.release(JobId(sent.job_id))
    assert watched.client.calls == {"sbatch": 1, "scontrol show job": 1, "scontrol": 1}
    assert sum(watched.client.calls.values()) == len(watched.came)


NUMBERING = (
    "Job update not available right now, the DB index is being set, try again in a bit for job {0}\n"
    "slurm_suspend error: Job update not available right now, the DB index is being set, try again in a bit\n"
)
"""What `scontrol release` of Slurm 22.05 says while slurmdbd does not answer slurmctld."""


async def test_a_release_is_asked_for_again_while_slurmdbd_numbers_the_job(watched):
    sent = await watched.client.submit(["--hold"], SCRIPT, [], **HERE)
    for _ in range(3):
        watched.slurm.fail("scontrol release", NUMBERING.format(sent.job_id))
    await watched.client.release(JobId(sent.job_id))
    assert not (await watched.client.held(JobId(sent.job_id))).held
    assert watched.client.calls["scontrol"] == 4


async def test_a_release_that_slurmdbd_holds_up_for_long_is_uncertain_and_no_refusal(watched):
    sent = await watched.client.submit(["--hold"], SCRIPT, [], **HERE)
    for _ in range(4):
        watched.slurm.fail("scontrol release", NUMBERING.format(sent.job_id))
    with pytest.raises(SlurmUncertain, match="slurmdbd is slow"):
        await watched.client.release(JobId(sent.job_id))
    assert watched.client.calls["scontrol"] == 4
