"""How much to spare the controller, from the time of its own last answers. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from slurm_agent_tools.slurm.commands.sdiag import ControllerStatistics

KEPT = 6
"""Answers that count."""

MOST = 6
"""The largest factor: looks that are due every 10 seconds come once a minute."""

_BASE, _RATE = 1.0, 2e6

_SMALL = 100_000

_ENOUGH = 2


@dataclass(frozen=True, slots=True)
class ControllerAnswer:
    """One answer of the controller: seconds, bytes, and whether it came at all."""

    seconds: float
    size: int
    came: bool = True

    @property
    def ratio(self) -> float:
        """Its time over the time that an answer of its size may take: a second, and one for every two megabytes."""
        return self.seconds / (_BASE + self.size / _RATE)

    @property
    def slow(self) -> bool:
        """True for an answer that took longer than it may, or never came."""
        return self.ratio > 1 or not self.came


@dataclass(frozen=True, slots=True)
class LoadVerdict:
    """What the answers show. `factor` multiplies pauses and ages; `seconds` is what a slow answer took."""

    kind: Literal["calm", "loaded", "limited"]
    factor: int
    seconds: float = 0.0


CALM = LoadVerdict("calm", 1)


def judge_load(answers: Sequence[ControllerAnswer], diagnosis: ControllerStatistics | None) -> LoadVerdict:
    """Calm, loaded, or limited: a controller that is not busy but lets small answers wait for seconds.

    That is what a caller sees of rl_enable (slurm.conf(5)): its commands wait, none fails (measured on 24.11).
    """
    slow = [answer for answer in answers[-KEPT:] if answer.slow]
    busy = diagnosis is not None and diagnosis.busy
    if len(slow) < _ENOUGH and not (slow and busy):
        return CALM
    ratio = median(answer.ratio for answer in slow)
    factor = min(MOST, max(2, math.ceil(ratio)))
    small = [answer for answer in slow if answer.came and answer.size < _SMALL]
    limited = not busy and len(small) >= _ENOUGH
    return LoadVerdict("limited" if limited else "loaded", factor, round(median(answer.seconds for answer in slow), 1))
