"""What was found in a round: for each configuration promote, fix, stop or keep, the figures, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from slurm_agent_tools.campaigns.design import chance_share, superseded
from slurm_agent_tools.campaigns.measured import Arm, Lengths, arms_at, baseline_settings, length_of, ranked
from slurm_agent_tools.campaigns.state import CampaignState, TrialState
from slurm_agent_tools.campaigns.trial_identity import arm_of
from slurm_agent_tools.insights.intervals import Gain, gains, surpasses
from slurm_agent_tools.models.campaign import ArmOutcome, ArmVerdict, RoundJudged
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage, HalvingRound, SmokeRound
from slurm_agent_tools.units import format_duration

_WORDS = "node-failure preempted node-unavailable cancelled no-record storage-fault license"
NOT_ITS_DOING = frozenset(_WORDS.split())
"""Categories that say nothing of a configuration."""


def judge_round(file: CampaignFile, number: int, state: CampaignState) -> RoundJudged:
    """The verdicts of a round, counted from 0, whose trials are all settled; each stage by itself."""
    stages = [_StageRound(file, number, state, stage) for stage in file.stages]
    judged = [stage for stage in stages if stage.own]
    verdicts = {stage.stage.name: stage.verdicts for stage in judged}
    compared = len({verdict.stage for listed in verdicts.values() for verdict in listed if verdict.low is not None})
    best = {stage.stage.name: stage.best for stage in judged}
    return RoundJudged(
        number,
        tuple(verdict for listed in verdicts.values() for verdict in listed),
        {name: arm for name, arm in best.items() if arm is not None},
        " ".join(_told(judged)) or "Nothing was run.",
        compared * chance_share(file, number, state),
    )


@dataclass(frozen=True)
class _StageRound:
    """One stage in one round."""

    file: CampaignFile
    number: int
    state: CampaignState
    stage: CampaignStage

    @cached_property
    def own(self) -> list[TrialState]:
        """The trials of the round, without those that a later revision designed anew."""
        return [
            found
            for found in self.state.of_round(self.number)
            if found.trial.stage == self.stage.name and not superseded(found, self.state)
        ]

    @cached_property
    def levels(self) -> list[Lengths]:
        """The lengths of the round's runs, in the order in which they came."""
        return list(dict.fromkeys(length_of(self.stage, found.trial.settings) for found in self.own))

    @cached_property
    def arms(self) -> dict[str, Arm]:
        """All configurations of the campaign with runs of the round's last length that count."""
        only = frozenset(found.trial.id for found in self.own)
        return arms_at(self.file, self.state, self.stage, self.levels[-1], only=only)

    @cached_property
    def places(self) -> dict[Lengths, dict[str, int]]:
        """For each length the places of the configurations, from 1 on."""
        only = frozenset(found.trial.id for found in self.own)
        arms = {level: arms_at(self.file, self.state, self.stage, level, only=only) for level in self.levels}
        order = {level: ranked(self.file, found.values()) for level, found in arms.items()}
        return {level: {runs.arm: place for place, runs in enumerate(found, 1)} for level, found in order.items()}

    @cached_property
    def baseline(self) -> str:
        """The arm of the baseline."""
        return arm_of(self.stage, baseline_settings(self.state, self.stage))

    @cached_property
    def gains(self) -> Mapping[str, Gain]:
        """The gains of the arms that several runs tell of, with intervals that hold for all at once."""
        if self.smoke or self.baseline not in self.arms:
            return {}
        others = {arm: runs.values for arm, runs in self.arms.items() if arm != self.baseline}
        return gains(
            self.arms[self.baseline].values,
            others,
            maximize=self.file.objective.maximize,
            share=chance_share(self.file, self.number, self.state),
            seed=self.number,
        )

    @property
    def smoke(self) -> bool:
        """Whether nothing is compared."""
        return isinstance(self.file.rounds[self.number], SmokeRound)

    @cached_property
    def verdicts(self) -> list[ArmVerdict]:
        """One for each configuration of the round, in the order in which they were designed."""
        by_arm: dict[str, list[TrialState]] = {}
        for found in self.own:
            by_arm.setdefault(found.trial.arm, []).append(found)
        return [self._verdict(arm, trials) for arm, trials in by_arm.items()]

    @cached_property
    def best(self) -> str | None:
        """The configuration to go on with: of those that are surely better, else of all, the best by its median.

        A single run takes the place of what an earlier round promoted where chance hardly explains it.
        """
        outcome = {verdict.arm: verdict.verdict for verdict in self.verdicts}
        before = self._incumbent()
        if before is not None:
            outcome.setdefault(*before)
        outcome.setdefault(self.baseline, "keep")
        order = ranked(self.file, [arm for arm in self.arms.values() if outcome.get(arm.arm) in {"promote", "keep"}])
        sure = [arm for arm in order if outcome[arm.arm] == "promote"]
        if not order:
            return self._furthest()
        return order[0].arm if not sure or self._surpassed(sure[0], order) else sure[0].arm

    def _surpassed(self, sure: Arm, order: Sequence[Arm]) -> bool:
        """Whether the first of all, of which there is one run, is better than chance makes the best of its like."""
        single = [arm for arm in order if len(arm.values) == 1]
        if order[0] not in single:
            return False
        return surpasses(sure.values, order[0].median, challengers=len(single), maximize=self.file.objective.maximize)

    def _furthest(self) -> str | None:
        """Where nothing of the last length can be used: what was best before it."""
        only = frozenset(found.trial.id for found in self.own)
        for level in reversed(self.levels[:-1]):
            order = ranked(self.file, arms_at(self.file, self.state, self.stage, level, only=only).values())
            if order:
                return order[0].arm
        passed = [found for found in self.own if found.passed]
        return passed[-1].trial.arm if passed and self.smoke else None

    def _incumbent(self) -> tuple[str, ArmOutcome] | None:
        """What the campaign went on with until now, and the last verdict on it."""
        before = sorted(number for number in self.state.judged if number < self.number)
        arms = [self.state.judged[number].best.get(self.stage.name) for number in before]
        arm = next((arm for arm in reversed(arms) if arm is not None), None)
        if arm is None:
            return None
        said = [
            verdict.verdict
            for number in before
            for verdict in self.state.judged[number].verdicts
            if verdict.arm == arm and verdict.stage == self.stage.name
        ]
        return arm, said[-1] if said else "keep"

    # --- one configuration ---------------------------------------------------------------------------------------

    def _verdict(self, arm: str, trials: Sequence[TrialState]) -> ArmVerdict:
        runs = self.arms.get(arm)
        if runs is None:
            return self._unmeasured(arm, trials)
        failed = [found for found in trials if self._counts_against(found)]
        base = self.arms.get(self.baseline)
        gain = self.gains.get(arm)
        judged = ArmVerdict(self.stage.name, arm, "keep", "", len(runs.values), runs.median)
        if self.smoke:
            return replace(judged, reason="It ran, and told what counts.")
        if base is not None:
            judged = replace(judged, baseline=base.median, gain=_gain(self.file, runs.median, base.median))
        if arm == self.baseline:
            return replace(judged, reason=f"The baseline: {self._spread(runs)}.")
        if len(failed) >= len(runs.values):
            why = f"{_share_of(failed, trials)} of its runs failed ({_categories(failed)})"
            return replace(judged, verdict="fix", reason=f"{why}; {self._spread(runs)}.")
        if gain is None or base is None:
            return replace(judged, reason=self._unsure(runs, base))
        judged = replace(judged, gain=gain.gain, low=gain.low, high=gain.high)
        return self._by_interval(judged, gain, runs, base, failed)

    def _by_interval(
        self, judged: ArmVerdict, gain: Gain, runs: Arm, base: Arm, failed: Sequence[TrialState]
    ) -> ArmVerdict:
        said = (
            f"{_compares(gain.gain)}, a gain between {_signed(gain.low)} and {_signed(gain.high)}"
            f" (95%, for all {len(self.gains)} compared at once); {self._spread(runs)}, baseline {self._spread(base)}"
        )
        if gain.low > 0 and failed:
            return replace(judged, reason=f"{said}. Not promoted, as {len(failed)} failed ({_categories(failed)}).")
        if gain.low > 0:
            return replace(judged, verdict="promote", reason=f"{said}.")
        if gain.high < 0:
            return replace(judged, verdict="stop", reason=f"Surely worse: {said}.")
        return replace(judged, reason=f"No sure difference: {said}.")

    def _unsure(self, runs: Arm, base: Arm | None) -> str:
        if base is None:
            return f"{self._spread(runs)}; the baseline has no run of this length, so nothing is compared."
        gain = _gain(self.file, runs.median, base.median)
        share = "" if gain is None else f"{_compares(gain)} ({self._spread(base)})"
        if len(runs.values) == 1:
            return f"One run, {self._figure(runs.median)}: {share}; one run does not tell how much of it is chance."
        return f"{share}; {self._spread(runs)}: the baseline needs a second run to tell how much of it is chance."

    def _unmeasured(self, arm: str, trials: Sequence[TrialState]) -> ArmVerdict:
        """A configuration without a value at the round's last length."""
        judged = ArmVerdict(self.stage.name, arm, "keep", "", 0)
        failed = [found for found in trials if found.failed]
        if failed:
            return self._failed(judged, failed)
        passed = [found for found in trials if found.passed]
        if not passed:
            why = next((found.why for found in trials if found.why), "nothing was sent")
            return replace(judged, reason=f"Not run: {why}.")
        shorter = self._dropped(passed[-1])
        if shorter is not None:
            return replace(judged, verdict="stop", reason=shorter, runs=len(passed))
        counts = self.file.objective.metric or "queue and run time"
        return replace(judged, runs=len(passed), reason=f"Of {len(passed)} that passed none tells {counts}.")

    def _dropped(self, found: TrialState) -> str | None:
        """Why a configuration of a halving round did not get further."""
        level = length_of(self.stage, found.trial.settings)
        this = self.file.rounds[self.number]
        if not isinstance(this, HalvingRound) or level == self.levels[-1]:
            return None
        order = self.places[level]
        place = order.get(found.trial.arm, len(order))
        return f"Place {place} of {len(order)} with {this.length}={dict(level)[this.length]}: only the best ran longer."

    def _failed(self, judged: ArmVerdict, failed: Sequence[TrialState]) -> ArmVerdict:
        last = failed[-1].trial.id
        mend = self.state.replaced.get(last)
        while mend is not None and mend in self.state.replaced:
            mend = self.state.replaced[mend]
        why = _categories(failed)
        if mend is not None and self.state.trials[mend].passed:
            how = self.state.trials[mend].trial.mended or "another configuration"
            return replace(judged, verdict="fix", reason=f"Failed ({why}); mended as {mend}: {how}.")
        own = [found for found in failed if self._counts_against(found)]
        if not own:
            return replace(judged, verdict="fix", reason=f"Not measured: {why}, which is not its doing.")
        tried = f", also after the file's fix ({mend})" if mend is not None else ""
        again = len(own) >= self.file.limits.same_failure or mend is not None
        stopped = again or self.stage.name in self.state.stopped_stages
        text = f"{len(failed)} of {len(failed)} runs failed: {why}{tried}."
        return replace(judged, verdict="stop" if stopped else "fix", reason=text)

    def _counts_against(self, found: TrialState) -> bool:
        """Whether it failed by its own doing, and was not mended."""
        if not found.failed or (found.end is not None and found.end.category in NOT_ITS_DOING):
            return False
        mend = self.state.replaced.get(found.trial.id)
        return mend is None or not self.state.trials[mend].passed

    # --- in words ------------------------------------------------------------------------------------------------

    def _figure(self, value: float) -> str:
        if self.file.objective.metric is None:
            return format_duration(round(value))
        return f"{self.file.objective.metric} {value:.4g}"

    def _spread(self, runs: Arm) -> str:
        count = len(runs.values)
        if count == 1:
            return f"one run with {self._figure(runs.median)}"
        low, high = min(runs.values), max(runs.values)
        return f"{count} runs with {self._figure(runs.median)} in the middle ({low:.4g} to {high:.4g})"


def _told(stages: Sequence[_StageRound]) -> Iterator[str]:
    """What came of the round, the stages on CPUs and those on GPUs apart."""
    kinds = {stage.stage.kind for stage in stages}
    for kind in ("cpu", "gpu"):
        for stage in stages:
            if stage.stage.kind == kind:
                where = f" ({kind.upper()})" if len(kinds) > 1 else ""
                yield f"{stage.stage.name}{where}: {_stage_told(stage)}"


def _stage_told(stage: _StageRound) -> str:
    counts: dict[str, int] = {}
    for verdict in stage.verdicts:
        if verdict.arm != stage.baseline or stage.smoke:
            counts[verdict.verdict] = counts.get(verdict.verdict, 0) + 1
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or "only the baseline"
    chosen = next((verdict for verdict in stage.verdicts if verdict.arm == stage.best), None)
    if chosen is None:
        rest = "the best of before stays" if stage.best is not None else "nothing of it can be gone on with"
        return f"{said}; {rest}."
    if stage.smoke:
        return "ran." if chosen.verdict == "keep" else f"{said}. {chosen.reason}"
    if chosen.arm == stage.baseline:
        return f"{said}; nothing is better than the baseline."
    return f"{said}; on with {_settings_told(stage, chosen.arm)}: {chosen.reason}"


def _settings_told(stage: _StageRound, arm: str) -> str:
    """What differs from the baseline."""
    base, own = baseline_settings(stage.state, stage.stage), stage.arms[arm].settings if arm in stage.arms else {}
    return ", ".join(f"{name}={value}" for name, value in own.items() if base.get(name) != value) or arm


def _gain(file: CampaignFile, value: float, baseline: float) -> float | None:
    if baseline == 0:
        return None
    return (value - baseline if file.objective.maximize else baseline - value) / abs(baseline)


def _compares(by: float) -> str:
    return f"{_signed(abs(by))[1:]} {'worse' if by < 0 else 'better'} than the baseline" if by else "like the baseline"


def _signed(share: float) -> str:
    return f"{100 * share:+.{1 if abs(share) < 0.1 else 0}f}%"


def _share_of(failed: Sequence[TrialState], trials: Sequence[TrialState]) -> str:
    return f"{len(failed)} of {sum(found.end is not None for found in trials)}"


def _categories(failed: Sequence[TrialState]) -> str:
    named = [(found.end.category or found.end.problem or found.end.state) for found in failed if found.end is not None]
    return ", ".join(dict.fromkeys(named))


# --- Whether the campaign has its answer ------------------------------------------------------------------------------


def finished_early(file: CampaignFile, state: CampaignState) -> str | None:
    """Why the campaign may end before its rounds are over: its target is reached, or rounds gain too little."""
    return _target_reached(file, state) or _plateau(file, state)


def _target_reached(file: CampaignFile, state: CampaignState) -> str | None:
    target = file.objective.target
    latest = _latest(state, max(state.judged, default=-1), file)
    values = {stage: verdict.value for stage, verdict in latest.items() if verdict.value is not None}
    if target is None or not values:
        return None
    if file.objective.metric is None:
        if len(values) < len(file.stages):
            return None
        total = sum(values.values())
        return f"target reached: {total:.0f} s of at most {target:.0f} s" if total <= target else None
    best = max(values.values()) if file.objective.maximize else min(values.values())
    reached = best >= target if file.objective.maximize else best <= target
    return f"target reached: {file.objective.metric} {best:.4g}, {target:.4g} was wanted" if reached else None


def _plateau(file: CampaignFile, state: CampaignState) -> str | None:
    plateau = file.stop.plateau
    rounds = _compared(file, state)
    if plateau is None or len(rounds) < plateau.rounds:
        return None
    best, steps = 0.0, []
    for number in rounds:
        latest = _latest(state, number, file)
        total = _total_gain(file, latest)
        below = any((one.baseline or 0.0) < 0 for one in latest.values())
        steps.append(None if total is None else _step(best, total, maximize=file.objective.maximize, below=below))
        best = max(best, total or 0.0)
    last = steps[-plateau.rounds :]
    if any(step is None or step >= plateau.gain_below for step in last):
        return None
    told = ", ".join(_signed(max(step or 0.0, 0.0)) for step in last)
    return f"plateau: the last {plateau.rounds} rounds gained {told}, each below {100 * plateau.gain_below:g}%"


def _step(best: float, total: float, *, maximize: bool, below: bool) -> float:
    """What a round gained, as a share of the best value before it; `below`: the baseline's value is below 0."""
    left = abs(1 + best if maximize is not below else 1 - best)
    return (total - best) / left if left else math.inf if total > best else 0.0


def _latest(state: CampaignState, until: int, file: CampaignFile) -> dict[str, ArmVerdict]:
    """For each stage the newest verdict on the configuration that it goes on with, up to this round."""
    found: dict[str, ArmVerdict] = {}
    for number in (number for number in _compared(file, state) if number <= until):
        judged = state.judged[number]
        found.update({one.stage: one for one in judged.verdicts if judged.best.get(one.stage) == one.arm})
    return found


def _compared(file: CampaignFile, state: CampaignState) -> list[int]:
    """The judged rounds that the file has still, but for smoke rounds."""
    numbers = (number for number in sorted(state.judged) if number < len(file.rounds))
    return [number for number in numbers if not isinstance(file.rounds[number], SmokeRound)]


def _total_gain(file: CampaignFile, latest: Mapping[str, ArmVerdict]) -> float | None:
    """The gain over the baseline: of all stages' time together, or the largest of a stage; None where not known."""
    known = [one for one in latest.values() if one.value is not None and one.baseline]
    if not known:
        return None
    if file.objective.metric is None:
        return 1 - sum(one.value or 0.0 for one in known) / sum(one.baseline or 0.0 for one in known)
    return max((_gain(file, one.value or 0.0, one.baseline or 0.0) or 0.0) for one in known)
