"""What the runs of each configuration came to, those of one length beside each other. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.campaigns.state import CampaignState, TrialState, trial_value
from slurm_agent_tools.campaigns.trial_identity import arm_of, defaults, identity_of, lengths
from slurm_agent_tools.models.campaign import Setting, TrialId, TrialPurpose
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage

Lengths = tuple[tuple[str, Setting], ...]
"""How much a run does: its parameters that are lengths, by name."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One configuration of a stage at one length. `passed`: its runs that count; `failed`: those that did not pass.

    Each run is there once, however often its result counts again. `values`: what counts, of the runs that told it, in
    order. `purpose`: that of the first run.
    """

    stage: str
    arm: str
    settings: Mapping[str, Setting]
    purpose: TrialPurpose
    values: tuple[float, ...]
    passed: tuple[TrialState, ...]
    failed: tuple[TrialState, ...] = ()
    rounds: frozenset[int] = frozenset()
    """Rounds that have it, also those in which a result of before counts again."""

    @property
    def median(self) -> float:
        """The median of what counts, where any run told it."""
        return statistics.median(self.values)

    @property
    def value(self) -> float | None:
        """The same; None where no run told it."""
        return self.median if self.values else None


def length_of(stage: CampaignStage, settings: Mapping[str, Setting]) -> Lengths:
    """How much a run with these settings does."""
    return tuple(sorted(lengths(stage, settings).items()))


def arms_at(
    file: CampaignFile,
    state: CampaignState,
    stage: CampaignStage,
    length: Lengths,
    *,
    only: frozenset[TrialId] = frozenset(),
) -> dict[str, Arm]:
    """The configurations of a stage with a run of this length that passed, by their arm, in order.

    Runs of other code than the present one do not count; but for the trials in `only`, what a round sent itself, where
    a configuration has no other.
    """
    present: dict[str, list[tuple[TrialState, float]]] = {}
    former: dict[str, list[tuple[TrialState, float]]] = {}
    for found in passed(state, stage.name):
        of_now = length_of(stage, found.trial.settings) == length and _of_now(stage, found, state)
        if not of_now and (found.trial.id not in only or length_of(stage, found.trial.settings) != length):
            continue
        value = trial_value(file, state, found.trial.id)
        if value is not None and math.isfinite(value):
            (present if of_now else former).setdefault(found.trial.arm, []).append((found, value))
    return {arm: _of_runs(listed) for arm, listed in {**former, **present}.items()}


def _of_runs(listed: Sequence[tuple[TrialState, float]]) -> Arm:
    runs, values = zip(*listed, strict=True)
    last = runs[-1].trial
    rounds = frozenset(run.trial.id.round for run in runs)
    return Arm(last.stage, last.arm, last.settings, runs[0].trial.purpose, values, runs, rounds=rounds)


def passed(state: CampaignState, stage: str) -> Iterable[TrialState]:
    """The runs of a stage that passed, each once, however often its result is reused."""
    for found in state.trials.values():
        if found.trial.stage == stage and found.passed and found.trial.reuses is None:
            yield found


def ranked(file: CampaignFile, arms: Iterable[Arm]) -> list[Arm]:
    """The best first, by the median; of equals the one that ran first."""
    return sorted(arms, key=lambda arm: -arm.median if file.objective.maximize else arm.median)


def baseline_settings(state: CampaignState, stage: CampaignStage) -> dict[str, Setting]:
    """The default of every parameter; as they were mended where they cannot run as they are."""
    settings = defaults(stage)
    seen: set[str] = set()
    while (arm := arm_of(stage, settings)) not in seen:
        seen.add(arm)
        mended = _mended(state, stage.name, arm)
        if mended is None:
            break
        settings = {**mended.trial.settings, **lengths(stage, settings)}
    return settings


def best_settings(state: CampaignState, stage: CampaignStage, before: int) -> dict[str, Setting]:
    """The settings to go on with, as the last round before this one found them; the baseline's where none did."""
    for number in sorted((number for number in state.judged if number < before), reverse=True):
        arm = state.judged[number].best.get(stage.name)
        runs = state.finished(stage.name, arm) if arm is not None else []
        if runs:
            return {**runs[-1].trial.settings, **lengths(stage, defaults(stage))}
    return baseline_settings(state, stage)


def _mended(state: CampaignState, stage: str, arm: str) -> TrialState | None:
    """The run that passed in place of one of an arm that never did; None where it did, or nothing mended it."""
    if state.finished(stage, arm):
        return None
    for found in state.trials.values():
        replaced = found.trial.replaces
        if replaced is None or found.trial.stage != stage or not found.passed:
            continue
        if any(before.trial.arm == arm for before in state.chain(replaced)):
            return found
    return None


def _of_now(stage: CampaignStage, found: TrialState, state: CampaignState) -> bool:
    trial = found.trial
    return trial.identity == identity_of(stage, trial.settings, trial.repeat, state.code.get(stage.name, ""))
