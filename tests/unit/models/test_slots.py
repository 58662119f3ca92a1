from dataclasses import replace

import pytest

from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.job_resources import Claim, claims, count_slots, waits_for
from slurm_agent_tools.units import parse_job_id


def job(text: str, state: str = "PENDING", dependency: str | None = None) -> Job:
    return Job(parse_job_id(text), "n", state, ("squeue",), dependency=dependency)


def slots(*jobs: Job) -> int:
    return count_slots(claims(jobs))


def test_running_and_pending_jobs_count_and_finished_ones_do_not():
    assert slots(job("1", "RUNNING"), job("2"), job("3", "COMPLETED"), job("4", "COMPLETING")) == 3


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["9_[0-49%2]"], 2),
        (["9_[2-50%4]", "9_0", "9_1"], 4),
        (["9_[3%4]", "9_0", "9_1", "9_2"], 4),
        (["9_[0-9]"], 10),
        (["9_[9]", "9_8"], 2),
        (["9_0"], 1),
    ],
)
def test_an_array_counts_by_the_tasks_that_may_run_at_once(rows, expected):
    assert slots(*(job(row) for row in rows)) == expected


def test_tasks_that_run_count_each_whatever_the_throttle_says_by_now():
    """It was made less while four ran, and three further jobs were let in beside them."""
    (claim,) = claims([job("9_[4-7%1]"), *(job(f"9_{task}", "RUNNING") for task in range(4))])
    assert claim.width == 4


def test_a_het_job_counts_once():
    assert slots(job("7+0"), job("7+1"), job("7+2")) == 1


def test_a_chain_counts_once_and_further_dependents_count():
    chain = [job("1", "RUNNING"), job("2", dependency="afterok:1(unfulfilled)"), job("3", dependency="afterany:2")]
    assert slots(*chain) == 1
    assert slots(*chain, job("4", dependency="afterok:1(unfulfilled)")) == 2


def test_a_chain_counts_by_its_widest_link():
    assert slots(job("1"), job("2_[0-5%3]", dependency="afterok:1")) == 3


def test_a_dependency_on_a_start_or_on_a_job_that_is_gone_takes_over_nothing():
    assert slots(job("5", "RUNNING"), job("6", dependency="after:5"), job("7", dependency="afterok:2")) == 3


@pytest.mark.parametrize(
    "dependency",
    [
        "afterany:1_0(unfulfilled)", "aftercorr:1_*", "afterany:1?after:5", "afterok:1+1", "afterany:5_*", "afterok:5_0",
        "afterok:5_*(unfulfilled)", "afternotok:5", "afterany:1_7", "after:5+60", "expand:5", "singleton", "afterok:9",
    ],
)  # fmt: skip
def test_a_job_that_may_run_beside_what_it_names_takes_over_nothing(dependency):
    assert slots(job("5", "RUNNING"), job("1_[1%1]"), job("1_0", "RUNNING"), job("2", dependency=dependency)) == 3


def test_all_tasks_of_an_array_are_waited_for_by_its_number_and_by_a_star():
    array = [job("1_[2-9%2]"), job("1_0", "RUNNING"), job("1_1", "RUNNING")]
    for dependency in ("afterany:1", "afterany:1_*", "afterok:1_*(unfulfilled)"):
        assert slots(*array, job("2", dependency=dependency)) == 2


def test_an_array_whose_tasks_do_not_all_wait_takes_over_nothing():
    """Its owner can make one task alone wait, and the others run beside what that one waits for."""
    rows = [job("1", "RUNNING"), job("2_[0-2%3]"), job("2_3", dependency="afterany:1(unfulfilled)")]
    assert slots(*rows) == 4
    assert slots(job("1", "RUNNING"), *(replace(row, dependency="afterany:1") for row in rows[1:])) == 3


def test_behind_the_first_component_of_a_het_job_its_others_may_still_run():
    assert slots(job("7+0", "RUNNING"), job("7+1", "RUNNING"), job("8", dependency="afterany:7")) == 2


def test_a_candidate_is_counted_like_the_rest():
    assert count_slots([Claim(1, 1), Claim(10**10, 1, frozenset({1}))]) == 1
    assert count_slots([Claim(1, 1), Claim(2, 1, frozenset({1})), Claim(10**10, 1, frozenset({1}))]) == 2


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("afterok:12:13,afterany:14", {12, 13, 14}),
        ("afterok:12_*(unfulfilled),afterany:15(failed)", {12, 15}),
        ("afterok:13_*,afterany:15", {15}),
        ("afternotok:12,afterburstbuffer:14", {14}),
        ("afterok:12_3(unfulfilled),afterany:15+1:16", {16}),
        ("afterok:12?afterany:15_*(failed)", set()),
        ("aftercorr:16_*", set()),
        ("singleton", set()),
        (None, set()),
    ],
)
def test_dependencies_are_read_as_written_and_as_printed(text, ids):
    assert waits_for(text, {12}) == ids
