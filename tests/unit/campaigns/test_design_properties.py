"""Whatever a round varies and however its runs end: trials are told apart, within their bounds, and come to an end."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.unit.campaigns.simulated import Simulation, campaign, fails, passes

from slurm_agent_tools.campaigns.rules.judge import judge_round
from slurm_agent_tools.models.campaign import Trial, TrialEnd

RATES = st.one_of(
    st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=4),
    st.builds(lambda low, share, log: {"low": low, "high": low * share, "log": log},
              st.floats(1e-6, 1.0), st.floats(1.5, 100.0), st.booleans()),
)  # fmt: skip

BATCHES = st.one_of(
    st.lists(st.integers(1, 512), min_size=1, max_size=4),
    st.builds(
        lambda low, more: {"low": low, "high": low + more, "whole": True}, st.integers(1, 64), st.integers(1, 64)
    ),
)


@st.composite
def rounds(draw: st.DrawFn) -> dict[str, Any]:
    """A round that compares."""
    kind = draw(st.sampled_from(["random", "halving", "search"]))
    found: dict[str, Any] = {"kind": kind, "trials": draw(st.integers(2, 12)), "repeats": draw(st.integers(1, 3))}
    found["vary"] = {"rate": draw(RATES), "batch": draw(BATCHES)}
    if kind == "halving":
        start = draw(st.integers(1, 4))
        found |= {"length": "epochs", "from": start, "to": start * draw(st.integers(1, 9))}
    return found


def within(trial: Trial, varied: dict[str, Any]) -> bool:
    """Whether its settings are among those that the round varies."""
    return all(
        values["low"] <= float(trial.settings[name]) <= values["high"]
        if isinstance(values, dict)
        else trial.settings[name] in values
        for name, values in varied.items()
    )


@settings(max_examples=tries(60), deadline=None)
@given(rounds(), st.integers(0, 2**32), st.integers(2, 6))
def test_a_round_ends_and_every_trial_is_one_of_it(this: dict[str, Any], seed: int, at_once: int) -> None:
    file = campaign({"kind": "smoke"}, this, limits={"cpu_hours": 100, "at_once": at_once})
    simulation = Simulation(file, f"seed {seed}")

    def measure(trial: Trial) -> TrialEnd:
        luck = (seed + int(trial.identity, 16)) % 5
        return fails("python-exception") if luck == 0 else passes(loss=float(luck))

    simulation.round(0, measure)
    trials = simulation.round(1, measure)
    assert [trial.id.number for trial in trials] == list(range(1, len(trials) + 1))
    assert len({trial.identity for trial in trials}) == len(trials)
    own = [trial for trial in trials if trial.purpose == "trial"]
    assert all(within(trial, this["vary"]) for trial in own)
    assert len({trial.arm for trial in own}) <= this["trials"]
    judged = judge_round(file, 1, simulation.state)
    assert {verdict.arm for verdict in judged.verdicts} == {trial.arm for trial in trials}
    assert set(judged.best.values()) <= {found.trial.arm for found in simulation.state.trials.values()}
