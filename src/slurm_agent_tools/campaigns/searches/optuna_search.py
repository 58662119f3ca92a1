"""A search by Optuna's own samplers, through ask and tell, for `by: optuna`; Optuna comes with the extra `search`."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from typing import Any

from slurm_agent_tools.campaigns.search_space import Dimension, Space, inside, ordered, within
from slurm_agent_tools.campaigns.searches.model_search import Tried
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign import Setting
from slurm_agent_tools.models.campaign_file import Range

_NEEDED = {"cmaes": "cmaes", "gp": "torch"}
"""What a sampler needs beside Optuna."""

_FEWEST_SOURCES = 10

_MOST_ASKED = 20
"""How often Optuna is asked for one configuration that was not tried yet."""


def suggest(
    space: Space, tried: Sequence[Tried], count: int, *, asked: int, seed: int, maximize: bool, sampler: str
) -> list[dict[str, Setting]]:
    """So many configurations to run next, none that was tried; fewer where Optuna names no others.

    What was tried is told to a new study each time, so nothing is kept between two calls. Raises InputError where
    Optuna, or what the sampler needs, is not installed.
    """
    require(sampler)
    optuna: Any = importlib.import_module("optuna")  # an extra, and half a second to load

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    ways = {name: _distribution(optuna, dimension) for name, dimension in space.items()}
    told = [_told(optuna, ways, one) for one in tried if inside(space, one.settings)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts that Optuna calls experimental
        study = optuna.create_study(
            direction="maximize" if maximize else "minimize", sampler=_sampler(optuna, sampler, seed + asked, told)
        )
        study.add_trials(told)
        return _distinct(study, ways, space, tried, count)


def _distinct(
    study: Any, ways: dict[str, Any], space: Space, tried: Sequence[Tried], count: int
) -> list[dict[str, Setting]]:
    taken = {tuple(one.settings.get(name) for name in space) for one in tried}
    rows: list[dict[str, Setting]] = []
    for _ in range(_MOST_ASKED * count):
        if len(rows) == count:
            break
        params = study.ask(ways).params
        row = {name: within(dimension, params[name]) for name, dimension in space.items()}
        if tuple(row.values()) not in taken:
            taken.add(tuple(row.values()))
            rows.append(row)
    return rows


def require(sampler: str) -> None:
    """Raises InputError, with the command that mends it, where Optuna or what a sampler needs is not installed."""
    for module in ("optuna", _NEEDED.get(sampler)):
        if module is not None and importlib.util.find_spec(module) is None:
            what = "slurm-agent-tools[search]" if module != "torch" else "torch scipy"
            raise InputError(
                "by" if module == "optuna" else "sampler",
                "optuna" if module == "optuna" else sampler,
                f"needs {module}, which is not installed",
                hint=f"Install it (pip install '{what}'), or write by: model.",
            )


def _sampler(optuna: Any, name: str, seed: int, told: Sequence[Any]) -> Any:
    samplers = optuna.samplers
    match name:
        case "random":
            return samplers.RandomSampler(seed=seed)
        case "cmaes":
            # It goes on only from trials that it made itself; of others it takes where it begins.
            done = [trial for trial in told if trial.values is not None]
            return samplers.CmaEsSampler(seed=seed, source_trials=done if len(done) >= _FEWEST_SOURCES else None)
        case "gp":
            return samplers.GPSampler(seed=seed)
        case _:
            return samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)


def _told(optuna: Any, ways: dict[str, Any], one: Tried) -> Any:
    params = {name: one.settings[name] for name in ways}
    if one.value is None:
        return optuna.trial.create_trial(params=params, distributions=ways, state=optuna.trial.TrialState.FAIL)
    return optuna.trial.create_trial(params=params, distributions=ways, value=one.value)


def _distribution(optuna: Any, dimension: Dimension) -> Any:
    kinds = optuna.distributions
    if not isinstance(dimension, Range):
        return kinds.CategoricalDistribution(ordered(dimension))
    if dimension.whole and dimension.step is None:
        low, high = within(dimension, dimension.low), within(dimension, dimension.high)
        return kinds.IntDistribution(int(low), int(high), log=dimension.log)
    step = None if dimension.log else dimension.step
    return kinds.FloatDistribution(dimension.low, dimension.high, log=dimension.log, step=step)
