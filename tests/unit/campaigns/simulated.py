"""Campaigns that run in memory: each run's end comes from a function, and everything else from the campaign itself."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_agent_tools.campaigns.design import next_trials
from slurm_agent_tools.campaigns.event_folding import fold
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.models.campaign import (
    BatchIntended,
    BatchSent,
    CampaignEvent,
    RevisionBegun,
    RoundDesigned,
    Stamped,
    Trial,
    TrialEnd,
    TrialEnded,
)
from slurm_agent_tools.models.campaign_file import CampaignFile

START = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)

STAGE: dict[str, Any] = {
    "name": "training",
    "kind": "cpu",
    "command": ["python3", "train.py"],
    "parameters": {
        "rate": {"default": 0.1, "argument": "--rate"},
        "batch": {"default": 32, "argument": "--batch"},
        "epochs": {"default": 10, "argument": "--epochs", "length": True},
    },
    "resources": {"cpus": 2, "memory": "1G", "time_limit": "10m"},
    "smoke": {"change": {"epochs": 1}, "time_limit": "2m"},
}

LOSS = {"metric": "loss", "direction": "minimize"}

Measure = Callable[[Trial], TrialEnd]


def campaign(*rounds: dict[str, Any], stages: Sequence[dict[str, Any]] = (STAGE,), **parts: Any) -> CampaignFile:
    """A campaign's file of these rounds."""
    said = [{"hypothesis": "one is better", **one} if one["kind"] != "smoke" else one for one in rounds]
    document = {"campaign": 1, "objective": LOSS, "limits": {"cpu_hours": 100}, **parts}
    return CampaignFile.model_validate({**document, "stages": list(stages), "rounds": said})


def passes(**metrics: float) -> TrialEnd:
    """A run that went well."""
    return TrialEnd("1", "COMPLETED", passed=True, queue_seconds=5.0, run_seconds=60.0, metrics=metrics)


def fails(category: str) -> TrialEnd:
    """A run that did not."""
    return TrialEnd("1", "FAILED", passed=False, category=category, cause=category, queue_seconds=1.0, run_seconds=9.0)


class Simulation:
    """A campaign that goes on as far as it is told, from its first event."""

    def __init__(self, file: CampaignFile, name: str = "lr", code: str = "c0de") -> None:
        self.file, self.name = file, name
        self.state: CampaignState = fold(())
        self._jobs = 0
        self.begin(file, code)

    def begin(self, file: CampaignFile, code: str) -> None:
        """A new revision of the file, or of what it runs."""
        self.file = file
        codes = {stage.name: code for stage in file.stages}
        self.happen(RevisionBegun(self.state.revision + 1, "f" * 64, "campaign: 1", codes))

    def happen(self, *events: CampaignEvent) -> None:
        """These events are added."""
        stamped = (
            Stamped(number, START + timedelta(seconds=number), event)
            for number, event in enumerate(events, self.state.events + 1)
        )
        self.state = fold(stamped, self.state)

    def design(self, number: int) -> tuple[Trial, ...]:
        """The next wave of a round, which is written down."""
        trials = next_trials(self.file, self.name, number, self.state)
        if trials:
            said = self.file.rounds[number].hypothesis
            self.happen(RoundDesigned(number, self.state.revision, said, trials))
        return trials

    def run(self, trials: Iterable[Trial], measure: Measure) -> None:
        """Each runs and ends as `measure` says, but for those that reuse a result."""
        for trial in trials:
            if trial.reuses is None:
                self._jobs += 1
                key = f"key-{self._jobs}"
                self.happen(BatchIntended(key, (trial.id,), "x.sh", "0" * 64), BatchSent(key, self._jobs))
                self.happen(TrialEnded(trial.id, measure(trial)))

    def round(self, number: int, measure: Measure) -> list[Trial]:
        """All waves of a round."""
        trials: list[Trial] = []
        while wave := self.design(number):
            trials += wave
            self.run(wave, measure)
        return trials


def by_loss(function: Callable[[Trial], float]) -> Measure:
    """Runs that end with this loss."""
    return lambda trial: passes(loss=function(trial))


def noisy(seed: int, share: float) -> Callable[[], float]:
    """Factors around 1 with this spread."""
    chance = random.Random(seed)  # noqa: S311 - noise, and no secret
    return lambda: 1.0 + share * chance.gauss(0.0, 1.0)


# --- How runs differ by chance: factors around 1, of a spread of `share` ----------------------------------------------


def normal(chance: random.Random, share: float) -> float:
    """Deviations as those of a normal distribution."""
    return 1.0 + share * chance.gauss(0.0, 1.0)


def lognormal(chance: random.Random, share: float) -> float:
    """Ratios of which the logarithm is normal, as times often are."""
    return math.exp(share * chance.gauss(0.0, 1.0))


def heavy_tailed(chance: random.Random, share: float) -> float:
    """Ratios of which some lie far out: the logarithm is Student's t with 5 degrees of freedom, of that spread."""
    return math.exp(share * chance.gauss(0.0, 1.0) * math.sqrt(3 / (2 * chance.gammavariate(2.5, 1.0))))
