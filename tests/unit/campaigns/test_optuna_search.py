"""What is told where Optuna is asked for and is not there; what it finds is tested by `make test-extras`."""

from __future__ import annotations

import importlib.util

import pytest
from tests.unit.campaigns.simulated import Simulation, campaign

from slurm_agent_tools.campaigns.design import next_trials
from slurm_agent_tools.campaigns.searches.optuna_search import suggest
from slurm_agent_tools.errors import InputError

pytestmark = pytest.mark.skipif(importlib.util.find_spec("optuna") is not None, reason="Optuna is installed")


def test_without_the_extra_the_command_that_installs_it_is_named() -> None:
    with pytest.raises(InputError) as raised:
        suggest({"batch": (8, 16)}, [], 1, asked=0, seed=1, maximize=False, sampler="tpe")
    assert "optuna" in raised.value.message
    assert "slurm-agent-tools[search]" in raised.value.hint


def test_it_is_told_before_the_first_run() -> None:
    search = {"kind": "search", "by": "optuna", "vary": {"batch": [8, 16]}, "trials": 2}
    simulation = Simulation(campaign({"kind": "smoke"}, search))
    with pytest.raises(InputError, match="not installed"):
        next_trials(simulation.file, "lr", 0, simulation.state)
