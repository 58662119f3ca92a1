"""Right-sizing from runs: figures by hand, limits that were too little, and what is said where too little is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.insights.records import ASKED, GIB, record, run

from slurm_agent_tools.insights.run_sizes import savings, size_from_runs
from slurm_agent_tools.insights.sizing import ENOUGH
from slurm_agent_tools.models.job import Usage
from slurm_agent_tools.models.job_resources import Resources

MIB = 2**20
SMALLER = replace(ASKED, memory_bytes=5 * GIB, time_limit_seconds=1200, cpus=2)


def runs(number: int = ENOUGH, **facts: object) -> list:
    return [run(index, **facts) for index in range(number)]  # type: ignore[arg-type]


def test_the_figures_of_five_runs_are_those_worked_out_by_hand():
    advice = size_from_runs([run(n, gib=n, seconds=100 * n, busy=n / 2) for n in range(1, 6)], ASKED)
    assert (advice.basis, advice.enough) == (5, True)
    assert (advice.memory.used, advice.memory.most, advice.memory.over_percent) == (5 * GIB, 5 * GIB, 220)
    assert advice.memory.recommended == 7936 * MIB  # 5.5 GiB, 2 from the middle to the largest, and a quarter
    assert (advice.time.used, advice.time.needed, advice.time.recommended) == (500, 600, 600)
    assert (advice.time.over_percent, advice.cpus.over_percent) == (1340, 220)
    assert (advice.cpus.used, advice.cpus.recommended) == (2.5, 3)
    assert advice.recommended == replace(
        ASKED, memory_bytes=7936 * MIB, memory_per_node_bytes=7936 * MIB, time_limit_seconds=600, cpus=3
    )
    assert advice.summary == "From 5 completed runs: memory 7.8G, time limit 00:10:00, CPUs 3."


@pytest.mark.proves("sizes-from-history")
@pytest.mark.parametrize("number", range(ENOUGH))
def test_fewer_runs_than_five_advise_nothing(number):
    advice = size_from_runs(runs(number), ASKED)
    assert (advice.basis, advice.enough, advice.recommended) == (number, False, None)
    rests = "1 completed run" if number == 1 else f"{number} completed runs"
    assert advice.summary == f"Too few runs: {rests}, 5 are needed to say what to ask for."


def test_the_tasks_of_an_array_are_runs():
    advice = size_from_runs([run(tasks=20)], ASKED)
    assert (advice.basis, advice.memory.runs) == (20, 20)
    assert advice.memory.recommended == 4762 * MIB  # 4.65 GiB up to whole MiB


@pytest.mark.parametrize(("state", "facts"), [
    ("FAILED", {}), ("CANCELLED", {}), ("NODE_FAIL", {}), ("PREEMPTED", {}), ("UNKNOWN", {}), ("RUNNING", {}),
])  # fmt: skip
def test_runs_that_did_not_complete_are_no_basis_and_do_not_lower_it(state, facts):
    advice = size_from_runs([*runs(gib=10), *runs(50, gib=0.1, seconds=2, state=state, **facts)], ASKED)
    assert advice.basis == 5
    assert (advice.memory.used, advice.time.used) == (10 * GIB, 1000)


class TestWhatALimitEnded:
    @pytest.mark.proves("sizes-from-history")
    def test_memory_that_was_too_little_is_raised_by_a_fifth(self):
        killed = run(9, gib=4.9, state="OUT_OF_MEMORY", requested=SMALLER)
        advice = size_from_runs([*runs(gib=2), killed], SMALLER)
        assert advice.memory.failed == 5 * GIB
        assert advice.memory.recommended == 6 * GIB
        assert "memory: 5G is asked for, and 5G was too little." in advice.warnings

    @pytest.mark.parametrize("facts", [
        {"state": "FAILED", "category": "host-out-of-memory", "gib": 1},
        {"state": "COMPLETED", "category": "host-out-of-memory", "gib": 1},
        {"state": "FAILED", "signal": 9, "gib": 4.8},
    ])  # fmt: skip
    def test_a_kill_for_memory_counts_whatever_slurm_calls_it(self, facts):
        advice = size_from_runs([*runs(gib=2), run(9, requested=SMALLER, **facts)], SMALLER)
        assert (advice.memory.failed, advice.basis) == (5 * GIB, 5)

    def test_a_failure_far_from_its_memory_limit_is_no_kill(self):
        advice = size_from_runs([*runs(gib=2), run(9, gib=4, state="FAILED", requested=SMALLER)], SMALLER)
        assert advice.memory.failed is None
        assert "memory: a run used 4G, more than is recommended." in advice.warnings

    @pytest.mark.proves("sizes-from-history")
    def test_a_time_limit_that_was_too_short_is_raised_by_half(self):
        advice = size_from_runs([*runs(seconds=100), run(9, seconds=1205, state="TIMEOUT", requested=SMALLER)], SMALLER)
        assert (advice.time.failed, advice.time.recommended) == (1200, 1800)
        assert "time limit: 00:20:00 is asked for, and 00:20:00 was too little." in advice.warnings

    def test_what_failed_is_raised_without_a_single_completed_run(self):
        advice = size_from_runs([run(9, gib=4.9, state="OUT_OF_MEMORY", requested=SMALLER)], SMALLER)
        assert (advice.basis, advice.enough, advice.memory.recommended) == (0, False, 6 * GIB)
        assert advice.recommended == replace(SMALLER, memory_bytes=6 * GIB, memory_per_node_bytes=6 * GIB)
        assert advice.summary.endswith("What failed needs more: memory 6G.")

    def test_a_larger_request_is_not_lowered_to_what_failed(self):
        advice = size_from_runs([run(9, gib=4.9, state="OUT_OF_MEMORY", requested=SMALLER)], ASKED)
        assert (advice.memory.recommended, advice.recommended) == (None, None)


@pytest.mark.parametrize(("gib", "warned"), [(4, True), (8, False), (10, False)])
def test_more_than_twice_what_was_ever_used_is_warned_of(gib, warned):
    advice = size_from_runs(runs(gib=gib, seconds=5000, busy=7), ASKED)
    assert [text.partition(":")[0] for text in advice.warnings] == (["memory"] if warned else [])


def test_too_few_runs_and_what_the_guard_filled_in_are_no_reason_for_a_warning():
    assert size_from_runs(runs(ENOUGH - 1, gib=0.1, seconds=1), ASKED).warnings == ()
    found = size_from_runs(runs(gib=0.1, seconds=1, busy=8), ASKED, {"memory"}).warnings
    assert found == ("time limit: 02:00:00 is far more than the most that was ever used, 00:00:01.",)


def test_how_much_too_much_is_told_in_figures_that_say_something():
    asked = replace(ASKED, memory_bytes=32 * GIB)
    (found,) = size_from_runs(runs(gib=1, seconds=5000, busy=7), asked).warnings
    assert found == "memory: 32G is 32 times the most that was ever used, 1G."


def test_one_cpu_a_node_is_never_too_much_and_little_use_is_never_nothing():
    one = replace(ASKED, cpus=1, memory_bytes=None, time_limit_seconds=None)
    assert size_from_runs(runs(busy=0.002), one).warnings == ()
    assert size_from_runs(runs(busy=0.02), replace(one, nodes=4, cpus=4)).warnings == ()
    (found,) = size_from_runs(runs(busy=0.05), replace(one, cpus=4)).warnings
    assert found == "CPUs: 4 is 80 times the most that was ever used, 0.05."


def test_one_run_that_used_more_spares_the_warning_and_is_told_where_it_is_above_what_is_recommended():
    advice = size_from_runs([*(run(n, gib=2) for n in range(40)), run(41, gib=15)], ASKED)
    assert advice.memory.recommended == 2509 * MIB
    assert "memory: a run used 15G, more than is recommended." in advice.warnings
    assert any("one run used 15G, 7.5 times the next: it is left out" in text for text in advice.warnings)
    assert not any("times the most" in text for text in advice.warnings if text.startswith("memory"))


def test_what_was_not_measured_is_not_advised():
    advice = size_from_runs(runs(gib=None, busy=None), ASKED)
    assert (advice.memory.used, advice.memory.recommended, advice.cpus.recommended) == (None, None, None)
    assert advice.recommended == replace(ASKED, time_limit_seconds=1200)
    nothing = size_from_runs([record(n) for n in range(9)], ASKED)
    assert (nothing.basis, nothing.recommended) == (0, None)


def test_steps_at_once_and_the_fullest_node_count():
    usage = Usage(memory_peak_bytes=6 * GIB, memory_node_bytes=4 * GIB)
    two = replace(ASKED, nodes=2)
    advice = size_from_runs([record(n, usage=usage, requested=two) for n in range(5)], two)
    assert advice.memory.used == 8 * GIB


def test_memory_is_told_per_gpu_and_node_where_the_request_is():
    asked = replace(ASKED, gpus=2, memory_per_gpu_bytes=8 * GIB)
    advice = size_from_runs(runs(gib=5), asked)
    assert advice.recommended is not None
    assert (advice.recommended.memory_bytes, advice.recommended.memory_per_gpu_bytes) == (5888 * MIB, 2944 * MIB)


def test_after_runs_of_a_moment_each_gpu_keeps_the_memory_that_opening_it_takes():
    asked = replace(ASKED, gpus=2, memory_per_gpu_bytes=8 * GIB)
    moment = runs(gib=0.03, seconds=4)
    advice = size_from_runs(moment, asked)
    assert advice.recommended is not None
    assert (advice.recommended.memory_bytes, advice.recommended.memory_per_gpu_bytes) == (4 * GIB, 2 * GIB)
    little = replace(asked, memory_bytes=3 * GIB)
    assert (size_from_runs(moment, little).memory.recommended or 3 * GIB) <= 3 * GIB, "never more than is asked for"


def test_cpus_are_never_advised_beyond_the_request_and_never_below_the_nodes():
    assert size_from_runs(runs(busy=8.4), ASKED).cpus.recommended == 8
    assert size_from_runs(runs(busy=0.5), replace(ASKED, nodes=4)).cpus.recommended == 4
    assert size_from_runs(runs(busy=2.04), ASKED).cpus.recommended == 2


def test_a_request_without_numbers_gets_them_and_no_percentages():
    advice = size_from_runs(runs(), Resources(time_limit_seconds=-1))
    assert (advice.memory.over_percent, advice.time.over_percent, advice.warnings) == (None, None, ())
    assert advice.recommended == Resources(memory_bytes=4762 * MIB, time_limit_seconds=1200, cpus=2)


@pytest.mark.proves("sizes-from-history")
@given(
    uses=st.lists(st.tuples(st.floats(0.001, 500), st.integers(1, 10**6)), min_size=5, max_size=60),
    killed=st.lists(st.integers(1, 600), max_size=5),
)
def test_no_advice_is_below_the_use_of_19_in_20_runs_or_at_what_failed(uses, killed):
    history = [run(n, gib=gib, seconds=seconds) for n, (gib, seconds) in enumerate(uses)]
    history += [
        run(n, state="OUT_OF_MEMORY", requested=replace(ASKED, memory_bytes=gib * GIB)) for gib in killed for n in (99,)
    ]
    advice = size_from_runs(history, ASKED)
    memory, time = advice.memory.recommended, advice.time.recommended
    assert memory is not None
    assert time is not None
    assert sum(gib * GIB <= memory for gib, _ in uses) >= 0.95 * len(uses)
    assert sum(seconds <= time for _, seconds in uses) >= 0.95 * len(uses)
    assert memory > max(killed, default=0) * GIB
    assert time % 60 == 0


def test_sizes_that_were_each_too_little_are_named_with_twice_the_last():
    killed = [run(n, state="OUT_OF_MEMORY", requested=replace(ASKED, memory_bytes=n * GIB)) for n in (2, 3)]

    said = "memory: 2G, 3G were each too little. Twice the last, 6G, tells more."
    assert said in size_from_runs(killed, SMALLER).warnings
    assert said not in size_from_runs(killed, ASKED).warnings  # it asks for more than that already
    assert said not in size_from_runs(killed[1:], SMALLER).warnings


def test_what_another_request_would_have_saved_is_told_by_name():
    (one,) = savings(runs(gib=4, seconds=3600, busy=2))
    enough = one.sizing.memory.recommended or 0
    assert (one.name, one.sizing.basis, one.asked, one.short) == ("train", 5, ASKED, 0)
    assert one.gb_hours == pytest.approx(5 * (16 - enough / GIB))
    assert (one.sizing.cpus.recommended, one.cpu_hours) == (2, pytest.approx(5 * (8 - 2)))


def test_nothing_is_saved_by_a_run_that_would_have_failed_and_less_than_nothing_by_one_that_had_too_little():
    usual, far = runs(30, gib=1, seconds=3600), run(31, gib=12, seconds=3600)
    (one,) = savings([*usual, far])
    assert (one.short, one.gb_hours) == (1, pytest.approx(30 * (16 - (one.sizing.memory.recommended or 0) / GIB)))
    tight = replace(ASKED, memory_bytes=4 * GIB)
    (one,) = savings(runs(gib=3.9, seconds=3600, requested=tight))
    assert one.gb_hours is not None
    assert one.gb_hours < 0


def test_the_hours_of_an_array_are_those_of_all_its_tasks():
    usage = replace(run(seconds=3600).usage, cpu_allocated_seconds=20 * 8 * 1800.0)
    (one,) = savings([run(tasks=20, seconds=3600), replace(run(2, tasks=20), usage=usage)])
    enough = (one.sizing.memory.recommended or 0) / GIB
    assert one.gb_hours == pytest.approx((16 - enough) * (1 + 10))


def test_of_too_few_runs_no_saving_is_told():
    assert savings(runs(ENOUGH - 1)) == []
    (unmeasured,) = savings(runs(gib=None))
    assert unmeasured.gb_hours is None
