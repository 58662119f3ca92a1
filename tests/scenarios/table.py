"""The list of scenarios: each drives one Slurm through a bench and gives what it observed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.scenarios.bench import Bench, Seen

Work = Callable[[Bench], Awaitable[Seen]]


@dataclass(frozen=True)
class Scenario:
    """`alone`: what no other scenario may use meanwhile. `seconds`: about how long it takes on a real Slurm."""

    name: str
    run: Work
    alone: str = ""
    seconds: float = 5


SCENARIOS: list[Scenario] = []


def scenario(*, alone: str = "", seconds: float = 5) -> Callable[[Work], Work]:
    """Add a function to the list under its own name."""

    def add(work: Work) -> Work:
        SCENARIOS.append(Scenario(work.__name__, work, alone, seconds))
        return work

    return add
