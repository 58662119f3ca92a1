"""What finds more with the same number of runs: halving, the model's search, or chance; on published functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.effort import tries
from tests.unit.campaigns.functions import BRANIN, HARTMANN, Published
from tests.unit.campaigns.simulated import Simulation, by_loss

from slurm_agent_tools.campaigns.searches.model_search import Tried, suggest
from slurm_agent_tools.models.campaign import Setting
from slurm_agent_tools.models.campaign_file import Range

SEEDS = range(tries(10))


def best_of(published: Published, this: dict[str, Any], name: str) -> tuple[float, float]:
    """The lowest value that a campaign's longest runs found, and what all its runs took, in longest runs."""
    simulation = Simulation(published.campaign(this), name)
    trials = simulation.round(0, by_loss(published.measured))
    longest = max(published.length(trial) for trial in trials)
    own = [trial for trial in trials if trial.purpose != "baseline"]
    found = min(published.true(trial) for trial in own if published.length(trial) == longest)
    return found, sum(published.length(trial) for trial in own) / longest


def chance(published: Published, trials: int, name: str) -> float:
    return best_of(published, {"kind": "random", "vary": published.vary, "trials": trials}, name)[0]


@pytest.mark.proves("campaign-searches-beat-chance")
@pytest.mark.parametrize(("published", "trials"), [(BRANIN, 24), (HARTMANN, 36)], ids=["Branin", "Hartmann-6"])
def test_the_models_search_finds_more_than_chance(published: Published, trials: int) -> None:
    search = {"kind": "search", "vary": published.vary, "trials": trials}
    found = statistics.median(best_of(published, search, f"seed {seed}")[0] for seed in SEEDS)
    by_chance = statistics.median(chance(published, trials, f"seed {seed}") for seed in SEEDS)
    assert found < by_chance, f"{found:.4f} against {by_chance:.4f} by chance; the least is {published.least}"
    assert found - published.least < 0.5 * (by_chance - published.least)


@pytest.mark.proves("campaign-searches-beat-chance")
@pytest.mark.parametrize("published", [BRANIN, HARTMANN], ids=["Branin", "Hartmann-6"])
def test_halving_finds_more_than_chance(published: Published) -> None:
    halving = {"kind": "halving", "vary": published.vary, "trials": 81, "length": "steps", "from": 1, "to": 27}
    runs = [best_of(published, halving, f"seed {seed}") for seed in SEEDS]
    budget = round(max(spent for _, spent in runs))
    found = statistics.median(value for value, _ in runs)
    by_chance = statistics.median(chance(published, budget, f"seed {seed}") for seed in SEEDS)
    assert found < by_chance, f"{found:.4f} against {by_chance:.4f} by chance with {budget} full runs"


SPACE = {
    "rate": Range(low=1e-4, high=1.0, log=True),
    "layers": Range(low=1, high=6, whole=True),
    "kind": ("adam", "sgd", "lamb"),
    "batch": (8, 16, 32, 64),
}


def loss(settings: Mapping[str, Setting]) -> float:
    kinds = {"adam": 0.0, "sgd": 1.0, "lamb": 0.5}
    return (
        (math.log10(float(settings["rate"])) + 2.5) ** 2
        + abs(int(settings["layers"]) - 4) * 0.2
        + kinds[str(settings["kind"])]
        + 0.1 * math.log2(64 / int(settings["batch"]))
    )


def searched(trials: int, wave: int, seed: int, value: Callable[[Mapping[str, Setting]], float | None]) -> list[Tried]:
    """A search in waves."""
    tried: list[Tried] = []
    while len(tried) < trials:
        rows = suggest(SPACE, tried, wave, asked=len(tried), seed=seed, maximize=False)
        tried += [Tried(row, value(row)) for row in rows]
    return tried


def test_numbers_by_magnitude_whole_ones_and_choices_are_searched_together() -> None:
    tried = searched(32, 4, 1, loss)
    assert len({tuple(one.settings.values()) for one in tried}) == 32
    assert all(isinstance(one.settings["layers"], int) for one in tried)
    best = min(tried, key=lambda one: one.value or 0.0)
    assert (best.settings["kind"], best.value) == ("adam", pytest.approx(0.0, abs=0.35))


def test_a_search_is_the_same_again_for_the_same_seed() -> None:
    assert searched(16, 4, 3, loss) == searched(16, 4, 3, loss)
    assert searched(16, 4, 3, loss) != searched(16, 4, 4, loss)


def test_failed_runs_are_kept_away_from() -> None:
    tried = searched(28, 4, 2, lambda settings: None if settings["kind"] == "adam" else loss(settings))
    late = [one.settings["kind"] for one in tried[16:]]
    assert late.count("adam") <= len(late) / 3


def test_a_search_goes_on_where_all_failed_or_are_alike() -> None:
    assert len(searched(20, 5, 2, lambda _: None)) == 20
    assert len(searched(20, 5, 2, lambda _: 1.0)) == 20


def test_a_small_space_is_searched_to_its_end_and_no_further() -> None:
    space = {"batch": (8, 16, 32)}
    rows = suggest(space, [Tried({"batch": 16}, 1.0)], 5, asked=1, seed=1, maximize=True)
    assert sorted(int(row["batch"]) for row in rows) == [8, 32]
    tried = [Tried({"batch": batch}, 1.0) for batch in (8, 16, 32)]
    assert suggest(space, tried, 5, asked=3, seed=1, maximize=True) == []


def test_a_step_is_kept_to() -> None:
    space = {"share": Range(low=0.1, high=0.5, step=0.1)}
    rows = suggest(space, [], 5, asked=0, seed=1, maximize=True)
    assert sorted(row["share"] for row in rows) == [0.1, 0.2, 0.3, 0.4, 0.5]
