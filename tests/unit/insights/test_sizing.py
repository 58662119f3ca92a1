"""The one sizer: headroom, rounding and limits by hand, and the same answer to whoever asks."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.diagnosis.records import job
from tests.unit.insights.records import ASKED, GIB, run

from slurm_agent_tools.diagnosis.next_request import larger_memory
from slurm_agent_tools.insights.run_sizes import size_from_runs
from slurm_agent_tools.insights.sizing import (
    CPUS,
    MEMORY,
    TIME,
    TIME_AFTER_ONE_RUN,
    TIME_FORETOLD,
    SizingFacts,
    per_share,
    percentile,
    size,
    whole_cpus,
    whole_time,
)
from slurm_agent_tools.models.request import Resources
from slurm_agent_tools.units import format_memory

MIB = 2**20
HOUR = 3600


@pytest.mark.parametrize(
    ("headroom", "facts", "recommended"),
    [
        (MEMORY, SizingFacts(used=5 * GIB), 6 * GIB),
        (MEMORY, SizingFacts(used=15 * GIB), 18 * GIB),
        (MEMORY, SizingFacts(used=GIB, failed=5 * GIB), 6 * GIB),
        (MEMORY, SizingFacts(used=3 * MIB, least=128 * MIB), 128 * MIB),
        (TIME, SizingFacts(used=100), 120),
        (TIME, SizingFacts(used=101), 180),
        (TIME, SizingFacts(used=100, failed=1200), 1800),
        (TIME_AFTER_ONE_RUN, SizingFacts(used=100), 300),
        (TIME_AFTER_ONE_RUN, SizingFacts(used=HOUR), 2 * HOUR - 1800),
        (TIME_AFTER_ONE_RUN, SizingFacts(used=10 * HOUR), 15 * HOUR),
        (TIME_FORETOLD, SizingFacts(failed=60), 120),
        (TIME_FORETOLD, SizingFacts(used=10_000), 11_700),
        (TIME_FORETOLD, SizingFacts(failed=48 * HOUR), 72 * HOUR),
        (CPUS, SizingFacts(used=2.04, least=1), 2),
        (CPUS, SizingFacts(used=2.06, least=1), 3),
        (CPUS, SizingFacts(used=0.0, least=1), 1),
        (CPUS, SizingFacts(used=9.0, least=1, limit=8), 8),
    ],
)
def test_what_is_recommended_is_what_was_used_or_failed_with_its_headroom_in_whole_steps(headroom, facts, recommended):
    assert size(headroom, facts).recommended == recommended


@pytest.mark.parametrize("facts", [SizingFacts(), SizingFacts(used=0), SizingFacts(used=0, failed=0)])
@pytest.mark.parametrize("headroom", [MEMORY, TIME])
def test_of_nothing_measured_nothing_is_recommended(headroom, facts):
    figure = size(headroom, facts)

    assert (figure.needed, figure.recommended, figure.failed, figure.over_percent) == (None, None, None, None)


def test_too_few_runs_count_only_where_more_than_what_failed_is_not_asked_for_already():
    facts = SizingFacts(requested=5 * GIB, used=100 * GIB, failed=5 * GIB, enough=False)

    assert size(MEMORY, facts).recommended == 6 * GIB
    assert size(MEMORY, replace(facts, requested=6 * GIB)).recommended is None
    assert size(MEMORY, replace(facts, failed=None)).recommended is None


def test_an_over_request_is_in_per_cent_of_what_was_used_and_never_below_nothing():
    assert size(MEMORY, SizingFacts(requested=8 * GIB, used=2 * GIB)).over_percent == 300
    assert size(MEMORY, SizingFacts(requested=GIB, used=2 * GIB)).over_percent == 0
    assert size(MEMORY, SizingFacts(used=2 * GIB)).over_percent is None


def test_what_was_known_stands_in_the_figure():
    figure = size(TIME, SizingFacts(requested=7200, used=500, most=900, failed=600, runs=7))

    assert (figure.runs, figure.requested, figure.used, figure.most, figure.failed) == (7, 7200, 500, 900, 600)
    assert figure.needed == 900


@pytest.mark.parametrize(("seconds", "whole"), [(0, 60), (1, 60), (60, 60), (60.5, 120), (3599, 3600)])
def test_a_time_is_in_whole_minutes_and_one_at_least(seconds, whole):
    assert whole_time(seconds) == whole


@pytest.mark.parametrize(("busy", "whole"), [(0, 1), (1.04, 1), (1.06, 2), (3.0, 3)])
def test_a_cpu_that_was_hardly_used_is_none_more(busy, whole):
    assert whole_cpus(busy) == whole


@pytest.mark.parametrize(
    ("total", "shares", "unit", "share"), [(7, 2, 1, 4), (7, 0, 1, 7), (GIB, 3, MIB, 342 * MIB), (0, 3, MIB, 0)]
)
def test_a_share_is_rounded_up_to_whole_units(total, shares, unit, share):
    assert per_share(total, shares, unit) == share


@pytest.mark.parametrize(("values", "wanted"), [
    ([], None),
    ([(7.0, 1)], 7.0),
    ([(float(n), 1) for n in range(1, 20)], 19.0),
    ([(float(n), 1) for n in range(1, 21)], 19.0),
    ([(float(n), 1) for n in range(1, 101)], 95.0),
    ([(1.0, 99), (9.0, 1)], 1.0),
    ([(1.0, 9), (9.0, 1)], 9.0),
])  # fmt: skip
def test_the_percentile_is_the_nearest_rank_and_an_array_counts_by_its_tasks(values, wanted):
    assert percentile(values) == wanted


@pytest.mark.proves("sizes-from-history", "proposals-have-grounds")
@given(
    headroom=st.sampled_from([MEMORY, TIME, TIME_AFTER_ONE_RUN, TIME_FORETOLD]),
    used=st.none() | st.integers(1, 2**45),
    failed=st.none() | st.integers(1, 2**45),
    enough=st.booleans(),
)
def test_nothing_is_recommended_at_or_below_what_failed_or_was_used(headroom, used, failed, enough):
    recommended = size(headroom, SizingFacts(used=used, failed=failed, enough=enough)).recommended

    assert (recommended is None) is (failed is None and (used is None or not enough))
    assert recommended is None or recommended > (failed or 0)
    assert recommended is None or not enough or recommended > (used or 0)


@pytest.mark.proves("sizes-from-history", "proposals-have-grounds")
@given(had=st.integers(MIB, 2**42))
def test_after_a_kill_for_memory_the_diagnosis_and_the_history_ask_for_the_same(had):
    requested = replace(ASKED, memory_bytes=had)
    proposal = larger_memory(job("OUT_OF_MEMORY", resources=Resources(nodes=1, memory_per_node_bytes=had)))
    advice = size_from_runs([run(state="OUT_OF_MEMORY", requested=requested)], requested)

    assert advice.memory.recommended is not None
    assert proposal is not None
    assert proposal.line == f"#SBATCH --mem={format_memory(advice.memory.recommended)}"
    assert advice.memory.recommended >= math.ceil(had * 6 / 5)
