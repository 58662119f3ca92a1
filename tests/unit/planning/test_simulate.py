"""The replay: hand-made workloads with answers worked out on paper, and made-up ones looked at by the checker."""

from dataclasses import replace

import pytest
from tests.unit.planning.workloads import job, made_up, workload

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.schedule_check import schedule_faults
from slurm_agent_tools.planning.simulate import replay
from slurm_agent_tools.planning.strategies import STRATEGIES, LastTwo, PriorityWeights, Strategy, UsualWaits
from slurm_agent_tools.planning.workload import NO_LIMIT, NO_TIME, playable

# Four processors: the second job needs all, the third fits beside the first for exactly as long as it runs.
BLOCKED = workload(job(1, 0, 100, 3), job(2, 1, 50, 4), job(3, 2, 90, 1), job(4, 3, 200, 1))


def starts(load, name, **more):
    return list(replay(load, STRATEGIES[name], **more).starts)


def test_in_the_order_of_submission_nobody_passes_the_first():
    assert starts(BLOCKED, "fcfs") == [0, 100, 150, 150]


def test_backfilling_lets_pass_who_ends_before_the_reservation_and_nobody_else():
    assert starts(BLOCKED, "easy") == [0, 100, 2, 150]


def test_what_stays_free_at_the_reservation_may_be_used_beyond_it():
    load = workload(job(1, 0, 100, 3), job(2, 1, 50, 3), job(3, 2, 500, 1), job(4, 3, 500, 1))
    assert starts(load, "easy") == [0, 100, 2, 150]  # one is left beside the second, and no more than one


def test_among_those_that_may_pass_the_shortest_can_be_first():
    load = workload(job(1, 0, 100, 3), job(2, 1, 50, 4), job(3, 2, 40, 1), job(4, 2, 30, 1))
    assert starts(load, "easy") == [0, 100, 2, 42]
    assert starts(load, "easy-shortest") == [0, 100, 32, 2]


def test_a_limit_that_is_too_long_keeps_a_job_from_passing_that_a_prediction_lets_through():
    load = workload(job(1, 0, 100, 3), job(2, 1, 50, 4), job(3, 2, 90, 1, limit=1000))
    assert starts(load, "easy") == [0, 100, 150]
    assert starts(load, "easy-exact") == [0, 100, 2]
    assert starts(load, "easy", expectation={3: 90}) == [0, 100, 2]
    assert starts(load, "easy", expectation=lambda one: one.run) == [0, 100, 2]
    assert starts(load, "easy", expectation=lambda _: None) == [0, 100, 150]  # nothing is known: the limit


def test_an_expired_prediction_is_mended_and_one_that_is_kept_lets_nobody_pass():
    # The first is thought to end at 10: as long as that is believed, the reservation is "now", and nobody passes.
    load = workload(job(1, 0, 100, 3, limit=200), job(2, 1, 50, 4), job(3, 20, 30, 1))
    expected = {1: 10, 2: 50, 3: 30}
    assert starts(load, "easy", expectation=expected) == [0, 100, 20]
    kept = Strategy("kept", "never mended", correction="none")
    assert list(replay(load, kept, expectation=expected).starts) == [0, 100, 150]
    doubled = replay(load, Strategy("doubled", "", correction="double"), expectation=expected)
    assert doubled.corrected == 4  # at 10, 20, 40 and 80
    assert replay(load, STRATEGIES["easy"], expectation=expected).corrected == 1  # at 10, then the limit


def test_the_last_two_run_times_of_a_user_are_what_is_expected():
    seen = LastTwo()
    assert seen.predict(job(1, 0, 10)) is None
    for run in (10, 20, 40):
        seen.observe(job(1, 0, run))
    assert seen.predict(job(2, 0, 1)) == 30
    assert seen.predict(job(2, 0, 1, user="bob")) is None


def test_a_job_that_waits_for_another_comes_when_that_has_ended_and_its_wait_counts_from_there():
    load = workload(job(1, 0, 100, 1), job(2, 5, 10, 1, after=1), job(3, 300, 10, 1, after=1))
    done = replay(load, STRATEGIES["easy"])
    assert list(done.starts) == [0, 100, 300]
    assert list(done.waits) == [0, 0, 0]


def test_shortest_first_reserves_for_whoever_has_waited_beyond_the_bound():
    # Small jobs without end keep one processor busy, and a job that needs both would never come.
    small = [job(number, number * 50, 100, 1) for number in range(2, 400)]
    load = workload(job(1, 10, 150, 2), job(500, 0, 100, 1), *small, processors=2)
    done = replay(load, STRATEGIES["shortest"])
    big = next(start for one, start in done.placed if one.number == 1)
    assert 3600 < big < 2 * 3600


def test_the_bound_beyond_which_a_job_is_overdue_grows_with_what_others_wait():
    usual = UsualWaits(10)
    assert usual.bound == 3600
    for wait in (0, 100):
        usual.add(wait)
    assert usual.bound == 3600
    for _ in range(2000):
        usual.add(2000)
    assert usual.bound == pytest.approx(20_000)


def test_with_shares_the_user_who_had_less_is_first():
    busy = [job(number, 0, 1000, 1, user="bob") for number in range(1, 4)]
    load = workload(*busy, job(4, 10, 100, 1, user="bob"), job(5, 20, 100, 1, user="ann"), processors=1)
    done = {one.number: start for one, start in replay(load, STRATEGIES["shares"]).placed}
    assert done[5] == 1000
    assert done[2] < done[3] < done[4]
    by_age = replace(STRATEGIES["shares"], weights=PriorityWeights(fair_share=0))
    assert {one.number: start for one, start in replay(load, by_age).placed}[5] == 3100


def test_use_of_long_ago_counts_less_than_that_of_lately():
    day = 86_400
    load = workload(
        job(1, 0, day, 1, user="ann"), job(2, 30 * day, day / 2, 1, user="bob"),
        job(3, 30 * day + 10, 60, 1, user="bob"), job(4, 30 * day + 20, 60, 1, user="ann"), processors=1,
    )  # fmt: skip
    done = {one.number: start for one, start in replay(load, STRATEGIES["shares"]).placed}
    assert done[4] < done[3]


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.proves("replay-holds")
def test_no_strategy_uses_more_than_there_is_or_starts_anybody_before_its_time(name, seed):
    load = made_up(seed, chains=seed % 2 == 1, load=0.7 + 0.15 * seed)
    done = replay(load, STRATEGIES[name])
    assert schedule_faults(done.placed, 32) == []
    assert len(done.starts) == 400
    assert min(done.waits) >= 0


def test_the_same_replay_twice_gives_the_same_answer():
    for strategy in STRATEGIES.values():
        assert replay(made_up(9), strategy) == replay(made_up(9), strategy)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (job(7, 0, 10, 5), "job 7, processors: 5 is more than the pool has"),
        (job(7, 0, 10, 0), "job 7"),
        (job(7, -1, 10), "job 7"),
        (job(7, 0, -1), "job 7"),
        (job(7, 0, float("inf")), "job 7"),
        (job(7, 0, 10, after=8), "job 7, after: 8 is no job that is submitted before it"),
    ],
)
def test_a_job_that_can_never_run_is_named(bad, said):
    with pytest.raises(InputError) as told:
        replay(workload(bad), STRATEGIES["easy"])
    assert said in told.value.message


def test_a_circle_of_jobs_that_wait_for_each_other_is_named():
    with pytest.raises(InputError, match="job 1, after: 2"):
        replay(workload(job(1, 0, 10, after=2), job(2, 0, 10, after=1)), STRATEGIES["easy"])


def test_a_pool_of_unknown_size_and_a_job_without_a_limit_are_told():
    with pytest.raises(InputError, match="processors"):
        replay(workload(job(1, 0, 10), processors=None), STRATEGIES["easy"])
    without = replace(job(3, 0, 10), limit=None)
    with pytest.raises(InputError, match="job 3, limit"):
        replay(workload(without), STRATEGIES["easy"])
    assert starts(workload(without), "easy-exact") == [0]


def test_what_is_played_leaves_out_what_says_too_little_and_ends_jobs_at_their_limit():
    load = workload(
        job(1, 0, 100, limit=60), replace(job(2, 0, 10), limit=None), job(3, 0, 0, limit=10), job(4, 0, 5, after=3)
    )
    found = playable(load)
    assert [(one.number, one.run, one.after) for one in found.jobs] == [(1, 60, None), (4, 5, None)]
    assert found.left_out == {NO_LIMIT: 1, NO_TIME: 1}


# --- The checker ------------------------------------------------------------------------------------------------------


def test_the_checker_finds_each_fault_of_a_schedule():
    first, second = job(1, 0, 100, 3), job(2, 50, 100, 2, after=1)
    assert schedule_faults([(first, 0), (second, 100)], 4) == []
    assert "5 processors are in use at 60 s, of 4" in schedule_faults([(first, 0), (second, 60)], 4)
    assert any("before the end of job 1" in fault for fault in schedule_faults([(first, 0), (second, 60)], 8))
    assert any("before its submission" in fault for fault in schedule_faults([(job(2, 50, 1), 49)], 4))
    assert any("is there twice" in fault for fault in schedule_faults([(first, 0), (first, 200)], 4))
    assert any("starts at nan" in fault for fault in schedule_faults([(first, float("nan"))], 4))
    assert any("takes 3 processors of 2" in fault for fault in schedule_faults([(first, 0)], 2))


def test_a_job_of_no_length_takes_nothing_from_others():
    assert schedule_faults([(job(1, 0, 10, 4), 0), (job(2, 0, 0, 4, limit=5), 0), (job(3, 0, 10, 4), 10)], 4) == []


@pytest.mark.proves("replay-holds")
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_queue_far_beyond_what_is_looked_at_at_once_is_played_to_its_end(name):
    crowd = [
        job(number, number, 600 + number % 7, 2 ** (number % 4), user=str(number % 9)) for number in range(1, 2500)
    ]
    done = replay(workload(*crowd, processors=16), STRATEGIES[name])
    assert schedule_faults(done.placed, 16) == done.faults == []
    assert len(done.starts) == 2499
