"""The plot of a comparison: what it shows, and how waits are told."""

import re

import pytest
from tests.unit.planning.workloads import job, workload

from slurm_agent_tools.cli.commands.simulate_plot import shown_seconds, wait_plot
from slurm_agent_tools.planning.compare import compare
from slurm_agent_tools.planning.strategies import STRATEGIES


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (89, "89 s"), (90, "1.5 min"), (720, "12 min"), (5400, "1.5 h"), (36_000, "10 h"), (180_000, "2.1 d")],
)
def test_waits_are_told_in_a_unit_that_fits(seconds, said):
    assert shown_seconds(seconds) == said


def test_every_strategy_has_its_bar_and_its_curve_inside_of_the_picture():
    load = workload(*(job(number, number, 400 * number, 1 + number % 4) for number in range(1, 60)))
    text = wait_plot(compare(load, list(STRATEGIES.values())))
    assert text.count("<polyline") == 2 * len(STRATEGIES)
    for name in STRATEGIES:
        assert f">{name}<" in text
    width, height = (float(one) for one in re.search(r'viewBox="0 0 (\d+) (\d+)"', text).groups())
    points = re.findall(r"(-?[\d.]+),(-?[\d.]+)", " ".join(re.findall(r'points="([^"]*)"', text)))
    assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in points)


def test_a_workload_in_which_nobody_waits_can_be_drawn():
    assert "0 s" in wait_plot(compare(workload(job(1, 0, 10)), [STRATEGIES["easy"]]))
