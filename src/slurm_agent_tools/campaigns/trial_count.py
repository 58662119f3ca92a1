"""How many trials the rounds of a file have at least, the baseline's runs among them. Pure.

And how many at most, and what the heaviest of them asks for: what a plan may promise before anything has run.
"""

from __future__ import annotations

from collections.abc import Mapping

from slurm_agent_tools.campaigns.campaign_budget import cpu_seconds, gpu_seconds
from slurm_agent_tools.campaigns.design import baseline_runs, concerned, rungs
from slurm_agent_tools.campaigns.search_space import Dimension, combinations
from slurm_agent_tools.campaigns.trial_identity import defaults, request_of, varies
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


def most_trials(file: CampaignFile, number: int) -> dict[str, int]:
    """Stage -> as many trials as the round `number` has at most, where nothing fails.

    None of its configurations is taken as the baseline, nor as one that a round before had: that is known only then.
    """
    this = file.rounds[number]
    found = {}
    for stage in concerned(file, this):
        if isinstance(this, SmokeRound):
            found[stage.name] = this.repeats
            continue
        sizes = _sizes(this, stage)
        found[stage.name] = this.repeats * sum(sizes) + baseline_runs(this.repeats, sizes[-1])
    return found


def heaviest(file: CampaignFile, stage: CampaignStage) -> tuple[int, int]:
    """CPU and GPU seconds that one run of a stage asks for at most, whichever of the varied resources it gets.

    A later round goes on with the resources that an earlier one found to be the best, so those of all rounds count.
    """
    most = {name: max(values) for name in ("cpus", "gpus") if (values := _amounts(file, stage, name))}
    nodes = [{"nodes": count} for count in _amounts(file, stage, "nodes")] or [{}]
    usual = request_of(stage, {})
    asked = [usual, *(request_of(stage, {**more, **on}) for more in ({}, most) for on in nodes)]
    return max(map(cpu_seconds, asked)), max(map(gpu_seconds, asked))


def _amounts(file: CampaignFile, stage: CampaignStage, resource: str) -> list[int]:
    """What any round may ask for of a resource, and what the stage asks for by itself; () where no round varies it."""
    if resource in stage.parameters:  # then it is no resource
        return []
    found: set[int] = set()
    for this in file.rounds:
        if isinstance(this, ListRound):
            found.update(int(row[resource]) for row in this.trials if resource in varies(stage, row))
        elif not isinstance(this, SmokeRound | ScaleUpRound) and resource in varies(stage, this.vary):
            has = this.vary[resource]
            found.update(range(int(has.low), int(has.high) + 1) if isinstance(has, Range) else map(int, has))
    usual = getattr(stage.resources, resource)
    return sorted(found | {usual}) if found and usual else sorted(found)


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
