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
    per_share,
    percentile,
    size,
    whole_cpus,
    whole_time,
)
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.job_sizing import SizingFigure
from slurm_agent_tools.units import format_memory

MIB = 2**20
HOUR = 3600


@pytest.mark.parametrize(
    ("headroom", "known", "recommended"),
    [
        (MEMORY, SizingFigure(used=5 * GIB), 6 * GIB),
        (MEMORY, SizingFigure(used=15 * GIB), 18 * GIB),
        (MEMORY, SizingFigure(used=GIB, failed=5 * GIB), 6 * GIB),
        (TIME, SizingFigure(used=100), 120),
        (TIME, SizingFigure(used=101), 180),
        (TIME, SizingFigure(used=100, failed=1200), 1800),
        (TIME_AFTER_ONE_RUN, SizingFigure(used=100), 300),
        (TIME_AFTER_ONE_RUN, SizingFigure(used=HOUR), 2 * HOUR - 1800),
        (TIME_AFTER_ONE_RUN, SizingFigure(used=10 * HOUR), 15 * HOUR),
        (TIME_FORETOLD, SizingFigure(failed=60), 120),
        (TIME_FORETOLD, SizingFigure(used=10_000), 11_700),
        (TIME_FORETOLD, SizingFigure(failed=48 * HOUR), 72 * HOUR),
        (CPUS, SizingFigure(used=2.04), 2),
        (CPUS, SizingFigure(used=2.06), 3),
    ],
)
def test_what_is_recommended_is_what_was_used_or_failed_with_its_headroom_in_whole_steps(headroom, known, recommended):
    assert size(headroom, known).recommended == recommended


def test_what_is_recommended_stays_within_its_bounds():
    assert size(MEMORY, SizingFigure(used=3 * MIB), least=128 * MIB).recommended == 128 * MIB
    assert size(CPUS, SizingFigure(used=0.0), least=1).recommended == 1
    assert size(CPUS, SizingFigure(used=2.0), least=4).recommended == 4
    assert size(CPUS, SizingFigure(used=9.0), limit=8).recommended == 8
    assert size(CPUS, SizingFigure(used=9.0), limit=8).needed == 9.0


@pytest.mark.parametrize("known", [SizingFigure(), SizingFigure(used=0), SizingFigure(used=0, failed=0)])
@pytest.mark.parametrize("headroom", [MEMORY, TIME])
def test_of_nothing_measured_nothing_is_recommended(headroom, known):
    figure = size(headroom, known)

    assert (figure.needed, figure.recommended, figure.failed, figure.over_percent) == (None, None, None, None)


def test_too_few_runs_count_only_where_more_than_what_failed_is_not_asked_for_already():
    known = SizingFigure(requested=5 * GIB, used=100 * GIB, failed=5 * GIB)

    assert size(MEMORY, known, enough=False).recommended == 6 * GIB
    assert size(MEMORY, replace(known, requested=6 * GIB), enough=False).recommended is None
    assert size(MEMORY, replace(known, failed=None), enough=False).recommended is None


def test_an_over_request_is_in_per_cent_of_what_was_used_and_never_below_nothing():
    assert size(MEMORY, SizingFigure(requested=8 * GIB, used=2 * GIB)).over_percent == 300
    assert size(MEMORY, SizingFigure(requested=GIB, used=2 * GIB)).over_percent == 0
    assert size(MEMORY, SizingFigure(used=2 * GIB)).over_percent is None


def test_what_was_known_stands_in_the_figure():
    figure = size(TIME, SizingFigure(requested=7200, used=500, most=900, failed=600, runs=7))

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
    recommended = size(headroom, SizingFigure(used=used, failed=failed), enough=enough).recommended

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
    assert proposal.directive == f"#SBATCH --mem={format_memory(advice.memory.recommended)}"
    assert advice.memory.recommended >= math.ceil(had * 6 / 5)
