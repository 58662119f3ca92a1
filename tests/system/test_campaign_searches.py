"""A search on a real Slurm: each value of a published function is computed by a job, to the report."""

from __future__ import annotations

import pytest
from tests.system.campaign_files import lowest_by_chance, lowest_of_branin
from tests.system.faces import Place


@pytest.mark.proves("campaign-searches-beat-chance")
def test_halving_by_jobs_finds_more_than_chance_with_as_many_runs(fresh: Place):
    halving = {"kind": "halving", "trials": 18, "length": "steps", "from": 3, "to": 27}
    lowest, runs = lowest_of_branin(fresh, "halving", halving)
    by_chance = lowest_by_chance(runs)
    assert runs == 6, "18 of 3 steps, 6 of 9, 2 of 27"
    assert lowest < by_chance, f"{lowest:.4f} against {by_chance:.4f} by chance"
