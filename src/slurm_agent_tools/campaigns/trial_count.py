"""How many trials the rounds of a file have at least, the baseline's runs among them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from slurm_agent_tools.campaigns.design import baseline_runs, concerned, rungs
from slurm_agent_tools.campaigns.search_space import Dimension, combinations
from slurm_agent_tools.campaigns.trial_identity import defaults, varies
from slurm_agent_tools.models.campaign import Setting
from slurm_agent_tools.models.campaign_file import (
    CampaignFile,
    CampaignStage,
    HalvingRound,
    ListRound,
    Range,
    Round,
    ScaleUpRound,
    SmokeRound,
)


def least_trials(file: CampaignFile, *, further: bool = True) -> tuple[int, ...]:
    """As many trials as each round has at least, with all stages and repeats, where nothing fails or was run before.

    The baseline has more runs than what is compared with it (`design.baseline_runs`): those that a round before had are
    not run again. Where a configuration may be the baseline it is taken as that. Without `further` runs of the baseline
    it is what the file names: where a limit cuts a round short, the baseline's further runs are left out first.
    """
    had: dict[str, int] = {}
    found = []
    for this in file.rounds:
        total = 0
        for stage in concerned(file, this):
            if isinstance(this, SmokeRound):
                total += this.repeats
                continue
            *shorter, last = _sizes(this, stage)
            named = _may_hold_baseline(this, stage)
            runs = baseline_runs(this.repeats, last - named) if further else this.repeats * named
            total += this.repeats * (sum(shorter) + last - named) + max(0, runs - had.get(stage.name, 0))
            had[stage.name] = max(runs, had.get(stage.name, 0))
        found.append(total)
    return tuple(found)


def _sizes(this: Round, stage: CampaignStage) -> list[int]:
    """The configurations of a round, of halving those of each rung."""
    if isinstance(this, ScaleUpRound):
        return [this.best]
    if isinstance(this, ListRound):
        return [len({tuple(sorted(_own(stage, row).items(), key=str)) for row in this.trials if _own(stage, row)})]
    space: dict[str, Dimension] = {name: this.vary[name] for name in varies(stage, this.vary)}  # type: ignore[union-attr]
    most = combinations(space)
    if isinstance(this, HalvingRound):
        return [count if most is None else min(count, most) for _, count in rungs(this, stage)]
    asked = getattr(this, "trials", None)
    return [min(count for count in (asked, most) if count is not None)]


def _own(stage: CampaignStage, row: Mapping[str, Setting]) -> dict[str, Setting]:
    return {name: row[name] for name in varies(stage, row)}


def _may_hold_baseline(this: Round, stage: CampaignStage) -> bool:
    """Whether one of the configurations may have the default of everything: the value of a resource is not known."""
    if isinstance(this, ScaleUpRound):
        return True
    usual = defaults(stage)
    if isinstance(this, ListRound):
        rows = (_own(stage, row) for row in this.trials)
        return any(all(usual.get(name, value) == value for name, value in row.items()) for row in rows if row)
    varied = this.vary.items() if not isinstance(this, SmokeRound) else ()
    return all(_may_be(dimension, usual[name]) for name, dimension in varied if name in usual)


def _may_be(dimension: Dimension, value: Setting) -> bool:
    if not isinstance(dimension, Range):
        return value in dimension
    return isinstance(value, int | float) and dimension.low <= value <= dimension.high
