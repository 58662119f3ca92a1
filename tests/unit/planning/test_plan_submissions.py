"""From a plan to calls: arrays with throttles, chains, what follows what, and never more slots than the cap."""

import pytest
from tests.unit.planning import problems

from slurm_agent_tools.planning.gantt import gantt
from slurm_agent_tools.planning.lists import best_list, naive
from slurm_agent_tools.planning.plan_submissions import submissions
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.planning.schedule import plan_problem


def steps(jobs, pool, most=None):
    problem = plan_problem(jobs, [pool])
    return submissions(best_list(problem, "makespan").placement.schedule(problem), most)


@pytest.mark.proves("plans-become-few-calls")
def test_copies_are_one_array_with_as_many_tasks_at_once_as_the_plan_runs():
    (one,) = steps([PlannedJob("sweep", 60, gpus=1, count=50)], JobPool(gpus=4))
    assert (one.how, one.array, one.dependency()) == ("array", "0-49%4", None)
    (all_at_once,) = steps([PlannedJob("sweep", 60, gpus=1, count=4)], JobPool(gpus=4))
    assert all_at_once.array == "0-3"


@pytest.mark.proves("plans-become-few-calls")
def test_a_dependency_is_kept_and_means_success():
    jobs = [PlannedJob("train", 60, gpus=1, after=("prepare",)), PlannedJob("prepare", 10, cpus=1)]
    first, second = steps(jobs, JobPool(gpus=1, cpus=4))
    assert (first.job, first.how) == ("prepare", "single")
    assert (second.how, second.dependency()) == ("chain", "afterok:<prepare>")


@pytest.mark.proves("plans-become-few-calls")
def test_what_follows_on_the_end_of_another_is_chained_and_takes_its_slot():
    jobs = [PlannedJob("first", 100, gpus=2), PlannedJob("second", 50, gpus=2), PlannedJob("third", 25, gpus=2)]
    found = steps(jobs, JobPool(gpus=2), most=1)
    assert [one.dependency() for one in found] == [None, f"afterany:<{found[0].job}>", f"afterany:<{found[1].job}>"]
    assert all(one.behind == () for one in found)


@pytest.mark.proves("plans-become-few-calls")
@pytest.mark.parametrize("most", [1, 2, 4])
def test_every_kind_is_submitted_once_and_no_more_slots_are_taken_than_there_are(most):
    for seed in range(10):
        problem = problems.gangs(seed, jobs=20)
        found = submissions(naive(problem).schedule(problem), most)
        assert sorted(one.job for one in found) == sorted(job.name for job in problem.jobs)
        taken = {}
        for one in found:
            for name in one.behind:
                taken.pop(name, None)
            heir = next((name for name in one.chained if name in taken), None)
            if heir is not None:
                del taken[heir]
            taken[one.job] = one.width
            assert sum(taken.values()) <= most


@pytest.mark.proves("plans-become-few-calls")
def test_all_are_submitted_at_once_where_each_waits_for_those_whose_gpus_it_takes():
    for seed in range(10):
        problem = problems.gangs(seed, jobs=24)
        schedule = best_list(problem, "makespan").placement.schedule(problem)
        found = submissions(schedule, 4)
        assert all(one.behind == () for one in found)
        begins = {one.name: one.start for one in schedule.placed}
        held = {}
        waits = {one.job: set(one.chained) for one in found}
        for one in schedule.placed:
            before = {held[gpu] for gpu in one.gpus if gpu in held}
            assert before <= waits[one.name]
            assert all(begins[name] < one.start for name in waits[one.name])
            held |= dict.fromkeys(one.gpus, one.name)


@pytest.mark.proves("plans-become-few-calls")
def test_nothing_is_chained_to_what_has_ended_before_it_is_submitted_and_slurm_may_have_forgotten():
    waited = 0
    for seed in range(10):
        problem = problems.gangs(seed, jobs=24)
        schedule = naive(problem).schedule(problem)
        ends = {one.name: one.end for one in schedule.placed}
        passed = 0.0
        for one in submissions(schedule, 2):
            waited += len(one.behind)
            passed = max([passed, *(ends[name] for name in one.behind)])
            assert all(ends[name] > passed for name in one.chained)
    assert waited


@pytest.mark.proves("plans-become-few-calls")
def test_success_is_asked_for_only_of_those_that_the_caller_named():
    jobs = [
        PlannedJob("prepare", 10, gpus=1), PlannedJob("other", 20, gpus=3), PlannedJob("train", 60, gpus=4, after=("prepare",)),
    ]  # fmt: skip
    last = steps(jobs, JobPool(gpus=4), most=4)[-1]
    assert last.dependency() == "afterok:<prepare>,afterany:<other>"


def test_a_picture_has_a_bar_for_each_gpu_and_shows_names_as_text():
    jobs = [
        PlannedJob("<script>alert(1)</script>", 100, gpus=2),
        PlannedJob("late", 50, gpus=1, deadline=10),
        PlannedJob("half", 50, share=0.5, count=2),
        PlannedJob("plain", 50, cpus=1, count=2),
    ]
    problem = plan_problem(jobs, [JobPool(gpus=2, cpus=4)])
    picture = gantt(naive(problem).schedule(problem), "a & b")
    assert "<script>" not in picture
    assert "&lt;script&gt;" in picture
    assert picture.count("<rect ") == 2 + 1 + 2 + 2
    assert "after its deadline" in picture
    assert "a &amp; b" in picture
