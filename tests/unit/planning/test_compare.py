"""Strategies side by side: the figures by hand, the intervals, what is recommended and what is said with it."""

from dataclasses import replace

import pytest
from tests.unit.planning.workloads import job, made_up, workload

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning import compare
from slurm_agent_tools.planning.gangs import GANG_ORDERS
from slurm_agent_tools.planning.simulate import replay
from slurm_agent_tools.planning.strategies import STRATEGIES

EASY, SHORTEST = STRATEGIES["easy"], STRATEGIES["easy-shortest"]


@pytest.fixture(scope="module")
def busy():
    return compare.compare(made_up(3, count=1500, load=0.95), list(STRATEGIES.values())[1:])


def test_the_figures_of_one_strategy_are_those_worked_out_by_hand(monkeypatch):
    monkeypatch.setattr(compare, "JITTER", 0.0)
    load = workload(job(1, 0, 100, 1), job(2, 0, 100, 1, user="bob"), processors=1)
    found = compare.compare(load, [EASY]).outcomes[0]
    assert (found.wait.mean, found.completion.mean, found.longest_wait.mean) == (50, 150, 100)
    assert (found.p95_wait.mean, found.bounded_slowdown.mean, found.utilisation.mean) == (100, 1.5, 1.0)
    assert found.fairness.mean == pytest.approx(0.9)  # slowdowns of 1 and 2: 9 / (2 * 5)
    assert (found.starved.mean, found.waits) == (0, (0, 100))
    assert compare.share_within(found, 60) == 0.5


def test_a_job_that_waits_days_for_minutes_of_work_has_starved(monkeypatch):
    monkeypatch.setattr(compare, "JITTER", 0.0)
    load = workload(job(1, 0, 200_000, 1), job(2, 0, 600, 1), processors=1)
    assert compare.compare(load, [EASY]).outcomes[0].starved.mean == 0.5


def test_slowdown_is_bounded_for_jobs_of_seconds():
    load = workload(job(1, 0, 100, 1), job(2, 0, 1, 1, limit=60), processors=1)
    assert compare.bounded_slowdowns(replay(load, EASY)) == [1, pytest.approx(10.1)]


def test_submissions_move_by_at_most_five_minutes_and_the_same_for_the_same_seed():
    load = made_up(1, chains=True)
    moved = compare.jittered(load, 7)
    before = {one.number: one for one in load.jobs}
    shifts = [abs(one.submit - before[one.number].submit) for one in moved.jobs if one.after is None]
    assert 0 < max(shifts) <= compare.JITTER
    assert compare.jittered(load, 7) == moved
    assert compare.jittered(load, 8) != moved
    replay(moved, EASY)  # nobody comes before the job that it waits for


@pytest.mark.proves("comparison-with-confidence")
def test_every_strategy_is_replayed_on_the_same_jittered_workloads_and_paired_by_job(busy):
    assert busy.runs == 5
    for outcome in busy.outcomes:
        assert outcome.wait.least <= outcome.wait.mean <= outcome.wait.most
    assert busy.outcomes[0].wait.least < busy.outcomes[0].wait.most
    for difference in busy.differences.values():
        low, high = difference.wait_interval
        assert low < difference.wait < high
    with pytest.raises(InputError, match="seeds: 4 is out of range"):
        compare.compare(made_up(1), [EASY], runs=4)


@pytest.mark.proves("comparison-with-confidence")
def test_a_strategy_beside_itself_differs_by_nothing_and_is_not_recommended():
    same = replace(EASY, name="the same")
    found = compare.compare(made_up(2), [EASY, same])
    difference = found.differences["the same"]
    assert (difference.wait, difference.wait_interval, difference.longest_ratio) == (0, (0, 0), 1)
    assert found.recommended is None
    assert "no more than chance" in found.verdicts["the same"]


def test_what_is_better_is_recommended_but_never_what_knows_the_future(busy):
    assert busy.recommended in {"easy-shortest", "easy-predicted", "easy-similar", "shortest", "shares"}
    assert "nobody can know" in busy.verdicts["easy-exact"]
    assert "shortens the mean wait by" in busy.verdicts[busy.recommended]


@pytest.mark.proves("longest-wait-is-said")
def test_a_recommendation_whose_longest_wait_grows_by_more_than_half_says_so():
    # A wide job that greedy shortest-first passes for ever, beside a baseline that reserves for it.
    small = [job(number, number * 500, 900, 1) for number in range(10, 400)]
    wide = [job(number, number * 20_000 + 7, 2000, 2) for number in range(1, 9)]
    load = workload(*small, *wide, processors=2)
    greedy = replace(STRATEGIES["shortest"], name="greedy", patience=1e6)
    found = compare.compare(load, [EASY, greedy])
    ratio = found.differences["greedy"].longest_ratio
    assert ratio > compare.GROWS_TOO_MUCH
    assert f"the longest wait grows by {ratio - 1:.0%}" in found.verdicts["greedy"]
    assert found.recommended in {None, "greedy"}


def test_one_within_bounds_is_recommended_before_a_better_one_beyond_them():
    base, bounded, wild = (_outcome(name, wait) for name, wait in (("easy", 100), ("a", 90), ("b", 50)))
    interval = (-60.0, -1.0)
    differences = {
        "a": compare.Difference(-10, interval, -1, interval, 1.4),
        "b": compare.Difference(-50, interval, -1, interval, 1.6),
    }
    assert compare._recommended([base, bounded, wild], differences) == "a"
    assert compare._recommended([base, wild], differences) == "b"


def _outcome(name, wait):
    same = compare.Figure(wait, wait, wait)
    return compare.Outcome(replace(EASY, name=name), (0.0,), *[same] * 8)


def test_the_answer_names_what_it_takes_for_granted_and_what_was_left_out(busy):
    told = " ".join(busy.assumptions)
    for part in ("One pool of 32", "whatever they wait", "moved by up to 5 minutes", "fair share", "Nodes, memory"):
        assert part in told
    load = workload(job(1, 0, 100, limit=50), job(2, 0, 0, limit=5))
    told = " ".join(compare.compare(load, [STRATEGIES["fcfs"]]).assumptions)
    assert "Jobs that ran beyond their limit end at it: 1." in told
    assert "Records that are left out: 1 because it ran for no time." in told


def test_a_pool_that_is_too_small_for_what_was_asked_is_said():
    load = workload(*(job(number, number, 100) for number in range(1, 50)), processors=1)
    assert any("waits grow with the length" in text for text in compare.compare(load, [EASY]).assumptions)


def test_what_the_jobs_waited_in_truth_stands_beside_it():
    load = workload(job(1, 0, 10, wait=30.0), job(2, 5, 10, wait=50.0))
    assert compare.compare(load, [EASY]).recorded_wait == 40
    assert compare.compare(workload(job(1, 0, 10)), [EASY]).recorded_wait is None


def test_a_predictor_is_made_anew_for_each_run():
    made = []

    def make():
        made.append(1)
        return lambda one: one.run

    load = made_up(4, count=100)
    found = compare.compare(load, [EASY, SHORTEST], expectations={"easy-shortest": make})
    exact = compare.compare(load, [EASY, STRATEGIES["easy-exact"]])
    assert len(made) == 5
    assert found.outcomes[1].wait == exact.outcomes[1].wait


@pytest.mark.parametrize("names", [[], ["easy", "easy"]])
def test_no_strategy_and_one_twice_are_refused(names):
    with pytest.raises(InputError, match="strategies"):
        compare.compare(made_up(1), [STRATEGIES[name] for name in names])


def test_a_dependency_on_a_job_that_is_not_there_is_named():
    with pytest.raises(InputError, match="job 2, after: 9"):
        compare.compare(workload(job(2, 0, 10, after=9)), [EASY])


def test_a_workload_without_a_job_to_play_says_why():
    with pytest.raises(InputError, match="no job to play: 1 because it ran for no time"):
        compare.compare(workload(job(1, 0, 0, limit=5)), [EASY])


def test_quantile_and_fairness():
    assert [compare.quantile([1, 2, 3, 4], share) for share in (0, 0.25, 0.5, 0.95, 1)] == [1, 1, 2, 4, 4]
    assert compare.jain([2, 2, 2]) == 1
    assert compare.jain([1, 0, 0, 0]) == 0.25
    assert compare.jain([0, 0]) == 1


def test_orders_that_put_jobs_aside_stand_beside_the_others_by_what_jobs_did_not_run():
    load = made_up(6, count=300, load=0.9)
    found = compare.compare(load, [EASY, GANG_ORDERS["least-attained"], GANG_ORDERS["shortest-remaining"]])
    sliced, known = found.outcomes[1], found.outcomes[2]
    mean_run = sum(one.run for one in load.jobs) / 300
    assert sliced.completion.mean == pytest.approx(sliced.wait.mean + mean_run)
    assert any("loses 60 s each time" in text for text in found.assumptions)
    assert known.wait.mean < found.outcomes[0].wait.mean
    assert found.recommended != "shortest-remaining"
