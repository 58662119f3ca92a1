"""What answers state holds at the moment that they are given: the queue, waits, arrays, and who has looked."""

from __future__ import annotations

from tests.unit.services.scenes import Scene, sent

from slurm_agent_tools.slurm.fake.endings import Ending

# --- whether to submit now ----------------------------------------------------------------------------------------------


def fill(scene: Scene, partition: str, node: str, cpus: int) -> None:
    """Somebody else's job takes all of a node."""
    scene.slurm.next_job(after=None)
    scene.slurm.submit("#!/bin/bash\nsleep 9000\n", f"--partition={partition}", f"--nodelist={node}",
                       f"--cpus-per-task={cpus}", "--mem=100", "--time=60", user="bob")  # fmt: skip


async def test_a_full_default_partition_is_no_ground_to_submit_though_others_have_room(scene: Scene):
    fill(scene, "cpu", "cpu01", 64)
    fill(scene, "cpu", "cpu02", 64)
    scene.slurm.clock.move(5)

    queue = (await scene.status()).queue

    assert queue.recommendation == "ADJUST"
    assert queue.why == "partition cpu: every CPU is in use: there is room in gpu, special"
    assert queue.full_partitions == {"cpu": "every CPU is in use"}


async def test_a_full_partition_beside_the_default_one_is_named(scene: Scene):
    fill(scene, "special", "spec01", 96)
    scene.slurm.clock.move(5)

    queue = (await scene.status()).queue

    assert queue.recommendation == "SUBMIT_NOW"
    assert queue.why.endswith("resources are free, but not everywhere (partition special: every CPU is in use)")


async def test_a_partition_whose_nodes_are_down_has_no_room(scene: Scene):
    for node in ("cpu01", "cpu02"):
        scene.slurm.fail_node(node)

    queue = (await scene.status()).queue

    assert (queue.recommendation, queue.full_partitions) == ("ADJUST", {"cpu": "none of its nodes is usable"})


async def test_where_gpus_alone_are_taken_the_default_partition_decides(scene: Scene):
    for node in ("gpu01", "gpu02"):
        scene.slurm.next_job(after=None)
        scene.slurm.submit("#!/bin/bash\nsleep 9000\n", "--partition=gpu", f"--nodelist={node}", "--gres=gpu:4",
                           "--mem=100", "--time=60", user="bob")  # fmt: skip
    scene.slurm.clock.move(5)

    queue = (await scene.status()).queue

    assert queue.recommendation == "SUBMIT_NOW"
    assert queue.full_partitions == {"gpu": "every GPU is in use"}


async def test_with_refresh_the_accounting_is_asked_again_what_ran(scene: Scene):
    first = (await scene.status(["queue"])).queue.waits.note
    await sent(scene, seconds=300)

    kept = (await scene.status(["queue"])).queue.waits.note
    fresh = (await scene.status(["queue"], refresh=True)).queue.waits.note

    assert first == "the accounting shows no job that ran in the last 7 days"
    assert kept == f"{first}, asked 5 min ago (refresh asks again)"
    assert fresh == "1 job of your own ran in the last 7 days"


# --- arrays -------------------------------------------------------------------------------------------------------------


async def test_an_array_ran_from_its_first_start_to_its_last_end(scene: Scene):
    scene.slurm.next_job(tasks={0: Ending(after=100), 1: Ending(exit_code=1, after=0), 2: Ending(after=30)})
    number = await sent(scene, array="0-2%3", seconds=200)

    job = (await scene.wait(number)).job

    assert (job.state, job.run_seconds) == ("FAILED", 100)


async def test_an_array_that_runs_says_how_long_it_has_run_so_far(scene: Scene):
    scene.slurm.next_job(tasks={0: Ending(after=10), 1: Ending(after=None)})
    number = await sent(scene, array="0-1%1", seconds=60)

    job = (await scene.wait(number)).job

    assert (job.state, 50 <= job.run_seconds <= 60) == ("RUNNING", True)
