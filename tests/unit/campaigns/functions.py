"""Published test functions of searches, as campaigns whose runs are the more exact the longer they are."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.unit.campaigns.simulated import campaign

from slurm_agent_tools.models.campaign import Trial
from slurm_agent_tools.models.campaign_file import CampaignFile


@dataclass(frozen=True)
class Published:
    """A function of the numbers of its bounds, and its least value. `error`: of the shortest run, which fades."""

    function: Callable[..., float]
    bounds: tuple[tuple[float, float], ...]
    least: float
    error: float

    @property
    def vary(self) -> dict[str, Any]:
        """What a round varies."""
        return {f"x{place}": {"low": low, "high": high} for place, (low, high) in enumerate(self.bounds, 1)}

    def campaign(self, this: Mapping[str, Any], **parts: Any) -> CampaignFile:
        """A campaign of this one round, which starts in a corner."""
        stage = {
            "name": "training",
            "kind": "cpu",
            "command": ["python3", "train.py"],
            "parameters": {
                **{
                    f"x{place}": {"default": low, "argument": f"--x{place}"}
                    for place, (low, _) in enumerate(self.bounds, 1)
                },
                "steps": {"default": 27, "argument": "--steps", "length": True},
            },
            "resources": {"cpus": 1, "time_limit": "10m"},
        }
        return campaign(dict(this), stages=[stage], **parts)

    def length(self, trial: Trial) -> float:
        """How long a run is."""
        return float(trial.settings["steps"])

    def true(self, trial: Trial) -> float:
        """The function's value where a run is."""
        return self.function(*(float(trial.settings[f"x{place}"]) for place in range(1, len(self.bounds) + 1)))

    def measured(self, trial: Trial) -> float:
        """What a run tells: the value with an error by chance, which is the less the longer it runs."""
        seed = hashlib.sha256(repr(sorted(trial.settings.items())).encode()).digest()
        chance = random.Random(seed)  # noqa: S311 - a simulation, and no secret
        return self.true(trial) + self.error * chance.gauss(0.0, 1.0) * max(0.0, 1 / self.length(trial) - 1 / 27)


def _branin(x: float, y: float) -> float:
    """Branin 1972; its least value is at (pi, 2.275) and two more places."""
    return (
        (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
    )


_HEIGHTS = (1.0, 1.2, 3.0, 3.2)

_SLOPES = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)

_PLACES = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)


def _hartmann(*at: float) -> float:
    """Hartmann 1973, of six numbers."""
    return -sum(
        height * math.exp(-sum(slope * (x - place) ** 2 for slope, x, place in zip(slopes, at, places, strict=True)))
        for height, slopes, places in zip(_HEIGHTS, _SLOPES, _PLACES, strict=True)
    )


BRANIN = Published(_branin, ((-5.0, 10.0), (0.0, 15.0)), 0.397887, 10.0)

HARTMANN = Published(_hartmann, ((0.0, 1.0),) * 6, -3.32237, 0.5)
