"""One finding: what is done badly, by whom, what it costs, and the change that a person may make."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from slurm_agent_tools.text import sanitize

Level = Literal["high", "medium", "low"]

HIGH, MEDIUM, LEAST = 0.05, 0.01, 0.001
"""Shares of what the cluster had, in core or GPU hours. A twentieth is worth a change of the configuration; a hundredth
is more than what a run of bad luck costs in a week; what is below a thousandth is not told at all."""

PATIENCE = 3600.0
"""Seconds. Who has waited less is not asked why: a wait under an hour is what a well used cluster has."""

_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class FindingCost:
    """What it cost in the time that was looked at. None: it does not cost this, or that is not known."""

    core_hours: float | None = None
    gpu_hours: float | None = None
    waiting_hours: float | None = None


@dataclass(frozen=True, slots=True)
class ClusterFinding:
    """`id`: the kind of finding. `share`: 0..1 of what `level` goes by. `evidence`: figures by what they are.

    `for_users`: lines of a script; `for_administrators`: parameters, never applied by themselves, with their `risk`.
    """

    id: str
    level: Level
    title: str
    share: float
    cost: FindingCost
    evidence: Mapping[str, float | int | str] = field(default_factory=dict)
    who: tuple[str, ...] = ()
    for_users: tuple[str, ...] = ()
    for_administrators: tuple[str, ...] = ()
    risk: str | None = None


def level_of(share: float, high: float = HIGH, medium: float = MEDIUM) -> Level:
    """The level of a share of what there was."""
    return "high" if share >= high else "medium" if share >= medium else "low"


def shown_name(text: str) -> str:
    """A name of a job or user as part of a sentence: one line, visible, not long."""
    return sanitize.bounded(sanitize.mask(sanitize.line(text)), longest=_LONGEST_NAME) or "(no name)"


def script_of(name: str) -> str:
    """What jobs of one script are called: numbers differ from run to run."""
    return re.sub(r"\d+", "#", name)


def rounded(value: float) -> float:
    """A figure as it is told: three digits are more than such an estimate holds."""
    return round(value, 1) if abs(value) >= 1 else round(value, 3)


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first few names as part of a sentence."""
    told = [shown_name(name) for name in names[:most]]
    return ", ".join(told) + (f" and {len(names) - most} more" if len(names) > most else "")
