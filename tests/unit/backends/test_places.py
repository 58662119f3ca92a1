"""What does not fit a place, what it costs, and when it starts: each edge on both sides."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from slurm_agent_tools.backends import pages, places
from slurm_agent_tools.backends.choose import choose
from slurm_agent_tools.backends.places import HOUR, BackendPlace, Figures, JobNeed
from slurm_agent_tools.models.node import Partition

GIB = 2**30
PLACE = BackendPlace(
    "lab", "main", "production", nodes=4, cpus_per_node=16, memory_per_node=64 * GIB, gpus_per_node=4, free_gpus=4,
    free_cpus=16, currency="EUR", gpu_hour=2.0, cpu_hour=0.5, hours_left=10.0,
)  # fmt: skip
NEED = JobNeed(Figures(HOUR), gpus=0, cpus=16, memory_bytes=64 * GIB)


def test_a_job_that_takes_a_whole_node_fits_and_one_cpu_or_byte_more_does_not() -> None:
    assert places.misfit(PLACE, NEED) is None
    assert "16 CPUs, and 17" in (places.misfit(PLACE, replace(NEED, cpus=17)) or "")
    assert "64G" in (places.misfit(PLACE, replace(NEED, memory_bytes=64 * GIB + 1)) or "")
    assert places.misfit(PLACE, replace(NEED, cpus=32, memory_bytes=128 * GIB, nodes=2)) is None


@pytest.mark.parametrize(("seconds", "told"), [(HOUR - 1, False), (HOUR, True)])
def test_from_an_hour_on_a_job_that_cannot_restart_is_not_put_where_it_can_be_ended(seconds: int, told: bool) -> None:
    found = places.unsafe(replace(PLACE, can_be_ended=True), JobNeed(Figures(seconds), restartable=False))
    assert (found is not None) is told


def test_what_is_just_free_starts_now() -> None:
    assert places.starts_now(PLACE, NEED) is True
    assert places.starts_now(PLACE, replace(NEED, cpus=17)) is False
    assert places.starts_now(PLACE, JobNeed(None, gpus=4)) is True
    assert places.starts_now(PLACE, JobNeed(None, gpus=5)) is False
    assert places.starts_now(replace(PLACE, free_cpus=None), NEED) is None


def test_cpus_cost_beside_gpus_and_hours_of_cpus_are_counted_where_there_is_no_gpu() -> None:
    assert places.cost(PLACE, replace(NEED, gpus=2, cpus=4)) == 2 * 2.0 + 4 * 0.5
    assert places.cost(replace(PLACE, gpu_hour=None, cpu_hour=None), NEED) is None
    assert places.over_budget(PLACE, replace(NEED, cpus=10)) is None
    assert "11.0 CPU hours" in (places.over_budget(PLACE, replace(NEED, cpus=11)) or "")


def test_an_allocation_holds_on_its_last_day_and_no_longer() -> None:
    page = pages.BackendPage.model_validate(
        {
            "kind": "slurm",
            "partitions": [{"name": "a", "purpose": "testing"}],
            "price": {"allocation_ends": "2026-05-01"},
        }
    )
    bare = BackendPlace("lab", "a", "testing")
    assert places.of_price(bare, page, date(2026, 5, 1), None).problem == ""
    assert "2026-05-01" in places.of_price(bare, page, date(2026, 5, 2), None).problem


def test_a_partition_may_have_a_price_of_its_own() -> None:
    page = pages.BackendPage.model_validate(
        {
            "kind": "skypilot", "price": {"currency": "USD", "gpu_hour": 1.0},
            "partitions": [
                {"name": "a", "purpose": "production"}, {"name": "b", "purpose": "production", "gpu_hour": 3.0},
            ],
        }
    )  # fmt: skip
    found = places.of_page(pages.FoundPage("cloud", "cloud.yaml", page), date(2026, 5, 1))
    assert [place.gpu_hour for place in found] == [1.0, 3.0]


def test_the_largest_node_of_a_partition_counts() -> None:
    partition = Partition("main", "UP", True, 2, None, None, memory_per_node=GIB, memory_per_node_max=4 * GIB)
    assert places.measured(BackendPlace("lab", "", "production"), partition, [], NEED).memory_per_node == 4 * GIB


def test_of_places_that_start_alike_the_one_without_gpus_takes_work_of_cpus() -> None:
    free = replace(PLACE, gpu_hour=None, cpu_hour=None, hours_left=None)
    plain = replace(free, partition="zzz", gpus_per_node=0)
    found = choose(JobNeed(Figures(2 * HOUR), cpus=4), (free, plain))
    assert found.place == plain


def test_of_places_that_start_alike_the_one_that_ends_no_job_comes_first() -> None:
    safe = replace(PLACE, partition="zzz", gpu_hour=None, cpu_hour=None, hours_left=None)
    ended = replace(safe, partition="aaa", can_be_ended=True)
    assert choose(JobNeed(Figures(2 * HOUR), gpus=1), (ended, safe)).place == safe
    assert choose(JobNeed(Figures(2 * HOUR), gpus=1, restartable=True), (ended, safe)).place == ended


@pytest.mark.parametrize(
    ("kind", "cluster", "problem"),
    [
        ("workstation", "workstation", places.NOT_UP),
        ("slurm", None, "the settings have no cluster lab: add [clusters.lab]"),
        ("pbs", None, ""),
    ],
)
def test_what_a_page_alone_tells_of_says_why_nothing_can_run_there_now(
    kind: str, cluster: str | None, problem: str
) -> None:
    body = {"kind": kind, "partitions": [{"name": "a", "purpose": "testing"}]}
    page = pages.BackendPage.model_validate(body)
    (place,) = places.of_page(pages.FoundPage("lab", "backends/lab.yaml", page), date(2026, 5, 1))
    assert (place.kind, place.cluster, place.problem) == (kind, cluster, problem)


RENTED = replace(PLACE, backend="rented", kind="skypilot", currency="USD", gpu_hour=1.5, cpu_hour=None, hours_left=None)


def test_the_price_of_a_gpu_hour_says_nothing_of_a_job_without_gpus() -> None:
    assert places.cost(RENTED, replace(NEED, gpus=2)) == 3.0
    assert places.cost(RENTED, NEED) is None
    assert places.cost(replace(PLACE, gpu_hour=None), replace(NEED, gpus=2)) is None


def test_rented_machines_cost_money_also_where_no_page_says_how_much() -> None:
    unknown = replace(RENTED, gpu_hour=None)
    assert unknown.costs_money
    assert not replace(unknown, hours_left=10.0).costs_money
    assert not replace(unknown, gpu_hour=0.0, cpu_hour=0.0).costs_money
    assert not replace(unknown, kind="slurm").costs_money


def test_what_is_free_comes_first_and_a_price_that_nobody_knows_last() -> None:
    free = replace(PLACE, gpu_hour=None, cpu_hour=None, hours_left=None)
    dear = replace(RENTED, cpu_hour=9.0)
    found = choose(NEED, (RENTED, dear, free))
    assert found.place == free
    assert choose(NEED, (RENTED, dear)).place == dear
    assert "rented/main" in [one.place.name for one in found.alternatives]


def test_a_cost_that_is_not_known_is_said_and_a_budget_does_not_hold_it() -> None:
    found = choose(NEED, (RENTED,))
    assert found.place == RENTED
    assert "Cost an unknown amount." in found.reasons
    asked = choose(replace(NEED, budget=5.0), (RENTED,))
    assert asked.status == "ask_person"
    assert "what it costs is not known, and the budget is 5.00 USD" in (asked.ask or "")


def test_a_busy_cluster_and_a_machine_of_unknown_price_are_a_question_for_a_person_even_when_urgent() -> None:
    busy = replace(PLACE, gpu_hour=None, cpu_hour=None, hours_left=None, free_cpus=0, wait=Figures(9 * HOUR))
    found = choose(replace(NEED, run=Figures(2 * HOUR), urgent=True), (busy, RENTED))
    assert found.status == "ask_person"
    assert "rented on rented/main for an unknown amount" in (found.ask or "")
