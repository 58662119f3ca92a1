"""Jobs that need several GPUs at once: answers worked out on paper, and what holds whatever the order is."""

import math

import pytest
from tests.unit.planning.workloads import job, made_up, workload

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.gangs import GANG_ORDERS, replay_gangs
from slurm_agent_tools.planning.schedule_check import schedule_faults

# One job holds two of four GPUs, the next needs all four, the third two.
MIXED = workload(job(1, 0, 100, 2), job(2, 10, 100, 4), job(3, 20, 30, 2))


def ends(load, name, **more):
    return list(replay_gangs(load, GANG_ORDERS[name], **more).ends)


def test_in_the_order_of_submission_a_gang_that_does_not_fit_blocks_all_behind_it():
    assert ends(MIXED, "first-blocks") == [100, 200, 230]


def test_whoever_fits_may_pass_it():
    assert ends(MIXED, "whoever-fits") == [100, 200, 50]


def test_the_shortest_remaining_time_puts_longer_jobs_aside():
    load = workload(job(1, 0, 100, 4), job(2, 10, 20, 1))
    assert ends(load, "shortest-remaining") == [120, 30]
    assert ends(load, "smallest-remaining") == [120, 30]


def test_the_smallest_remaining_service_counts_gpus_as_well():
    load = workload(job(1, 0, 100, 1), job(2, 10, 60, 4))  # 60 s on four GPUs are more than 90 s on one
    assert ends(load, "shortest-remaining") == [160, 70]
    assert ends(load, "smallest-remaining") == [100, 160]


def test_whoever_has_used_an_hour_of_a_gpu_goes_behind_whoever_has_not():
    load = workload(job(1, 0, 2000, 4), job(2, 1000, 100, 4))
    done = replay_gangs(load, GANG_ORDERS["least-attained"])
    assert list(done.ends) == [2100, 1100]  # the first left its queue after 900 s
    assert done.restarts == 1
    assert done.stretches == ((0, 0, 1000), (1, 1000, 1100), (0, 1100, 2100))
    assert ends(load, "least-attained", restart=60) == [2160, 1100]
    assert ends(load, "least-attained", service=8000) == [2000, 2100]


def test_in_one_queue_nobody_who_runs_is_put_aside():
    load = workload(job(1, 0, 50, 2), job(2, 1, 100, 4), job(3, 2, 200, 2))
    assert ends(load, "least-attained") == ends(load, "whoever-fits") == [50, 302, 202]


@pytest.mark.parametrize("name", GANG_ORDERS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.proves("replay-holds")
def test_no_order_gives_more_gpus_than_there_are_and_every_job_gets_its_whole_time(name, seed):
    load = made_up(seed, count=200, load=0.8 + 0.2 * seed)
    done = replay_gangs(load, GANG_ORDERS[name])
    assert schedule_faults(done.pieces, 32) == []
    had = [0.0] * len(load.jobs)
    for index, begin, end in done.stretches:
        had[index] += end - begin
    assert had == pytest.approx([one.run for one in load.jobs])
    assert done.mean_completion == pytest.approx(
        math.fsum(end - one.submit for end, one in zip(done.ends, load.jobs, strict=True)) / 200
    )


def test_what_cannot_be_played_is_named():
    with pytest.raises(InputError, match="job 2, after"):
        replay_gangs(workload(job(1, 0, 10), job(2, 0, 10, after=1)), GANG_ORDERS["whoever-fits"])
    with pytest.raises(InputError, match="job 1, processors"):
        replay_gangs(workload(job(1, 0, 10, 9)), GANG_ORDERS["whoever-fits"], gpus=8)
    with pytest.raises(InputError, match="gpus"):
        replay_gangs(workload(job(1, 0, 10), processors=None), GANG_ORDERS["whoever-fits"])
    with pytest.raises(InputError, match="restart"):
        replay_gangs(MIXED, GANG_ORDERS["whoever-fits"], restart=-1)
    assert replay_gangs(workload(), GANG_ORDERS["whoever-fits"]).mean_completion == 0
