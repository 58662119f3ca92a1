"""Answers one question about searches, as JSON on standard input, where Optuna is installed.

{"function": "BRANIN", "round": {...}, "seeds": 10} -> the lowest value that each seed's campaign found
{"space": {...}, "count": 4, "sampler": "tpe"} -> what is suggested for a space of which nothing is known
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

sys.path[:0] = [f"{sys.argv[1]}/src", sys.argv[1]]
warnings.simplefilter("error")

from tests.unit.campaigns import functions  # noqa: E402 - found by the line above
from tests.unit.campaigns.simulated import Simulation, by_loss  # noqa: E402

from slurm_agent_tools.campaigns.searches.model_search import Tried  # noqa: E402
from slurm_agent_tools.campaigns.searches.optuna_search import suggest  # noqa: E402
from slurm_agent_tools.models.campaign_file import Range  # noqa: E402


def lowest(function: str, this: dict[str, Any], seeds: int) -> list[float]:
    """The lowest value of each campaign's own configurations."""
    published: functions.Published = getattr(functions, function)
    found = []
    for seed in range(seeds):
        simulation = Simulation(published.campaign({**this, "vary": published.vary}), f"seed {seed}")
        trials = simulation.round(0, by_loss(published.measured))
        found.append(min(published.true(trial) for trial in trials if trial.purpose != "baseline"))
    return found


def suggested(space: dict[str, Any], tried: list[tuple[dict[str, Any], float | None]], **more: Any) -> Any:
    """What Optuna suggests for a space, of which this was tried."""
    known = {name: Range(**values) if isinstance(values, dict) else tuple(values) for name, values in space.items()}
    return suggest(known, [Tried(*one) for one in tried], seed=1, maximize=False, asked=len(tried), **more)


if __name__ == "__main__":
    question = json.load(sys.stdin)
    if "function" in question:
        sys.stdout.write(json.dumps(lowest(question["function"], question["round"], question["seeds"])))
    else:
        sys.stdout.write(json.dumps(suggested(**question)))
