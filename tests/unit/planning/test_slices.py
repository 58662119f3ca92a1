"""Slices of jobs that checkpoint: how jobs are cut, in which order they run, what restarts cost, when none are offered."""

import pytest

from slurm_agent_tools.planning.job_plan import by_lists
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.planning.slices import slice_offer

HOUR = 3600.0
POOL = JobPool(gpus=4)


def job(name, hours, gpus=1, **more):
    return PlannedJob(name, hours * HOUR, gpus=gpus, **{"restart": 60.0} | more)


@pytest.mark.proves("slices-are-offered")
def test_a_job_is_cut_into_one_two_and_four_gpu_hours_each_behind_the_end_of_the_last_at_its_time_limit():
    offer = slice_offer([job("long", 7)], [POOL], 4)
    assert [one.time_limit for one in offer.slices] == [HOUR, 2 * HOUR + 60, None]
    assert [one.submission.dependency() for one in offer.slices] == [
        None,
        "afterany:<long slice 1>",
        "afterany:<long slice 2>",
    ]
    assert (offer.restarts, offer.lost, offer.mean_completion) == (2, 120.0, 7 * HOUR + 120)


def test_a_job_of_four_gpus_has_a_first_slice_of_a_quarter_of_an_hour():
    offer = slice_offer([job("wide", 1, gpus=4)], [POOL], 4)
    assert offer.slices[0].time_limit == HOUR / 4


@pytest.mark.proves("slices-are-offered")
def test_short_jobs_behind_long_ones_end_soon_though_nothing_is_known():
    jobs = [job(f"long{number}", 100, gpus=4) for number in range(3)] + [job(f"s{number}", 0.5) for number in range(40)]
    offer = slice_offer(jobs, [POOL], 4)
    naive = by_lists(jobs, [POOL], "makespan").naive.mean_completion
    assert offer.mean_completion < naive / 4
    assert offer.lost < 0.02 * 300 * HOUR


@pytest.mark.parametrize(
    "jobs",
    [
        [job("a", 7, restart=None)],
        [job("a", 7, count=2)],
        [job("a", 7), job("b", 7, after=("a",))],
        [job("a", 0.5), job("b", 1)],
    ],
)
def test_nothing_is_offered_where_jobs_cannot_be_cut_or_need_not_be(jobs):
    assert slice_offer(jobs, [POOL], 4) is None
