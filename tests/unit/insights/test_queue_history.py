"""What a cluster ran lately: whose jobs, how large the pool, which priorities; and the workload that is made of it."""

from __future__ import annotations

import pytest
from tests.unit.services.scenes import Scene

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import AccountingUnreachable, InputError
from slurm_agent_tools.insights.queue_history import cluster_past
from slurm_agent_tools.planning.strategies import site_weights
from slurm_agent_tools.planning.workload import NEVER_STARTED, NOT_OVER, from_accounting

JOB = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --cpus-per-task=2\n#SBATCH --time=10\n#SBATCH --mem=1G\nsleep 60\n"


@pytest.fixture
def scene(tmp_path) -> Scene:
    return Scene(tmp_path)


async def ran(scene: Scene, *users: str) -> None:
    for user in users:
        scene.slurm.submit(JOB, user=user)
    await scene.slurm.clock.advance(200)


@pytest.mark.proves("simulate-accounting")
async def test_all_users_jobs_are_there_with_what_they_asked_for_and_waited(scene):
    await ran(scene, "alice", "bob")
    found = await cluster_past(scene.context, days=1)
    assert (found.own, found.days) == (False, 1)
    load = from_accounting(found.jobs)
    assert {job.user for job in load.jobs} == {"alice", "bob"}
    assert {(job.processors, job.limit) for job in load.jobs} == {(2, 600)}
    assert all(59 <= job.run <= 62 and job.wait is not None for job in load.jobs)
    nodes = await scene.context.slurm.nodes()
    assert found.sizes["cpus"] == sum({node.name: node.cpus for node in nodes}.values())


@pytest.mark.proves("simulate-accounting")
async def test_where_only_ones_own_jobs_are_seen_it_is_said(scene):
    await ran(scene, "alice")
    assert (await cluster_past(scene.context, days=1)).own


async def test_what_is_not_over_or_never_started_is_counted_and_left_out(scene):
    await ran(scene, "bob")
    waiting = scene.slurm.submit(JOB, "--begin=now+1hour")
    scene.slurm.submit(JOB.replace("sleep 60", "sleep 500"))
    await scene.slurm.clock.advance(30)
    scene.slurm.command("scancel", str(waiting))
    await scene.slurm.clock.advance(5)
    found = await cluster_past(scene.context, days=1)
    load = from_accounting(found.jobs)
    assert [job.user for job in load.jobs] == ["bob"]
    assert load.left_out[NOT_OVER] == 1
    assert set(load.left_out) <= {NOT_OVER, NEVER_STARTED}


async def test_each_task_of_an_array_is_a_job(scene):
    scene.slurm.submit(JOB, "--array=1-3")
    await scene.slurm.clock.advance(200)
    assert len(from_accounting((await cluster_past(scene.context, days=1)).jobs).jobs) == 3


async def test_a_partition_has_its_own_jobs_and_nodes_and_an_unknown_one_is_named(scene):
    await ran(scene, "alice")
    found = await cluster_past(scene.context, days=1, partition="gpu")
    nodes = {node.name for node in await scene.context.slurm.nodes() if "gpu" in node.partitions}
    assert (found.jobs, found.sizes["nodes"]) == ((), len(nodes))
    with pytest.raises(InputError, match="partition: 'no'"):
        await cluster_past(scene.context, days=1, partition="no")


async def test_gpus_are_counted_where_they_are_wanted(scene):
    scene.slurm.submit(JOB.replace("partition=cpu", "partition=gpu"), "--gpus=2")
    await ran(scene, "alice")
    found = await cluster_past(scene.context, days=1)
    assert [job.processors for job in from_accounting(found.jobs, unit="gpus").jobs] == [2]
    nodes = await scene.context.slurm.nodes()
    assert found.sizes["gpus"] == sum({node.name: node.gpus for node in nodes}.values())


async def test_without_accounting_and_for_no_days_it_is_an_error_that_says_so(tmp_path):
    scene = Scene(tmp_path, FakeSlurm(accounting=False))
    with pytest.raises(AccountingUnreachable, match="keeps no accounting"):
        await cluster_past(scene.context, days=1)
    with pytest.raises(InputError, match="days: 0"):
        await cluster_past(scene.context, days=0)


def test_the_sites_weights_are_read_from_its_configuration():
    assert site_weights({"PriorityType": "priority/basic"}) is None
    found = site_weights(
        {
            "PriorityType": "priority/multifactor", "PriorityWeightAge": "1000", "PriorityWeightFairShare": "50000",
            "PriorityWeightJobSize": "(null)", "PriorityMaxAge": "1-00:00:00", "PriorityDecayHalfLife": "00:00:00",
        }
    )  # fmt: skip
    assert (found.age, found.fair_share, found.size, found.max_age) == (1000, 50_000, 0, 86_400)
    assert found.half_life > 1e9
    silent = site_weights({"PriorityType": "priority/multifactor", "PriorityMaxAge": "soon"})
    assert silent.max_age == 7 * 86_400


async def test_an_accounting_that_is_silent_is_an_error_and_no_empty_past(scene):
    await ran(scene, "alice")
    scene.slurm.accounting_down()
    with pytest.raises(AccountingUnreachable):
        await cluster_past(scene.context, days=1)


async def test_jobs_of_before_the_window_are_not_there(scene):
    await ran(scene, "alice")
    await scene.slurm.clock.advance(3 * 86_400)
    await ran(scene, "bob")
    found = await cluster_past(scene.context, days=1)
    assert {job.user for job in found.jobs} == {"bob"}
