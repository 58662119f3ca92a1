"""A record of a job that another job carries in its comment changes no ledger, no log and no hours of a day."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.services.scenes import HEAD, Scene, sent

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.services import jobs, submission_facts
from slurm_agent_tools.units import JobId

MANY = 6
"""Jobs: more than are asked about one by one."""


@pytest.fixture(params=["22.05", "24.11", "26.05"])
def scene(tmp_path: Path, request: pytest.FixtureRequest):
    made = Scene(tmp_path, FakeSlurm(version=request.param))
    made.limits(max_concurrent_jobs=MANY + 1, max_pending_jobs=MANY + 1)
    yield made
    made.context.store.close()


async def several(scene: Scene) -> list[int]:
    """Jobs of a minute."""
    for number in range(MANY):
        scene.write(f"train{number}.sh", f"{HEAD}#SBATCH --job-name=own{number}\nsleep 60\n")
    return [int(await sent(scene, seconds=1, script=f"train{number}.sh")) for number in range(MANY)]


def forged(scene: Scene, number: int, state: str, ran: str) -> str:
    job = scene.slurm.job(number)
    start, submitted = int(job.start or 0), int(job.submitted)
    return (
        f"z\n\nJobId={number} JobName=a\n   UserId={job.user}({job.uid})\n   JobState={state} Reason=None Dependency=(null)\n"
        f"   Requeue=0 Restarts=0 ExitCode=1:0\n   RunTime={ran} TimeLimit=00:05:00\n   SubmitTime={submitted}"
        f" EligibleTime={submitted}\n   StartTime={start} EndTime={start}\n   Partition=cpu\n   NodeList=n1\n"
        "   NumNodes=1 NumCPUs=1\n   Command=x\n   WorkDir=/"
    )


def sent_with_comment(scene: Scene, user: str, comment: str) -> int:
    """A job past the tools, which stays in the queue."""
    return scene.slurm.submit("#!/bin/bash\nsleep 9\n", "--hold", f"--comment={comment}", user=user, cwd="/")


@pytest.mark.parametrize("forgotten", [True, False])
@pytest.mark.parametrize(
    ("user", "state", "ran"), [("mallory", "FAILED", "5-00:00:00"), (None, "COMPLETED", "00:00:00")]
)
async def test_a_forged_record_changes_neither_the_ledger_nor_the_hours_of_the_day(
    scene: Scene, forgotten: bool, user: str | None, state: str, ran: str
):
    numbers = await several(scene)
    scene.slurm.clock.move(70)
    if forgotten:
        scene.slurm.clock.move(scene.slurm.controller.min_job_age + 5)
    for number in numbers:
        sent_with_comment(scene, user or scene.slurm.user, forged(scene, number, state, ran))
    scene.slurm.clock.move(20)

    runs = scene.context.store.accepted(scene.context.owner)
    scene.slurm.asked.clear()
    await jobs.settle_all(scene.context, runs)

    known = [scene.context.store.by_job(scene.context.owner, number) for number in numbers]
    assert [(run.outcome, run.failed, run.run_seconds) for run in known] == [("COMPLETED", False, 60)] * MANY
    hours = [submission_facts._hours(run, "cpus") for run in known]
    assert all(
        one == pytest.approx(60 / 3600 * (run.requested.cpus or 0)) for one, run in zip(hours, known, strict=True)
    )
    assert (
        len([argv for argv in scene.slurm.asked if argv[:3] == ("scontrol", "show", "job") and "--verbose" in argv])
        <= 1
    )


async def test_a_forged_record_puts_no_file_in_the_place_of_anothers_log(scene: Scene):
    numbers = await several(scene)
    for number in numbers:
        sent_with_comment(
            scene, "mallory", f"{forged(scene, number, 'RUNNING', '00:00:01')}\n   StdOut=/home/mallory/x\n\n"
        )
    scene.slurm.clock.move(20)

    views = await scene.context.slurm.jobs([JobId(number) for number in numbers])

    assert {view.job.state for view in views.values()} == {"RUNNING"}
    assert all("mallory" not in (view.job.stdout or "") for view in views.values())
