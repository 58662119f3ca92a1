"""What no plan can be made of is refused by the name of the job, its field, the value and the mend."""

import math

import pytest

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.lists import naive
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.planning.schedule import MOST, plan_problem

POOL = JobPool(gpus=4, cpus=32, memory_bytes=2**36)


def refusal(*jobs, pools=(POOL,)):
    with pytest.raises(InputError) as caught:
        plan_problem(jobs, pools)
    assert caught.value.hint
    return caught.value.message


@pytest.mark.proves("plans-refuse-by-name")
@pytest.mark.parametrize(
    ("job", "words"),
    [
        (PlannedJob("train", 60, gpus=8), ["'train': gpus", "8", "more than the pool has, 4"]),
        (PlannedJob("train", 60, cpus=33), ["'train': cpus", "33"]),
        (PlannedJob("train", 60, memory_bytes=2**37), ["'train': memory", "128G", "the pool has, 64G"]),
        (PlannedJob("train", -60, gpus=1), ["'train': expected", "-60"]),
        (PlannedJob("train", 0, gpus=1), ["'train': expected", "0"]),
        (PlannedJob("train", math.nan, gpus=1), ["'train': expected", "nan"]),
        (PlannedJob("train", math.inf, gpus=1), ["'train': expected", "inf"]),
        (PlannedJob("train", 60, gpus=-1), ["'train': gpus", "-1"]),
        (PlannedJob("train", 60, count=0), ["'train': count", "0"]),
        (PlannedJob("train", 60, count=10**6), ["'train': count", "1000000"]),
        (PlannedJob("train", 60, deadline=-5), ["'train': deadline", "-5"]),
        (PlannedJob("train", 60, deadline=math.nan), ["'train': deadline", "nan"]),
        (PlannedJob("train", 60, priority=0), ["'train': priority", "0"]),
        (PlannedJob("train", 60, priority=1e308), ["'train': priority", "1e+308"]),
        (PlannedJob("train", 60, cpus=10**30), ["'train': cpus", "1000000"]),
        (PlannedJob("train", 60, share=1.5), ["'train': share", "1.5"]),
        (PlannedJob("train", 60, share=0.5, gpus=1), ["'train': share", "0.5"]),
        (PlannedJob("train", 60, after=("nobody",)), ["'train': after", "nobody"]),
        (PlannedJob("train", 60, after=("train",)), ["'train': after", "circle"]),
    ],
)
def test_bad_jobs_are_named_with_the_field_and_the_value(job, words):
    message = refusal(job)
    assert all(word in message for word in words), message


@pytest.mark.proves("plans-refuse-by-name")
def test_a_circle_is_shown_whole():
    a, b, c = (PlannedJob(name, 60, after=(before,)) for name, before in (("a", "c"), ("b", "a"), ("c", "b")))
    with pytest.raises(InputError) as caught:
        plan_problem([a, b, c], [POOL])
    assert "a -> c -> b -> a" in caught.value.hint


@pytest.mark.proves("plans-refuse-by-name")
def test_a_million_kinds_of_jobs_are_refused_by_the_name_of_the_first_beyond():
    message = refusal(*(PlannedJob(f"j{number}", 60) for number in range(MOST + 1)))
    assert f"'j{MOST}': count: 1 is beyond the {MOST} that are planned" in message


def test_two_jobs_of_one_name_no_jobs_and_no_pool_are_refused():
    assert "'a': name" in refusal(PlannedJob("a", 60), PlannedJob("a", 60))
    assert "jobs" in refusal()
    assert "pool" in refusal(PlannedJob("a", 60), pools=())


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (JobPool("p", gpus=10**25), ["'p': gpus", "is more than"]),
        (JobPool("p", jobs=0), ["'p': jobs", "is less than 1"]),
        (JobPool("p", gpus=1, gpu_hour=1e308), ["'p': gpu_hour", "1e+308", "is more than"]),
        (JobPool("p", gpus=1, cpu_hour=math.nan), ["'p': cpu_hour", "nan"]),
    ],
)
def test_pools_of_figures_that_cannot_be_are_named(pool, words):
    message = refusal(PlannedJob("a", 60), pools=[pool])
    assert all(word in message for word in words), message


def test_a_pool_has_as_many_gpus_as_it_says_without_a_list_of_them():
    problem = plan_problem([PlannedJob("a", 60, count=2, gpus=3)], [JobPool(gpus=10**7)])
    assert [one.gpus for one in naive(problem).schedule(problem).placed] == [(0, 1, 2), (3, 4, 5)]


def test_a_job_that_no_single_pool_holds_is_refused_though_each_part_is_somewhere():
    pools = (JobPool("gpus", gpus=4, cpus=1), JobPool("cpus", gpus=0, cpus=64))
    message = refusal(PlannedJob("both", 60, gpus=2, cpus=8), pools=pools)
    assert "'both': resources" in message


def test_a_chain_of_thousands_is_walked():
    jobs = [PlannedJob(f"j{n}", 1, after=(f"j{n - 1}",) if n else ()) for n in reversed(range(3000))]
    problem = plan_problem(jobs, [POOL])
    assert naive(problem).schedule(problem).makespan == 3000


def test_copies_have_names_of_their_own_and_a_single_job_keeps_its():
    problem = plan_problem([PlannedJob("a", 60, count=2, gpus=1), PlannedJob("b", 60, gpus=2)], [POOL])
    placed = naive(problem).schedule(problem).placed
    assert sorted(one.name for one in placed) == ["a.0", "a.1", "b"]
    assert sorted(one.gpus for one in placed) == [(0,), (1,), (2, 3)]


def test_what_a_schedule_costs_counts_shares_in_part():
    pool = JobPool(gpus=1, gpu_hour=2.0, cpu_hour=0.1)
    problem = plan_problem([PlannedJob("a", 3600, share=0.5, cpus=4), PlannedJob("b", 1800, gpus=1)], [pool])
    assert naive(problem).schedule(problem).cost == pytest.approx(1.0 + 0.4 + 1.0)
