"""The question to the solver, and what is made of its answers: whole, cut off, or none."""

import json
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace

import pytest
from tests.unit import extras_in_memory
from tests.unit.planning import problems

from slurm_agent_tools.planning import exact, job_plan
from slurm_agent_tools.planning.lists import naive, worth
from slurm_agent_tools.planning.placing import serial
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.planning.schedule import plan_problem

pytestmark = pytest.mark.proves("solver-never-harms")


def told(problem, placement):
    return json.dumps({"starts": placement.starts}).encode() + b"\n"


def test_the_question_holds_a_hint_that_is_possible_in_whole_ticks():
    for problem in (problems.gangs(3), problems.mixed(4), problems.single(2)):
        if problem.shared:
            continue
        asked = json.loads(exact.question(problem, naive(problem), "makespan", 2))
        ticks = replace(problem, seconds=tuple(map(float, asked["ticks"])))
        schedule = ticks.schedule(list(map(float, asked["hint"])), [0] * problem.size)
        inner = replace(ticks, jobs=tuple(replace(job, seconds=1.0) for job in ticks.jobs))
        assert inner.size == len(schedule.placed)
        assert all(tick * asked["step"] >= true for tick, true in zip(asked["ticks"], problem.seconds, strict=True))


def test_several_pools_shares_and_no_time_are_not_for_the_solver():
    jobs = [PlannedJob("a", 10, gpus=1)]
    both = plan_problem(jobs, [JobPool("x", gpus=1), JobPool("y", gpus=1)])
    shared = plan_problem([PlannedJob("a", 10, share=0.5)], [JobPool(gpus=1)])
    one = plan_problem(jobs, [JobPool(gpus=1)])
    assert exact.question(both, naive(both), "makespan", 2) is None
    assert exact.question(shared, naive(shared), "makespan", 2) is None
    assert exact.question(one, naive(one), "makespan", 0) is None


def test_the_best_line_counts_and_worse_ones_and_torn_ones_do_not():
    problem = problems.gangs(1)
    worse, better = naive(problem), serial(problem, [-one for one in problem.seconds])
    line = told(problem, better)
    found = exact.answer(problem, worse, "makespan", line + b'{"bound": 12.5}\n' + line[:40])
    assert worth(problem, found.placement, "makespan") <= worth(problem, better, "makespan")
    assert found.bound == 12.5
    assert exact.answer(problem, better, "makespan", told(problem, worse)).placement is None
    for nothing in (b"", b"Traceback ...\n", b'{"starts": [1, 2]}\n', line[:40]):
        assert exact.answer(problem, worse, "makespan", nothing) == exact.Improvement(None)


def test_a_solver_that_was_ended_leaves_the_best_so_far():
    problem = problems.gangs(1)
    plan = replace(job_plan.by_lists(problem.jobs, problem.pools, "makespan"), placement=naive(problem))
    better = serial(problem, [-one for one in problem.seconds])
    improved = job_plan.improved(plan, told(problem, better) + b'{"starts": [1')
    assert improved.exact
    assert improved.schedule.makespan < plan.schedule.makespan
    assert problems.faults(problem, improved.schedule) == []
    assert job_plan.improved(improved, b"") == improved


def test_nothing_is_asked_where_the_list_is_at_the_bound():
    jobs = [PlannedJob("a", 100, gpus=1, count=8)]
    assert job_plan.question(job_plan.by_lists(jobs, [JobPool(gpus=4)], "makespan"), 2) is None
    gap = problems.uniform(15)
    assert job_plan.question(job_plan.by_lists(gap.jobs, gap.pools, "makespan"), 2) is not None
    due = [PlannedJob("a", 100, gpus=1, count=2, deadline=200)]
    assert job_plan.question(job_plan.by_lists(due, [JobPool(gpus=1)], "deadlines"), 2) is None


@pytest.fixture
def asked_in_memory(monkeypatch):
    """A solver that tries everything, where OR-tools is not installed."""
    if not exact.available():
        extras_in_memory.solver(monkeypatch)


@pytest.mark.parametrize("objective", ["makespan", "mean_completion", "deadlines"])
def test_the_solver_finds_what_is_the_best_of_a_small_problem(objective, capsys, monkeypatch, asked_in_memory):
    jobs = [
        PlannedJob("a", 1, gpus=1, deadline=5),
        PlannedJob("b", 1, gpus=1, after=("a",)),
        PlannedJob("c", 2, gpus=2, count=2, deadline=4),
    ]
    problem = plan_problem(jobs, [JobPool(gpus=2)])
    asked = exact.question(problem, naive(problem), objective, 5)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(asked)))
    exact.main()
    found = exact.answer(problem, naive(problem), objective, capsys.readouterr().out.encode())
    schedule = (found.placement or naive(problem)).schedule(problem)
    assert problems.faults(problem, schedule) == []
    expected = {"makespan": 6, "mean_completion": 3.25, "deadlines": 0}[objective]
    seen = {
        "makespan": schedule.makespan,
        "mean_completion": schedule.mean_completion,
        "deadlines": len(schedule.missed),
    }
    assert seen[objective] == expected
