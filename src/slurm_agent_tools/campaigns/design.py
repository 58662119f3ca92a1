"""What to try next in a round: its trials, in waves. Pure, and the same again for the same campaign and state."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from slurm_agent_tools.campaigns.measured import (
    Arm,
    arms_at,
    baseline_settings,
    best_settings,
    length_of,
    ranked,
)
from slurm_agent_tools.campaigns.search_space import Space, distinct
from slurm_agent_tools.campaigns.searches.model_search import Tried, suggest
from slurm_agent_tools.campaigns.searches.optuna_search import require
from slurm_agent_tools.campaigns.searches.optuna_search import suggest as optuna_suggest
from slurm_agent_tools.campaigns.state import CampaignState, TrialState, trial_value
from slurm_agent_tools.campaigns.trial_identity import arm_of, defaults, identity_of, request_of, varies
from slurm_agent_tools.models.campaign import Setting, Trial, TrialId, TrialPurpose, TrialRequest
from slurm_agent_tools.models.campaign_file import (
    CampaignFile,
    CampaignStage,
    GridRound,
    HalvingRound,
    ListRound,
    RandomRound,
    Round,
    ScaleUpRound,
    SearchRound,
    SmokeRound,
)

Settings = dict[str, Setting]


@dataclass(frozen=True, slots=True)
class _Design:
    """What a wave of a round is made from, for one stage of it."""

    file: CampaignFile
    name: str
    number: int
    state: CampaignState
    stage: CampaignStage

    @property
    def base(self) -> Settings:
        """What is not varied: the best found so far."""
        return best_settings(self.state, self.stage, self.number)

    @property
    def own(self) -> list[TrialState]:
        """The trials that the round has in this stage."""
        listed = self.state.of_round(self.number)
        return [one for one in listed if one.trial.stage == self.stage.name and not superseded(one, self.state)]

    def chance(self, *more: object) -> random.Random:
        """Chance that is the same for the same campaign, round and stage."""
        text = "\n".join(map(str, (self.name, self.number, self.stage.name, *more)))
        return random.Random(hashlib.sha256(text.encode()).digest())  # noqa: S311 - a design, and no secret

    def space(self, varied: Mapping[str, object]) -> Space:
        """Those of the varied names that say something to this stage."""
        return {name: varied[name] for name in varies(self.stage, varied)}  # type: ignore[misc]


def superseded(found: TrialState, state: CampaignState) -> bool:
    """Whether a trial was never sent, and the file has changed since: it is designed anew."""
    return found.phase == "left_out" and found.revision < state.revision


def next_trials(file: CampaignFile, name: str, number: int, state: CampaignState) -> tuple[Trial, ...]:
    """The next wave of a round, counted from 0; () where nothing is to be added, or runs are still awaited for it.

    `name`: the campaign's. Stages that were stopped get nothing. Raises InputError where any round asks for
    Optuna and it is not installed: that is told before the first run.
    """
    this = file.rounds[number]
    for one in file.rounds:
        if isinstance(one, SearchRound) and one.by == "optuna":
            require(one.sampler or "tpe")
    writing = _Writing(file, number, state)
    for stage in taking_part(file, number, state):
        wave = _WAVES[type(this)](_Design(file, name, number, state, stage), this)
        for settings, purpose, repeats in wave:
            writing.ask(stage, settings, purpose, repeats)
    return writing.trials()


def taking_part(file: CampaignFile, number: int, state: CampaignState) -> list[CampaignStage]:
    """The stages of a round: those that it names, or all; those that were stopped, or have nothing varied, are not."""
    return [stage for stage in concerned(file, file.rounds[number]) if stage.name not in state.stopped_stages]


_SPENT_NOW = 0.8
"""Of the chance of a mistake that is left, what the comparisons that are planned take; the rest is for later ones."""


def chance_share(file: CampaignFile, number: int, state: CampaignState) -> float:
    """The share of a campaign's 5% of mistakes that each comparison of the round `number` with its baseline may take.

    Four fifths of what earlier judgements left, in equal parts for each stage of each round that compares by several
    runs and is not judged. However often a file is changed and its rounds are judged anew, all together stay below 1:
    the levels of so many looks add up to no more than was to be spent (Bonferroni's bound; to spend it by a schedule
    that was fixed before is Lan and DeMets, Biometrika 70, 1983).
    """
    planned = (
        this
        for at, this in enumerate(file.rounds)
        if at == number or (at not in state.judged and this.repeats > 1 and not isinstance(this, SmokeRound))
    )
    looks = sum(len(concerned(file, this)) for this in planned)
    return _SPENT_NOW * max(0.0, 1 - state.chance_spent) / max(looks, 1)


def concerned(file: CampaignFile, this: Round) -> list[CampaignStage]:
    """The stages that a round names, or all, of which it varies something."""
    named = (stage for stage in file.stages if this.stages is None or stage.name in this.stages)
    return [stage for stage in named if _concerns(this, stage)]


def _concerns(this: Round, stage: CampaignStage) -> bool:
    if isinstance(this, SmokeRound):
        return True
    if isinstance(this, ScaleUpRound):
        return not this.change or bool(varies(stage, this.change)) or this.stages is not None
    names = set().union(*this.trials) if isinstance(this, ListRound) else set(this.vary)
    if isinstance(this, HalvingRound) and this.length not in stage.parameters:
        return False
    return bool(varies(stage, names))


# --- One kind of round each: (settings, purpose, repeats) of the next wave -------------------------------------------

_Wanted = tuple[Settings, TrialPurpose, int]


def _smoke(design: _Design, this: SmokeRound) -> Iterator[_Wanted]:
    yield {**defaults(design.stage), **design.stage.smoke.change}, "smoke", this.repeats


def baseline_runs(repeats: int, others: int) -> int:
    """How many runs the baseline gets where so many other configurations have `repeats` each.

    All comparisons share it: the root of their number as many as each other one is about the best use of all runs
    (Dunnett, Journal of the American Statistical Association 50, 1955). Where each has one run nothing is compared.
    """
    return 1 if repeats == 1 else math.ceil(repeats * math.sqrt(max(others, 1)))


def _compared(
    design: _Design,
    this: Round,
    others: Sequence[Settings],
    purpose: TrialPurpose = "trial",
    change: Mapping[str, Setting] = MappingProxyType({}),
) -> Iterator[_Wanted]:
    """The baseline, with these settings changed, and what is compared with it."""
    baseline = {**baseline_settings(design.state, design.stage), **change}
    arms = {arm_of(design.stage, settings) for settings in others} - {arm_of(design.stage, baseline)}
    yield baseline, "baseline", baseline_runs(this.repeats, len(arms))
    yield from ((settings, purpose, this.repeats) for settings in others)


def _listed(design: _Design, this: GridRound | ListRound) -> Iterator[_Wanted]:
    base = design.base
    yield from _compared(design, this, [{**base, **row} for row in _rows(design, this) if row])


def _rows(design: _Design, this: GridRound | ListRound) -> Iterator[Settings]:
    if isinstance(this, ListRound):
        for entry in this.trials:
            yield {name: entry[name] for name in varies(design.stage, entry)}
        return
    names = varies(design.stage, this.vary)
    for values in itertools.product(*(this.vary[name] for name in names)):
        yield dict(zip(names, values, strict=True))


def _random(design: _Design, this: RandomRound) -> Iterator[_Wanted]:
    base = design.base
    rows = distinct(design.space(this.vary), this.trials, design.chance())
    yield from _compared(design, this, [{**base, **row} for row in rows])


def _scale_up(design: _Design, this: ScaleUpRound) -> Iterator[_Wanted]:
    change = {name: this.change[name] for name in varies(design.stage, this.change)}
    best = best_arms(design.file, design.number, design.state, design.stage)[: this.best]
    yield from _compared(design, this, [{**arm.settings, **change} for arm in best], "scale_up", change)


def best_arms(file: CampaignFile, before: int, state: CampaignState, stage: CampaignStage) -> list[Arm]:
    """The configurations of all rounds before this one, best first; none that a verdict says to fix or to stop.

    The one that the last judged round goes on with is the first. Of different lengths those that ran in the later round
    come before others: it had reason to run them.
    """
    bad = {
        verdict.arm
        for number, judged in state.judged.items()
        if number < before
        for verdict in judged.verdicts
        if verdict.stage == stage.name and verdict.verdict in {"fix", "stop"}
    }
    found: dict[str, Arm] = {}
    for number in range(before - 1, -1, -1):
        own = [
            one.trial
            for one in state.of_round(number)
            if one.trial.stage == stage.name and one.trial.purpose != "smoke"
        ]
        for length in dict.fromkeys(length_of(stage, trial.settings) for trial in reversed(own)):
            arms = arms_at(file, state, stage, length, only=frozenset(trial.id for trial in own))
            for arm in ranked(file, arms.values()):
                if arm.arm not in bad:
                    found.setdefault(arm.arm, arm)
    chosen = [state.judged[number].best.get(stage.name) for number in sorted(state.judged) if number < before]
    return sorted(found.values(), key=lambda arm: arm.arm != next(reversed(chosen), None))


def _halving(design: _Design, this: HalvingRound) -> Iterator[_Wanted]:
    space, base = design.space(this.vary), design.base
    own = [found for found in design.own if found.trial.purpose != "baseline"]
    steps = rungs(this, design.stage)
    rows: list[Settings] = [{**base, **row} for row in distinct(space, steps[0][1], design.chance())]
    for length, count in steps:
        wanted: list[Settings] = [{**row, this.length: length} for row in rows[:count]]
        at = [found for found in own if found.trial.settings[this.length] == length]
        tried = {found.trial.arm for found in at}
        if any(arm_of(design.stage, settings) not in tried for settings in wanted):
            last = length == steps[-1][0]
            yield from (
                _compared(design, this, wanted, change={this.length: length})
                if last
                else ((settings, "trial", this.repeats) for settings in wanted)
            )
            return
        if not at or any(_awaited(found) for found in at):
            return
        only = frozenset(found.trial.id for found in at)
        arms = arms_at(
            design.file, design.state, design.stage, length_of(design.stage, at[0].trial.settings), only=only
        )
        rows = [dict(arm.settings) for arm in ranked(design.file, arms.values()) if arm.arm in tried]


def _awaited(found: TrialState) -> bool:
    return found.end is None and found.phase not in {"refused", "left_out"}


def rungs(this: HalvingRound, stage: CampaignStage) -> list[tuple[Setting, int]]:
    """The length of each rung and how many configurations reach it, to the last, which is as long as stated.

    Each rung runs `keep_one_of` times as long as the one before and keeps one of so many (Jamieson and Talwalkar,
    Non-stochastic Best Arm Identification, 2016).
    """
    whole = isinstance(stage.parameters[this.length].default, int)
    steps = max(0, math.ceil(math.log(this.to / this.from_, this.keep_one_of) - 1e-9)) if this.to > this.from_ else 0
    found: list[tuple[Setting, int]] = []
    for step in range(steps + 1):
        exact = min(this.from_ * this.keep_one_of**step, this.to)
        count = max(1, this.trials // this.keep_one_of**step)
        found.append((max(1, round(exact)) if whole else float(f"{exact:.12g}"), count))
    return found


def _search(design: _Design, this: SearchRound) -> Iterator[_Wanted]:
    yield baseline_settings(design.state, design.stage), "baseline", baseline_runs(this.repeats, this.trials)
    space, base = design.space(this.vary), design.base
    own = [found for found in design.own if found.trial.purpose == "trial"]
    if any(_awaited(found) for found in own):
        return
    asked = len({found.trial.arm for found in own})
    count = min(max(1, design.file.limits.at_once // this.repeats), this.trials - asked)
    if count <= 0 or not space:
        return
    tried = [
        Tried(found.trial.settings, _value(design, found))
        for found in design.own
        if found.phase == "ended"
        and all(found.trial.settings.get(name) == value for name, value in base.items() if name not in space)
    ]
    seed, maximize = design.chance().getrandbits(32), design.file.objective.maximize
    if this.by == "model":
        rows = suggest(space, tried, count, asked=asked, seed=seed, maximize=maximize)
    else:
        sampler = this.sampler or "tpe"
        rows = optuna_suggest(space, tried, count, asked=asked, seed=seed, maximize=maximize, sampler=sampler)
    yield from (({**base, **row}, "trial", this.repeats) for row in rows)


def _value(design: _Design, found: TrialState) -> float | None:
    return trial_value(design.file, design.state, found.trial.id) if found.passed else None


_WAVES: Mapping[type, Callable[..., Iterable[_Wanted]]] = {
    SmokeRound: _smoke,
    GridRound: _listed,
    ListRound: _listed,
    RandomRound: _random,
    HalvingRound: _halving,
    SearchRound: _search,
    ScaleUpRound: _scale_up,
}


# --- From settings to trials ------------------------------------------------------------------------------------------


class _Writing:
    """Gathers what a wave wants, and makes those into trials that the round does not have yet."""

    def __init__(self, file: CampaignFile, number: int, state: CampaignState) -> None:
        self._file, self._number, self._state = file, number, state
        self._wanted: dict[str, tuple[int, Trial]] = {}
        self._had = {key for found in state.of_round(number) for key in self._keys(found)}
        self._next = max((found.trial.id.number for found in state.of_round(number)), default=0) + 1
        self._likes = _mended_requests(state)

    def _keys(self, found: TrialState) -> Iterator[object]:
        """A trial stands for its identity; once it failed and was not mended, only for what asks for the same."""
        if superseded(found, self._state):
            return
        if found.failed and found.trial.id not in self._state.replaced:
            yield found.trial.identity, found.trial.request
        else:
            yield found.trial.identity

    def ask(self, stage: CampaignStage, settings: Settings, purpose: TrialPurpose, repeats: int) -> None:
        """Every repeat of a configuration; a baseline whose runs are all there already is none to be added."""
        arm = arm_of(stage, settings)
        request = request_of(stage, settings, smoke=purpose == "smoke", like=self._likes.get((stage.name, arm)))
        code = self._state.code.get(stage.name, "")
        identities = [identity_of(stage, settings, repeat, code) for repeat in range(1, repeats + 1)]
        reused = self._state.passed_identities
        if purpose == "baseline" and all(identity in reused for identity in identities):
            return
        for repeat, identity in enumerate(identities, 1):
            if identity in self._had or (identity, request) in self._had or identity in self._wanted:
                continue
            trial = Trial(
                TrialId(self._number, 0), stage.name, purpose, arm, identity, settings, request, repeat,
                reuses=reused.get(identity),
            )  # fmt: skip
            self._wanted[identity] = (repeat, trial)

    def trials(self) -> tuple[Trial, ...]:
        """All first runs, then all second ones: what is cut short has as many of each configuration as can be."""
        order = sorted(self._wanted.values(), key=lambda pair: pair[0])
        return tuple(
            _numbered(trial, TrialId(self._number, number)) for number, (_, trial) in enumerate(order, self._next)
        )


def _numbered(trial: Trial, number: TrialId) -> Trial:
    return Trial(
        number, trial.stage, trial.purpose, trial.arm, trial.identity, trial.settings, trial.request, trial.repeat,
        reuses=trial.reuses,
    )  # fmt: skip


def _mended_requests(state: CampaignState) -> dict[tuple[str, str], TrialRequest]:
    """Stage and arm -> the request with which a run of it passed after one had failed."""
    found: dict[tuple[str, str], TrialRequest] = {}
    for replaced, mending in state.replaced.items():
        mended, failed = state.trials[mending], state.trials[replaced]
        if mended.passed and mended.trial.arm == failed.trial.arm:
            found[mended.trial.stage, mended.trial.arm] = mended.trial.request
    return found
