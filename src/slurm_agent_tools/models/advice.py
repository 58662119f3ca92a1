"""What is known before a job is submitted: how long its like waited and ran, and what they used."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from slurm_agent_tools.models.shapes import ResourcesShown, Shape, WaitMeasured


class ExpectedWait(Shape):
    """Slurm's own estimate beside what jobs of this shape waited here lately. Seconds; None: not known, see `note`."""

    from_slurm_seconds: int | None = None
    from_history_seconds: WaitMeasured | None = None
    jobs: int = 0
    note: str | None = None


class SizeFigure(Shape):
    """One quantity of a request beside its use: bytes, seconds or CPUs. `used` is the 95th percentile of `runs`."""

    requested: int | None = None
    used: float | None = None
    most_used: float | None = None
    over_request_percent: int | None = None
    recommended: int | None = None
    runs: int = 0


class Sizing(Shape):
    """What earlier runs of this job's name or script used, and what to ask for. A warning blocks nothing."""

    runs: int
    summary: str
    memory: SizeFigure
    time: SizeFigure
    cpus: SizeFigure
    recommended: ResourcesShown | None = None
    warnings: list[str] = Field(default_factory=list)


class Budget(Shape):
    """Whether the result is there in time: wait plus run against the budget, in seconds. `fits` None: not known.

    False means that it may be late: where a run's length is not known from earlier ones, its time limit counts.
    """

    fits: bool | None
    budget_seconds: int
    wait_seconds: int | None
    run_seconds: int | None
    why: str


class Advised(Shape):
    """What goes into an answer of submit_job beside the decision."""

    estimated_start: datetime | None = None
    expected_wait: ExpectedWait | None = None
    sizing: Sizing | None = None
    budget: Budget | None = None
    awaits: str | None = None  # what has to happen before it can start, as a sentence

    @property
    def fields(self) -> dict[str, object]:
        """Those that stand in an answer."""
        return {name: value for name, value in self if name != "awaits"}

    @property
    def hint(self) -> str:
        """What belongs into a summary; empty where nothing does."""
        found = []
        if self.budget is not None and self.budget.fits is False:
            found.append(self.budget.why)
        if self.sizing is not None and self.sizing.warnings:
            first, more = self.sizing.warnings[0], len(self.sizing.warnings) - 1
            found.append(f"Sizing: {first}" + (f" {more} more in `sizing`." if more else ""))
        return "".join(f" {text}" for text in found)
