"""What choose_backend answers. Durations are seconds; hours are of GPUs or CPUs."""

from __future__ import annotations

from datetime import date
from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.shapes import Reply, Shape, no_items


class QuantilesShown(Shape):
    """Seconds; `basis`: how many jobs they rest on, 0 where they were given or written down."""

    median: int
    p95: int | None = None
    basis: int = 0
    source: str = ""


class CostShown(Shape):
    """What all jobs take together. `amount` None: no price is known; 0: free. `priced_on`: when somebody looked."""

    amount: float | None = None
    currency: str | None = None
    gpu_hours: float | None = None
    cpu_hours: float | None = None
    priced_on: date | None = None


class ExpectedShown(Shape):
    """How long it waits and runs, and what it costs; None: not known."""

    wait: QuantilesShown | None = None
    run: QuantilesShown | None = None
    cost: CostShown | None = None


class AlternativeShown(Shape):
    """Another place, and why it was not chosen."""

    backend: str
    partition: str | None = None
    why_not: str
    expected: ExpectedShown | None = None


class NextCall(Shape):
    """The call to make; `then`: what a person or the caller does with it."""

    tool: str
    arguments: dict[str, object] = Field(default_factory=dict)
    then: str | None = None


class ChooseReply(Reply):
    """The answer of the first of seven questions that matches, with its figures."""

    written_by_others: ClassVar[tuple[str, ...]] = ()

    status: Literal["chosen", "ask_person", "none_fits"]
    question: Literal[1, 2, 3, 4, 5, 6, 7]
    backend: str | None = None
    partition: str | None = None
    stage: Literal["smoke", "pilot", "production"] | None = None
    reasons: list[str] = Field(default_factory=no_items)
    expected: ExpectedShown | None = None
    alternatives: list[AlternativeShown] = Field(default_factory=no_items)
    alternatives_not_shown: int = 0
    question_for_person: str | None = None
    fallback: str | None = None
    contradictions: list[str] = Field(default_factory=no_items)
    next: NextCall | None = None
