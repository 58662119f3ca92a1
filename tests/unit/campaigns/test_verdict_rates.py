"""How often whole campaigns promote by chance, and find what is there: from the design to the verdict, seeded.

`SOAK=1` simulates thousands, with 4, 8 and 16 configurations; with `-s` it tells the figures, which are in the decision
on verdicts.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import sys
from collections.abc import Callable, Sequence

import pytest
from tests.unit.campaigns.simulated import START, Simulation, campaign, heavy_tailed, lognormal, normal, passes

from slurm_agent_tools.campaigns.event_folding import fold
from slurm_agent_tools.campaigns.rules.judge import judge_round
from slurm_agent_tools.models.campaign import BatchIntended, BatchSent, RevisionBegun, Stamped, TrialEnded

Noise = Callable[[random.Random, float], float]

SOAK = os.environ.get("SOAK") == "1"
MANY = list(itertools.product([4, 8, 16], [normal, lognormal, heavy_tailed], [0.05, 0.1, 0.15])) if SOAK else []
REPEATS = 12
LIMITS = {"cpu_hours": 10000, "trials": 5000}


def promotions(
    arms: int, noise: Noise, share: float, *, factor: float, maximize: bool, campaigns: int
) -> tuple[int, int]:
    """Of so many campaigns: in how many the one arm that differs is promoted, and in how many another one.

    Where none differs (a factor of 1) the first is another one as well.

    `arms`: beside the baseline, of 12 runs each; `factor`: of the first one's values; `share`: the spread of the noise.
    """
    rates = [0.2 + number for number in range(arms)]
    file = campaign(
        {"kind": "grid", "vary": {"rate": rates}, "repeats": REPEATS},
        objective={"metric": "loss", "direction": "maximize" if maximize else "minimize"},
    )
    simulation = Simulation(file)
    trials = simulation.design(0)
    ids = tuple(trial.id for trial in trials)
    simulation.happen(BatchIntended("key", ids, "x.sh", "0" * 64, tuple(range(len(ids)))), BatchSent("key", 1))
    sent, numbers = simulation.state, range(simulation.state.events + 1, simulation.state.events + 1 + len(ids))
    first = next(trial.arm for trial in trials if trial.settings["rate"] == rates[0])
    chance = random.Random(f"{arms} {noise.__name__} {share} {factor} {maximize}")  # noqa: S311 - a simulation
    found = others = 0
    for _ in range(campaigns):
        values = ((factor if trial.arm == first else 1.0) * noise(chance, share) for trial in trials)
        ends = (TrialEnded(trial, passes(loss=value)) for trial, value in zip(ids, values, strict=True))
        stamped = (Stamped(number, START, end) for number, end in zip(numbers, ends, strict=True))
        verdicts = judge_round(file, 0, fold(stamped, sent)).verdicts
        promoted = {verdict.arm for verdict in verdicts if verdict.verdict == "promote"}
        found += factor != 1.0 and first in promoted
        others += bool(promoted - {first} if factor != 1.0 else promoted)
    return found, others


@pytest.mark.proves("campaign-verdicts-are-sure")
@pytest.mark.parametrize(("arms", "noise", "share"), MANY or [(4, normal, 0.15), (4, heavy_tailed, 0.15)])
def test_whole_campaigns_without_a_difference_hardly_ever_promote(arms: int, noise: Noise, share: float) -> None:
    campaigns = 120 if not SOAK else 2000 if share == 0.15 else 500
    _, others = promotions(arms, noise, share, factor=1.0, maximize=False, campaigns=campaigns)
    rate = others / campaigns
    sys.stdout.write(f"{rate:.2%} of {campaigns} promoted, ± {math.sqrt(rate * (1 - rate) / campaigns):.2%}\n")
    assert rate <= (0.04 if share == 0.15 else 0.05)


@pytest.mark.proves("campaign-verdicts-are-sure")
@pytest.mark.parametrize(("factor", "maximize"), [(0.8, False), (1.2, True)], ids=["a fifth less", "a fifth more"])
@pytest.mark.parametrize(("arms", "noise", "share"), MANY or [(8, lognormal, 0.15)])
def test_whole_campaigns_find_a_fifth_less_and_a_fifth_more(
    arms: int, noise: Noise, share: float, factor: float, maximize: bool
) -> None:
    campaigns = 100 if not SOAK else 1000 if share == 0.15 else 200
    found, others = promotions(arms, noise, share, factor=factor, maximize=maximize, campaigns=campaigns)
    sys.stdout.write(f"{found / campaigns:.1%} of {campaigns} found, another one {others / campaigns:.1%}\n")
    assert found >= 0.8 * campaigns
    assert others <= 0.1 * campaigns


def judged_again(
    arms: int, repeats: Sequence[int], noise: Noise, share: float, *, others: float, campaigns: int
) -> int:
    """In how many campaigns anything is promoted at any look: each revision has more runs of the same round.

    One arm is as good as the baseline; the values of all others are `others` times as large, and to be small.
    """
    rates = [0.2 + number for number in range(arms)]
    files = [campaign({"kind": "grid", "vary": {"rate": rates}, "repeats": count}, limits=LIMITS) for count in repeats]
    chance = random.Random(f"{arms} {repeats} {noise.__name__} {share} {others}")  # noqa: S311 - a simulation
    found = 0
    for _ in range(campaigns):
        simulation, promoted = Simulation(files[0]), False
        for number, file in enumerate(files):
            if number:
                simulation.file = file
                simulation.happen(RevisionBegun(number + 1, "f" * 64, "campaign: 1", dict(simulation.state.code), 0))
            new = [trial for trial in simulation.design(0) if trial.reuses is None]
            ids = tuple(trial.id for trial in new)
            simulation.happen(BatchIntended(str(number), ids, "x.sh", "0" * 64, tuple(range(len(ids)))))
            simulation.happen(BatchSent(str(number), number + 1))
            usual = {trial.id for trial in new if trial.settings["rate"] in {rates[0], 0.1}}
            values = ((1.0 if one in usual else others) * noise(chance, share) for one in ids)
            simulation.happen(*(TrialEnded(one, passes(loss=value)) for one, value in zip(ids, values, strict=True)))
            judged = judge_round(file, 0, simulation.state)
            simulation.happen(judged)
            promoted = promoted or any(verdict.verdict == "promote" for verdict in judged.verdicts)
        assert simulation.state.chance_spent < 1
        found += promoted
    return found


LOOKS: list[tuple[int, tuple[int, ...], Noise, float]] = [(4, (2, 4, 6, 8, 10, 12), normal, 1.0)]
if SOAK:
    LOOKS += [(4, (12, 14, 16, 18, 20, 22), noise, others) for noise in (normal, lognormal) for others in (1.0, 1.5)]
    LOOKS += [(8, (3, 6, 9, 12, 15, 18), heavy_tailed, 1.0)]


@pytest.mark.proves("campaign-verdicts-are-sure")
@pytest.mark.parametrize(("arms", "repeats", "noise", "others"), LOOKS)
def test_a_round_that_is_judged_six_times_with_more_runs_hardly_ever_promotes_by_chance(
    arms: int, repeats: Sequence[int], noise: Noise, others: float
) -> None:
    campaigns = 500 if SOAK else 30
    found = judged_again(arms, repeats, noise, 0.15, others=others, campaigns=campaigns)
    sys.stdout.write(f"{found / campaigns:.2%} of {campaigns} promoted after six looks\n")
    assert found <= 0.05 * campaigns
