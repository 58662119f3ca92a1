"""What a job should ask for, and the figures that it rests on. Bytes, seconds, CPUs; None means not known."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_agent_tools.models.job_resources import Resources


@dataclass(frozen=True, slots=True)
class SizingFigure:
    """One quantity: asked, used at the 95th percentile and at most, the limit that killed, what to ask for.

    `needed` is what is recommended before it is rounded.
    """

    runs: int = 1
    requested: int | None = None
    used: float | None = None
    most: float | None = None
    failed: int | None = None
    over_percent: int | None = None
    needed: float | None = None
    recommended: int | None = None


@dataclass(frozen=True, slots=True)
class JobSizing:
    """The sizing of one job from its runs.

    `basis`: completed runs that it rests on; `recommended`: the request with the numbers that are known better.
    """

    basis: int
    enough: bool
    memory: SizingFigure
    time: SizingFigure
    cpus: SizingFigure
    summary: str
    warnings: tuple[str, ...] = ()
    recommended: Resources | None = None
