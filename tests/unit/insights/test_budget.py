"""Whether a result is there in time: only what is known decides."""

from __future__ import annotations

import pytest

from slurm_agent_tools.insights.measured_waits import TimeNeeded, judge_budget, run_seconds, wait_seconds


@pytest.mark.parametrize(
    ("wait", "run", "fits"),
    [
        (600, 3000, True),
        (601, 3000, False),
        (None, 3000, None),
        (600, None, None),
        (None, None, None),
        (None, 3601, False),
        (3601, None, False),
    ],
)
def test_what_is_known_decides_and_what_is_not_known_is_no_yes(wait: int | None, run: int | None, fits: bool | None):
    judged = judge_budget(3600, TimeNeeded(wait, "measured", run, "its limit"))

    assert judged.fits is fits
    assert "01:00:00" in judged.why
    assert ("wait not known" in judged.why) is (wait is None)
    assert ("run not known" in judged.why) is (run is None)


def test_a_run_takes_what_its_runs_took_else_its_whole_limit():
    assert run_seconds(1800.4, 12, 7200) == (1800, "95 % of its 12 runs took no longer")
    assert run_seconds(None, 2, 7200)[0] == 7200
    assert run_seconds(None, 0, -1)[0] is None
    assert run_seconds(None, 0, None)[0] is None


def test_the_longer_wait_of_both_counts():
    assert wait_seconds(60, 900, 8) == (900, "95 % of 8 jobs like it waited no longer")
    assert wait_seconds(1200, 900, 8) == (1200, "Slurm's estimate")
    assert wait_seconds(None, 900, 8)[0] == 900
    assert wait_seconds(0, None, 0) == (0, "Slurm's estimate")
    assert wait_seconds(None, None, 3) == (None, "nothing is known of the wait")
