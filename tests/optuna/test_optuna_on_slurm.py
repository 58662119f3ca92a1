"""A search by Optuna on a real Slurm, from the file to the report: `make test-extras`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.optuna.conftest import ROOT
from tests.system.campaign_files import lowest_by_chance, lowest_of_branin
from tests.system.faces import Place


@pytest.mark.proves("campaign-searches-beat-chance")
def test_optuna_by_jobs_finds_more_than_chance_with_as_many_runs(place: Place, python: Path) -> None:
    place.extra["PYTHONPATH"] = str(ROOT / "src")
    search = {"kind": "search", "by": "optuna", "sampler": "tpe", "trials": 16}
    lowest, runs = lowest_of_branin(place, "optuna", search, python)
    by_chance = lowest_by_chance(16)
    assert runs == 16
    assert lowest < by_chance, f"{lowest:.4f} against {by_chance:.4f} by chance"
