"""What a campaign's runs ask for and took, in hours: whether one more fits below the file's limits. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from slurm_agent_tools.models.campaign import Trial, TrialEnd, TrialRequest
from slurm_agent_tools.models.campaign_file import CampaignLimits

_HOUR = 3600

Spendable = Literal["trials", "cpu_hours", "gpu_hours"]


@dataclass(frozen=True, slots=True)
class CampaignSpending:
    """What is spent: hours that ended runs took, core and GPU seconds that the others asked for, runs sent so far.

    A run that the guard refused counts as the others do while a person may let it through after all.
    """

    trials: int = 0
    cpu_seconds_asked: int = 0
    gpu_seconds_asked: int = 0
    cpu_hours_taken: float = 0.0
    gpu_hours_taken: float = 0.0

    @property
    def cpu_hours(self) -> float:
        """CPU hours: asked for until a run has ended, then those that it took."""
        return self.cpu_hours_taken + self.cpu_seconds_asked / _HOUR

    @property
    def gpu_hours(self) -> float:
        """GPU hours, counted alike."""
        return self.gpu_hours_taken + self.gpu_seconds_asked / _HOUR

    def sent(self, request: TrialRequest) -> CampaignSpending:
        """With one more run that was sent, or is about to be."""
        return CampaignSpending(
            self.trials + 1,
            self.cpu_seconds_asked + cpu_seconds(request),
            self.gpu_seconds_asked + gpu_seconds(request),
            self.cpu_hours_taken,
            self.gpu_hours_taken,
        )

    def withdrawn(self, request: TrialRequest) -> CampaignSpending:
        """Without a run that was never sent after all."""
        return CampaignSpending(
            self.trials - 1,
            self.cpu_seconds_asked - cpu_seconds(request),
            self.gpu_seconds_asked - gpu_seconds(request),
            self.cpu_hours_taken,
            self.gpu_hours_taken,
        )

    def ended(self, request: TrialRequest, end: TrialEnd) -> CampaignSpending:
        """With the end of a run: where nobody measured what it took, what it asked for stays counted."""
        cpu_known, gpu_known = end.cpu_hours is not None, end.gpu_hours is not None
        return CampaignSpending(
            self.trials,
            self.cpu_seconds_asked - (cpu_seconds(request) if cpu_known else 0),
            self.gpu_seconds_asked - (gpu_seconds(request) if gpu_known else 0),
            self.cpu_hours_taken + (end.cpu_hours or 0.0),
            self.gpu_hours_taken + (end.gpu_hours or 0.0),
        )

    def beyond(self, limits: CampaignLimits) -> Spendable | None:
        """Which limit this passes, if any."""
        if self.trials > limits.trials:
            return "trials"
        if limits.gpu_hours is not None and self.gpu_hours > limits.gpu_hours:
            return "gpu_hours"
        if limits.cpu_hours is not None and self.cpu_hours > limits.cpu_hours:
            return "cpu_hours"
        return None


def cpu_seconds(request: TrialRequest) -> int:
    """CPU seconds that a run asks for: as many CPUs on each node. Where none are named Slurm gives one to each node."""
    return _each(request.cpus or 1, request) * request.time_limit_seconds


def gpu_seconds(request: TrialRequest) -> int:
    """GPU seconds that a run asks for: as many GPUs on each node."""
    return (_each(request.gpus, request) if request.gpus else 0) * request.time_limit_seconds


def _each(count: int, request: TrialRequest) -> int:
    nodes = request.nodes or 1
    return math.ceil(count / nodes) * nodes


def affordable(
    trials: Iterable[Trial], spent: CampaignSpending, limits: CampaignLimits, *, most: int | None = None
) -> tuple[list[Trial], Spendable | None]:
    """Those of the trials that fit below the limits, in order, `most` at most; and which limit another would pass."""
    fit: list[Trial] = []
    why: Spendable | None = None
    for trial in trials:
        if len(fit) == most:
            break
        after = spent.sent(trial.request)
        passed = after.beyond(limits)
        if passed is None:
            fit.append(trial)
            spent = after
        else:
            why = why or passed
    return fit, why
