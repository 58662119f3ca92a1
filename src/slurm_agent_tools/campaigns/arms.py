"""The configurations of a campaign with all that their runs showed: what tables, plots and reports are made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from slurm_agent_tools.campaigns.state import CampaignState, TrialState, trial_value
from slurm_agent_tools.models.campaign import Setting, TrialId
from slurm_agent_tools.models.campaign_file import CampaignFile


@dataclass(frozen=True, slots=True)
class Arm:
    """One configuration of a stage at one length. `passed`: its runs that count; `failed`: those that did not pass.

    Of what the stage runs now there may be none: then those of before count.
    """

    stage: str
    arm: str
    settings: Mapping[str, Setting]
    purpose: str
    passed: tuple[TrialState, ...]
    failed: tuple[TrialState, ...]
    values: tuple[float, ...]

    @property
    def value(self) -> float | None:
        """The median of what counts; None where no run passed."""
        return median(self.values) if self.values else None


def retry_seconds(state: CampaignState, trial: TrialState) -> float:
    """Seconds in the queue and in failed runs that this trial mends, those that were measured."""
    before = (one.end for one in state.chain(trial.trial.id)[1:])
    return sum((end.queue_seconds or 0.0) + (end.run_seconds or 0.0) for end in before if end is not None)


def arms(file: CampaignFile, state: CampaignState, stage: str) -> list[Arm]:
    """Each configuration of a stage, the best first; those without a value last. Smoke runs are none."""
    grouped: dict[tuple[object, ...], list[TrialState]] = {}
    for trial in state.trials.values():
        if trial.trial.stage == stage and trial.trial.purpose != "smoke" and trial.end is not None:
            grouped.setdefault(_same(trial), []).append(trial)
    found = [_arm(file, state, runs) for runs in grouped.values()]
    worst = float("inf")
    sign = -1 if file.objective.maximize else 1
    return sorted(found, key=lambda arm: worst if arm.value is None else sign * arm.value)


def _same(trial: TrialState) -> tuple[object, ...]:
    return tuple(sorted((name, str(value)) for name, value in trial.trial.settings.items()))


def _arm(file: CampaignFile, state: CampaignState, runs: Sequence[TrialState]) -> Arm:
    first = runs[0].trial
    every = tuple(run for run in runs if run.passed)
    good = tuple(run for run in every if not state.changed_code(run.trial.id)) or every
    values = (trial_value(file, state, run.trial.id) for run in good)
    return Arm(
        stage=first.stage,
        arm=first.arm,
        settings=first.settings,
        purpose=first.purpose,
        passed=good,
        failed=tuple(run for run in runs if run.failed),
        values=tuple(value for value in values if value is not None),
    )


def chosen(state: CampaignState, stage: str, found: Sequence[Arm]) -> Arm | None:
    """The configuration that the last judged round goes on with, else the best that has a value."""
    for place in sorted(state.judged, reverse=True):
        best = state.judged[place].best.get(stage)
        match = next((arm for arm in found if arm.arm == best and arm.value is not None), None)
        if match is not None:
            return match
    return next((arm for arm in found if arm.value is not None), None)


def varied(found: Iterable[Arm]) -> list[str]:
    """The settings that differ between configurations."""
    return differing(arm.settings for arm in found)


def differing(settings: Iterable[Mapping[str, Setting]]) -> list[str]:
    """The names whose values differ, in the order in which they are met."""
    values: dict[str, set[str]] = {}
    for one in settings:
        for name, value in one.items():
            values.setdefault(name, set()).add(str(value))
    return [name for name, seen in values.items() if len(seen) > 1]


def in_words(settings: Mapping[str, Setting], names: Sequence[str]) -> str:
    """`name=value` of these settings; of none that it is the only configuration."""
    return ", ".join(f"{name}={settings[name]}" for name in names if name in settings) or "as the file states"


def job_ids(trials: Iterable[TrialState]) -> str:
    """The ids of their jobs, arrays once: `12, 14_[1-3]`, for a table."""
    tasks: dict[str, list[str]] = {}
    for trial in trials:
        if trial.job_id is not None:
            base, _, task = trial.job_id.partition("_")
            tasks.setdefault(base, []).append(task)
    return ", ".join(base if not any(parts) else f"{base}_[{_runs(parts)}]" for base, parts in tasks.items())


def _runs(parts: Iterable[str]) -> str:
    """Numbers as ranges: 1-3,5."""
    numbers = sorted({int(part) for part in parts if part.isdecimal()})
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def full_name(name: str, trial: TrialId) -> str:
    """NAME/rROUND/tNUMBER."""
    return f"{name}/r{trial.round}/t{trial.number}"
