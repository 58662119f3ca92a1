"""The seven questions as a table. What is expected was worked out by hand from the questions, not from the code."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

import pytest

from slurm_agent_tools.backends.choose import Choice, choose
from slurm_agent_tools.backends.places import HOUR, BackendPlace, Figures, JobNeed

MINUTE = 60
GIB = 2**30


def waits(median: int, p95: int | None = None) -> Figures:
    return Figures(median, p95 or 2 * median, 40, "40 jobs of about this size in the last 7 days")


def runs(seconds: float, p95: float | None = None) -> Figures:
    return Figures(round(seconds), None if p95 is None else round(p95), 12, "12 runs of this script")


TESTING = BackendPlace(
    "lab", "gputest", "testing", cluster="lab", usual=True, time_limit=HOUR, nodes=1, cpus_per_node=16,
    memory_per_node=128 * GIB, gpus_per_node=2, free_gpus=2, free_cpus=16, wait=waits(60),
)  # fmt: skip
GPU = BackendPlace(
    "lab", "gpu", "production", cluster="lab", usual=True, time_limit=24 * HOUR, nodes=8, cpus_per_node=64,
    memory_per_node=512 * GIB, gpus_per_node=4, free_gpus=6, free_cpus=300, wait=waits(10 * MINUTE),
)  # fmt: skip
LONG = replace(GPU, partition="gpulong", purpose="long", time_limit=7 * 24 * HOUR, free_gpus=8, wait=waits(0))
CPU = replace(GPU, partition="cpu", gpus_per_node=0, free_gpus=0, free_cpus=500)
HERE = BackendPlace(
    "workstation", "work", "production", kind="workstation", cluster="workstation", nodes=1, cpus_per_node=16,
    memory_per_node=64 * GIB, gpus_per_node=0, free_cpus=12, free_gpus=0,
)  # fmt: skip
HERE_GPU = replace(HERE, gpus_per_node=1, free_gpus=1)
CLOUD = BackendPlace(
    "rented", "a100", "production", kind="skypilot", cpus_per_node=12, memory_per_node=85 * GIB, gpus_per_node=1,
    currency="USD", gpu_hour=1.5, priced_on=date(2026, 11, 1), wait=Figures(300, source="as the page says"),
)  # fmt: skip
EURO = replace(CLOUD, backend="europe", currency="EUR", gpu_hour=1.2)
BUSY = replace(GPU, free_gpus=0, wait=waits(6 * HOUR, 20 * HOUR))
OTHER = replace(GPU, backend="second", cluster="second", usual=False, free_gpus=0, wait=waits(2 * HOUR))
AWAY = "the login node does not answer"

LAB = (TESTING, GPU, LONG, CPU)
CROWDED = (TESTING, BUSY, LONG, CPU)
ALL = (HERE, *LAB, CLOUD)


def away(*known: BackendPlace) -> tuple[BackendPlace, ...]:
    return tuple(replace(place, problem=AWAY) for place in known)


def need(hours: float | None, gpus: int = 1, **more: Any) -> JobNeed:
    return JobNeed(None if hours is None else runs(hours * HOUR), gpus=gpus, **more)


class Case(NamedTuple):
    """`said`: words that the reasons, the question for the person, or for none_fits the alternatives hold."""

    about: str
    need: JobNeed
    known: tuple[BackendPlace, ...]
    question: int
    place: str | None
    status: str = "chosen"
    stage: str = "production"
    said: str = ""  # never empty: each answer has its reason
    links: int = 1


JUST = 1 / 3600  # one second, in hours

CASES = [
    # 1: a CPU job below half an hour
    Case("10 minutes of CPU", need(1 / 6, 0), ALL, 1, "workstation/work", said="this machine"),
    Case("a second below half an hour", need(0.5 - JUST, 0), ALL, 1, "workstation/work", said="A CPU job of 00:29:59 is below half an hour: on this machine where it fits"),
    Case("half an hour of CPU is no job for question 1", need(0.5, 0), ALL, 3, "lab/cpu", said="too long for"),
    Case("10 minutes on a GPU are not question 1", need(1 / 6, 1), ALL, 2, "lab/gputest", said="00:10:00 is below an hour, and goes to the cheapest GPU"),
    Case("10 minutes of more CPUs than are here", need(1 / 6, 0, cpus=32), ALL, 1, "lab/cpu", said="workstation/work: a node has 16 CPUs, and 32 are needed"),
    Case("10 minutes with more memory than is here", need(1 / 6, 0, memory_bytes=100 * GIB), ALL, 1, "lab/gputest", said="a node has 64G"),
    Case("10 minutes of CPU where this machine is not up", need(1 / 6, 0), (*away(HERE), *LAB), 7, "lab/gputest", said="workstation/work would have been chosen"),
    Case("10 minutes of CPU on a machine with a Slurm of its own", need(1 / 6, 0), LAB, 1, "lab/gputest", said="the cheapest partition for testing"),
    Case("10 minutes of CPU, never tried", need(1 / 6, 0, new=True), ALL, 1, "workstation/work", said="this machine: nothing to pay"),
    Case("49 short CPU jobs", need(1 / 6, 0, jobs=49), ALL, 1, "workstation/work", said="this machine: nothing to pay"),
    # 2: a GPU job below an hour, or a new configuration
    Case("half an hour on a GPU", need(0.5), ALL, 2, "lab/gputest", said="testing"),
    Case("a second below an hour", need(1 - JUST), ALL, 2, "lab/gputest", said="00:59:59 is below an hour"),
    Case("one hour on a GPU", need(1), ALL, 3, "lab/gpu", said="A GPU job of 01:00:00, up to 8 hours"),
    Case("half an hour on more GPUs than testing has", need(0.5, 4), ALL, 2, "lab/gpu", said="nothing to pay"),
    Case("half an hour that 5 % pass by far", replace(need(0.5), run=runs(1800, 2 * HOUR)), ALL, 2, "lab/gpu", said="up to 02:00:00 at 95 %"),
    Case("half an hour on a GPU that is here, too", need(0.5), (HERE_GPU, *LAB), 2, "lab/gputest", said="for testing that can run it: nothing to pay"),
    Case("half an hour on a GPU here, and only the cloud beside it", need(0.5), (HERE_GPU, CLOUD), 2, "workstation/work", said="workstation/work is this machine"),
    Case("half an hour on a GPU, and only the cloud", need(0.5), (HERE, CLOUD), 2, "rented/a100", said="0.75 USD"),
    Case("half an hour in the cloud with nearly no budget", need(0.5, budget=0.74), (CLOUD,), 2, None, "ask_person", said="0.75 USD"),
    Case("half an hour in the cloud with just enough", need(0.5, budget=0.75), (CLOUD,), 2, "rented/a100", said="Cost 0.75 USD of a budget of 0.75 USD, by prices of 2026-11-01"),
    Case("never tried, 12 hours", need(12, new=True), ALL, 2, "lab/gputest", stage="smoke", said="never tried"),
    Case("never tried, of unknown length", need(None, new=True), ALL, 2, "lab/gputest", stage="smoke", said="ends after 00:30:00 at the latest"),
    Case("never tried, 60 jobs: one smoke run first", need(3, new=True, jobs=60), ALL, 2, "lab/gputest", stage="smoke", said="a smoke run of at most half an hour comes first"),
    Case("never tried, 3 hours of CPU", need(3, 0, new=True), (*LAB, CLOUD), 2, "lab/gputest", stage="smoke", said="a smoke run of at most half an hour comes first"),
    Case("never tried, more GPUs than testing has", need(12, 4, new=True), ALL, 2, "lab/gpu", stage="smoke", said="lab/gpu is the cheapest partition that can run it"),
    Case("tried before, 12 hours", need(12, new=False), ALL, 4, "lab/gpu", said="from 8 to 24 hours"),
    Case("never tried, and testing is away", need(12, new=True), (*away(TESTING), GPU), 7, "lab/gpu", stage="smoke", said=AWAY),
    Case("testing that is busy is still first", need(0.5), (replace(TESTING, free_gpus=0, wait=waits(3 * HOUR)), GPU), 2, "lab/gputest", said="for testing that can run it"),
    Case("never the long partition while there is another", need(0.5), (LONG, GPU), 2, "lab/gpu", said="lab/gpu is the cheapest partition that can run it"),
    # 3: 1 to 8 hours
    Case("2 hours, free now", need(2), ALL, 3, "lab/gpu", said="6 GPUs free now for 1"),
    Case("2 hours, not measured whether tried", need(2, new=None), ALL, 3, "lab/gpu", said="of 02:00:00, up to 8 hours"),
    Case("2 hours, urgent, free now", need(2, urgent=True), ALL, 3, "lab/gpu", said="not busy"),
    Case("2 hours, urgent, busy", need(2, urgent=True), (*CROWDED, CLOUD), 3, "rented/a100", said="3.00 USD"),
    Case("2 hours, busy, nobody set a budget", need(2), (*CROWDED, CLOUD), 3, None, "ask_person", said="3.00 USD"),
    Case("2 hours, busy, the budget holds it", need(2, budget=3.0), (*CROWDED, CLOUD), 3, "rented/a100", said="of a budget of 3.00 USD"),
    Case("2 hours, busy, the budget is nearly gone", need(2, budget=2.99), (*CROWDED, CLOUD), 3, "lab/gpu", said="40 jobs"),
    Case("2 hours, urgent, busy, the budget is nearly gone", need(2, urgent=True, budget=2.99), (*CROWDED, CLOUD), 3, None, "ask_person", said="the budget is 2.99 USD"),
    Case("2 hours, busy, and no cloud", need(2), CROWDED, 3, "lab/gpu", said="06:00:00 in the median"),
    Case("a wait of just below half an hour is not busy", need(1), (replace(BUSY, wait=waits(1799)), CLOUD), 3, "lab/gpu", said="wait 00:29:59 in the median"),
    Case("a wait of half an hour is busy", need(1), (replace(BUSY, wait=waits(1800)), CLOUD), 3, None, "ask_person", said="or rented on rented/a100 for 1.50 USD"),
    Case("a wait below a quarter of the run is not busy", need(8), (replace(BUSY, wait=waits(2 * HOUR - 1)), CLOUD), 3, "lab/gpu", said="and not busy"),
    Case("a wait of a quarter of the run is busy", need(8), (replace(BUSY, wait=waits(2 * HOUR)), CLOUD), 3, None, "ask_person", said="wait 02:00:00 in the median"),
    Case("nothing free and no wait measured, not urgent", need(2), (replace(BUSY, wait=None), CLOUD), 3, "lab/gpu", said="0 GPUs free now for 1; it is free of charge"),
    Case("nothing free and no wait measured, urgent", need(2, urgent=True), (replace(BUSY, wait=None), CLOUD), 3, "rented/a100", said="it is urgent, and lab/gpu is not free"),
    Case("8 hours", need(8), ALL, 3, "lab/gpu", said="08:00:00, up to 8 hours"),
    Case("a slow queue never leads to the long partition", need(2), (BUSY, LONG), 3, "lab/gpu", said="wait 06:00:00 in the median"),
    Case("5 hours of CPU go where no GPU waits for them", need(5, 0, cpus=32), ALL, 3, "lab/cpu", said="500 CPUs free now for 32"),
    Case("2 hours, 49 jobs", need(2, jobs=49), ALL, 3, "lab/gpu", said="02:00:00, up to 8 hours"),
    # 4: 8 to 24 hours
    Case("a second above 8 hours", need(8 + JUST), ALL, 4, "lab/gpu", said="08:00:01, from 8 to 24 hours"),
    Case("20 hours, busy, not urgent", need(20), (*CROWDED, CLOUD), 4, "lab/gpu", said="nothing is urgent"),
    Case("20 hours, busy and urgent", need(20, urgent=True), (*CROWDED, CLOUD), 4, None, "ask_person", said="30.00 USD"),
    Case("20 hours, busy and urgent, the budget holds it", need(20, urgent=True, budget=40.0), (*CROWDED, CLOUD), 4, "rented/a100", said="Cost 30.00 USD of a budget of 40.00 USD"),
    Case("24 hours", need(24), ALL, 4, "lab/gpu", said="1-00:00:00, from 8 to 24 hours"),
    Case("20 hours where production ends after 12, and it restarts", need(20, restartable=True), (replace(GPU, time_limit=12 * HOUR), LONG), 4, "lab/gpu", links=2, said="chain of 2 jobs"),
    # 5: longer than a day
    Case("a second above a day, it restarts", need(24 + JUST, restartable=True), ALL, 5, "lab/gpu", links=2, said="1-00:00:01 is longer than a day"),
    Case("3 days, it restarts", need(72, restartable=True), ALL, 5, "lab/gpu", links=3, said="chain of 3 jobs of at most 1-00:00:00"),
    Case("3 days, it cannot restart", need(72, restartable=False), ALL, 5, "lab/gpulong", said="cannot restart"),
    Case("3 days, not known whether it restarts", need(72), ALL, 5, None, "ask_person", said="go on from a checkpoint"),
    Case("3 days, it restarts, busy: still no long partition", need(72, restartable=True), CROWDED, 5, "lab/gpu", links=3, said="chain of 3 jobs"),
    Case("8 days, it cannot restart, and nothing is so long", need(192, restartable=False), LAB, 5, None, "none_fits", said="less than 8-00:00:00"),
    Case("3 days where production has no limit", need(72), (replace(GPU, time_limit=None),), 5, "lab/gpu", said="3-00:00:00 is longer than a day"),
    Case("3 days, urgent, busy: a chain all the same", need(72, restartable=True, urgent=True), (*CROWDED, CLOUD), 5, "lab/gpu", links=3, said="chain of 3 jobs"),
    # 6: 50 jobs and more
    Case("50 jobs of 2 hours", need(2, jobs=50), ALL, 6, "lab/gpu", said="50 independent jobs are one array"),
    Case("50 jobs of 10 minutes of CPU", need(1 / 6, 0, jobs=50), (*LAB, CLOUD), 6, "lab/cpu", said="50 independent jobs are one array"),
    Case("60 GPU jobs of half an hour are no smoke", need(0.5, jobs=60), ALL, 6, "lab/gpu", said="60 independent jobs are one array"),
    Case("200 jobs, 16 at once, nothing urgent", need(1, jobs=200), (replace(GPU, max_jobs=16), CLOUD), 6, "lab/gpu", said="16 of 200 jobs at once, 13 rounds"),
    Case("200 jobs, 16 at once, urgent", need(1, jobs=200, urgent=True), (replace(GPU, max_jobs=16), CLOUD), 6, None, "ask_person", said="300.00 USD"),
    Case("200 jobs, 16 at once, urgent, with a budget", need(1, jobs=200, urgent=True, budget=300.0), (replace(GPU, max_jobs=16), CLOUD), 6, "rented/a100", said="of a budget of 300.00 USD"),
    Case("60 jobs, and only the cloud, the budget is too small", need(1, jobs=60, budget=89.0), (CLOUD,), 6, None, "ask_person", said="90.00 USD"),
    # 7: what cannot be used
    Case("the cluster is away: the cloud", need(2), (*away(*LAB), CLOUD), 7, "rented/a100", said=AWAY),
    Case("the usual cluster is away: the other", need(2), (*away(*LAB), OTHER), 7, "second/gpu", said="lab/gpu would have been chosen"),
    Case("the usual cluster is away, the other is busy, the cloud costs", need(2), (*away(*LAB), OTHER, CLOUD), 3, None, "ask_person", said=AWAY),
    Case("another cluster is away: nothing was missed", need(2), (*LAB, *away(OTHER)), 3, "lab/gpu", said="6 GPUs free now for 1"),
    Case("the cloud is away: nothing was missed", need(2), (*LAB, *away(CLOUD)), 3, "lab/gpu", said="6 GPUs free now for 1"),
    Case("all are away", need(2), away(*LAB, CLOUD), 3, None, "none_fits", said=AWAY),
    Case("an allocation that ended counts as away", need(2), (replace(GPU, problem="its allocation ended on 2026-09-30"), OTHER), 7, "second/gpu", said="2026-09-30"),
    # several clusters, allocations and what can be ended
    Case("two clusters: where it starts first", need(2), (replace(GPU, free_gpus=0, wait=waits(5 * HOUR)), OTHER), 3, "second/gpu", said="02:00:00 in the median"),
    Case("two clusters: where it is free now", need(2), (OTHER, GPU), 3, "lab/gpu", said="6 GPUs free now for 1"),
    Case("two clusters, the first has not enough hours left", need(4, 2), (replace(GPU, hours_left=7.9), OTHER), 3, "second/gpu", said="the allocation has 7.9"),
    Case("just enough hours are left", need(4, 2), (replace(GPU, hours_left=8.0), OTHER), 3, "lab/gpu", said="8.0 of 8.0 hours"),
    Case("not enough hours are left, and nothing else", need(4, 2), (replace(GPU, hours_left=7.9),), 3, None, "ask_person", said="8.0 GPU hours, and the allocation has 7.9 left"),
    Case("not enough hours are left, and the cloud costs money", need(4, 1), (replace(GPU, hours_left=3.9), CLOUD), 3, None, "ask_person", said="Instead: rented/a100"),
    Case("it cannot restart, and jobs there can be ended", need(3, restartable=False), (replace(GPU, can_be_ended=True), OTHER), 3, "second/gpu", said="ended without warning"),
    Case("it restarts, and jobs there can be ended", need(3, restartable=True), (replace(GPU, can_be_ended=True), OTHER), 3, "lab/gpu", said="6 GPUs free now for 1"),
    Case("more GPUs than any node has", need(2, 8, nodes=1), ALL, 3, None, "none_fits", said="a node has 4 GPUs, and 8 are needed on one"),
    Case("more GPUs than any node has, however short it is", need(None, 8, nodes=1), ALL, 3, None, "none_fits", said="How long it runs is not known."),
    Case("as many GPUs as two nodes have", need(2, 8), (replace(GPU, free_gpus=8),), 3, "lab/gpu", said="8 GPUs free now for 8"),
    Case("more nodes than there are", need(2, 36), (GPU,), 3, None, "none_fits", said="it has 8 nodes, and 9 are needed"),
    # prices in several currencies
    Case("half an hour on a GPU, for euros or for dollars", need(0.5), (EURO, CLOUD), 2, None, "ask_person", said="Should it run on europe/a100 (0.60 EUR; wait 00:05:00 in the median (as the page says)) or on rented/a100 (0.75 USD"),
    Case("half an hour on a GPU, for euros, dollars or nothing", need(0.5), (GPU, EURO, CLOUD), 2, "lab/gpu", said="lab/gpu is the cheapest"),
    Case("2 hours, urgent, busy, for euros or for dollars", need(2, urgent=True), (*CROWDED, EURO, CLOUD), 3, None, "ask_person", said="Prices in EUR and USD are not compared"),
    Case("2 hours, urgent, busy, and only one of both holds it", need(2, urgent=True), (*CROWDED, replace(EURO, time_limit=HOUR), CLOUD), 3, "rented/a100", said="3.00 USD"),
    Case("2 hours, busy, and only one is there", need(2, urgent=True), (*CROWDED, *away(EURO), CLOUD), 3, "rented/a100", said="3.00 USD"),
    Case("2 hours, busy, a budget in no currency", need(2, budget=2.9), (*CROWDED, EURO, CLOUD), 3, None, "ask_person", said="The budget of 2.9 names no currency"),
    Case("2 hours, free now, a budget in no currency", need(2, budget=2.9), (*LAB, EURO, CLOUD), 3, "lab/gpu", said="not busy"),
    Case("one currency, written in two ways", need(0.5), (replace(EURO, currency="usd"), CLOUD), 2, "europe/a100", said="0.60 usd"),
    Case("a price that is not known is in no currency", need(2), (EURO, replace(CLOUD, gpu_hour=None)), 3, "europe/a100", said="2.40 EUR"),
    Case("no backend at all", need(2), (), 3, None, "none_fits", said="of 02:00:00"),
]  # fmt: skip


def told(found: Choice) -> str:
    others = [f"{one.place.name}: {one.why_not}" for one in found.alternatives]
    return " ".join([*found.reasons, found.ask or "", *others])


def test_the_table_holds_at_least_60_jobs_and_every_question() -> None:
    assert len(CASES) >= 60
    assert {case.question for case in CASES} == {1, 2, 3, 4, 5, 6, 7}
    assert len({case.about for case in CASES}) == len(CASES)
    assert all(case.said for case in CASES)


@pytest.mark.proves("seven-questions")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_each_job_of_the_table_is_answered_as_worked_out_by_hand(case: Case) -> None:
    found = choose(case.need, case.known)
    where = found.place.name if found.place is not None else None
    assert (found.status, found.question, where, found.stage) == (case.status, case.question, case.place, case.stage)
    assert found.links == case.links
    assert case.said in told(found)
    assert (found.ask is not None) == (case.status == "ask_person")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_every_other_place_is_named_once_with_why_it_is_not_taken(case: Case) -> None:
    found = choose(case.need, case.known)
    named = [one.place.name for one in found.alternatives]
    chosen = [found.place.name] if found.place is not None else []
    assert sorted([*named, *chosen]) == sorted(place.name for place in case.known)
    assert all(one.why_not for one in found.alternatives)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_the_order_in_which_places_are_known_changes_nothing(case: Case) -> None:
    found, turned = choose(case.need, case.known), choose(case.need, case.known[::-1])
    assert (found.status, found.question, found.place, found.ask) == (
        turned.status, turned.question, turned.place, turned.ask,
    )  # fmt: skip


@pytest.mark.proves("slow-queue-is-load")
@pytest.mark.parametrize("median", [0, MINUTE, HOUR, 24 * HOUR, 30 * 24 * HOUR])
@pytest.mark.parametrize("hours", [0.5, 1, 4, 8, 12, 24])
@pytest.mark.parametrize("restartable", [True, None])
def test_however_slow_the_queue_is_the_long_partition_is_never_proposed_for_it(
    median: int, hours: float, restartable: bool | None
) -> None:
    slow = tuple(replace(place, free_gpus=0, wait=waits(median)) for place in (TESTING, GPU))
    found = choose(need(hours, restartable=restartable), (*slow, LONG, CLOUD))
    assert found.place is None or found.place.purpose != "long"


def test_a_fallback_is_a_sentence_that_names_both_places_and_why() -> None:
    found = choose(need(2), (*away(*LAB), CLOUD))
    assert found.fallback == (
        f"lab/gpu would have been chosen and cannot be used ({AWAY}), so rented/a100 is taken, the next best."
    )
    assert found.fallback in found.reasons
    assert not any("uestion" in reason for reason in found.reasons)
    assert choose(need(2), ALL).fallback is None


def test_the_run_time_says_what_it_rests_on_and_its_upper_end() -> None:
    found = choose(replace(need(2), run=runs(2 * HOUR, 3 * HOUR)), (GPU,))
    assert "Expected run time 02:00:00, up to 03:00:00 at 95 %: 12 runs of this script." in found.reasons


def test_what_is_known_of_a_place_is_among_the_reasons() -> None:
    found = choose(need(2), (replace(GPU, facts=("The page says 12 h, and the cluster 24 h.",)),))
    assert "The page says 12 h, and the cluster 24 h." in found.reasons


def test_no_reason_calls_a_price_in_one_currency_higher_than_one_in_another() -> None:
    found = choose(need(2, urgent=True), (*CROWDED, replace(EURO, time_limit=HOUR), CLOUD))
    assert not any("it costs" in one.why_not for one in found.alternatives if one.place.backend == "europe")
