"""List schedules: never more than the pool, dependencies kept, and near to what is the best."""

from dataclasses import replace
from itertools import permutations

import pytest
from tests.effort import tries
from tests.unit.planning import problems

from slurm_agent_tools.planning import bounds, lists, placing
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.planning.schedule import plan_problem

OBJECTIVES = ("makespan", "mean_completion", "deadlines", "cost")
KINDS = {"single": problems.single, "gangs": problems.gangs, "uniform": problems.uniform}


def planned(problem, objective="makespan"):
    return lists.best_list(problem, objective).placement.schedule(problem)


@pytest.mark.proves("plans-are-possible")
@pytest.mark.parametrize("seed", range(tries(20)))
def test_no_plan_holds_more_than_there_is_or_starts_a_job_before_those_it_waits_for(seed):
    problem = problems.mixed(seed)
    for objective in OBJECTIVES:
        assert problems.faults(problem, planned(problem, objective)) == []
    assert problems.faults(problem, lists.naive(problem).schedule(problem)) == []


@pytest.mark.proves("plans-are-possible")
@pytest.mark.parametrize("kind", KINDS)
def test_each_way_to_place_a_list_is_possible_with_any_order(kind):
    for seed in range(tries(20)):
        problem = KINDS[kind](seed)
        order = list(range(problem.size))
        problems.seeded(seed).shuffle(order)
        for placement in (
            placing.serial(problem, order),
            placing.parallel(problem, order),
            placing.parallel(problem, order, blocking=True),
            placing.justified(problem, placing.serial(problem, order)),
        ):
            assert problems.faults(problem, placement.schedule(problem)) == []


@pytest.mark.proves("plans-are-near-the-best")
@pytest.mark.parametrize("kind", KINDS)
def test_fifty_jobs_on_four_gpus_end_within_a_little_of_the_bound_by_lists_alone(kind):
    most = {"single": 1.001, "gangs": 1.001, "uniform": 1.003}[kind]
    for seed in range(tries(20)):
        problem = KINDS[kind](seed)
        schedule, bound = planned(problem), bounds.makespan_bound(problem)
        assert problems.faults(problem, schedule) == []
        assert bound <= schedule.makespan <= most * bound
        assert schedule.makespan <= lists.naive(problem).schedule(problem).makespan


@pytest.mark.proves("plans-are-near-the-best")
@pytest.mark.parametrize("kind", KINDS)
def test_mean_completion_is_never_worse_than_shortest_first(kind):
    for seed in range(tries(20)):
        problem = KINDS[kind](seed)
        shortest = placing.parallel(problem, problem.seconds).schedule(problem).mean_completion
        in_turn = placing.parallel(problem, problem.seconds, blocking=True).schedule(problem).mean_completion
        found = planned(problem, "mean_completion").mean_completion
        bound = bounds.completion_bound(problem)
        assert bound * (1 - 1e-12) <= found <= min(shortest, in_turn) * (1 + 1e-12)
        assert kind != "single" or found == pytest.approx(bound)  # shortest first is the best there, and known to be


@pytest.mark.proves("plans-are-near-the-best")
def test_two_thousand_jobs_with_dependencies_on_64_gpus_are_planned_within_a_hundredth_of_the_bound():
    chance = problems.seeded(3)
    jobs = []
    for number in range(2000):
        before = {f"j{chance.randrange(number)}" for _ in range(chance.randint(0, 2))} if number % 2 else set()
        size = chance.choice([1, 1, 1, 2, 4, 8, 16])
        jobs.append(PlannedJob(f"j{number}", chance.randint(60, 20000), gpus=size, after=tuple(before)))
    problem = plan_problem(jobs, [JobPool(gpus=64)])
    assert planned(problem).makespan <= 1.01 * bounds.makespan_bound(problem)


def test_the_same_problem_has_the_same_plan():
    problem = problems.uniform(1)
    assert lists.best_list(problem, "makespan") == lists.best_list(problem, "makespan")


def test_of_very_many_different_jobs_fewer_lists_are_made_and_the_plan_is_still_possible():
    chance = problems.seeded(5)
    jobs = [
        PlannedJob(f"j{i}", chance.randint(1, 900), gpus=1, cpus=i % 977 + 1, memory_bytes=chance.randint(1, 2**30))
        for i in range(700)
    ]
    problem = plan_problem(jobs, [JobPool(gpus=64, cpus=4000, memory_bytes=2**34)])
    best = lists.best_list(problem, "makespan")
    assert best.placement.schedule(problem).makespan < lists.naive(problem).schedule(problem).makespan


def test_a_deadline_is_met_where_the_order_given_misses_it():
    jobs = [PlannedJob("long", 3600, gpus=2, count=3), PlannedJob("due", 600, gpus=2, deadline=700)]
    problem = plan_problem(jobs, [JobPool(gpus=2)])
    assert [one.name for one in lists.naive(problem).schedule(problem).missed] == ["due"]
    assert planned(problem, "deadlines").missed == ()


def test_what_a_deadline_waits_for_is_urgent_too():
    jobs = [
        PlannedJob("early", 100, gpus=1, deadline=400),
        PlannedJob("prepare", 100, gpus=1),
        PlannedJob("paper", 100, gpus=1, after=("prepare",), deadline=200),
    ]
    schedule = planned(plan_problem(jobs, [JobPool(gpus=1)]), "deadlines")
    assert [one.name for one in schedule.placed] == ["prepare", "paper", "early"]


def test_the_cheap_pool_takes_all_but_what_would_be_late_there():
    jobs = [PlannedJob("any", 3600, gpus=1, count=4), PlannedJob("due", 3600, gpus=1, deadline=3700)]
    pools = [JobPool("cloud", gpus=4, gpu_hour=3.0), JobPool("own", gpus=1, gpu_hour=0.1)]
    problem = plan_problem(jobs, pools)
    schedule = planned(problem, "cost")
    assert schedule.missed == ()
    assert schedule.cost == pytest.approx(0.5)
    assert planned(problem, "makespan").makespan == 3600


def test_weights_come_first_in_means():
    jobs = [PlannedJob("light", 100, gpus=1), PlannedJob("heavy", 300, gpus=1, priority=10)]
    schedule = planned(plan_problem(jobs, [JobPool(gpus=1)]), "mean_completion")
    assert [one.name for one in schedule.placed] == ["heavy", "light"]


def test_shares_of_one_gpu_run_beside_each_other_and_never_across_two():
    jobs = [PlannedJob("third", 100, share=0.3, count=6), PlannedJob("most", 100, share=0.7, count=2)]
    schedule = planned(plan_problem(jobs, [JobPool(gpus=2)]))
    assert schedule.makespan == 200
    assert all(len(one.gpus) == 1 for one in schedule.placed)


@pytest.mark.proves("plans-are-near-the-best")
@pytest.mark.parametrize("seed", range(tries(60)))
def test_no_order_at_all_is_better_than_the_bounds(seed):
    """Some order, placed in series, is the best of all plans: of few jobs all orders are tried."""
    chance = problems.seeded(seed)
    most = chance.randint(2, 8)
    jobs = [
        PlannedJob(f"j{i}", chance.randint(1, 40), gpus=chance.randint(1, most), priority=chance.choice([1, 1, 2]))
        for i in range(chance.randint(2, 5))
    ]
    jobs = jobs if seed % 2 else [replace(job, priority=1.0) for job in jobs]
    problem = plan_problem(jobs, [JobPool(gpus=most)])
    plans = [placing.serial(problem, order).schedule(problem) for order in permutations(range(problem.size))]
    assert bounds.makespan_bound(problem) <= min(plan.makespan for plan in plans) + 1e-9
    assert bounds.completion_bound(problem) <= min(plan.mean_completion for plan in plans) + 1e-9


def test_a_long_narrow_job_leaves_room_for_fewer_wide_ones():
    jobs = [PlannedJob("long", 100, gpus=1), PlannedJob("wide", 100, gpus=2), PlannedJob("pair", 10, gpus=2, count=2)]
    problem = plan_problem(jobs, [JobPool(gpus=4)])
    assert bounds.makespan_bound(problem) == planned(problem).makespan == 110


def test_bounds_are_those_of_small_examples():
    three = plan_problem([PlannedJob("a", 10, gpus=1, count=5)], [JobPool(gpus=2)])
    assert bounds.makespan_bound(three) == 30
    wide = plan_problem([PlannedJob("w", 10, gpus=3, count=2), PlannedJob("n", 10, gpus=1)], [JobPool(gpus=4)])
    assert bounds.makespan_bound(wide) == 20
    chain = plan_problem([PlannedJob("a", 10, cpus=1), PlannedJob("b", 5, cpus=1, after=("a",))], [JobPool(cpus=8)])
    assert bounds.makespan_bound(chain) == 15
    assert bounds.completion_bound(chain) == pytest.approx(12.5)
    one = plan_problem([PlannedJob("a", 10, gpus=1), PlannedJob("b", 20, gpus=1)], [JobPool(gpus=1)])
    assert bounds.completion_bound(one) == pytest.approx(20)
