"""The shortest time of a pipeline whose speed follows hidden laws: found in four rounds, within a tenth."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from typing import Any

import pytest
from tests.unit.campaigns.simulated import Simulation, campaign

from slurm_agent_tools.campaigns.rules.judge import judge_round
from slurm_agent_tools.models.campaign import Trial, TrialEnd

CPUS = [1, 2, 4, 8, 16]

CHUNKS = [4, 16, 64, 256, 1024]

MEMORY = ["1G", "2G", "4G", "8G"]


@dataclass(frozen=True)
class Law:
    """Amdahl's law with a wait that grows with what is asked for, and a chunk that is neither too small nor too large."""

    work: float
    serial: float
    chunk: float
    wait: float
    needs: int

    def seconds(self, cpus: int, chunk: int, memory: int) -> float:
        run = self.work * (self.serial + (1 - self.serial) / cpus)
        run *= 1 + 0.15 * math.log2(chunk / self.chunk) ** 2
        run *= 1 + 0.5 * max(0.0, math.log2(self.needs / memory))
        return run + self.wait * (cpus + memory)

    @property
    def least(self) -> float:
        """The time of the best configuration of all."""
        return min(
            self.seconds(cpus, chunk, int(memory[:-1]))
            for cpus, chunk, memory in itertools.product(CPUS, CHUNKS, MEMORY)
        )


def laws(seed: int) -> dict[str, Law]:
    chance = random.Random(seed)  # noqa: S311 - a simulation, and no secret
    return {
        name: Law(
            chance.uniform(200, 2000), chance.uniform(0.01, 0.4), 2 ** chance.uniform(2, 10), chance.uniform(0.5, 8),
            chance.choice([1, 2, 4, 8]),
        )
        for name in ("fetch", "prepare", "train")
    }  # fmt: skip


def stage(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "cpu",
        "command": [name],
        "parameters": {"chunk": {"default": 16, "argument": "--chunk"}},
        "resources": {"cpus": 2, "memory": "2G", "time_limit": "2h"},
    }


ROUNDS = [
    {"kind": "smoke"},
    {"kind": "grid", "vary": {"cpus": CPUS, "chunk": CHUNKS}},
    {"kind": "grid", "vary": {"memory": MEMORY, "cpus": CPUS}},
    {"kind": "grid", "vary": {"chunk": CHUNKS}, "repeats": 3},
]


@pytest.mark.parametrize("seed", range(8))
def test_the_chosen_configuration_is_within_a_tenth_of_the_best(seed: int) -> None:
    hidden = laws(seed)
    chance = random.Random(seed)  # noqa: S311 - a simulation, and no secret

    def time_of(trial: Trial) -> float:
        memory = (trial.request.memory_bytes or 0) // 2**30
        return hidden[trial.stage].seconds(trial.request.cpus or 1, int(trial.settings["chunk"]), memory)

    def run(trial: Trial) -> TrialEnd:
        return TrialEnd(
            "1",
            "COMPLETED",
            passed=True,
            queue_seconds=1.0,
            run_seconds=time_of(trial) * (1 + 0.02 * chance.gauss(0, 1)),
        )

    simulation = Simulation(
        campaign(*ROUNDS, stages=[stage(name) for name in hidden], objective={"wall_clock": "the whole data set"})
    )
    for number in range(len(ROUNDS)):
        simulation.round(number, run)
        simulation.happen(judge_round(simulation.file, number, simulation.state))
    best = simulation.state.judged[3].best
    chosen = {
        found.trial.stage: time_of(found.trial)
        for found in simulation.state.trials.values()
        if best.get(found.trial.stage) == found.trial.arm
    }
    least = sum(law.least for law in hidden.values())
    assert sum(chosen.values()) <= 1.1 * least, f"{sum(chosen.values()):.0f} s, the best has {least:.0f} s"
